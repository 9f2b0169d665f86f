//! Starts processes of the server ahead of need: shrinking restarts the server repeatedly, and starting is what most
//! servers are slowest at.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::client::headers::Mirrored;
use crate::client::{UnrecordedConnection, WaitOutcome};
use crate::run::conductor::Context;
use crate::run::launch::connect_unrecorded;
use crate::run::session::{full_capabilities, initialize_params, stateless_meta};
use crate::spec::{Era, Revision, Transport};
use crate::transcript::messages;
use crate::wire::{MessageKind, same_id_loosely};

/// The maximum number of standby processes.
const MAX_WAITING: usize = 1;
/// From which start on to keep a standby process: a failure that is already minimal takes four.
const STARTS_BEFORE_STANDBY: usize = 5;
/// The id of the first request of a process.
const FIRST_ID: i64 = 1;
/// How long to read the pending output of a standby process before it is used.
const QUIET_TIME: Duration = Duration::from_millis(1);

/// A process with an open session.
pub(super) struct OpenedProcess {
    pub(super) pipe: UnrecordedConnection,
    /// How long it took to open.
    pub(super) startup: Duration,
    /// Requests that it sent meanwhile.
    pub(super) requests: Vec<Value>,
    /// The id of its process, if known.
    pub(super) process_id: Option<i32>,
}

/// Opens processes, some of them ahead of need.
pub(super) struct StandbyProcesses {
    context: Context,
    revision: Revision,
    /// The tool parameters that are mirrored into headers.
    mirrored: Arc<Mirrored>,
    waiting: VecDeque<JoinHandle<Result<OpenedProcess, String>>>,
    /// How many processes were taken. Standby processes start only once shrinking has clearly begun.
    taken: usize,
}

impl StandbyProcesses {
    pub(super) fn new(context: &Context, revision: Revision, mirrored: Mirrored) -> Self {
        let mirrored = Arc::new(mirrored);
        Self { context: context.clone(), revision, mirrored, waiting: VecDeque::new(), taken: 0 }
    }

    /// Takes a process that has not been called.
    pub(super) async fn take(&mut self) -> Result<OpenedProcess, String> {
        let opened = match self.taken().await {
            Some(opened) => opened,
            None => self.open().await?,
        };
        // Over HTTP there is only one process.
        let is_one = self.context.plan.transport() == Transport::Http || self.context.plan.jobs == 1;
        self.taken += 1;
        let wanted = if is_one || self.taken < STARTS_BEFORE_STANDBY { 0 } else { MAX_WAITING };
        while self.waiting.len() < wanted {
            self.waiting.push_back(tokio::spawn(self.open()));
        }
        Ok(opened)
    }

    fn open(&self) -> impl Future<Output = Result<OpenedProcess, String>> + Send + 'static {
        open(self.context.clone(), self.revision, Arc::clone(&self.mirrored))
    }

    /// The first usable standby process. One that failed to start or has ended is skipped.
    async fn taken(&mut self) -> Option<OpenedProcess> {
        loop {
            let waiting = self.waiting.pop_front()?;
            if let Ok(Ok(mut opened)) = waiting.await
                && opened.is_still_running().await
            {
                return Some(opened);
            }
        }
    }

    /// Ends the standby processes.
    pub(super) fn end(&mut self) {
        for waiting in self.waiting.drain(..) {
            waiting.abort();
        }
        self.taken = 0;
    }
}

impl Drop for StandbyProcesses {
    fn drop(&mut self) {
        self.end();
    }
}

impl OpenedProcess {
    /// Reads pending messages; returns whether the process still runs.
    async fn is_still_running(&mut self) -> bool {
        loop {
            match self.pipe.next(QUIET_TIME).await {
                WaitOutcome::Ready(frame) => {
                    for message in frame.json().into_iter().flat_map(messages) {
                        if matches!(MessageKind::of(message), MessageKind::Request { .. }) {
                            self.requests.push(message.clone());
                        }
                    }
                }
                WaitOutcome::TimedOut => return true,
                WaitOutcome::Closed => return false,
            }
        }
    }
}

/// Starts a process and opens a session with it. Its output meanwhile is judged by the cases. Over HTTP, restarts the
/// server if the client started it.
async fn open(context: Context, revision: Revision, mirrored: Arc<Mirrored>) -> Result<OpenedProcess, String> {
    if context.plan.transport() == Transport::Stdio {
        context.count_launch();
    }
    let began = Instant::now();
    let process_id = context.restart_host().await?;
    let pipe = connect_unrecorded(&context, revision, &mirrored).map_err(|error| error.to_string())?;
    let opened = handshake(pipe, revision, context.plan.startup_timeout).await?;
    let process_id = process_id.or_else(|| opened.pipe.process_id());
    Ok(OpenedProcess { startup: began.elapsed(), process_id, ..opened })
}

async fn handshake(
    mut pipe: UnrecordedConnection,
    revision: Revision,
    limit: Duration,
) -> Result<OpenedProcess, String> {
    const REOPEN_FAILED: &str = "the server could not be opened again";
    let began = Instant::now();
    let capabilities = full_capabilities(revision);
    let (method, params) = match revision.era() {
        Era::Handshake => ("initialize", initialize_params(revision.as_str(), &capabilities)),
        Era::Stateless => ("server/discover", json!({ "_meta": stateless_meta(&capabilities) })),
    };
    pipe.queue(json!({"jsonrpc": "2.0", "id": FIRST_ID, "method": method, "params": params}).to_string().as_bytes());
    let mut requests = Vec::new();
    loop {
        let WaitOutcome::Ready(frame) = pipe.next(limit.saturating_sub(began.elapsed())).await else {
            return Err(pipe
                .end_reason()
                .map_or_else(|| REOPEN_FAILED.to_owned(), |reason| format!("{REOPEN_FAILED}: {}", reason.describe())));
        };
        for message in frame.json().into_iter().flat_map(messages) {
            match MessageKind::of(message) {
                MessageKind::Response { id: Some(id) } if same_id_loosely(&json!(FIRST_ID), id) && !id.is_null() => {
                    if revision.era() == Era::Handshake {
                        pipe.queue(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
                    }
                    return Ok(OpenedProcess { pipe, startup: began.elapsed(), requests, process_id: None });
                }
                MessageKind::Request { .. } => requests.push(message.clone()),
                _ => {}
            }
        }
    }
}
