//! Connects to the server: starts a process, uses its address, or runs it in this process.
//!
//! It is not responsible for the messages on the connection.

use std::ffi::OsStr;
use std::sync::Arc;

use tokio::io::DuplexStream;
use tokio::process::Command;
use tokio::task::JoinHandle;

use super::client_parameters::full_capabilities;
use super::reply::ClientResponder;
use crate::client::headers::Mirrored;
use crate::client::{
    Connection, InProcessEnd, LaunchError, RecordOptions, Responder, SigtermHandling, UnrecordedConnection,
    UnrecordedHttpOptions,
};
use crate::context::{Context, command_of};
use crate::plan::{Launcher, ServerCommand};
use crate::reference::{self, FaultSet, Surroundings};
use crate::spec::{Era, Revision};

/// How a process is started, where that differs from the usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StartConditions {
    /// Whether the variables of the locale are left out of its environment, unless the user set them for the server.
    pub(crate) without_locale: bool,
    /// Whether nobody reads its standard error.
    pub(crate) without_standard_error: bool,
}

impl StartConditions {
    fn apply(self, mut command: Command, server: &ServerCommand) -> Command {
        if self.without_locale {
            let given = |name: &OsStr| server.environment.iter().any(|(other, _)| OsStr::new(other) == name);
            for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_locale(name) && !given(name)) {
                command.env_remove(name);
            }
        }
        command
    }
}

/// Whether a variable of the environment names a locale.
fn is_of_locale(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name == "LANG" || name == "LANGUAGE" || name.starts_with("LC_"))
}

/// Starts the server and connects to it.
pub(crate) fn connect(
    context: &Context,
    revision: Revision,
    responder: Responder,
    start: StartConditions,
    options: RecordOptions,
) -> Result<Connection, LaunchError> {
    match &context.plan.launcher {
        Launcher::Command(server) => {
            let (program, command) = command_of(server)?;
            let resolved = context.package_runner.resolved_command();
            let is_resolved = resolved.is_some();
            let command = start.apply(resolved.unwrap_or(command), server);
            let connection = Connection::start(&program, command, responder, options, start.without_standard_error)?;
            Ok(if is_resolved { connection.without_package_runner() } else { connection })
        }
        Launcher::Http(server) => {
            let stateless = revision.era() == Era::Stateless;
            Ok(Connection::over_http(Arc::clone(&server.endpoint), stateless, responder, options))
        }
        Launcher::Reference(faults) => {
            let surroundings = Surroundings {
                has_no_locale: start.without_locale,
                has_no_standard_error: start.without_standard_error,
            };
            let (pipe, server) = built_in(&Arc::new(faults.as_ref().clone().started_in(surroundings)));
            let left_running = reference::leaves_process(faults).then(|| "sleep".to_owned()).into_iter().collect();
            let end = InProcessEnd { sigterm: sigterm_handling(faults), left_running: Some(left_running) };
            let connection = Connection::in_process(pipe, server, end, responder, options);
            Ok(match reference::stderr_line(faults) {
                Some(line) => connection.with_errors(line),
                None => connection,
            })
        }
        Launcher::InProcess(server) => {
            let (pipe, server) = server.start()?;
            let end = InProcessEnd { sigterm: SigtermHandling::Exits, left_running: None };
            Ok(Connection::in_process(pipe, server, end, responder, options))
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
