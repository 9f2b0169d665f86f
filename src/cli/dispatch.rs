//! Parses the command line and calls the module of its subcommand.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use mcp_conformance::report::Conclusion;
use mcp_conformance::report::visible::visible;

use super::args::{Args, Command};
use super::config::{ConfigError, Configured, with_configuration};
use super::error::CliError;
use super::stdout::print;
use super::{
    completions, coverage, demo, docs, doctor, exit_code, explain, hints, init, judge, judge_file, record, replay,
    saved_reports, serve,
};

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let result = match parse(std::env::args_os().collect()) {
        Ok((args, Configured { words, file })) => {
            if let Some(file) = file {
                show_configuration(&args, &file);
            }
            dispatch(args, &words)
        }
        Err(ParseError::Usage(error)) => return exit_code::print_usage_error(&error),
        Err(ParseError::Config(error)) => Err(error.into()),
    };
    result.unwrap_or_else(|error| {
        error.print();
        exit_code::of_error(&error)
    })
}

/// Why there are no arguments.
enum ParseError {
    Usage(clap::Error),
    Config(ConfigError),
}

/// The arguments that were typed and those of the configuration.
fn parse(typed: Vec<OsString>) -> Result<(Args, Configured), ParseError> {
    let matches = Args::command().try_get_matches_from(&typed).map_err(ParseError::Usage)?;
    let configured = with_configuration(typed, &matches).map_err(ParseError::Config)?;
    let args = Args::try_parse_from(&configured.words).map_err(ParseError::Usage)?;
    Ok((args, configured))
}

/// Says which file a run is configured by, as it may be in a folder above.
fn show_configuration(args: &Args, file: &Path) {
    if args.command.is_none() && !args.judge.output.quiet && !args.judge.list {
        // A closed standard error must not stop the run.
        drop(writeln!(io::stderr(), "configured by {}", visible(&file.display().to_string())));
    }
}

fn dispatch(args: Args, words: &[OsString]) -> Result<ExitCode, CliError> {
    let result = match args.command {
        // Its exit code is that of the server.
        Some(Command::Record(args)) => return record::record(&args, words),
        None => judge::judge(&args.judge, words),
        Some(Command::Init(init)) => init::init(&init, words),
        Some(Command::Completions(args)) => print(|out| Ok(completions::completions(args.shell, out)?)),
        Some(Command::Man) => print(|out| Ok(completions::manual_page(out)?)),
        Some(Command::Doctor(args)) => doctor::doctor(&args, words),
        Some(Command::Explain(explain)) => print(|out| explain::explain(&explain, out)),
        Some(Command::Coverage(coverage)) => print(|out| coverage::coverage(&coverage, out)),
        Some(Command::Docs(args)) => print(|out| docs::docs(&args, out)),
        Some(Command::Hints(hints)) => hints::hints(&hints, words),
        Some(Command::Demo(demo)) => demo::demo(&demo),
        Some(Command::Replay(replay)) => replay::replay(&replay),
        Some(Command::Judge(args)) => judge_file::judge_file(&args),
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
    };
    result.map(|conclusion| ExitCode::from(conclusion.code()))
}
