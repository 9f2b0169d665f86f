//! What a run is to do: the server, the revisions, the cases and the bounds.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::fuzz::Regression;
use crate::case::{Case, Hint, HttpKind, Shard};
use crate::client::{Site, Within};
use crate::reference::FaultSet;
use crate::spec::{Revision, Transport};

/// Which revisions to judge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Revisions {
    /// Every released revision that the server turns out to speak.
    #[default]
    Supported,
    /// The newest revision that the server speaks.
    Latest,
    /// Every revision that the server speaks, the pre-release draft included.
    All,
    /// These, where the server speaks them.
    Named(Vec<Revision>),
}

/// How many processes of a server run side by side unless that was said: more than there are processors, since they
/// wait more than they work.
#[must_use]
pub fn side_by_side() -> usize {
    processors().saturating_mul(2).max(4)
}

/// How many processors there are to work on.
pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Which tools may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Calls {
    /// Only tools annotated `readOnlyHint: true`.
    ReadOnly,
    /// Also tools annotated `destructiveHint: false`, and tools without annotations.
    #[default]
    NonDestructive,
    /// Every tool.
    Destructive,
}

/// What fuzzing is to do.
#[derive(Debug, Clone)]
pub struct FuzzPlan {
    /// How many calls each tool gets; what shrinks and confirms a failure comes on top.
    pub calls: u64,
    /// How long it may take in a revision.
    pub time: Option<Duration>,
    /// How many calls a second are made at most.
    pub max_rate: Option<f64>,
    /// How many calls are under way at once; by default as many as help.
    pub in_flight: Option<usize>,
    /// How many processes are called side by side at most; by default as many as there are processors, as each of them
    /// is busy all the time.
    pub jobs: Option<usize>,
    /// Only tools whose name matches; empty: all that may be called.
    pub tools: Vec<globset::GlobMatcher>,
    /// No tools whose name matches.
    pub skip_tools: Vec<globset::GlobMatcher>,
    /// Values for properties of these names, tried wherever the schema admits them.
    pub seeds: Vec<(String, Value)>,
    /// The folder of failing calls: tried first, and written to.
    pub regressions: Option<PathBuf>,
    /// The one failing call that is tried, and nothing else.
    pub replay: Option<(PathBuf, Regression)>,
    /// Whether it is done in every revision, rather than in the newest alone.
    pub every_revision: bool,
    /// The part of the tools that it is done to, where a run is split over several machines.
    pub shard: Option<Shard>,
}

impl FuzzPlan {
    /// A plan of so many calls for each tool, and otherwise as usual.
    #[must_use]
    pub fn of(calls: u64) -> Self {
        Self {
            calls,
            time: None,
            max_rate: None,
            in_flight: None,
            jobs: None,
            tools: Vec::new(),
            skip_tools: Vec::new(),
            seeds: Vec::new(),
            regressions: None,
            replay: None,
            every_revision: false,
            shard: None,
        }
    }
}

/// A server that is started as a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerCommand {
    /// The program and its arguments; the program comes first.
    pub command: Vec<String>,
    /// Variables that are set beside the inherited ones.
    pub environment: Vec<(String, String)>,
    /// The folder that it is started in; by default the current one.
    pub directory: Option<PathBuf>,
}

/// A server that is reached over HTTP.
#[derive(Debug, Clone)]
pub struct HttpServer {
    /// Where it is reached.
    pub site: Arc<Site>,
    /// The command that starts it, where that is ours to do; otherwise it runs already.
    pub command: Option<ServerCommand>,
}

/// How a connection to the server comes to be.
#[derive(Debug, Clone)]
pub enum Launcher {
    /// A process that is spoken to over its standard streams.
    Command(ServerCommand),
    /// A server that is spoken to over HTTP.
    Http(HttpServer),
    /// The built-in server with these faults, within this process.
    BuiltIn(Arc<FaultSet>),
    /// A server of the caller's, within this process or already connected to.
    Within(Within),
}

/// What a run is to do.
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
    pub calls: Calls,
    /// What to ask beside what is asked anyway, so that the server shows more of itself.
    pub hints: Vec<Hint>,
    /// How long a request may take.
    pub timeout: Duration,
    /// How long the first answer of a process may take.
    pub startup_timeout: Duration,
    /// How long the server is given at each step of shutting it down.
    pub shutdown_grace: Duration,
    /// How many processes of the server may run side by side.
    pub jobs: usize,
    /// The seed of everything random.
    pub seed: u64,
    /// What fuzzing is to do, if anything.
    pub fuzz: Option<FuzzPlan>,
    /// How often a failing case is tried again on a fresh process before it is believed.
    pub retries: usize,
    /// Whether the sink wants to see every message.
    pub show_wire: bool,
    /// The command that replays a finding, up to the selection: `mcp-conformance`, with the server's own part
    /// in `replay_suffix`.
    pub replay_prefix: String,
    /// The server's part of the replay command: ` -- ./my-server --flag`, or empty for the built-in server.
    pub replay_suffix: String,
}

impl Plan {
    /// How the server is named to people.
    #[must_use]
    pub fn server_name(&self) -> String {
        match &self.launcher {
            Launcher::Command(server) => server.command.join(" "),
            Launcher::Http(server) => server.site.address().to_owned(),
            Launcher::Within(_) => "the server within this process".to_owned(),
            Launcher::BuiltIn(faults) => {
                let names: Vec<&str> = faults.iter().map(crate::reference::Fault::name).collect();
                if names.is_empty() {
                    "the built-in server".to_owned()
                } else {
                    format!("the built-in server with {}", names.join(", "))
                }
            }
        }
    }

    /// Whether a case has results, rather than being carried out only for what others watch.
    #[must_use]
    pub(super) fn reports(&self, case: &Case) -> bool {
        !self.stimuli.contains(&case.id)
    }

    /// The transport that the server is spoken to over.
    #[must_use]
    pub fn transport(&self) -> Transport {
        match &self.launcher {
            Launcher::Http(_) => Transport::Http,
            Launcher::Command(_) | Launcher::BuiltIn(_) | Launcher::Within(_) => Transport::Stdio,
        }
    }

    /// Whether a case is for the way in which the server is reached, as far as that is known.
    #[must_use]
    pub(super) fn reaches(&self, case: &Case) -> bool {
        let Launcher::Http(server) = &self.launcher else { return true };
        if case.needs.local && !server.site.is_loopback() {
            return false;
        }
        let older = server.site.is_older();
        match case.http_kind() {
            Some(HttpKind::Streamable) => !older,
            Some(HttpKind::Sse) => older,
            Some(HttpKind::Any) | None => true,
        }
    }

    /// The command that tries the failing call of a file again.
    #[must_use]
    pub fn replay_file(&self, file: &str) -> String {
        // What selects cases and tools has no meaning there.
        format!("mcp-conformance replay {}{}", quoted(file), self.replay_suffix)
    }

    /// The command that runs these cases in a revision again.
    #[must_use]
    pub fn replay(&self, cases: &[&str], revision: Revision) -> String {
        if let Launcher::Within(_) = &self.launcher {
            // No command line reaches it; the program that made it can.
            let selected: Vec<String> = cases.iter().map(|case| format!(".select({case:?})")).collect();
            return format!("Judge{}.revisions([{:?}])", selected.concat(), revision.as_str());
        }
        let selected = cases.join(" --select ");
        format!("{} --revision {revision} --select {selected}{}", self.replay_prefix, self.replay_suffix)
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

/// Words as a POSIX shell reads them back, after something that stands before them.
pub(crate) fn shell_words(before: &str, words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("{before}{}", words.join(" "))
}

/// A word as a POSIX shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
