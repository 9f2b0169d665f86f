//! Connects to the server: starts a process, uses its address, or runs it in this process.
//!
//! It is not responsible for the messages on the connection.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;

use super::client_parameters::full_capabilities;
use super::reply::ClientResponder;
use crate::client::headers::Mirrored;
use crate::client::{
    Connection, LaunchError, RecordOptions, Responder, SigtermHandling, UnrecordedConnection, UnrecordedHttpOptions,
};
use crate::context::{Context, command_of};
use crate::plan::Launcher;
use crate::reference::{self, FaultSet};
use crate::spec::{Era, Revision};

/// Starts the server and connects to it.
pub(crate) fn connect(
    context: &Context,
    revision: Revision,
    capabilities: &Value,
    replies: &ClientResponder,
    options: RecordOptions,
) -> Result<Connection, LaunchError> {
    let responder = Responder::new(capabilities.clone(), replies.answer());
    match &context.plan.launcher {
        Launcher::Command(server) => {
            let (program, command) = command_of(server)?;
            match context.package_runner.resolved_command() {
                Some(command) => Ok(Connection::start(&program, command, responder, options)?.without_package_runner()),
                None => Connection::start(&program, command, responder, options),
            }
        }
        Launcher::Http(server) => {
            let stateless = revision.era() == Era::Stateless;
            Ok(Connection::over_http(Arc::clone(&server.endpoint), stateless, responder, options))
        }
        Launcher::Reference(faults) => {
            let (pipe, server) = built_in(faults);
            Ok(Connection::in_process(pipe, server, sigterm_handling(faults), responder, options))
        }
        Launcher::InProcess(server) => {
            let (pipe, server) = server.start()?;
            Ok(Connection::in_process(pipe, server, SigtermHandling::Exits, responder, options))
        }
    }
}

fn sigterm_handling(faults: &FaultSet) -> SigtermHandling {
    if reference::ignores_sigterm(faults) {
        SigtermHandling::Ignores
    } else if reference::ignores_sigterm_before_eof(faults) {
        SigtermHandling::WaitsForEndOfInput
    } else {
        SigtermHandling::Exits
    }
}

/// Starts the server and connects to it without recording; an HTTP server must be running. `mirrored` says which tool
/// parameters are mirrored into headers.
pub(crate) fn connect_unrecorded(
    context: &Context,
    revision: Revision,
    mirrored: &Mirrored,
) -> Result<UnrecordedConnection, LaunchError> {
    let observer = context.unrecorded_observer(&format!("fuzzing, {revision}"));
    match &context.plan.launcher {
        Launcher::Command(server) => {
            let (program, command) = command_of(server)?;
            UnrecordedConnection::start(
                &program,
                context.package_runner.resolved_command().unwrap_or(command),
                observer,
            )
        }
        Launcher::Http(server) => Ok(UnrecordedConnection::over_http(UnrecordedHttpOptions {
            endpoint: Arc::clone(&server.endpoint),
            stateless: revision.era() == Era::Stateless,
            responder: Responder::new(full_capabilities(revision), ClientResponder::default().answer()),
            mirrored: mirrored.clone(),
            observer,
        })),
        Launcher::Reference(faults) => {
            let (pipe, server) = built_in(faults);
            Ok(UnrecordedConnection::in_process(pipe, server, observer))
        }
        Launcher::InProcess(server) => {
            let (pipe, server) = server.start()?;
            Ok(UnrecordedConnection::in_process(pipe, server, observer))
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
