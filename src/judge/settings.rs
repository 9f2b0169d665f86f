//! The settings of a run, and the only place where their defaults are.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::plan::{CallPolicy, Revisions};
use crate::report::{Accept, FailOn, Shard};

/// The settings of a run.
///
/// [`Settings::default`] has the defaults of the command line.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use mcp_conformance::{FuzzSettings, Revision, Settings};
///
/// let settings = Settings {
///     revisions: [Revision::V2025_06_18].into(),
///     skip: vec!["resources/*".to_owned()],
///     timeout: Duration::from_secs(10),
///     fuzz: Some(FuzzSettings { calls: Some(2_000), ..FuzzSettings::default() }),
///     ..Settings::default()
/// };
/// # let _settings = settings;
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The revisions that are judged. Default: every released one that the server supports.
    pub revisions: Revisions,
    /// Only cases whose id, area or tag matches one of these globs run. Default: every case.
    pub select: Vec<String>,
    /// Cases whose id, area or tag matches one of these globs do not run. Default: none.
    pub skip: Vec<String>,
    /// A folder of additional cases. Default: none.
    pub cases: Option<PathBuf>,
    /// The shard of the cases that runs, where a run is split over several machines. Default: all of them.
    pub shard: Option<Shard>,
    /// A file of known findings that are accepted. A whole run fails if an entry is out of date. Default: none.
    pub baseline: Option<PathBuf>,
    /// Which findings fail the run. Default: those that violate a MUST rule.
    pub fail_on: FailOn,
    /// Whose findings do not fail the run: those that the server's SDK causes on every server, or none. Default: none.
    pub accept: Option<Accept>,
    /// Which tools may be called. Default: every tool not annotated as destructive; on a server on another machine,
    /// only those annotated as read-only.
    pub calls: Option<CallPolicy>,
    /// A file of hints: example requests that show more of the server. Default: none.
    pub hints: Option<PathBuf>,
    /// The seed of every random choice. Default: 0.
    pub seed: u64,
    /// The number of times that a failing case is retried on a fresh process before its finding counts. Default: 1.
    pub retries: u8,
    /// The time limit of a request. Default: 5 seconds.
    pub timeout: Duration,
    /// The time limit of the server's first response. Default: 30 seconds.
    pub startup_timeout: Duration,
    /// The time that the server has for each step of its shutdown. Default: 2 seconds.
    pub shutdown_grace: Duration,
    /// The maximum number of server processes, or connections, that run in parallel. Default: twice the number of
    /// processors, at least 4; for fuzzing, the number of processors.
    pub jobs: Option<NonZero<usize>>,
    /// The maximum number of fuzz calls per second; over HTTP, of requests of any kind. Default: no limit.
    pub max_rate: Option<NonZero<u32>>,
    /// How tools are fuzzed; `None` turns fuzzing off. Default: [`FuzzSettings::default`].
    pub fuzz: Option<FuzzSettings>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            revisions: Revisions::Supported,
            select: Vec::new(),
            skip: Vec::new(),
            cases: None,
            shard: None,
            baseline: None,
            fail_on: FailOn::Must,
            accept: None,
            calls: None,
            hints: None,
            seed: 0,
            retries: 1,
            timeout: Duration::from_secs(5),
            startup_timeout: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(2),
            jobs: None,
            max_rate: None,
            fuzz: Some(FuzzSettings::default()),
        }
    }
}

/// The settings of fuzzing: generated calls of the server's tools.
#[derive(Debug, Clone, PartialEq)]
pub struct FuzzSettings {
    /// The number of generated calls per tool; `None` makes as many as the schema of the tool needs. The calls that tell
    /// mutants of its schema apart, at most twice as many as a number given here, and those that shrink and confirm a
    /// failure come in addition. Default: as many as needed.
    pub calls: Option<u64>,
    /// The time limit per revision, divided among the tools. Default: 60 seconds, or as much per 200 calls of a tool if
    /// their number is given, and at most 15 ms per call on average.
    pub time: Option<Duration>,
    /// Which of the judged revisions are fuzzed. Default: the newest.
    pub revisions: FuzzRevisions,
    /// Only tools whose name matches one of these globs are fuzzed. Default: every tool that may be called.
    pub tools: Vec<String>,
    /// Tools whose name matches one of these globs are not fuzzed. Default: none.
    pub skip_tools: Vec<String>,
    /// Values for properties of these names, tried wherever the schema allows them. Default: none.
    pub seed_values: Vec<(String, Value)>,
    /// The maximum number of concurrent calls. Default: adapted to the server.
    pub in_flight: Option<NonZero<usize>>,
    /// The folder of saved failing calls, with a folder for each server: they are tried first, and new ones are written
    /// there; `None` does neither. Default: `.mcp-conformance`.
    pub regressions: Option<PathBuf>,
    /// Whether saved calls that no longer fail are removed. Default: no.
    pub prune: bool,
    /// Whether tools that create, read, list, change and delete objects are also called in sequences, on a process of its
    /// own: at most 600 calls and 20 seconds (over HTTP 60) per revision. Not in a shard. Default: no.
    pub sequences: bool,
}

impl Default for FuzzSettings {
    fn default() -> Self {
        Self {
            calls: None,
            time: None,
            revisions: FuzzRevisions::Newest,
            tools: Vec::new(),
            skip_tools: Vec::new(),
            seed_values: Vec::new(),
            in_flight: None,
            regressions: Some(PathBuf::from(".mcp-conformance")),
            prune: false,
            sequences: false,
        }
    }
}

/// Which of the judged revisions are fuzzed.
///
/// # Examples
///
/// ```
/// use mcp_conformance::{Accept, CallPolicy, FailOn, FuzzRevisions, FuzzSettings, Revision, Revisions, Settings};
///
/// // Two revisions, both fuzzed; no tool that is not annotated as read-only is called, and warnings fail the run, unless
/// // the SDK of the server causes them.
/// let settings = Settings {
///     revisions: Revisions::Named(vec![Revision::V2025_11_25, Revision::V2026_07_28]),
///     calls: Some(CallPolicy::ReadOnly),
///     fail_on: FailOn::Should,
///     accept: Some(Accept::Sdk),
///     fuzz: Some(FuzzSettings { revisions: FuzzRevisions::All, ..FuzzSettings::default() }),
///     ..Settings::default()
/// };
/// assert!(settings.revisions.possible().contains(Revision::V2026_07_28));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FuzzRevisions {
    /// Only the newest.
    #[default]
    Newest,
    /// All of them.
    All,
}
