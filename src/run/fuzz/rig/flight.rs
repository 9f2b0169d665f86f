//! Calls that are under way: sent as many at a time as are wanted, and paired with what the server writes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::familiar::Familiar;
use super::super::parked::Parked;
use super::super::shot::{Broken, Burst, Known, Shot};
use super::{ASTRAY, FLOOD, FORGOTTEN, GRACE, HISTORY, HISTORY_BYTES, LITTLE_GRACE, Rig, write_line};
use crate::check::fuzz::{Exchange, Fate, is_noise};
use crate::client::{Over, Waited};
use crate::spec::Era;
use crate::wire::{Damage, Frame, Kind, same_id, same_id_loosely};

/// A call that is under way.
pub(super) struct Open {
    index: usize,
    id: i64,
    /// The id of the request behind a line that need not be answered.
    fence: Option<i64>,
    since: Instant,
    alone: bool,
}

impl Open {
    /// A call that was made before.
    pub(super) fn of(id: i64) -> Self {
        Self { index: 0, id, fence: None, since: Instant::now(), alone: false }
    }

    /// The id of the request that has to be answered.
    fn answered_id(&self) -> i64 {
        self.fence.unwrap_or(self.id)
    }
}

/// Calls that are under way, and what came of those before.
struct Flight<'s> {
    shots: &'s [Shot],
    /// In the order of their ids.
    window: VecDeque<Open>,
    burst: Burst,
    /// Lines that are no message, until a call is answered that they are told with.
    noise: Vec<String>,
    /// A response under the id of no call.
    stray: Option<Value>,
}

impl Flight<'_> {
    /// The position of the call that was made under an id.
    fn place(&self, id: i64) -> Option<usize> {
        match self.window.front() {
            Some(first) if first.answered_id() == id => Some(0),
            _ => self.window.binary_search_by_key(&id, Open::answered_id).ok(),
        }
    }

    /// Takes a line for the answer to a call if everything about that is known; where there is anything else to
    /// tell, or to doubt, the line is to be read.
    fn recognize(&mut self, familiar: &mut Familiar<'_>, line: &[u8]) -> bool {
        if !self.noise.is_empty() || self.stray.is_some() {
            return false;
        }
        let Some((answer, id)) = familiar.find(line) else { return false };
        let Some(at) = self.place(id).filter(|at| self.window[*at].fence.is_none()) else { return false };
        let Some(met) = familiar.met(answer, &self.shots[self.window[at].index].call) else { return false };
        let Some(open) = self.window.remove(at) else { return false };
        let alone = open.alone.then(|| open.since.elapsed());
        self.burst.known.push(Known { index: open.index, met: Arc::clone(met), alone });
        true
    }
}

impl Rig {
    /// Makes calls, so many of them under way at once, until all are answered or none is within the limit. What is
    /// `familiar` is told as such.
    pub(in super::super) async fn burst(
        &mut self,
        shots: &[Shot],
        in_flight: usize,
        limit: Duration,
        mut familiar: Option<&mut Familiar<'_>>,
    ) -> Result<Burst, String> {
        self.parked = None;
        self.ready().await?;
        let burst = Burst::default();
        let mut flight = Flight { shots, window: VecDeque::new(), burst, noise: Vec::new(), stray: None };
        let (mut left, mut unasked) = (limit, 0_usize);
        loop {
            self.refill(&mut flight, in_flight).await;
            if flight.window.is_empty() {
                return Ok(flight.burst);
            }
            let began = Instant::now();
            let Some(pipe) = &mut self.pipe else { return Err("the server is gone".to_owned()) };
            let grace = if self.astray < ASTRAY { GRACE } else { LITTLE_GRACE };
            let known = flight.burst.known.len();
            let patience = if flight.stray.is_some() { grace.min(left) } else { left };
            let recognize = |line: &[u8]| familiar.as_mut().is_some_and(|familiar| flight.recognize(familiar, line));
            let waited = pipe.next_unless(patience, recognize).await;
            left = left.saturating_sub(began.elapsed());
            if flight.burst.known.len() > known {
                (left, unasked) = (limit, 0);
            }
            match waited {
                Waited::Came(None) => {}
                Waited::Came(Some(frame)) => {
                    if let (Some(familiar), Ok(message)) = (familiar.as_mut(), &frame.value) {
                        familiar.learn(&frame.raw, message);
                    }
                    if self.read(frame, &mut flight) {
                        self.astray = if flight.stray.is_some() { 0 } else { self.astray };
                        (left, unasked, flight.stray) = (limit, 0, None);
                    } else {
                        unasked += 1;
                        if unasked > FLOOD {
                            flight.burst.broken = Some(Broken::Flooded);
                        }
                    }
                }
                Waited::TimedOut if flight.stray.is_some() && flight.window.len() == 1 => {
                    // What came under another id is all that there is.
                    let Some(open) = flight.window.pop_front() else { continue };
                    self.astray += 1;
                    let answers = flight.stray.take().into_iter().collect();
                    self.close(&open, answers, &mut flight);
                    (left, unasked) = (limit, 0);
                }
                Waited::TimedOut => flight.burst.broken = Some(Broken::Silent),
                Waited::Closed if pipe.over() == Some(&Over::Forgotten) => {
                    // A session may be ended by the server at any time; what was under way is asked in another.
                    self.forgotten += 1;
                    if self.forgotten > FORGOTTEN {
                        return Err(Over::Forgotten.describe());
                    }
                    self.fresh().await?;
                    for open in &flight.window {
                        let line = self.line(&shots[open.index], open.id);
                        if let Some(pipe) = &mut self.pipe {
                            pipe.queue(&line);
                        }
                    }
                    (left, unasked, flight.stray) = (limit, 0, None);
                }
                Waited::Closed => flight.burst.broken = Some(self.broken().await?),
            }
            if flight.burst.broken.is_some() {
                return Ok(self.break_off(flight, limit));
            }
        }
    }

    /// Sends calls until as many are under way as are wanted.
    async fn refill(&mut self, flight: &mut Flight<'_>, in_flight: usize) {
        let mut now: Option<Instant> = None;
        while let Some(shot) = flight.shots.get(flight.burst.unsent)
            && flight.window.len() < in_flight
            && (flight.window.is_empty() || !shot.call.is_unparsable())
            && flight.window.back().is_none_or(|open| open.fence.is_none())
        {
            if self.pause.is_some() {
                self.keep_pace().await;
                now = None;
            }
            // What is sent at once is written at once.
            let since = *now.get_or_insert_with(Instant::now);
            let alone = flight.window.is_empty() && in_flight == 1;
            let open = self.send(flight.burst.unsent, shot, alone, since);
            flight.window.push_back(open);
            flight.burst.unsent += 1;
        }
    }

    fn send(&mut self, index: usize, shot: &Shot, alone: bool, since: Instant) -> Open {
        self.next_id += 1;
        let id = self.next_id;
        self.calls += 1;
        let fence = shot.call.is_unparsable().then(|| {
            self.next_id += 1;
            self.next_id
        });
        let mut length = 0;
        if let Some(pipe) = &mut self.pipe {
            let (name, meta) = (&self.names[shot.tool], &self.meta);
            length = pipe.queue_with(|line| write_line(line, name, meta, shot, id));
            if let Some(fence) = fence {
                let method = if self.revision.era() == Era::Stateless { "tools/list" } else { "ping" };
                let meta = meta.trim_start_matches(',');
                let params = if meta.is_empty() { "{}".to_owned() } else { format!("{{{meta}}}") };
                let line = format!(r#"{{"jsonrpc":"2.0","id":{fence},"method":"{method}","params":{params}}}"#);
                pipe.queue(line.as_bytes());
            }
        }
        self.history_bytes += length;
        self.history.push_back((id, shot.clone(), length));
        while self.history.len() > HISTORY || self.history_bytes > HISTORY_BYTES {
            let Some((_, shot, bytes)) = self.history.pop_front() else { break };
            self.history_bytes -= bytes;
            if self.history.is_empty() {
                // It alone is more than is kept, and still the last one.
                self.last = Some((id, shot));
            } else if self.spent.len() < HISTORY {
                self.spent.push(shot);
            }
        }
        Open { index, id, fence, since, alone }
    }

    /// Gives up what is still under way.
    fn break_off(&mut self, flight: Flight<'_>, limit: Duration) -> Burst {
        let Flight { shots, window, mut burst, mut noise, .. } = flight;
        for open in window {
            let fate = match &burst.broken {
                Some(Broken::Ended { status, stderr }) => {
                    Fate::Ended { status: status.clone(), stderr: stderr.clone() }
                }
                // An answer over HTTP may end before its time, without what it was to bring.
                _ => Fate::Silent { waited: limit.min(open.since.elapsed()) },
            };
            let exchange = self.exchange(&shots[open.index], &open, Vec::new(), fate, &mut noise);
            burst.open.push((open.index, exchange));
        }
        // What is only silent may be slow.
        let parked = self.pipe.take().map(Parked::new);
        self.parked = parked.filter(|_| burst.broken == Some(Broken::Silent));
        burst
    }

    /// Takes note of the answers to a call.
    fn close(&self, open: &Open, answers: Vec<Value>, flight: &mut Flight<'_>) {
        let exchange = self.exchange(&flight.shots[open.index], open, answers, Fate::Answered, &mut flight.noise);
        flight.burst.done.push((open.index, exchange));
    }

    /// Takes a line of the server; says whether it answers something.
    fn read(&mut self, frame: Frame, flight: &mut Flight<'_>) -> bool {
        match &frame.value {
            Err(Damage::Blank) => return false,
            Err(damage) if damage.is_our_bound() => {
                // More than we read is an answer all the same, and nothing that is judged here.
                let Some(open) = flight.window.pop_front() else { return false };
                let unread = json!({"jsonrpc": "2.0", "id": open.id, "result": {"content": []}, "unread": true});
                self.close(&open, vec![unread], flight);
                return true;
            }
            _ if is_noise(frame.json()) => {
                self.add_noise(&frame);
                flight.noise.append(&mut self.noise);
                return false;
            }
            _ => {}
        }
        let mut progress = false;
        let several = match frame.value {
            Ok(Value::Array(messages)) => messages,
            Ok(message) => return self.take_in(message, flight),
            Err(_) => Vec::new(),
        };
        for message in several {
            progress |= self.take_in(message, flight);
        }
        progress
    }

    /// Takes a message of the server; says whether it answers something.
    fn take_in(&mut self, message: Value, flight: &mut Flight<'_>) -> bool {
        match Kind::of(&message) {
            Kind::Request { id, method } => self.answer(id, method, message.get("params")),
            Kind::Response { id } => {
                let id = id.cloned().unwrap_or_default();
                return self.pair(message, &id, flight);
            }
            _ => {}
        }
        false
    }

    fn pair(&mut self, message: Value, id: &Value, flight: &mut Flight<'_>) -> bool {
        let exact = |open: &Open| same_id(&open.answered_id().into(), id);
        let loose = |open: &Open| !id.is_null() && same_id_loosely(&open.answered_id().into(), id);
        let window = &flight.window;
        let at = id.as_i64().and_then(|id| flight.place(id));
        let at = at.or_else(|| window.iter().position(exact)).or_else(|| window.iter().position(loose));
        if let Some(at) = at
            && let Some(open) = flight.window.remove(at)
        {
            let answers = if open.fence.is_some() { Vec::new() } else { vec![message] };
            self.close(&open, answers, flight);
            return true;
        }
        // What cannot be parsed is answered without an id, or not at all.
        if flight.window.iter().any(|open| open.fence.is_some()) {
            return false;
        }
        if self.history.iter().any(|(known, ..)| same_id(&(*known).into(), id)) {
            self.take_second(&message, id);
            return false;
        }
        flight.stray.get_or_insert(message);
        false
    }

    /// A call and what came of it.
    pub(super) fn exchange(
        &self,
        shot: &Shot,
        open: &Open,
        answers: Vec<Value>,
        fate: Fate,
        noise: &mut Vec<String>,
    ) -> Exchange {
        Exchange {
            call: Arc::clone(&shot.call),
            line: self.line(shot, open.id),
            id: open.id,
            answers,
            noise: std::mem::take(noise),
            fate,
            took: open.since.elapsed(),
            alone: open.alone,
        }
    }
}
