//! What a run tells the outside, and who listens.
//!
//! The only interface between a run and its reporters: a reporter sees events and can change nothing.

mod fuzz;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use fuzz::{CallCount, CallOutcome, FuzzSummary, Gap, KeywordCoverage, Latency, ResponseClass, ToolFuzz};

use crate::spec::Revision;
use crate::transcript::ShutdownStep;
use crate::verdict::{Evidence, Finding, Totals, Verdict};

/// What a run tells the outside.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The run begins.
    RunStarted {
        /// How the server is named: its command line.
        server: String,
    },
    /// The run knows what the server speaks.
    Probed {
        /// The revisions that will be judged, oldest first.
        revisions: Vec<Revision>,
        /// How many cases will be run over all of them.
        cases: usize,
    },
    /// A line went over the wire (only where somebody asked to see every message).
    Wire {
        /// The connection, in words.
        connection: String,
        /// The line.
        evidence: Evidence,
    },
    /// Tools are about to be fuzzed.
    FuzzingStarted {
        /// The revision.
        revision: Revision,
        /// The tools that will be called.
        tools: Vec<String>,
        /// How many tools are left out.
        left_out: usize,
        /// How many calls each gets.
        calls: u64,
        /// The seed of everything random.
        seed: u64,
    },
    /// A case is judged in one revision.
    CaseFinished(Box<CaseResult>),
    /// Everything about one revision is known.
    TargetFinished(Box<TargetSummary>),
    /// The run is over.
    RunFinished(Box<RunSummary>),
}

/// Somebody who listens to a run.
pub trait Sink: Send {
    /// Takes note of an event.
    ///
    /// # Errors
    /// When what it writes to fails; the run goes on and tells so at its end.
    fn on(&mut self, event: &Event) -> std::io::Result<()>;
}

/// What a case says of the server in one revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct CaseResult {
    /// The case.
    pub case: String,
    /// Its title.
    pub title: String,
    /// The revision that it was judged by.
    pub revision: Revision,
    /// The requirements that it speaks for in this revision.
    pub requirements: Vec<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it was skipped or could not be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The kind of skip, if it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Skipped>,
    /// How many things were seen and judged: answers, messages, places in them.
    pub observed: usize,
    /// What is worth knowing though nothing is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What is wrong, each root cause once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Milliseconds that its own steps took; 0 for a case that only watches.
    pub duration_ms: f64,
}

/// The kinds of skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Skipped {
    /// The case is for servers of another kind.
    NotApplicable,
    /// The server showed nothing that the case could have judged.
    NotObserved,
}

/// A tool that the server lists, and whether it was called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolNote {
    /// Its name.
    pub name: String,
    /// Whether it was called.
    pub called: bool,
    /// Why it was not called, or what came of the call that says why it was not used further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A hint that was in force, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct HintNote {
    /// What it asks, in few words: the method, the name and the arguments.
    pub request: String,
    /// The requirements and cases that it is for.
    #[serde(default, rename = "for", skip_serializing_if = "Vec::is_empty")]
    pub purposes: Vec<String>,
    /// Why it was not asked or not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How one process of the server was started and ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Launch {
    /// What it was for, in words.
    pub purpose: String,
    /// Milliseconds from its start to its first answer, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_ms: Option<f64>,
    /// How far shutting it down had to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown: Option<String>,
    /// The messages that we sent and that we received.
    pub sent: usize,
    /// The lines that it wrote.
    pub received: usize,
}

impl Launch {
    /// The word for a step of the shutdown.
    #[must_use]
    pub fn word(step: ShutdownStep) -> &'static str {
        match step {
            ShutdownStep::AlreadyExited => "already-exited",
            ShutdownStep::StdinClosed => "stdin-closed",
            ShutdownStep::Sigterm => "sigterm",
            ShutdownStep::Sigkill => "sigkill",
            ShutdownStep::Disconnected => "disconnected",
        }
    }
}

/// Everything about one revision beside its cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct TargetSummary {
    /// The revision.
    pub revision: Revision,
    /// What the server calls itself: `name` and `version`, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_info: Option<Value>,
    /// The capabilities that it declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Value>,
    /// Its tools, and which were called.
    pub tools: Vec<ToolNote>,
    /// The hints that were in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<HintNote>,
    /// Its processes.
    pub launches: Vec<Launch>,
    /// The end of what its processes wrote to their error streams.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// Why judging it ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_early: Option<String>,
    /// What fuzzing exercised, where it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuzz: Option<FuzzSummary>,
    /// How often each verdict was given.
    pub totals: Totals,
}

/// What is known at the end of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct RunSummary {
    /// How often each verdict was given, over all revisions.
    pub totals: Totals,
    /// What the run took.
    pub timing: Timing,
    /// Why nothing, or not everything, could be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// Why nothing, or not everything, could be judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Problem {
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// What happened, in one sentence.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// The end of what the server wrote to its error stream.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// The last messages either way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// What kind of problem kept a run from judging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ProblemKind {
    /// The server could not be started, or never spoke the protocol.
    NotAServer,
    /// The server speaks, but none of what was asked for.
    NothingToJudge,
    /// The server stopped answering, or was cut off.
    Stopped,
    /// The run was interrupted.
    Interrupted,
}

/// What a run took, in milliseconds and in processes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Timing {
    /// From the first start to the last end.
    pub wall_ms: f64,
    /// How many processes of the server were started.
    pub launches: usize,
    /// The median from the start of a process to its first answer.
    pub startup_ms: f64,
    /// What the suite itself spent judging.
    pub judging_ms: f64,
    /// Processor time of the suite itself, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_cpu_ms: Option<f64>,
}
