//! Processes of the server that are opened ahead of need: making a failure small takes a fresh one again and
//! again, and starting is what most servers are slowest at.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::client::headers::Mirrored;
use crate::client::{Pipe, Waited};
use crate::run::conduct::Context;
use crate::run::launch::lean;
use crate::run::session::{full_capabilities, initialize_params, stateless_meta};
use crate::spec::{Era, Revision, Transport};
use crate::transcript::messages;
use crate::wire::{Kind, same_id_loosely};

/// The most that wait to be used.
const MOST: usize = 1;
/// With which one that is taken they begin to wait: a failure that is as small as it can be takes four.
const FROM: usize = 5;
/// The id of the first request of a process.
const FIRST: i64 = 1;
/// How long a process that waited is listened to before it is used.
const LISTENED: Duration = Duration::from_millis(1);

/// A process that was opened, and may be called.
pub(super) struct Opened {
    pub(super) pipe: Pipe,
    /// How long it took to open.
    pub(super) startup: Duration,
    /// Requests that it made meanwhile.
    pub(super) asked: Vec<Value>,
    /// The process behind it, where it is known.
    pub(super) process_id: Option<i32>,
}

/// Opens processes, some of them ahead.
pub(super) struct Spares {
    context: Context,
    revision: Revision,
    /// The parameters of tools that are mirrored into headers.
    mirrored: Arc<Mirrored>,
    waiting: VecDeque<JoinHandle<Result<Opened, String>>>,
    /// How many were taken: none waits until it is sure that calls are made fewer or smaller on fresh ones, as it
    /// would be in vain.
    taken: usize,
}

impl Spares {
    pub(super) fn new(context: &Context, revision: Revision, mirrored: Mirrored) -> Self {
        let mirrored = Arc::new(mirrored);
        Self { context: context.clone(), revision, mirrored, waiting: VecDeque::new(), taken: 0 }
    }

    /// A process that nobody has called yet.
    pub(super) async fn take(&mut self) -> Result<Opened, String> {
        let opened = match self.taken().await {
            Some(opened) => opened,
            None => self.open().await?,
        };
        // Over HTTP there is but one process, which is no spare one.
        let is_one = self.context.plan.transport() == Transport::Http || self.context.plan.jobs == 1;
        self.taken += 1;
        let ahead = if is_one || self.taken < FROM { 0 } else { MOST };
        while self.waiting.len() < ahead {
            self.waiting.push_back(tokio::spawn(self.open()));
        }
        Ok(opened)
    }

    fn open(&self) -> impl Future<Output = Result<Opened, String>> + Send + 'static {
        open(self.context.clone(), self.revision, Arc::clone(&self.mirrored))
    }

    /// The first of those that wait. One that did not come to be, or did not last, is no loss.
    async fn taken(&mut self) -> Option<Opened> {
        loop {
            let waiting = self.waiting.pop_front()?;
            if let Ok(Ok(mut opened)) = waiting.await
                && opened.is_quiet().await
            {
                return Some(opened);
            }
        }
    }

    /// Ends those that wait.
    pub(super) fn end(&mut self) {
        for waiting in self.waiting.drain(..) {
            waiting.abort();
        }
        self.taken = 0;
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        self.end();
    }
}

impl Opened {
    /// Takes in what the server said while it waited; says whether it still runs.
    async fn is_quiet(&mut self) -> bool {
        loop {
            match self.pipe.next(LISTENED).await {
                Waited::Came(frame) => {
                    for message in frame.json().into_iter().flat_map(messages) {
                        if matches!(Kind::of(message), Kind::Request { .. }) {
                            self.asked.push(message.clone());
                        }
                    }
                }
                Waited::TimedOut => return true,
                Waited::Closed => return false,
            }
        }
    }
}

/// Starts a process and opens a session with it. What it writes meanwhile is judged by the cases.
/// Over HTTP it is a session with a process that was started anew, where that is ours to do.
async fn open(context: Context, revision: Revision, mirrored: Arc<Mirrored>) -> Result<Opened, String> {
    if context.plan.transport() == Transport::Stdio {
        context.count_launch();
    }
    let began = Instant::now();
    let process_id = context.renew_host().await?;
    let pipe = lean(&context, revision, &mirrored).map_err(|error| error.to_string())?;
    let opened = handshake(pipe, revision, context.plan.startup_timeout).await?;
    let process_id = process_id.or_else(|| opened.pipe.process_id());
    Ok(Opened { startup: began.elapsed(), process_id, ..opened })
}

async fn handshake(mut pipe: Pipe, revision: Revision, limit: Duration) -> Result<Opened, String> {
    const FAILED: &str = "the server could not be opened once more";
    let began = Instant::now();
    let capabilities = full_capabilities(revision);
    let (method, params) = match revision.era() {
        Era::Handshake => ("initialize", initialize_params(revision.as_str(), &capabilities)),
        Era::Stateless => ("server/discover", json!({ "_meta": stateless_meta(&capabilities) })),
    };
    pipe.queue(json!({"jsonrpc": "2.0", "id": FIRST, "method": method, "params": params}).to_string().as_bytes());
    let mut asked = Vec::new();
    loop {
        let Waited::Came(frame) = pipe.next(limit.saturating_sub(began.elapsed())).await else {
            return Err(pipe.over().map_or_else(|| FAILED.to_owned(), |over| format!("{FAILED}: {}", over.describe())));
        };
        for message in frame.json().into_iter().flat_map(messages) {
            match Kind::of(message) {
                Kind::Response { id: Some(id) } if same_id_loosely(&json!(FIRST), id) && !id.is_null() => {
                    if revision.era() == Era::Handshake {
                        pipe.queue(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
                    }
                    return Ok(Opened { pipe, startup: began.elapsed(), asked, process_id: None });
                }
                Kind::Request { .. } => asked.push(message.clone()),
                _ => {}
            }
        }
    }
}
