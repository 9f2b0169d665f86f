//! The exit codes, all of them.

use std::process::ExitCode;

use mcp_conformance::report::Conclusion;

use super::error::CliError;

/// The exit code of a command.
pub(super) fn of(result: &Result<Conclusion, CliError>) -> ExitCode {
    ExitCode::from(number(result))
}

fn number(result: &Result<Conclusion, CliError>) -> u8 {
    match result {
        Ok(conclusion) => conclusion.code(),
        Err(
            CliError::Judge(_)
            | CliError::NoServer
            | CliError::WordAfterUrl(_)
            | CliError::HttpOptionWithoutUrl
            | CliError::Header
            | CliError::ProtectionToken(_)
            | CliError::MisplacedSubcommand(_)
            | CliError::CombinedRevision(_)
            | CliError::HintDiscovery { .. }
            | CliError::Create { .. }
            | CliError::DuplicateReport(_)
            | CliError::Open { .. }
            | CliError::UnknownName { .. }
            | CliError::UnknownArea { .. }
            | CliError::Baseline(_)
            | CliError::MissingBaseline(_)
            | CliError::WriteBaseline { .. }
            | CliError::ShardBaseline
            | CliError::ReadReport { .. }
            | CliError::Report { .. }
            | CliError::Merge(_)
            | CliError::Regression(_)
            | CliError::OwnProgram(_)
            | CliError::Runtime(_)
            | CliError::Serve(_),
        ) => Conclusion::Unjudged.code(),
        // A failed server stays failed. Any other result that could not be written counts as not judged, so that a
        // closed pipe never looks like a pass.
        Err(CliError::Write { conclusion, .. }) => match conclusion {
            Conclusion::Failed => Conclusion::Failed.code(),
            Conclusion::Passed | Conclusion::Unjudged | Conclusion::NothingJudged => Conclusion::Unjudged.code(),
        },
    }
}

/// Prints the help, the version or the error of clap, and returns its exit code.
pub(super) fn print_usage_error(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    if error.use_stderr() || printed.is_err() { ExitCode::from(Conclusion::Unjudged.code()) } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn unwritten(conclusion: Conclusion) -> Result<Conclusion, CliError> {
        let source = io::Error::from(io::ErrorKind::BrokenPipe);
        Err(CliError::Write { what: "the report".to_owned(), source, conclusion })
    }

    #[test]
    fn each_conclusion_has_its_code() {
        assert_eq!(Conclusion::ALL.map(|conclusion| number(&Ok(conclusion))), [0, 1, 2, 3]);
    }

    #[test]
    fn a_report_that_could_not_be_written_never_counts_as_a_pass() {
        assert_eq!(Conclusion::ALL.map(|conclusion| number(&unwritten(conclusion))), [2, 1, 2, 2]);
    }

    #[test]
    fn bad_usage_differs_from_a_failing_server() {
        assert_eq!(number(&Err(CliError::WordAfterUrl("-v".to_owned()))), 2);
        assert_eq!(number(&Err(CliError::CombinedRevision("latest"))), 2);
    }
}
