//! The errors of the command line. Each message says what to do.

use std::io::{self, Write};
use std::path::PathBuf;

use mcp_conformance::JudgeError;
use mcp_conformance::internals::case::LoadError;
use mcp_conformance::internals::run::{LineError, RecordingError, RegressionError};
use mcp_conformance::report::merge::MergeError;
use mcp_conformance::report::visible::visible;
use mcp_conformance::report::{Conclusion, ReportError};

use super::config::ConfigError;
use super::config_file_name::FILE_NAME;
use super::server_mistake::ServerMistake;

/// An error of the command line.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    /// The server or a setting cannot be used.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// No server is given.
    #[error(
        "no server is given: add the command that starts it, or its URL, or describe it in {FILE_NAME}, which `mcp-conformance init -- COMMAND` writes"
    )]
    NoServer,
    /// A word follows the URL of a server.
    #[error(
        "unexpected `{0}` after the URL of the server: put options of mcp-conformance before the URL, and use --url to have the server started by a command (`mcp-conformance --url URL -- ./my-server`)"
    )]
    WordAfterUrl(String),
    /// Options for HTTP servers without a URL.
    #[error(
        "--header, --bearer-env and the options like it, and --insecure need an HTTP server: give its URL, with or without --url"
    )]
    HttpOptionWithoutUrl,
    /// A header that cannot be parsed. It may be a secret, so it is not repeated.
    #[error("--header: expected a name, a colon and a value; write it as --header 'Name: value'")]
    Header,
    /// The environment variable of `serve --protected` holds no token.
    #[error("--protected {0}: the environment variable is not set, empty or not Unicode; set it to the token")]
    ProtectionToken(String),
    /// The words of the server name something else.
    #[error(transparent)]
    ServerMistake(#[from] ServerMistake),
    /// A configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A pattern of `--tool` matches none of the server's tools.
    #[error("--tool {pattern}: the server has no such tool; its tools are {}", tools.join(", "))]
    UnmatchedTool {
        /// The pattern.
        pattern: String,
        /// The tools.
        tools: Vec<String>,
        /// The conclusion of the run.
        conclusion: Conclusion,
    },
    /// The configuration or a workflow cannot be written by `init`.
    #[error("failed to create {}: {source}{}", path.display(), if source.kind() == io::ErrorKind::AlreadyExists { "; move it away, or name another file with --output" } else { "" })]
    Init {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// `init` could not inspect the server.
    #[error("failed to inspect the server: {message}; {hint}")]
    InitServer {
        /// What happened.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// `latest` or `all` together with other revisions.
    #[error("--revision {0} cannot be combined with other revisions")]
    CombinedRevision(&'static str),
    /// Hints could not be discovered.
    #[error("failed to try out the server: {message}; {hint}")]
    HintDiscovery {
        /// What happened.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The file for the hints cannot be created.
    #[error("failed to create {} for --output: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Two reports have the same destination.
    #[error("--report writes two reports to {0}; give each its own file, such as `--report json=report.json`")]
    DuplicateReport(String),
    /// The file for a report cannot be created.
    #[error("failed to open {} for --report: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file for a transcript cannot be created.
    #[error("failed to create {} for --save-transcript: {source}", path.display())]
    SaveTranscript {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A baseline is invalid.
    #[error("failed to read the baseline:\n{0}")]
    Baseline(LoadError),
    /// A baseline does not exist.
    #[error("failed to read the baseline {}: the file does not exist; --update-baseline writes it", .0.display())]
    MissingBaseline(PathBuf),
    /// A baseline cannot be written.
    #[error("failed to write the baseline {}: {source}", path.display())]
    WriteBaseline {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A baseline for one shard.
    #[error(
        "--baseline cannot be used with --shard, because one shard cannot show which entries are stale; use it with `mcp-conformance merge`"
    )]
    ShardBaseline,
    /// The file of a report cannot be read.
    #[error("failed to read the report {}: {source}", path.display())]
    ReadReport {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file of a recording cannot be read.
    #[error("failed to read the recording {}: {source}", path.display())]
    ReadRecording {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A line of a recording has another form.
    #[error("failed to read the recording {}: {error}", path.display())]
    RecordingLine {
        /// The file.
        path: PathBuf,
        /// What is wrong with the line.
        error: LineError,
    },
    /// A recording cannot be judged.
    #[error("failed to judge the recording {file}: {source}")]
    Recording {
        /// The file.
        file: String,
        /// What is wrong with it.
        source: RecordingError,
    },
    /// `record` sits between streams.
    #[error(
        "`record` records a server that speaks over its standard streams: give the command that starts it (`mcp-conformance record --output FILE -- ./my-server`); `mcp-conformance --save-transcript FILE URL` saves a run over HTTP"
    )]
    RecordUrl,
    /// The server of `record` cannot be started.
    #[error("failed to run {program}: {source}")]
    Record {
        /// The program.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A file is not a report.
    #[error("failed to use {}: {source}", path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ReportError,
    },
    /// Reports are not the shards of one run.
    #[error("failed to merge: {0}")]
    Merge(#[from] MergeError),
    /// A name is neither a case nor a requirement.
    #[error("`{name}` is neither a case nor a requirement{}", suggestion(nearest))]
    UnknownName {
        /// The name.
        name: String,
        /// The most similar known names, best first.
        nearest: Vec<String>,
    },
    /// A page of the book cannot be written.
    #[error("failed to write {}: {source}; name another folder with --output", path.display())]
    WritePage {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The reference server with the fault of a case does not violate it.
    #[error(
        "the case {case} finds nothing on the reference server with the fault `{fault}`; try again on a machine that is less busy, or leave the messages out with --without-examples"
    )]
    NoExample {
        /// The case.
        case: String,
        /// Its fault.
        fault: String,
    },
    /// A name is not an area of the specification.
    #[error("unknown area `{name}`; the areas are {}", known.join(", "))]
    UnknownArea {
        /// The name.
        name: String,
        /// Every area.
        known: Vec<String>,
    },
    /// The file of a failing call is invalid.
    #[error("failed to {0}")]
    Regression(#[from] RegressionError),
    /// The program cannot find its own file.
    #[error("failed to find the file of this program, which the demo starts as its server: {0}")]
    OwnProgram(io::Error),
    /// The asynchronous runtime could not be started.
    #[error("failed to start an asynchronous runtime: {0}")]
    Runtime(io::Error),
    /// The reference server lost its streams.
    #[error("failed to serve: {0}")]
    Serve(io::Error),
    /// A result could not be written.
    #[error("failed to write {what}: {source}")]
    Write {
        /// What could not be written.
        what: String,
        /// The error of the system.
        source: io::Error,
        /// The conclusion of the run.
        conclusion: Conclusion,
    },
}

impl From<io::Error> for CliError {
    /// Commands that only print write to nothing but standard output.
    fn from(source: io::Error) -> Self {
        Self::Write { what: "to standard output".to_owned(), source, conclusion: Conclusion::Passed }
    }
}

impl CliError {
    /// Prints the error on standard error, unless the reader of standard output closed the pipe on purpose.
    pub(super) fn print(&self) {
        if let Self::Write { source, .. } = self
            && source.kind() == io::ErrorKind::BrokenPipe
        {
            return;
        }
        let text = self.to_string();
        let mut out = io::stderr().lock();
        for (index, line) in text.lines().enumerate() {
            let start = if index == 0 { "error: " } else { "       " };
            if writeln!(out, "{start}{}", visible(line)).is_err() {
                // Standard error is closed; the exit code still reports the error.
                return;
            }
        }
    }
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => "; `mcp-conformance --list` lists the cases".to_owned(),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("; did you mean {}?", names.join(" or "))
        }
    }
}
