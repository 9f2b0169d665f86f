//! A server that is started for a run and then reached over HTTP: one process for all connections.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::sync::Mutex;

use super::launch::command_of;
use super::plan::{HttpServer, ServerCommand};
use crate::client::{Companion, LaunchError, Patience, Site};

/// How often we look whether the server listens: at first soon, then at this pace.
const FIRST_GLANCE: Duration = Duration::from_millis(2);
const GLANCE: Duration = Duration::from_millis(25);

/// How long a process is given to end by itself where another is to take its place.
const HURRY: Duration = Duration::from_millis(50);

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

impl Absent {
    /// What came of it, in words.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::NotStarted(error) => error.to_string(),
            Self::Ended(status) => format!("the server ended before it listened ({status})"),
            Self::Silent => "the server does not listen at the address".to_owned(),
            Self::GivenUp => "the server ended too often".to_owned(),
        }
    }
}

/// What became of a server that answers no more.
#[derive(Debug)]
pub(super) enum HostFate {
    /// Its process ended, with the end of what it wrote.
    Ended { status: String, stderr: String },
    /// Nobody listens any more, and it is not ours to start again.
    Gone,
    /// It still takes connections.
    Listens,
}

/// Whether somebody takes connections at the address of a server, or does so again within a limit.
pub(super) async fn listens(server: &HttpServer, limit: Duration) -> bool {
    let Some((host, port)) = server.site.host_and_port() else { return false };
    let began = Instant::now();
    loop {
        let reached = tokio::time::timeout(limit, TcpStream::connect((host.as_str(), port))).await;
        if matches!(reached, Ok(Ok(_))) {
            return true;
        }
        if began.elapsed() >= limit {
            return false;
        }
        tokio::time::sleep(GLANCE * 4).await;
    }
}

/// The process of a server that is reached over HTTP, where the run starts one.
#[derive(Debug, Default)]
pub(super) struct Host {
    process: Mutex<Option<Companion>>,
    starts: AtomicUsize,
    /// How often it had ended when it was wanted, its first start included.
    deaths: AtomicUsize,
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
        if self.deaths.fetch_add(1, Ordering::Relaxed) > RESTARTS {
            return Err(Absent::GivenUp);
        }
        *process = None;
        self.start(&mut process, server, command, limit).await
    }

    /// Ends the process, if there is one, and starts another, where that is ours to do. Returns its id.
    pub(super) async fn renew(&self, server: &HttpServer, limit: Duration) -> Result<Option<i32>, Absent> {
        let Some(command) = &server.command else { return Ok(None) };
        let mut process = self.process.lock().await;
        if let Some(process) = process.take() {
            process.end(Patience { input_closed: Duration::ZERO, sigterm: HURRY }).await;
        }
        self.start(&mut process, server, command, limit).await?;
        Ok(process.as_ref().map(Companion::process_id))
    }

    async fn start(
        &self,
        process: &mut Option<Companion>,
        server: &HttpServer,
        command: &ServerCommand,
        limit: Duration,
    ) -> Result<(), Absent> {
        self.starts.fetch_add(1, Ordering::Relaxed);
        let started = process.insert(start(command).map_err(Absent::NotStarted)?);
        let Some((host, port)) = server.site.host_and_port() else { return Err(Absent::Silent) };
        let (began, mut pause) = (Instant::now(), FIRST_GLANCE);
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
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(GLANCE);
        }
    }

    /// How the process ended and the end of what it wrote, if it is ours and ends within a limit.
    pub(super) async fn ended_within(&self, server: &HttpServer, limit: Duration) -> Option<(String, String)> {
        let mut process = self.process.lock().await;
        let running = process.as_mut()?;
        let status = running.ended_within(limit).await?;
        self.keep(running, &server.site);
        Some((status, self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()))
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
