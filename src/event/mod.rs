//! The events of a run and the interface of their consumers.
//!
//! Events are the only interface between a run and its reporters; a reporter cannot influence the run.
//!
//! # Examples
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use mcp_conformance::event::{CaseResult, Event, Launch, RunSummary, TargetSummary, Waits};
//! use mcp_conformance::{Judge, Server, Settings};
//!
//! let settings = Settings { select: vec!["tools/list/*".to_owned()], ..Settings::default() };
//! let said = Arc::new(Mutex::new(Vec::new()));
//! let log = Arc::clone(&said);
//! let report = Judge::new(Server::reference([]))
//!     .settings(settings)
//!     .observe(move |event| {
//!         if let Event::CaseFinished(result) = event {
//!             let CaseResult { case, revision, .. } = result.as_ref();
//!             log.lock().expect("no other event panicked").push(format!("{case} in {revision}"));
//!         }
//!     })
//!     .run_blocking()?;
//! assert_eq!(said.lock().expect("no event panicked").len(), report.results().count());
//!
//! // What it cost.
//! let RunSummary { totals, timing, .. } = report.summary.as_ref().expect("the run ended");
//! let targets = report.targets.iter().map(|target| &target.summary);
//! let launches: Vec<&Launch> = targets.flat_map(|TargetSummary { launches, .. }| launches).collect();
//! assert!(totals.judged() > 0 && timing.launches >= launches.len());
//! let Waits { answered, unanswered, .. } = timing.waits.expect("only older reports have none");
//! assert!(answered > 0 && unanswered == 0);
//! # Ok::<(), mcp_conformance::JudgeError>(())
//! ```
//!
//! Why something was not judged:
//!
//! ```
//! use mcp_conformance::event::{HintNote, Problem, ProblemKind, SkipKind, Timing, ToolNote};
//! use mcp_conformance::{Judge, Report, Server, Settings};
//!
//! fn gaps(report: &Report) -> Vec<String> {
//!     let mut gaps = Vec::new();
//!     for result in report.results() {
//!         match result.skipped {
//!             Some(SkipKind::NotApplicable) => {}
//!             // A hint may help, or another way to start the server.
//!             Some(SkipKind::NotObserved) => gaps.push(format!("{}: not shown", result.case)),
//!             _ => gaps.extend(result.reason.iter().map(|reason| format!("{}: {reason}", result.case))),
//!         }
//!     }
//!     for target in &report.targets {
//!         for ToolNote { name, note, .. } in target.summary.tools.iter().filter(|tool| !tool.called) {
//!             gaps.push(format!("{name} was not called: {}", note.as_deref().unwrap_or_default()));
//!         }
//!         for HintNote { request, note, .. } in &target.summary.hints {
//!             gaps.extend(note.iter().map(|note| format!("{request}: {note}")));
//!         }
//!     }
//!     if let Some(Problem { message, hint, .. }) = report.summary.as_ref().and_then(|summary| summary.problem.as_ref()) {
//!         gaps.push(format!("{message} ({hint})"));
//!     }
//!     gaps
//! }
//!
//! let settings = Settings { select: vec!["tools/list/*".to_owned()], ..Settings::default() };
//! let report = Judge::new(Server::reference([])).settings(settings.clone()).run_blocking()?;
//! assert!(gaps(&report).iter().any(|gap| gap.starts_with("erase was not called: it is annotated destructive")));
//!
//! let report = Judge::new(Server::command("false")).settings(settings).run_blocking()?;
//! let summary = report.summary.as_ref().expect("the run ended");
//! assert_eq!(summary.problem.as_ref().map(|problem| problem.kind), Some(ProblemKind::NotAServer));
//! let Timing { launches, wall_ms, .. } = summary.timing;
//! assert!(launches > 0 && wall_ms > 0.0, "{:?}", gaps(&report));
//! # Ok::<(), mcp_conformance::JudgeError>(())
//! ```
//!
//! How thoroughly each tool was fuzzed:
//!
//! ```
//! use mcp_conformance::event::{
//!     CallCount, FuzzSummary, Gap, KeywordCoverage, Latency, MutantCoverage, ResponseClass, SavedCalls, SequenceSummary,
//!     ToolFuzz, ToolLink, Untested,
//! };
//! use mcp_conformance::verdict::{CallKind, CallOutcome};
//! use mcp_conformance::{FuzzSettings, Judge, Server, Settings};
//!
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let regressions = Some(folder.path().to_path_buf());
//! let fuzz = FuzzSettings { calls: Some(20), tools: vec!["add".to_owned()], regressions, ..FuzzSettings::default() };
//! let settings = Settings { select: vec!["fuzz/*".to_owned()], fuzz: Some(fuzz), ..Settings::default() };
//! let report = Judge::new(Server::reference([])).settings(settings).run_blocking()?;
//!
//! let summary = report.targets.iter().find_map(|target| target.summary.fuzz.as_ref()).expect("a revision was fuzzed");
//! let FuzzSummary { seed, tools, saved_calls, sequences, .. } = summary;
//! let ToolFuzz { calls, latency, keywords, mutants, responses, gaps, untested, .. } =
//!     tools.iter().find(|tool| tool.tool == "add").expect("the tool was fuzzed");
//! if let Some(Untested { reason, remedy, .. }) = untested {
//!     panic!("no call succeeded: {reason}; {remedy}");
//! }
//! // No invalid arguments were accepted, and valid ones were served.
//! let count = |wanted: CallKind, got: CallOutcome| -> u64 {
//!     calls.iter().filter(|one| (one.kind, one.outcome) == (wanted, got)).map(|CallCount { count, .. }| count).sum()
//! };
//! assert!(count(CallKind::Valid, CallOutcome::Success) > 0, "seed {seed}");
//! assert_eq!(count(CallKind::Invalid, CallOutcome::Success), 0);
//! // What the calls could tell about the schema, and what they could not.
//! let tested = |one: &&KeywordCoverage| one.satisfied > 0 && one.violated > 0;
//! assert!(keywords.iter().filter(tested).any(|one| one.keyword == "type"), "{keywords:?}");
//! for MutantCoverage { class, told, total, not_told, .. } in mutants {
//!     assert!(told <= total, "{class}");
//!     for Gap { obligation, reason, .. } in not_told.iter().chain(gaps) {
//!         println!("{obligation}: {reason}");
//!     }
//! }
//! let most_frequent: Option<&ResponseClass> = responses.first();
//! assert!(most_frequent.is_some_and(|class| class.count > 0));
//! let median: Option<u64> = latency.as_ref().map(|Latency { p50_us, .. }| *p50_us);
//! assert!(median.is_some());
//! // With `FuzzSettings::sequences`: which tool takes what another returns.
//! let links = sequences.iter().flat_map(|SequenceSummary { links, .. }| links);
//! for ToolLink { producer, consumer, argument, .. } in links.filter(|link| link.confirmed) {
//!     println!("{consumer} takes its {argument} from {producer}");
//! }
//! // Nothing failed, so that nothing was saved.
//! assert!(saved_calls.as_ref().is_none_or(|SavedCalls { saved, .. }| *saved == 0));
//! # Ok::<(), mcp_conformance::JudgeError>(())
//! ```

mod fuzz;
mod installed_package;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use fuzz::{
    CallCount, FuzzSummary, Gap, KeywordCoverage, Latency, MutantCoverage, ResponseClass, SavedCalls, SequenceSummary,
    ToolFuzz, ToolLink, Untested,
};
#[doc(hidden)]
pub use installed_package::{InstalledPackage, PackageKind};

use crate::spec::Revision;
pub use crate::verdict::CallOutcome;
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
    /// A line of the transcript (only if the run saves one).
    TranscriptLine {
        /// The line, without a line feed.
        line: String,
    },
    /// Fuzzing of some tools starts.
    FuzzingStarted {
        /// The revision.
        revision: Revision,
        /// The tools that will be called.
        tools: Vec<String>,
        /// The number of tools that are excluded.
        excluded: usize,
        /// The number of calls per tool, without those for mutants of its schema; `None` is as many as its schema needs.
        calls: Option<u64>,
        /// The time limit, without the time for shrinking failures and for waiting until cases have finished.
        time: Duration,
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

/// A consumer of the events of a run. For the command line: in a library, [`Judge::observe`](crate::Judge::observe) is
/// given the events.
#[doc(hidden)]
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
    /// What the connections went through that changes no verdict, such as sessions that the server ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
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
    /// What the cases waited for; absent in reports of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
}

/// What cases and discovery waited for. They wait side by side, so that all waits together may be longer than the run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Waits {
    /// The number of requests whose response came.
    pub answered: usize,
    /// How long these were waited for, in milliseconds.
    pub answered_ms: f64,
    /// The number of requests whose response did not come in time.
    pub unanswered: usize,
    /// How long these were waited for, in milliseconds.
    pub unanswered_ms: f64,
    /// How long processes and sessions took to end, in milliseconds.
    pub ending_ms: f64,
}
