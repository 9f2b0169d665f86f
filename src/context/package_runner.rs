//! The package runner that starts the server, if one does: once it is known what it started, it is left out.

use std::sync::OnceLock;

use tokio::process::Command;

use crate::client::{Connection, PackagedProgram, is_package_runner};
use crate::plan::Launcher;

/// The package runner of a server, and what it started.
#[derive(Debug)]
pub(crate) struct PackageRunner {
    /// Whether the server's command is one.
    is_used: bool,
    /// The command that it has started, once that is known.
    resolved: OnceLock<PackagedProgram>,
}

impl PackageRunner {
    pub(super) fn of(launcher: &Launcher) -> Self {
        let is_used = matches!(launcher, Launcher::Command(server) if is_package_runner(&server.command));
        Self { is_used, resolved: OnceLock::new() }
    }

    /// The command that starts the server without the package runner, if known.
    pub(crate) fn resolved_command(&self) -> Option<Command> {
        self.resolved.get().map(PackagedProgram::command)
    }

    /// Whether the server's command is a package runner that has not been resolved.
    pub(crate) fn is_unresolved(&self) -> bool {
        self.is_used && self.resolved.get().is_none()
    }

    /// Determines what the package runner started, now that the process answers.
    pub(crate) fn resolve(&self, connection: &Connection) {
        if !self.is_unresolved() {
            return;
        }
        if let Some(program) = connection.process_id().and_then(PackagedProgram::of) {
            // Another task may have set it meanwhile.
            let _packaged = self.resolved.get_or_init(|| program);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ServerCommand;

    #[test]
    fn a_package_runner_is_unresolved_until_the_server_answers() {
        for (program, is_runner) in [("npx", true), ("/usr/bin/npx", true), ("node", false)] {
            let runner = PackageRunner::of(&Launcher::Command(ServerCommand::new(program)));
            assert_eq!(runner.is_unresolved(), is_runner, "{program}");
            assert!(runner.resolved_command().is_none());
        }
    }
}
