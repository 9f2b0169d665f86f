//! Connects to the server: starts a process, uses its address, or runs it in this process.
//!
//! It is not responsible for the messages on the connection.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::process::Command;
use tokio::task::JoinHandle;

use super::conductor::Context;
use super::plan::{Launcher, ServerCommand};
use super::reply::ClientResponder;
use super::session::full_capabilities;
use crate::client::headers::Mirrored;
use crate::client::{Connection, LaunchError, RecordOptions, Responder, UnrecordedConnection, UnrecordedHttpOptions};
use crate::reference::{self, FaultSet};
use crate::spec::{Era, Revision};

/// The program of a server and the command that starts it.
pub(super) fn command_of(server: &ServerCommand) -> Result<(String, Command), LaunchError> {
    let (program, arguments) = server.command.split_first().ok_or(LaunchError::NoCommand)?;
    let mut command = Command::new(program);
    command.args(arguments);
    command.envs(server.environment.iter().map(|(name, value)| (name, value)));
    if let Some(directory) = &server.directory {
        command.current_dir(directory);
    }
    Ok((program.to_string_lossy().into_owned(), command))
}

/// Starts the server and connects to it.
pub(super) fn connect(
    context: &Context,
    revision: Revision,
    capabilities: &Value,
    replies: &ClientResponder,
    keeping: RecordOptions,
) -> Result<Connection, LaunchError> {
    let responder = Responder::new(capabilities.clone(), replies.answer());
    match &context.plan.launcher {
        Launcher::Command(server) => {
            let (program, command) = command_of(server)?;
            match context.without_package_runner() {
                Some(command) => Ok(Connection::start(&program, command, responder, keeping)?.without_package_runner()),
                None => Connection::start(&program, command, responder, keeping),
            }
        }
        Launcher::Http(server) => {
            let stateless = revision.era() == Era::Stateless;
            Ok(Connection::over_http(Arc::clone(&server.endpoint), stateless, responder, keeping))
        }
        Launcher::Reference(faults) => {
            let (pipe, server) = built_in(faults);
            Ok(Connection::in_process(pipe, server, reference::ignores_sigterm(faults), responder, keeping))
        }
        Launcher::InProcess(server) => {
            let (pipe, server) = server.start()?;
            Ok(Connection::in_process(pipe, server, false, responder, keeping))
        }
    }
}

/// Starts the server and connects to it without recording; an HTTP server must be running. `mirrored` says which tool
/// parameters are mirrored into headers.
pub(super) fn connect_unrecorded(
    context: &Context,
    revision: Revision,
    mirrored: &Mirrored,
) -> Result<UnrecordedConnection, LaunchError> {
    match &context.plan.launcher {
        Launcher::Command(server) => {
            let (program, command) = command_of(server)?;
            UnrecordedConnection::start(&program, context.without_package_runner().unwrap_or(command))
        }
        Launcher::Http(server) => Ok(UnrecordedConnection::over_http(UnrecordedHttpOptions {
            endpoint: Arc::clone(&server.endpoint),
            stateless: revision.era() == Era::Stateless,
            responder: Responder::new(full_capabilities(revision), ClientResponder::default().answer()),
            mirrored: mirrored.clone(),
        })),
        Launcher::Reference(faults) => {
            let (pipe, server) = built_in(faults);
            Ok(UnrecordedConnection::in_process(pipe, server))
        }
        Launcher::InProcess(server) => {
            let (pipe, server) = server.start()?;
            Ok(UnrecordedConnection::in_process(pipe, server))
        }
    }
}

/// Runs the reference server in this process; returns the client's end of the pipe.
fn built_in(faults: &Arc<FaultSet>) -> (DuplexStream, JoinHandle<()>) {
    let (client_end, server_end) = tokio::io::duplex(256 << 10);
    let faults = Arc::clone(faults);
    let server = tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(server_end);
        // An error of the reference server ends the connection, which is what gets judged.
        let _ended = reference::serve(reader, writer, &faults).await;
    });
    (client_end, server)
}
