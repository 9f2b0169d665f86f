//! Parses the command line and calls the module of its subcommand.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser as _;
use mcp_conformance::report::Conclusion;

use super::args::{Args, Command};
use super::error::CliError;
use super::{coverage, demo, exit_code, explain, hints, judge, replay, saved_reports, serve};

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return exit_code::print_usage_error(&error),
    };
    let result = dispatch(args);
    if let Err(error) = &result {
        error.print();
    }
    exit_code::of(&result)
}

fn dispatch(args: Args) -> Result<Conclusion, CliError> {
    match args.command {
        None => judge::judge(&args.judge),
        Some(Command::Explain(explain)) => print(|out| explain::explain(&explain, out)),
        Some(Command::Coverage(coverage)) => print(|out| coverage::coverage(&coverage, out)),
        Some(Command::Hints(hints)) => hints::hints(&hints),
        Some(Command::Demo(demo)) => demo::demo(&demo),
        Some(Command::Replay(replay)) => replay::replay(&replay),
        Some(Command::Serve(serve)) if serve.list_faults => print(|out| Ok(serve::list_faults(out)?)),
        Some(Command::Serve(serve)) => serve::serve(&serve),
        Some(Command::Report(args)) => saved_reports::report(&args),
        Some(Command::Merge(args)) => saved_reports::merge(&args),
        Some(Command::Diff(args)) => {
            let mut conclusion = Conclusion::Passed;
            print(|out| {
                conclusion = saved_reports::diff(&args, out)?;
                Ok(())
            })?;
            Ok(conclusion)
        }
        Some(Command::Fleet(args)) => print(|out| saved_reports::fleet(&args, out)),
    }
}

/// Writes to standard output. A failure to write is an error of the command.
pub(super) fn print(write: impl FnOnce(&mut dyn Write) -> Result<(), CliError>) -> Result<Conclusion, CliError> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write(&mut out)?;
    out.flush()?;
    Ok(Conclusion::Passed)
}
