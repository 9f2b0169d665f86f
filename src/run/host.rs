//! A server that is started for a run and then reached over HTTP: one process for all connections.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::sync::Mutex;

use super::plan::{HttpServer, ServerCommand};
use super::session::command_of;
use crate::client::{Companion, LaunchError, Patience, Site};

/// How often we look whether the server listens.
const GLANCE: Duration = Duration::from_millis(25);

/// How often a server that has ended is started again in a run.
const RESTARTS: usize = 40;

/// Why a server is not there to be asked.
#[derive(Debug)]
pub(super) enum Absent {
    /// It could not be started.
    NotStarted(LaunchError),
    /// It ended before it listened.
    Ended(String),
    /// It does not listen where it was said to.
    Silent,
    /// It has ended too often.
    GivenUp,
}

/// The process of a server that is reached over HTTP, where the run starts one.
#[derive(Debug, Default)]
pub(super) struct Host {
    process: Mutex<Option<Companion>>,
    starts: AtomicUsize,
    /// The end of what it wrote, secrets masked.
    stderr: std::sync::Mutex<String>,
}

impl Host {
    /// Sees to it that the server is there: starts it where that is ours to do and it does not run.
    pub(super) async fn ready(&self, server: &HttpServer, limit: Duration) -> Result<(), Absent> {
        let Some(command) = &server.command else { return Ok(()) };
        let mut process = self.process.lock().await;
        if let Some(running) = process.as_ref() {
            if running.status().is_none() {
                return Ok(());
            }
            self.keep(running, &server.site);
        }
        if self.starts.fetch_add(1, Ordering::Relaxed) >= RESTARTS {
            return Err(Absent::GivenUp);
        }
        *process = None;
        let started = process.insert(start(command).map_err(Absent::NotStarted)?);
        let Some((host, port)) = server.site.host_and_port() else { return Err(Absent::Silent) };
        let began = Instant::now();
        loop {
            if let Some(status) = started.status() {
                self.keep(started, &server.site);
                return Err(Absent::Ended(status));
            }
            let reached = tokio::time::timeout(GLANCE * 20, TcpStream::connect((host.as_str(), port))).await;
            if matches!(reached, Ok(Ok(_))) {
                return Ok(());
            }
            if began.elapsed() > limit {
                self.keep(started, &server.site);
                return Err(Absent::Silent);
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// How many processes were started.
    pub(super) fn launches(&self) -> usize {
        self.starts.load(Ordering::Relaxed)
    }

    fn keep(&self, process: &Companion, site: &Site) {
        *self.stderr.lock().unwrap_or_else(PoisonError::into_inner) = site.masked(&process.output());
    }

    /// The end of what it wrote to its streams.
    pub(super) async fn output(&self, server: &HttpServer) -> String {
        if let Some(process) = self.process.lock().await.as_ref() {
            self.keep(process, &server.site);
        }
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the process.
    pub(super) async fn end(&self, grace: Duration) {
        if let Some(process) = self.process.lock().await.take() {
            // A server that listens does not end with its input, so that is not waited for.
            process.end(Patience { input_closed: Duration::from_millis(50), sigterm: grace }).await;
        }
    }
}

fn start(server: &ServerCommand) -> Result<Companion, LaunchError> {
    let (program, command) = command_of(server)?;
    Companion::start(&program, command)
}
