//! The events of a run and the interface of their consumers.
//!
//! Events are the only interface between a run and its reporters; a reporter cannot influence the run.

mod fuzz;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use fuzz::{CallCount, CallOutcome, FuzzSummary, Gap, KeywordCoverage, Latency, ResponseClass, ToolFuzz};

use crate::spec::Revision;
use crate::transcript::ShutdownStep;
use crate::verdict::{Evidence, Finding, Totals, Verdict};

/// An event of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The run starts.
    RunStarted {
        /// The server: its command line or URL.
        server: String,
    },
    /// The run has determined which revisions the server supports.
    Probed {
        /// The revisions that will be judged, oldest first.
        revisions: Vec<Revision>,
        /// The number of cases that will run in all of them.
        cases: usize,
    },
    /// A message was sent or received (only if the run reports every message).
    Wire {
        /// A description of the connection.
        connection: String,
        /// The message.
        evidence: Evidence,
    },
    /// Fuzzing of some tools starts.
    FuzzingStarted {
        /// The revision.
        revision: Revision,
        /// The tools that will be called.
        tools: Vec<String>,
        /// The number of tools that are excluded.
        excluded: usize,
        /// The number of calls per tool.
        calls: u64,
        /// The seed of all random choices.
        seed: u64,
    },
    /// A case was judged in one revision.
    CaseFinished(Box<CaseResult>),
    /// A revision is finished.
    TargetFinished(Box<TargetSummary>),
    /// The run is over.
    RunFinished(Box<RunSummary>),
}

/// A consumer of the events of a run.
pub trait Sink: Send {
    /// Handles an event.
    ///
    /// # Errors
    /// When writing fails; the run continues and reports the error at its end.
    fn on(&mut self, event: &Event) -> std::io::Result<()>;
}

/// The result of a case in one revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct CaseResult {
    /// The id of the case.
    pub case: String,
    /// Its title.
    pub title: String,
    /// The revision in which it was judged.
    pub revision: Revision,
    /// The requirements that it checks in this revision.
    pub requirements: Vec<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it was skipped or could not be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The kind of skip, if it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<SkipKind>,
    /// The number of observations that were judged: responses, messages, positions in them.
    pub observed: usize,
    /// Notes that are not findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The findings, one per root cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// The duration of its own steps in milliseconds; 0 for a passive case.
    pub duration_ms: f64,
}

/// Why a case was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SkipKind {
    /// The case does not apply to this server.
    NotApplicable,
    /// The server showed no behaviour that the case could judge.
    NotObserved,
}

/// A tool of the server and whether it was called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolNote {
    /// Its name.
    pub name: String,
    /// Whether it was called.
    pub called: bool,
    /// Why it was not called, or why it was not used after the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A hint that was used, and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct HintNote {
    /// A short form of its request: method, name and arguments.
    pub request: String,
    /// The requirements and cases that it helps to check.
    #[serde(default, rename = "for", skip_serializing_if = "Vec::is_empty")]
    pub purposes: Vec<String>,
    /// Why the request was not sent, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A process of the server, or a connection to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Launch {
    /// The purpose of the process.
    pub purpose: String,
    /// The time from its start to its first response, if there was one, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_ms: Option<f64>,
    /// The shutdown step that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown: Option<String>,
    /// The number of messages sent to it.
    pub sent: usize,
    /// The number of lines received from it.
    pub received: usize,
}

impl Launch {
    /// The name of a shutdown step in reports.
    #[must_use]
    pub fn shutdown_name(step: ShutdownStep) -> &'static str {
        match step {
            ShutdownStep::AlreadyExited => "already-exited",
            ShutdownStep::StdinClosed => "stdin-closed",
            ShutdownStep::Sigterm => "sigterm",
            ShutdownStep::Sigkill => "sigkill",
            ShutdownStep::Disconnected => "disconnected",
        }
    }
}

/// Everything about one revision except the case results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct TargetSummary {
    /// The revision.
    pub revision: Revision,
    /// The `serverInfo` of the server, if it sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_info: Option<Value>,
    /// The declared capabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Value>,
    /// The tools, and which of them were called.
    pub tools: Vec<ToolNote>,
    /// The hints that were used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<HintNote>,
    /// The processes of the server.
    pub launches: Vec<Launch>,
    /// The end of the stderr output of the processes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// Why the revision was not judged completely, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_early: Option<String>,
    /// The fuzzing statistics, if fuzzing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuzz: Option<FuzzSummary>,
    /// The number of cases by verdict.
    pub totals: Totals,
}

/// The summary of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct RunSummary {
    /// The number of cases by verdict, in all revisions.
    pub totals: Totals,
    /// The duration of the run.
    pub timing: Timing,
    /// The problem that kept the run from judging everything, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// A problem that kept a run from judging everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Problem {
    /// The kind of problem.
    pub kind: ProblemKind,
    /// What happened, in one sentence.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// The end of the stderr output of the server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// The last messages sent and received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ProblemKind {
    /// The server could not be started, or does not speak MCP.
    NotAServer,
    /// The server works, but supports nothing that was selected.
    NothingToJudge,
    /// The server stopped responding or exited.
    Stopped,
    /// The run was interrupted.
    Interrupted,
}

/// The duration of a run and the number of its processes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Timing {
    /// The wall-clock time of the run, in milliseconds.
    pub wall_ms: f64,
    /// The number of server processes that were started.
    pub launches: usize,
    /// The median time from the start of a process to its first response, in milliseconds.
    pub startup_ms: f64,
    /// The time spent judging, in milliseconds.
    pub judging_ms: f64,
    /// The CPU time of the program itself in milliseconds, if the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_cpu_ms: Option<f64>,
}
