//! The process of a server that the client starts and reaches over HTTP; all connections share it.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

use tokio::sync::Mutex;

use super::command::command_of;
use crate::client::{BackgroundProcess, HttpEndpoint, LaunchError, ShutdownTimeouts};
use crate::limits::{
    FIRST_LISTENING_POLL_INTERVAL, HTTP_INPUT_CLOSED_TIMEOUT, LISTENING_POLL_INTERVAL, MAX_HTTP_RESTARTS,
    REPLACED_SHUTDOWN_TIMEOUT,
};
use crate::plan::{HttpTarget, ServerCommand};

/// The reason why a server is not available.
#[derive(Debug)]
pub(crate) enum HostError {
    /// It could not be started.
    NotStarted(LaunchError),
    /// Something else listens at its address, which would be judged instead.
    AddressInUse,
    /// It exited before it listened.
    Ended(String),
    /// It does not listen at the given address.
    NotListening,
    /// It ended too often.
    TooManyRestarts,
}

impl HostError {
    /// The reason in words.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::NotStarted(error) => error.to_string(),
            Self::AddressInUse => "something else already listens at the address of the server".to_owned(),
            Self::Ended(status) => format!("the server exited before it listened ({status})"),
            Self::NotListening => "the server does not listen at the address".to_owned(),
            Self::TooManyRestarts => "the server ended too often".to_owned(),
        }
    }
}

/// Whether a server accepts connections at its address, now or within a limit.
pub(crate) async fn is_listening(server: &HttpTarget, limit: Duration) -> bool {
    let began = Instant::now();
    loop {
        if server.endpoint.accepts_connections(limit).await {
            return true;
        }
        if began.elapsed() >= limit {
            return false;
        }
        tokio::time::sleep(LISTENING_POLL_INTERVAL * 4).await;
    }
}

/// The server process that a run starts and reaches over HTTP.
#[derive(Debug, Default)]
pub(crate) struct HttpHost {
    process: Mutex<Option<BackgroundProcess>>,
    starts: AtomicUsize,
    /// How often it was not running when it was needed, including the first start.
    ends: AtomicUsize,
    /// The end of its output, with secrets masked.
    stderr: std::sync::Mutex<String>,
}

impl HttpHost {
    /// Starts the server if the client is responsible for it and it is not running.
    pub(crate) async fn ensure_running(&self, server: &HttpTarget, limit: Duration) -> Result<(), HostError> {
        let Some(command) = &server.command else { return Ok(()) };
        let mut process = self.process.lock().await;
        if let Some(running) = process.as_ref() {
            if running.status().is_none() {
                return Ok(());
            }
            self.record_output(running, &server.endpoint);
        }
        if self.ends.fetch_add(1, Ordering::Relaxed) > MAX_HTTP_RESTARTS {
            return Err(HostError::TooManyRestarts);
        }
        *process = None;
        // Only before the first start: later, the address may still be held by what is left of the server itself. An
        // address elsewhere may be that of a proxy, which always listens.
        let is_first = self.launches() == 0;
        if is_first
            && server.endpoint.is_loopback()
            && server.endpoint.accepts_connections(LISTENING_POLL_INTERVAL * 20).await
        {
            return Err(HostError::AddressInUse);
        }
        self.start(&mut process, server, command, limit).await
    }

    /// Restarts the server if the client is responsible for it; returns the id of the new process.
    pub(crate) async fn restart(&self, server: &HttpTarget, limit: Duration) -> Result<Option<i32>, HostError> {
        let Some(command) = &server.command else { return Ok(None) };
        let mut process = self.process.lock().await;
        if let Some(process) = process.take() {
            process.end(ShutdownTimeouts { input_closed: Duration::ZERO, sigterm: REPLACED_SHUTDOWN_TIMEOUT }).await;
        }
        self.start(&mut process, server, command, limit).await?;
        Ok(process.as_ref().map(BackgroundProcess::process_id))
    }

    async fn start(
        &self,
        process: &mut Option<BackgroundProcess>,
        server: &HttpTarget,
        command: &ServerCommand,
        limit: Duration,
    ) -> Result<(), HostError> {
        self.starts.fetch_add(1, Ordering::Relaxed);
        let started = process.insert(start(command).map_err(HostError::NotStarted)?);
        let (began, mut pause) = (Instant::now(), FIRST_LISTENING_POLL_INTERVAL);
        loop {
            if let Some(status) = started.status() {
                self.record_output(started, &server.endpoint);
                return Err(HostError::Ended(status));
            }
            if server.endpoint.accepts_connections(LISTENING_POLL_INTERVAL * 20).await {
                return Ok(());
            }
            if began.elapsed() > limit {
                self.record_output(started, &server.endpoint);
                return Err(HostError::NotListening);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LISTENING_POLL_INTERVAL);
        }
    }

    /// The exit status and the end of the output, if the client started the process and it exits within a limit.
    pub(crate) async fn wait_for_exit(&self, server: &HttpTarget, limit: Duration) -> Option<(String, String)> {
        let mut process = self.process.lock().await;
        let running = process.as_mut()?;
        let status = running.wait_for_exit(limit).await?;
        self.record_output(running, &server.endpoint);
        Some((status, self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }

    /// How many processes were started.
    pub(crate) fn launches(&self) -> usize {
        self.starts.load(Ordering::Relaxed)
    }

    fn record_output(&self, process: &BackgroundProcess, endpoint: &HttpEndpoint) {
        *self.stderr.lock().unwrap_or_else(PoisonError::into_inner) = endpoint.masked(&process.output());
    }

    /// The end of its output.
    pub(crate) async fn output(&self, server: &HttpTarget) -> String {
        if let Some(process) = self.process.lock().await.as_ref() {
            self.record_output(process, &server.endpoint);
        }
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the process.
    pub(crate) async fn end(&self, grace: Duration) {
        if let Some(process) = self.process.lock().await.take() {
            // A listening server does not exit when its input closes, so do not wait for that.
            process.end(ShutdownTimeouts { input_closed: HTTP_INPUT_CLOSED_TIMEOUT, sigterm: grace }).await;
        }
    }
}

fn start(server: &ServerCommand) -> Result<BackgroundProcess, LaunchError> {
    let (program, command) = command_of(server)?;
    BackgroundProcess::start(&program, command)
}
