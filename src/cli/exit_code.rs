//! The exit codes, all of them.

use std::io;
use std::process::ExitCode;

use mcp_conformance::report::Conclusion;

use super::error::CliError;

/// The exit code of a command that fails with an error.
pub(super) fn of_error(error: &CliError) -> ExitCode {
    ExitCode::from(number(error))
}

fn number(error: &CliError) -> u8 {
    match error {
        CliError::Judge(_)
        | CliError::NoServer
        | CliError::WordAfterUrl(_)
        | CliError::HttpOptionWithoutUrl
        | CliError::Header
        | CliError::ProtectionToken(_)
        | CliError::ServerMistake(_)
        | CliError::Config(_)
        | CliError::Init { .. }
        | CliError::InitServer { .. }
        | CliError::CombinedRevision(_)
        | CliError::HintDiscovery { .. }
        | CliError::Create { .. }
        | CliError::DuplicateReport(_)
        | CliError::Open { .. }
        | CliError::SaveTranscript { .. }
        | CliError::UnknownName { .. }
        | CliError::UnknownArea { .. }
        | CliError::WritePage { .. }
        | CliError::NoExample { .. }
        | CliError::Baseline(_)
        | CliError::MissingBaseline(_)
        | CliError::WriteBaseline { .. }
        | CliError::ShardBaseline
        | CliError::ReadReport { .. }
        | CliError::ReadRecording { .. }
        | CliError::RecordingLine { .. }
        | CliError::Recording { .. }
        | CliError::Record { .. }
        | CliError::RecordUrl
        | CliError::Report { .. }
        | CliError::Merge(_)
        | CliError::Regression(_)
        | CliError::OwnProgram(_)
        | CliError::Runtime(_)
        | CliError::Serve(_) => Conclusion::Unjudged.code(),
        // Whoever reads the output may close it early, which changes nothing about the server.
        CliError::Write { source, conclusion, .. } if source.kind() == io::ErrorKind::BrokenPipe => conclusion.code(),
        // A failed server stays failed. Any other conclusion counts as not judged: a report that is missing, or fuzzing
        // that did not take place, never looks like a pass.
        CliError::Write { conclusion, .. } | CliError::UnmatchedTool { conclusion, .. } => match conclusion {
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
    use super::*;

    fn unwritten(conclusion: Conclusion, kind: io::ErrorKind) -> CliError {
        let source = io::Error::from(kind);
        CliError::Write { what: "the report".to_owned(), source, conclusion }
    }

    #[test]
    fn each_conclusion_has_its_code() {
        assert_eq!(Conclusion::ALL.map(Conclusion::code), [0, 1, 2, 3]);
    }

    #[test]
    fn a_report_that_could_not_be_written_never_counts_as_a_pass() {
        let full = io::ErrorKind::StorageFull;
        assert_eq!(Conclusion::ALL.map(|conclusion| number(&unwritten(conclusion, full))), [2, 1, 2, 2]);
    }

    #[test]
    fn a_closed_pipe_changes_no_verdict() {
        let closed = io::ErrorKind::BrokenPipe;
        assert_eq!(Conclusion::ALL.map(|conclusion| number(&unwritten(conclusion, closed))), [0, 1, 2, 3]);
    }

    #[test]
    fn bad_usage_differs_from_a_failing_server() {
        assert_eq!(number(&CliError::WordAfterUrl("-v".to_owned())), 2);
        assert_eq!(number(&CliError::CombinedRevision("latest")), 2);
    }
}
