//! Why the command line could not be followed: each with the remedy in its message.

use std::io::{self, Write};
use std::path::PathBuf;

use mcp_conformance::case::{LoadError, SelectError};
use mcp_conformance::client::SiteError;
use mcp_conformance::report::merge::MergeError;
use mcp_conformance::report::visible::visible;
use mcp_conformance::report::{Conclusion, ReportError};
use mcp_conformance::run::RegressionError;

/// Why the command line could not be followed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    /// The address of a server, or what goes with it, cannot be used.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// Something stands behind the address of a server.
    #[error(
        "`{0}` stands behind the address of the server: our options come before it, and a command that starts the server goes with --url (`mcp-conformance --url URL -- ./my-server`)"
    )]
    BehindAddress(String),
    /// Options for servers over HTTP without an address.
    #[error("--header, --bearer-env and --insecure are for servers over HTTP: give the address, or --url")]
    HttpWithoutUrl,
    /// The variable that is to hold the token of the built-in server.
    #[error("--protected {0}: there is no such variable, or it is empty or not text; set it to the token")]
    NoServedToken(String),
    /// A header that is none. It may be a secret, so it is not repeated.
    #[error("--header: a header has a name, a colon and a value; write it as --header 'Name: value'")]
    Header,
    /// The variable that is to hold a token.
    #[error("--bearer-env {0}: there is no such variable, or it is empty or not text; set it to the token")]
    NoToken(String),
    /// A subcommand stands after options, where it would be taken for a server.
    #[error(
        "`{0}` after options: to run the subcommand put it first (`mcp-conformance {0} [OPTIONS]`), to judge a server of that name write `-- {0}`"
    )]
    MisplacedWord(String),
    /// `latest` or `all` beside other revisions.
    #[error("--revision {0} stands for a choice of its own and cannot be joined with other revisions")]
    RevisionChoice(&'static str),
    /// A pattern that is none, or that matches nothing.
    #[error("{0}")]
    Pattern(#[from] SelectError),
    /// Case files that cannot be used.
    #[error("failed to read the cases:\n{0}")]
    Cases(#[from] LoadError),
    /// A hint file that cannot be used.
    #[error("failed to read the hints of --hints:\n{0}")]
    Hints(LoadError),
    /// A server that could not be tried out.
    #[error("failed to try the server out: {message}; {hint}")]
    Untried {
        /// What happened.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The file that hints are to be written to.
    #[error("failed to create {} for --output: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The folder that the server is to be started in.
    #[error("failed to use --cwd {}: it is no directory", .0.display())]
    Directory(PathBuf),
    /// Two reports for one place.
    #[error("--report names {0} twice; each report needs a place of its own, such as `--report json=report.json`")]
    SamePlace(String),
    /// A report cannot be written where it is wanted.
    #[error("failed to open {} for --report: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A baseline that cannot be used.
    #[error("failed to read the baseline:\n{0}")]
    Baseline(LoadError),
    /// A baseline that is not there.
    #[error("failed to read the baseline {}: there is no such file; --update-baseline writes it", .0.display())]
    NoBaseline(PathBuf),
    /// A baseline that cannot be written.
    #[error("failed to write the baseline {}: {source}", path.display())]
    WriteBaseline {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A baseline for a part of the cases.
    #[error(
        "--baseline cannot be used with --shard: a part of the cases cannot tell what is gone; give it to `mcp-conformance merge`"
    )]
    ShardBaseline,
    /// A report that cannot be read.
    #[error("failed to read the report {}: {source}", path.display())]
    ReadReport {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file that is no report of ours.
    #[error("failed to use {}: {source}", path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ReportError,
    },
    /// Reports that do not belong together.
    #[error("failed to merge: {0}")]
    Merge(#[from] MergeError),
    /// A name that is neither a case nor a requirement.
    #[error("no case and no requirement is named `{name}`{}", nearest_words(nearest))]
    UnknownName {
        /// The name.
        name: String,
        /// The known names that look alike, the likest first.
        nearest: Vec<String>,
    },
    /// A name that is no area of the specification.
    #[error("no area is named `{name}`; the areas are {}", known.join(", "))]
    UnknownArea {
        /// The name.
        name: String,
        /// The areas that there are.
        known: Vec<String>,
    },
    /// A file that is no failing call.
    #[error("failed to {0}")]
    Regression(#[from] RegressionError),
    /// The program does not know where it lies, so that it cannot start itself.
    #[error("failed to find this program's own file, which the demo starts as its server: {0}")]
    Own(io::Error),
    /// The machinery for waiting on processes is not to be had.
    #[error("failed to prepare for waiting on processes: {0}")]
    Runtime(io::Error),
    /// The built-in server lost its streams.
    #[error("failed to serve: {0}")]
    Serve(io::Error),
    /// What was found out could not be written.
    #[error("failed to write {what}: {source}")]
    Lost {
        /// What could not be written.
        what: String,
        /// What the system says.
        source: io::Error,
        /// What the run had come to.
        conclusion: Conclusion,
    },
}

impl From<io::Error> for CliError {
    /// Of everything that is only there to be written, standard output is the only place.
    fn from(source: io::Error) -> Self {
        Self::Lost { what: "to standard output".to_owned(), source, conclusion: Conclusion::Passed }
    }
}

impl CliError {
    /// Tells it on standard error, but for a reader of standard output who has gone away on purpose.
    pub(super) fn tell(&self) {
        if let Self::Lost { source, .. } = self
            && source.kind() == io::ErrorKind::BrokenPipe
        {
            return;
        }
        let text = self.to_string();
        let mut out = io::stderr().lock();
        for (index, line) in text.lines().enumerate() {
            let start = if index == 0 { "error: " } else { "       " };
            if writeln!(out, "{start}{}", visible(line)).is_err() {
                // Standard error is closed; the exit code still says it.
                return;
            }
        }
    }
}

fn nearest_words(nearest: &[String]) -> String {
    match nearest {
        [] => "; `mcp-conformance --list` shows the cases".to_owned(),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("; did you mean {}?", names.join(" or "))
        }
    }
}
