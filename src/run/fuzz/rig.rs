//! A process of the server that is called by the thousand, and replaced when it dies or falls silent.

mod flight;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::flight::Open;
use super::parked::Parked;
use super::shot::{Broken, Shot};
use super::spare::Spares;
use crate::check::fuzz::{DROPPED, Exchange, Fate, is_noise};
use crate::client::headers::mirrored;
use crate::client::{Over, Patience, Pipe, Responder, Waited};
use crate::run::conduct::Context;
use crate::run::host::HostFate;
use crate::run::offer::Tool;
use crate::run::reply::Replies;
use crate::run::session::{full_capabilities, stateless_meta};
use crate::spec::{Era, Revision};
use crate::wire::{Damage, Frame, Kind, same_id, same_id_loosely};

/// How many calls of a process are remembered, to find those that a failure needs.
const HISTORY: usize = 1_024;
/// How many bytes of arguments that history holds.
const HISTORY_BYTES: usize = 16 << 20;
/// How many lines that answer nothing are read between two answers before the server is cut off.
const FLOOD: usize = 5_000;
/// How many requests of a process are answered.
const ANSWERS: usize = 2_000;
/// How long the right answer is waited for after one under a wrong id.
const GRACE: Duration = Duration::from_millis(60);
/// How a server ended that is not ours to start again.
const NOBODY: &str = "nobody listens at the address any more";
/// How often a server may forget the session that it is called in.
const FORGOTTEN: usize = 20;
/// How long where it never came after several of them, and how many those are.
const LITTLE_GRACE: Duration = Duration::from_millis(3);
const ASTRAY: usize = 8;
/// How long a process is given to end: nobody judges that here.
pub(super) const PATIENCE: Patience =
    Patience { input_closed: Duration::from_millis(20), sigterm: Duration::from_millis(50) };

/// Keeps a process of the server running and calls it.
pub(super) struct Rig {
    context: Context,
    pub(super) revision: Revision,
    /// The names of the tools, as JSON.
    names: Vec<String>,
    meta: String,
    responder: Responder,
    spares: Spares,
    pipe: Option<Pipe>,
    process_id: Option<i32>,
    had_process: bool,
    /// Whether the server ended and is not ours to start again.
    gone: bool,
    /// The last call of the process before, which that may have come of.
    last: Option<(i64, Shot)>,
    /// How often the server had forgotten the session.
    forgotten: usize,
    /// The process that the last call was not answered by, until another is called.
    parked: Option<Parked>,
    /// Answers in a row under a wrong id that no right one followed.
    astray: usize,
    next_id: i64,
    answered: usize,
    /// The last calls of this process, oldest first.
    history: VecDeque<(i64, Shot, usize)>,
    history_bytes: usize,
    /// Calls that are remembered no more, for whoever made them to take apart.
    spent: Vec<Shot>,
    /// Answers that came a second time, with the call that they belong to.
    late: Vec<(Shot, Exchange)>,
    /// Lines that are no message and came between two bursts.
    noise: Vec<String>,
    startup: Duration,
    /// How often a process was started.
    pub(super) starts: usize,
    /// How many calls were made.
    pub(super) calls: u64,
    /// The least time between two calls.
    pause: Option<Duration>,
    last_call: Option<Instant>,
}

impl Rig {
    pub(super) fn new(context: &Context, revision: Revision, chosen: &[&Tool], max_rate: Option<f64>) -> Self {
        let definitions: Vec<&Value> = chosen.iter().map(|tool| &tool.definition).collect();
        let capabilities = full_capabilities(revision);
        let meta = match revision.era() {
            Era::Stateless => format!(",\"_meta\":{}", stateless_meta(&capabilities)),
            Era::Handshake => String::new(),
        };
        Self {
            context: context.clone(),
            revision,
            names: chosen.iter().map(|tool| Value::from(tool.name.as_str()).to_string()).collect(),
            meta,
            responder: Responder::new(capabilities, Replies::default().answer()),
            spares: Spares::new(context, revision, mirrored(&json!({ "tools": definitions }))),
            pipe: None,
            process_id: None,
            had_process: false,
            gone: false,
            last: None,
            forgotten: 0,
            parked: None,
            astray: 0,
            // The first request opens the session.
            next_id: 1,
            answered: 0,
            history: VecDeque::new(),
            history_bytes: 0,
            spent: Vec::new(),
            late: Vec::new(),
            noise: Vec::new(),
            startup: Duration::ZERO,
            starts: 0,
            calls: 0,
            pause: max_rate.map(|rate| Duration::from_secs_f64(1.0 / rate.max(0.001))),
            last_call: None,
        }
    }

    /// How long the last process took to open.
    pub(super) fn startup(&self) -> Duration {
        self.startup
    }

    /// The process of the server, if it is one.
    pub(super) fn process_id(&self) -> Option<i32> {
        self.process_id
    }

    /// Whether the process of the server was known.
    pub(super) fn had_process(&self) -> bool {
        self.had_process
    }

    /// Whether the server ended and is not ours to start again.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// The last call, as one that the server did not survive.
    pub(super) fn last_call(&self) -> Option<(Shot, Exchange)> {
        let last = self.history.back().map(|(id, shot, _)| (*id, shot.clone()));
        let (id, shot) = last.or_else(|| self.last.clone())?;
        let fate = Fate::Ended { status: NOBODY.to_owned(), stderr: String::new() };
        let found = self.exchange(&shot, &Open::of(id), Vec::new(), fate, &mut Vec::new());
        Some((shot, found))
    }

    /// The calls of this process with their ids, oldest first.
    pub(super) fn record(&self) -> Vec<(i64, Shot)> {
        self.history.iter().map(|(id, shot, _)| (*id, shot.clone())).collect()
    }

    /// The calls of this process, oldest first.
    pub(super) fn history(&self) -> Vec<Shot> {
        self.history.iter().map(|(_, shot, _)| shot.clone()).collect()
    }

    /// Whether the process that runs has been called.
    pub(super) fn has_history(&self) -> bool {
        self.pipe.is_some() && !self.history.is_empty()
    }

    fn forget(&mut self) {
        if let Some((id, shot, _)) = self.history.pop_back() {
            self.last = Some((id, shot));
        }
        self.history.clear();
        self.history_bytes = 0;
    }

    /// The calls that are remembered no more since this was asked last.
    pub(super) fn take_spent(&mut self) -> Vec<Shot> {
        std::mem::take(&mut self.spent)
    }

    /// The answers that came a second time since this was asked last.
    pub(super) fn take_late(&mut self) -> Vec<(Shot, Exchange)> {
        std::mem::take(&mut self.late)
    }

    /// Ends the process; the next call starts another.
    pub(super) fn drop_process(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            tokio::spawn(pipe.end(PATIENCE));
        }
        self.forget();
    }

    /// Ends the process and waits for its end.
    pub(super) async fn end(&mut self) {
        self.spares.end();
        if let Some(pipe) = self.pipe.take() {
            pipe.end(PATIENCE).await;
        }
        self.forget();
    }

    /// The process that the last call was not answered by.
    pub(super) fn take_parked(&mut self) -> Option<Parked> {
        self.parked.take()
    }

    /// Starts a process in place of the one that is there.
    pub(super) async fn fresh(&mut self) -> Result<(), String> {
        self.drop_process();
        self.ready().await
    }

    /// Starts a process if there is none.
    pub(super) async fn ready(&mut self) -> Result<(), String> {
        if self.pipe.is_some() {
            return Ok(());
        }
        self.starts += 1;
        self.answered = 0;
        self.forget();
        let opened = match self.spares.take().await {
            Ok(opened) => opened,
            Err(problem) => {
                self.gone |= matches!(self.context.fate_of_host().await, HostFate::Gone);
                return Err(problem);
            }
        };
        self.startup = opened.startup;
        self.process_id = opened.process_id;
        self.had_process |= opened.process_id.is_some();
        self.pipe = Some(opened.pipe);
        for message in opened.asked {
            if let Kind::Request { id, method } = Kind::of(&message) {
                self.answer(id, method, message.get("params"));
            }
        }
        Ok(())
    }

    /// Makes a request that is no call and returns its response.
    pub(super) async fn request(&mut self, method: &str, params: &Value, limit: Duration) -> Option<Value> {
        self.next_id += 1;
        let id = self.next_id;
        let pipe = self.pipe.as_mut()?;
        pipe.queue(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().as_bytes());
        let began = Instant::now();
        loop {
            let frame = match self.pipe.as_mut()?.next(limit.saturating_sub(began.elapsed())).await {
                Waited::Came(frame) => frame,
                Waited::TimedOut | Waited::Closed => return None,
            };
            if is_noise(frame.json()) && frame.value != Err(Damage::Blank) {
                self.add_noise(&frame);
            }
            let several = match frame.value {
                Ok(Value::Array(messages)) => messages,
                Ok(message) => vec![message],
                Err(_) => Vec::new(),
            };
            for message in several {
                match Kind::of(&message) {
                    Kind::Response { id: Some(got) } if same_id_loosely(&json!(id), got) && !got.is_null() => {
                        return Some(message);
                    }
                    Kind::Response { id: Some(got) } => self.take_second(&message, got),
                    Kind::Request { id, method } => self.answer(id, method, message.get("params")),
                    _ => {}
                }
            }
        }
    }

    /// Reads one page of a list of the server's.
    pub(super) async fn listing(&mut self, method: &str, cursor: Option<Value>, limit: Duration) -> Option<Value> {
        let mut params = match self.revision.era() {
            Era::Stateless => json!({ "_meta": stateless_meta(&full_capabilities(self.revision)) }),
            Era::Handshake => json!({}),
        };
        if let Some(cursor) = cursor {
            params["cursor"] = cursor;
        }
        self.request(method, &params, limit).await?.get_mut("result").map(Value::take)
    }

    fn answer(&mut self, id: &Value, method: &str, params: Option<&Value>) {
        self.answered += 1;
        if self.answered <= ANSWERS {
            let answer = self.responder.answer(id, method, params);
            if let Some(pipe) = &mut self.pipe {
                pipe.queue(answer.to_string().as_bytes());
            }
        }
    }

    /// The line of a call.
    pub(super) fn line(&self, shot: &Shot, id: i64) -> Arc<[u8]> {
        let mut line = Vec::new();
        write_line(&mut line, &self.names[shot.tool], &self.meta, shot, id);
        line.into()
    }

    async fn keep_pace(&mut self) {
        if let (Some(pause), Some(last)) = (self.pause, self.last_call) {
            tokio::time::sleep(pause.saturating_sub(last.elapsed())).await;
        }
        if self.pause.is_some() {
            self.last_call = Some(Instant::now());
        }
    }

    /// Why the connection closed. What says that nothing more is to be asked at all is an error.
    async fn broken(&mut self) -> Result<Broken, String> {
        let Some(pipe) = &mut self.pipe else { return Err("the server is gone".to_owned()) };
        match pipe.over() {
            None => {
                let status = pipe.epitaph().await;
                Ok(Broken::Ended { status, stderr: pipe.stderr() })
            }
            Some(over @ (Over::Limited | Over::Locked)) => Err(over.describe()),
            Some(Over::Flooded) => Ok(Broken::Flooded),
            Some(Over::Lost(_) | Over::Forgotten) => Ok(match self.context.fate_of_host().await {
                HostFate::Ended { status, stderr } => Broken::Ended { status, stderr },
                HostFate::Gone => {
                    self.gone = true;
                    Broken::Ended { status: NOBODY.to_owned(), stderr: String::new() }
                }
                HostFate::Listens => Broken::Ended { status: DROPPED.to_owned(), stderr: String::new() },
            }),
        }
    }

    /// Keeps an answer that comes a second time.
    fn take_second(&mut self, message: &Value, id: &Value) {
        const MOST: usize = 8;
        let mut latest = self.history.iter().rev();
        let Some((id, shot, _)) = latest.find(|(known, ..)| same_id(&(*known).into(), id)).cloned() else { return };
        if shot.call.is_unparsable() || self.late.len() >= MOST {
            return;
        }
        // The first answer is gone; that there was one is what counts.
        let answers = vec![message.clone(), message.clone()];
        let found = self.exchange(&shot, &Open::of(id), answers, Fate::Answered, &mut Vec::new());
        self.late.push((shot, found));
    }

    fn add_noise(&mut self, frame: &Frame) {
        const NOISE: usize = 16;
        if self.noise.len() < NOISE {
            self.noise.push(crate::check::fuzz::excerpt(&frame.text(), 500));
        }
    }

    /// Waits for what a call may still write, up to the answer to another request: adds it to the exchange.
    pub(super) async fn wait_for_more(&mut self, exchange: &mut Exchange) {
        const LONGEST: Duration = Duration::from_secs(1);
        let method = if self.revision.era() == Era::Stateless { "tools/list" } else { "ping" };
        let answered = self.listing(method, None, LONGEST).await;
        exchange.noise.append(&mut self.noise);
        for (_, late) in std::mem::take(&mut self.late) {
            if late.id == exchange.id {
                exchange.answers.extend(late.answers.into_iter().skip(1));
            }
        }
        if answered.is_none()
            && self.pipe.as_ref().is_some_and(Pipe::is_closed)
            && let Ok(Broken::Ended { status, stderr }) = self.broken().await
        {
            exchange.fate = Fate::Ended { status, stderr };
            self.drop_process();
        }
    }

    /// Makes one call and waits for what comes of it.
    pub(super) async fn one(&mut self, shot: &Shot, limit: Duration) -> Result<Exchange, String> {
        let mut burst = self.burst(std::slice::from_ref(shot), 1, limit, None).await?;
        let done = burst.done.pop().or_else(|| burst.open.pop());
        done.map(|(_, exchange)| exchange).ok_or_else(|| "the call was not made".to_owned())
    }
}

/// Writes the line of a call, without its end.
fn write_line(line: &mut Vec<u8>, name: &str, meta: &str, shot: &Shot, id: i64) {
    line.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    serde_json::to_writer(&mut *line, &id).expect("a number can be written to memory");
    line.extend_from_slice(b",\"method\":\"tools/call\",\"params\":{\"name\":");
    line.extend_from_slice(name.as_bytes());
    line.extend_from_slice(b",\"arguments\":");
    shot.call.arguments.write(line);
    line.extend_from_slice(meta.as_bytes());
    line.extend_from_slice(b"}}");
}
