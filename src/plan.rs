//! The plan of a run: the server and how it is started, the revisions, the cases and the limits.
//!
//! The plan is made of the user's settings by `judge`; here is no default.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::case::{Case, Hint, HttpKind, Regression};
use crate::client::{HttpEndpoint, InProcessServer};
use crate::reference::FaultSet;
use crate::scratch::ScratchFolder;
use crate::shard::Shard;
use crate::shell::quote_shell_words;
use crate::spec::{Revision, RevisionSet, Transport};

/// Which revisions to judge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Revisions {
    /// Every released revision that the server supports.
    #[default]
    Supported,
    /// The newest revision that the server supports.
    Latest,
    /// Every revision that the server supports, including the pre-release draft 2024-10-07.
    All,
    /// These revisions; one that the server does not support is a problem of the run.
    Named(Vec<Revision>),
}

impl Revisions {
    /// The revisions that can be judged, as far as this is known before the server is started.
    #[must_use]
    pub fn possible(&self) -> RevisionSet {
        match self {
            Self::Supported | Self::Latest => Revision::ALL.into_iter().filter(|one| !one.is_draft()).collect(),
            Self::All => RevisionSet::ALL,
            Self::Named(named) => named.iter().copied().collect(),
        }
    }
}

/// The default number of server processes that run in parallel: more than there are processors, because they mostly
/// wait.
#[must_use]
pub(crate) fn default_jobs() -> usize {
    processors().saturating_mul(2).max(4)
}

/// The number of processors.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Which tools may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallPolicy {
    /// Only tools annotated `readOnlyHint: true`.
    ReadOnly,
    /// Also tools annotated `destructiveHint: false`, and tools without annotations.
    #[default]
    NonDestructive,
    /// Every tool.
    Destructive,
}

/// How many generated calls a tool gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallBudget {
    /// As many as its schema needs.
    ByNeed,
    /// This many, without those for mutants of its schema.
    PerTool(u64),
}

impl CallBudget {
    /// The number of calls that a tool gets at least if its schema needs no more: oracles over many calls, such as those
    /// of growth, need them.
    pub const USUAL: u64 = 200;

    /// The number of calls of a tool with an ordinary schema.
    #[must_use]
    pub fn usual(self) -> u64 {
        match self {
            Self::ByNeed => Self::USUAL,
            Self::PerTool(calls) => calls,
        }
    }
}

/// The plan of a fuzzing campaign.
#[derive(Debug, Clone)]
pub struct FuzzPlan {
    /// How many calls a tool gets, without those that shrink and confirm a failure.
    pub calls: CallBudget,
    /// The time limit per revision.
    pub time: Option<Duration>,
    /// The maximum number of calls per second.
    pub max_rate: Option<f64>,
    /// The maximum number of concurrent calls; `None` adapts it to the server.
    pub in_flight: Option<usize>,
    /// The maximum number of server processes called in parallel; `None` is one per processor, as each of them is
    /// always busy.
    pub jobs: Option<usize>,
    /// Only tools whose name matches one of these are fuzzed; empty means every tool that may be called.
    pub tools: Vec<globset::GlobMatcher>,
    /// Tools whose name matches one of these are not fuzzed.
    pub skip_tools: Vec<globset::GlobMatcher>,
    /// Values for properties of these names, tried wherever the schema allows them.
    pub seeds: Vec<(String, Value)>,
    /// The folder of saved failing calls, with a folder for each server: they are tried first, and new ones are written
    /// there.
    pub regressions: Option<PathBuf>,
    /// Whether saved calls that no longer fail are removed.
    pub prune: bool,
    /// Whether calls are also made in sequences.
    pub sequences: bool,
    /// The saved failing call that is replayed instead of a campaign.
    pub replay: Option<(PathBuf, Regression)>,
    /// Whether every revision is fuzzed, rather than only the newest.
    pub every_revision: bool,
    /// The shard of the tools that is fuzzed, where a run is split over several machines.
    pub shard: Option<Shard>,
}

/// A server that is started as a process and speaks over its standard streams.
///
/// Made by [`Server::command`](crate::Server::command).
///
/// # Examples
///
/// ```
/// use mcp_conformance::Server;
///
/// let server = Server::command("node").args(["server.js", "--stdio"]).env("LOG_LEVEL", "debug").current_dir("demo");
/// # let _server = server;
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct ServerCommand {
    /// The program and its arguments; the program comes first.
    pub(crate) command: Vec<OsString>,
    /// The variables that are set in addition to the inherited ones.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The working directory; `None` is the current one.
    pub(crate) directory: Option<PathBuf>,
    /// The folder that `{scratch}` stands for in the command and in the values of variables, once it is made.
    pub(crate) scratch: Option<ScratchFolder>,
}

impl ServerCommand {
    pub(crate) fn new(program: impl Into<OsString>) -> Self {
        Self { command: vec![program.into()], environment: Vec::new(), directory: None, scratch: None }
    }

    /// Adds an argument. In each argument, and in the values of variables, `{scratch}` is the path of a folder with a few files
    /// that a run makes and removes, for servers that read files.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.command.push(argument.into());
        self
    }

    /// Adds several arguments.
    pub fn args<Argument: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = Argument>) -> Self {
        self.command.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable, in addition to the inherited ones.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the working directory.
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Whether it is to be started with a scratch folder.
    pub(crate) fn wants_scratch(&self) -> bool {
        let values = self.environment.iter().map(|(_, value)| value);
        self.command.iter().chain(values).any(|word| ScratchFolder::is_meant_by(word))
    }

    /// The program and its arguments, as they are started.
    pub(crate) fn started_command(&self) -> impl Iterator<Item = Cow<'_, OsStr>> {
        self.command.iter().map(|word| self.filled(word))
    }

    /// The variables that are set, as they are when the server is started.
    pub(crate) fn started_environment(&self) -> impl Iterator<Item = (&OsStr, Cow<'_, OsStr>)> {
        self.environment.iter().map(|(name, value)| (name.as_os_str(), self.filled(value)))
    }

    /// The words that may name what the server can access, as they are when it is started: the values of its variables, and
    /// then the words after the name of its program.
    pub(crate) fn words_of_places(&self) -> impl Iterator<Item = Cow<'_, OsStr>> {
        self.started_environment().map(|(_, value)| value).chain(self.started_command().skip(1))
    }

    fn filled<'w>(&self, word: &'w OsStr) -> Cow<'w, OsStr> {
        self.scratch.as_ref().map_or(Cow::Borrowed(word), |scratch| scratch.fill(word))
    }
}

/// The values of variables may be secrets, so only their names are shown.
impl fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&OsStr> = self.environment.iter().map(|(name, _)| name.as_os_str()).collect();
        f.debug_struct("ServerCommand")
            .field("command", &self.command)
            .field("environment", &names)
            .field("directory", &self.directory)
            .field("scratch", &self.scratch)
            .finish()
    }
}

/// A server that is reached over HTTP.
#[derive(Debug, Clone)]
pub struct HttpTarget {
    /// The address and how it is connected to.
    pub endpoint: Arc<HttpEndpoint>,
    /// The command that starts the server; `None` if it is already running.
    pub command: Option<ServerCommand>,
}

/// How a run connects to the server.
#[derive(Debug, Clone)]
pub enum Launcher {
    /// Starts a process and speaks over its standard streams.
    Command(ServerCommand),
    /// Connects over HTTP.
    Http(HttpTarget),
    /// Runs the built-in reference server with these faults in this process.
    Reference(Arc<FaultSet>),
    /// Calls a function of the user that serves or opens a connection in this process.
    InProcess(InProcessServer),
}

/// The plan of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The server.
    pub launcher: Launcher,
    /// The revisions.
    pub revisions: Revisions,
    /// The cases, sorted by id.
    pub cases: Vec<Arc<Case>>,
    /// The ids of those among them that are carried out only because they provoke what a passive case watches:
    /// they have no result.
    pub stimuli: BTreeSet<String>,
    /// Which tools may be called.
    pub calls: CallPolicy,
    /// The requests from the user's hint file, sent in addition to those of the cases.
    pub hints: Vec<Hint>,
    /// The time limit of a request.
    pub timeout: Duration,
    /// The time limit of the first response of a process.
    pub startup_timeout: Duration,
    /// The time that the server has for each step of its shutdown.
    pub shutdown_grace: Duration,
    /// The maximum number of server processes that run in parallel.
    pub jobs: usize,
    /// Whether more processes may run if the server is slow: the user has set no number.
    pub adapts_jobs: bool,
    /// The seed of every random choice.
    pub seed: u64,
    /// The plan of fuzzing; `None` if it is off.
    pub fuzz: Option<FuzzPlan>,
    /// The number of times that a failing case is retried on a fresh process.
    pub retries: usize,
    /// Whether every message is emitted as an event.
    pub show_wire: bool,
    /// Whether every message is emitted as a line of a transcript.
    pub save_transcript: bool,
    /// The command that reproduces a finding, up to `--revision` and `--select`.
    pub reproduce_prefix: String,
    /// The part of that command that names the server: ` -- ./my-server --flag`.
    pub reproduce_suffix: String,
}

impl Plan {
    /// The name of the server in the report.
    #[must_use]
    pub fn server_name(&self) -> String {
        match &self.launcher {
            Launcher::Command(server) => {
                let command: Vec<_> = server.command.iter().map(|argument| argument.to_string_lossy()).collect();
                command.join(" ")
            }
            Launcher::Http(server) => server.endpoint.address().to_owned(),
            Launcher::InProcess(_) => "the server in this process".to_owned(),
            Launcher::Reference(faults) => {
                let names: Vec<&str> = faults.iter().map(crate::reference::Fault::name).collect();
                if names.is_empty() {
                    "the reference server".to_owned()
                } else {
                    format!("the reference server with {}", names.join(", "))
                }
            }
        }
    }

    /// The same plan without the cases that do not apply to the transport.
    pub(crate) fn with_applicable_cases(mut self) -> Self {
        let transport = self.transport();
        self.cases.retain(|case| case.runs_over(transport));
        self
    }

    /// Whether a case has results, rather than being carried out only for what others watch.
    #[must_use]
    pub(crate) fn reports(&self, case: &Case) -> bool {
        !self.stimuli.contains(&case.id)
    }

    /// The transport of the server.
    #[must_use]
    pub fn transport(&self) -> Transport {
        match &self.launcher {
            Launcher::Http(_) => Transport::Http,
            Launcher::Command(_) | Launcher::Reference(_) | Launcher::InProcess(_) => Transport::Stdio,
        }
    }

    /// Whether a case applies to the server's address and to its kind of HTTP transport, as far as they are known.
    #[must_use]
    pub(crate) fn reaches(&self, case: &Case) -> bool {
        let Launcher::Http(server) = &self.launcher else { return true };
        if case.needs.local && !server.endpoint.is_loopback() {
            return false;
        }
        let older = server.endpoint.uses_sse_transport();
        match case.http_kind() {
            Some(HttpKind::Streamable) => !older,
            Some(HttpKind::Sse) => older,
            Some(HttpKind::Any) | None => true,
        }
    }

    /// The command that replays the failing call saved in a file.
    #[must_use]
    pub fn replay_command(&self, file: &str) -> String {
        // `replay` takes none of the options that select cases and tools.
        format!("mcp-conformance replay {}{}", quote_shell_words([file]), self.reproduce_suffix)
    }

    /// The command that runs these cases in a revision, to reproduce a finding.
    #[must_use]
    pub fn reproduce_command(&self, cases: &[&str], revision: Revision) -> String {
        if let Launcher::InProcess(_) = &self.launcher {
            // No command line reaches this server, so the finding shows the settings of `Judge` instead.
            let select: Vec<String> = cases.iter().map(|case| format!("{case:?}.into()")).collect();
            return format!(
                "Settings {{ revisions: Revisions::Named(vec![{:?}.parse()?]), select: vec![{}], ..Settings::default() }}",
                revision.as_str(),
                select.join(", ")
            );
        }
        let selected: String = cases.iter().flat_map(|case| [" --select ", case]).collect();
        format!("{} --revision {revision}{selected}{}", self.reproduce_prefix, self.reproduce_suffix)
    }
}

impl From<Vec<Revision>> for Revisions {
    fn from(mut named: Vec<Revision>) -> Self {
        named.sort_unstable();
        named.dedup();
        Self::Named(named)
    }
}

impl<const N: usize> From<[Revision; N]> for Revisions {
    fn from(named: [Revision; N]) -> Self {
        Self::from(named.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draft_is_judged_on_demand_only() {
        assert!(!Revisions::Supported.possible().contains(Revision::V2024_10_07));
        assert!(!Revisions::Latest.possible().contains(Revision::V2024_10_07));
        assert!(Revisions::All.possible().contains(Revision::V2024_10_07));
        let named = Revisions::from([Revision::V2024_10_07]).possible();
        assert_eq!(named.iter().collect::<Vec<_>>(), [Revision::V2024_10_07]);
    }

    #[test]
    fn the_values_of_variables_are_not_shown() {
        let shown = format!("{:?}", ServerCommand::new("./my-server").env("TOKEN", "hush"));
        assert!(shown.contains("TOKEN") && !shown.contains("hush"), "{shown}");
    }
}
