//! From the words of a command line to the part that does what they ask.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser as _;
use mcp_conformance::report::Conclusion;

use super::args::{Args, Command};
use super::error::CliError;
use super::{again, coverage, demo, exit, explain, hints, judge, render, serve};

/// Does what the command line asks.
pub(crate) fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return exit::unparsed(&error),
    };
    let outcome = perform(args);
    if let Err(error) = &outcome {
        error.tell();
    }
    exit::code(&outcome)
}

fn perform(args: Args) -> Result<Conclusion, CliError> {
    match args.command {
        None => judge::judge(&args.judge),
        Some(Command::Explain(explain)) => written(|out| explain::explain(&explain, out)),
        Some(Command::Coverage(coverage)) => written(|out| coverage::coverage(&coverage, out)),
        Some(Command::Hints(hints)) => hints::hints(&hints),
        Some(Command::Demo(demo)) => demo::demo(&demo),
        Some(Command::Replay(replay)) => again::again(&replay),
        Some(Command::Serve(serve)) if serve.list_faults => written(|out| Ok(serve::list_faults(out)?)),
        Some(Command::Serve(serve)) => serve::serve(&serve),
        Some(Command::Report(args)) => render::report(&args),
        Some(Command::Merge(args)) => render::merge(&args),
        Some(Command::Diff(args)) => {
            let mut conclusion = Conclusion::Passed;
            written(|out| {
                conclusion = render::diff(&args, out)?;
                Ok(())
            })?;
            Ok(conclusion)
        }
        Some(Command::Fleet(args)) => written(|out| render::fleet(&args, out)),
    }
}

/// Has something written to standard output; that it arrives is part of the job.
pub(super) fn written(write: impl FnOnce(&mut dyn Write) -> Result<(), CliError>) -> Result<Conclusion, CliError> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write(&mut out)?;
    out.flush()?;
    Ok(Conclusion::Passed)
}
