//! A process of the server that is called by the thousand, and replaced when it dies or falls silent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::parked::Parked;
use super::shot::{Broken, Burst, Shot};
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
use crate::transcript::messages;
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

/// A call that is under way.
struct Open {
    index: usize,
    id: i64,
    /// The id of the request behind a line that need not be answered.
    fence: Option<i64>,
    since: Instant,
    alone: bool,
    line: Arc<[u8]>,
}

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
    /// The last call, which that may have come of.
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
        let (id, shot) = self.last.clone()?;
        let line = self.line(&shot, id);
        let open = Open { index: 0, id, fence: None, since: Instant::now(), alone: false, line };
        let fate = Fate::Ended { status: NOBODY.to_owned(), stderr: String::new() };
        let found = exchange(&shot, &open, Vec::new(), fate, &mut Vec::new());
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

    fn forget(&mut self) {
        self.history.clear();
        self.history_bytes = 0;
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
            for message in frame.json().into_iter().flat_map(messages) {
                match Kind::of(message) {
                    Kind::Response { id: Some(got) } if same_id_loosely(&json!(id), got) && !got.is_null() => {
                        return Some(message.clone());
                    }
                    Kind::Response { id: Some(got) } => self.take_second(message, got),
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
        self.request(method, &params, limit).await?.get("result").cloned()
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
        const USUAL: usize = 256;
        let name = self.names[shot.tool].as_str();
        let mut line = Vec::with_capacity(USUAL + name.len() + self.meta.len());
        line.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        line.extend_from_slice(id.to_string().as_bytes());
        line.extend_from_slice(b",\"method\":\"tools/call\",\"params\":{\"name\":");
        line.extend_from_slice(name.as_bytes());
        line.extend_from_slice(b",\"arguments\":");
        shot.call.arguments.write(&mut line);
        line.extend_from_slice(self.meta.as_bytes());
        line.extend_from_slice(b"}}");
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

    fn send(&mut self, index: usize, shot: &Shot, alone: bool) -> Open {
        self.next_id += 1;
        let id = self.next_id;
        let line = self.line(shot, id);
        self.calls += 1;
        self.history_bytes += line.len();
        self.history.push_back((id, shot.clone(), line.len()));
        self.last = Some((id, shot.clone()));
        while self.history.len() > HISTORY || self.history_bytes > HISTORY_BYTES {
            let Some((_, _, bytes)) = self.history.pop_front() else { break };
            self.history_bytes -= bytes;
        }
        let fence = shot.call.is_unparsable().then(|| {
            self.next_id += 1;
            self.next_id
        });
        let meta = self.meta.trim_start_matches(',');
        let era = self.revision.era();
        if let Some(pipe) = &mut self.pipe {
            pipe.queue(&line);
            if let Some(fence) = fence {
                let method = if era == Era::Stateless { "tools/list" } else { "ping" };
                let params = if meta.is_empty() { "{}".to_owned() } else { format!("{{{meta}}}") };
                let line = format!(r#"{{"jsonrpc":"2.0","id":{fence},"method":"{method}","params":{params}}}"#);
                pipe.queue(line.as_bytes());
            }
        }
        Open { index, id, fence, since: Instant::now(), alone, line }
    }

    /// Makes calls, so many of them under way at once, until all are answered or none is within the limit.
    pub(super) async fn burst(&mut self, shots: &[Shot], in_flight: usize, limit: Duration) -> Result<Burst, String> {
        self.parked = None;
        self.ready().await?;
        let mut burst = Burst::default();
        let mut window: VecDeque<Open> = VecDeque::new();
        let mut noise: Vec<String> = Vec::new();
        let mut stray: Option<Value> = None;
        let (mut left, mut unasked) = (limit, 0_usize);
        loop {
            while burst.unsent < shots.len()
                && window.len() < in_flight
                && (window.is_empty() || !shots[burst.unsent].call.is_unparsable())
                && window.back().is_none_or(|open| open.fence.is_none())
            {
                self.keep_pace().await;
                let open = self.send(burst.unsent, &shots[burst.unsent], window.is_empty() && in_flight == 1);
                window.push_back(open);
                burst.unsent += 1;
            }
            if window.is_empty() {
                return Ok(burst);
            }
            let began = Instant::now();
            let Some(pipe) = &mut self.pipe else { return Err("the server is gone".to_owned()) };
            let grace = if self.astray < ASTRAY { GRACE } else { LITTLE_GRACE };
            let waited = pipe.next(if stray.is_some() { grace.min(left) } else { left }).await;
            left = left.saturating_sub(began.elapsed());
            match waited {
                Waited::Came(frame) => {
                    let progress = self.read(shots, frame, &mut window, &mut burst, &mut noise, &mut stray);
                    if progress {
                        self.astray = if stray.is_some() { 0 } else { self.astray };
                        (left, unasked, stray) = (limit, 0, None);
                    } else {
                        unasked += 1;
                        if unasked > FLOOD {
                            burst.broken = Some(Broken::Flooded);
                        }
                    }
                }
                Waited::TimedOut if stray.is_some() && window.len() == 1 => {
                    // What came under another id is all that there is.
                    let Some(open) = window.pop_front() else { continue };
                    self.astray += 1;
                    let answers = stray.take().into_iter().collect();
                    let exchange = exchange(&shots[open.index], &open, answers, Fate::Answered, &mut noise);
                    burst.done.push((open.index, exchange));
                    (left, unasked) = (limit, 0);
                }
                Waited::TimedOut => burst.broken = Some(Broken::Silent),
                Waited::Closed if pipe.over() == Some(&Over::Forgotten) => {
                    // A session may be ended by the server at any time; what was under way is asked in another.
                    self.forgotten += 1;
                    if self.forgotten > FORGOTTEN {
                        return Err(Over::Forgotten.describe());
                    }
                    self.fresh().await?;
                    if let Some(pipe) = &mut self.pipe {
                        for open in &window {
                            pipe.queue(&open.line);
                        }
                    }
                    (left, unasked, stray) = (limit, 0, None);
                }
                Waited::Closed => burst.broken = Some(self.broken().await?),
            }
            if let Some(broken) = &burst.broken {
                let fate_of = |open: &Open| match broken {
                    Broken::Ended { status, stderr } => Fate::Ended { status: status.clone(), stderr: stderr.clone() },
                    // An answer over HTTP may end before its time, without what it was to bring.
                    Broken::Silent | Broken::Flooded => Fate::Silent { waited: limit.min(open.since.elapsed()) },
                };
                for open in window {
                    let fate = fate_of(&open);
                    let exchange = exchange(&shots[open.index], &open, Vec::new(), fate, &mut noise);
                    burst.open.push((open.index, exchange));
                }
                // What is only silent may be slow.
                let parked = self.pipe.take().map(Parked::new);
                self.parked = parked.filter(|_| burst.broken == Some(Broken::Silent));
                return Ok(burst);
            }
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

    /// Takes a line of the server; says whether it answers something.
    fn read(
        &mut self,
        shots: &[Shot],
        frame: Frame,
        window: &mut VecDeque<Open>,
        burst: &mut Burst,
        noise: &mut Vec<String>,
        stray: &mut Option<Value>,
    ) -> bool {
        match &frame.value {
            Err(Damage::Blank) => return false,
            Err(damage) if damage.is_our_bound() => {
                // More than we read is an answer all the same, and nothing that is judged here.
                let Some(open) = window.pop_front() else { return false };
                let unread = json!({"jsonrpc": "2.0", "id": open.id, "result": {"content": []}, "unread": true});
                let exchange = exchange(&shots[open.index], &open, vec![unread], Fate::Answered, noise);
                burst.done.push((open.index, exchange));
                return true;
            }
            _ if is_noise(frame.json()) => {
                self.add_noise(&frame);
                noise.append(&mut self.noise);
                return false;
            }
            _ => {}
        }
        let mut progress = false;
        let several = match frame.value {
            Ok(Value::Array(messages)) => messages,
            Ok(message) => return self.take_in(shots, message, window, burst, noise, stray),
            Err(_) => Vec::new(),
        };
        for message in several {
            progress |= self.take_in(shots, message, window, burst, noise, stray);
        }
        progress
    }

    /// Takes a message of the server; says whether it answers something.
    fn take_in(
        &mut self,
        shots: &[Shot],
        message: Value,
        window: &mut VecDeque<Open>,
        burst: &mut Burst,
        noise: &mut Vec<String>,
        stray: &mut Option<Value>,
    ) -> bool {
        match Kind::of(&message) {
            Kind::Request { id, method } => self.answer(id, method, message.get("params")),
            Kind::Response { id } => {
                let id = id.cloned().unwrap_or_default();
                return self.pair(shots, message, &id, window, burst, noise, stray);
            }
            _ => {}
        }
        false
    }

    /// Keeps an answer that comes a second time.
    fn take_second(&mut self, message: &Value, id: &Value) {
        const MOST: usize = 8;
        let Some((id, shot, _)) = self.history.iter().rev().find(|(known, ..)| same_id(&(*known).into(), id)) else {
            return;
        };
        if shot.call.is_unparsable() || self.late.len() >= MOST {
            return;
        }
        let line = self.line(shot, *id);
        let open = Open { index: 0, id: *id, fence: None, since: Instant::now(), alone: false, line };
        // The first answer is gone; that there was one is what counts.
        let found = exchange(shot, &open, vec![message.clone(), message.clone()], Fate::Answered, &mut Vec::new());
        self.late.push((shot.clone(), found));
    }

    fn add_noise(&mut self, frame: &Frame) {
        const NOISE: usize = 16;
        if self.noise.len() < NOISE {
            self.noise.push(crate::check::fuzz::excerpt(&frame.text(), 500));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "they are the parts of one burst")]
    fn pair(
        &mut self,
        shots: &[Shot],
        message: Value,
        id: &Value,
        window: &mut VecDeque<Open>,
        burst: &mut Burst,
        noise: &mut Vec<String>,
        stray: &mut Option<Value>,
    ) -> bool {
        let exact = |open: &Open| same_id(&open.fence.unwrap_or(open.id).into(), id);
        let loose = |open: &Open| !id.is_null() && same_id_loosely(&open.fence.unwrap_or(open.id).into(), id);
        let at = window.iter().position(exact).or_else(|| window.iter().position(loose));
        if let Some(at) = at
            && let Some(open) = window.remove(at)
        {
            let answers = if open.fence.is_some() { Vec::new() } else { vec![message] };
            let exchange = exchange(&shots[open.index], &open, answers, Fate::Answered, noise);
            burst.done.push((open.index, exchange));
            return true;
        }
        // What cannot be parsed is answered without an id, or not at all.
        if window.iter().any(|open| open.fence.is_some()) {
            return false;
        }
        if self.history.iter().any(|(known, ..)| same_id(&(*known).into(), id)) {
            self.take_second(&message, id);
            return false;
        }
        stray.get_or_insert(message);
        false
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
        let mut burst = self.burst(std::slice::from_ref(shot), 1, limit).await?;
        let done = burst.done.pop().or_else(|| burst.open.pop());
        done.map(|(_, exchange)| exchange).ok_or_else(|| "the call was not made".to_owned())
    }
}

fn exchange(shot: &Shot, open: &Open, answers: Vec<Value>, fate: Fate, noise: &mut Vec<String>) -> Exchange {
    Exchange {
        call: Arc::clone(&shot.call),
        line: Arc::clone(&open.line),
        id: open.id,
        answers,
        noise: std::mem::take(noise),
        fate,
        took: open.since.elapsed(),
        alone: open.alone,
    }
}
