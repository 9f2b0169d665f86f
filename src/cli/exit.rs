//! Exit codes: the one place where an outcome becomes a number.

use std::process::ExitCode;

use mcp_conformance::report::Conclusion;

use super::error::CliError;

/// The exit code of whatever came of the command line.
pub(super) fn code(outcome: &Result<Conclusion, CliError>) -> ExitCode {
    ExitCode::from(number(outcome))
}

fn number(outcome: &Result<Conclusion, CliError>) -> u8 {
    match outcome {
        Ok(conclusion) => conclusion.code(),
        Err(
            CliError::Site(_)
            | CliError::BehindAddress(_)
            | CliError::HttpWithoutUrl
            | CliError::Header
            | CliError::NoToken(_)
            | CliError::NoServedToken(_)
            | CliError::MisplacedWord(_)
            | CliError::RevisionChoice(_)
            | CliError::Pattern(_)
            | CliError::Cases(_)
            | CliError::Hints(_)
            | CliError::Untried { .. }
            | CliError::Create { .. }
            | CliError::Directory(_)
            | CliError::SamePlace(_)
            | CliError::Open { .. }
            | CliError::UnknownName { .. }
            | CliError::UnknownArea { .. }
            | CliError::Baseline(_)
            | CliError::NoBaseline(_)
            | CliError::WriteBaseline { .. }
            | CliError::ShardBaseline
            | CliError::ReadReport { .. }
            | CliError::Report { .. }
            | CliError::Merge(_)
            | CliError::Regression(_)
            | CliError::Own(_)
            | CliError::Runtime(_)
            | CliError::Serve(_),
        ) => Conclusion::Unjudged.code(),
        // A broken rule stays broken; anything else that nobody could read counts as not judged, so
        // that a closed pipe never looks like a pass.
        Err(CliError::Lost { conclusion, .. }) => match conclusion {
            Conclusion::Failed => Conclusion::Failed.code(),
            Conclusion::Passed | Conclusion::Unjudged | Conclusion::Nothing => Conclusion::Unjudged.code(),
        },
    }
}

/// Prints what clap has to say, which is its help or its complaint, and gives the exit code of it.
pub(super) fn unparsed(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    if error.use_stderr() || printed.is_err() { ExitCode::from(Conclusion::Unjudged.code()) } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn lost(conclusion: Conclusion) -> Result<Conclusion, CliError> {
        let source = io::Error::from(io::ErrorKind::BrokenPipe);
        Err(CliError::Lost { what: "the report".to_owned(), source, conclusion })
    }

    #[test]
    fn each_conclusion_has_its_code() {
        assert_eq!(Conclusion::ALL.map(|conclusion| number(&Ok(conclusion))), [0, 1, 2, 3]);
    }

    #[test]
    fn a_report_that_nobody_could_read_never_counts_as_a_pass() {
        assert_eq!(Conclusion::ALL.map(|conclusion| number(&lost(conclusion))), [2, 1, 2, 2]);
    }

    #[test]
    fn bad_usage_is_told_apart_from_a_failing_server() {
        assert_eq!(number(&Err(CliError::BehindAddress("-v".to_owned()))), 2);
        assert_eq!(number(&Err(CliError::RevisionChoice("latest"))), 2);
    }
}
