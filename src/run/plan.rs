//! What a run is to do: the server, the revisions, the cases and the bounds.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::case::Case;
use crate::mock::FaultSet;
use crate::spec::Revision;

/// Which revisions to judge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Revisions {
    /// Every released revision that the server turns out to speak.
    #[default]
    Spoken,
    /// The newest revision that the server speaks.
    Latest,
    /// Every revision that the server speaks, the pre-release draft included.
    All,
    /// These, where the server speaks them.
    Named(Vec<Revision>),
}

/// Which tools may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Calls {
    /// Only tools annotated `readOnlyHint: true`.
    ReadOnly,
    /// Also tools annotated `destructiveHint: false`, and tools without annotations.
    #[default]
    Harmless,
    /// Every tool.
    Destructive,
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

/// How a connection to the server comes to be.
#[derive(Debug, Clone)]
pub enum Launcher {
    /// A process that is spoken to over its standard streams.
    Command(ServerCommand),
    /// The built-in server with these faults, within this process.
    BuiltIn(Arc<FaultSet>),
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
    /// Which tools may be called.
    pub calls: Calls,
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
            Launcher::BuiltIn(faults) => {
                let names: Vec<&str> = faults.iter().map(crate::mock::Fault::name).collect();
                if names.is_empty() {
                    "the built-in server".to_owned()
                } else {
                    format!("the built-in server with {}", names.join(", "))
                }
            }
        }
    }

    /// The command that runs these cases in a revision again.
    #[must_use]
    pub fn replay(&self, cases: &[&str], revision: Revision) -> String {
        let selected = cases.join(" --select ");
        format!("{} --revision {revision} --select {selected}{}", self.replay_prefix, self.replay_suffix)
    }
}
