//! The operating system's command of a server.

use tokio::process::Command;

use crate::client::LaunchError;
use crate::plan::ServerCommand;

/// The program of a server and the command that starts it.
pub(crate) fn command_of(server: &ServerCommand) -> Result<(String, Command), LaunchError> {
    let mut words = server.started_command();
    let program = words.next().ok_or(LaunchError::NoCommand)?;
    let mut command = Command::new(&program);
    command.args(words);
    command.envs(server.started_environment());
    if let Some(directory) = &server.directory {
        command.current_dir(directory);
    }
    Ok((program.to_string_lossy().into_owned(), command))
}
