//! The hunt: calls are made, judged and counted, and what is found is handed on to be made small.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::familiar::Familiar;
use super::pace::Pace;
use super::patience::Patience;
use super::pool::Pool;
use super::rig::Rig;
use super::seen::SeenByAll;
use super::shot::{Broken, Known, Shot};
use super::shrink::{Test, slim};
use super::stock::Stock;
use super::tally::Tally;
use crate::case::Oracle;
use crate::check::fuzz::{Breach, Call, Exchange, Fate, Standing, Subject, class_of, judge, outcome};
use crate::event::CallOutcome;
use crate::fuzz::ToolSchema;
use crate::run::conduct::Context;
use crate::run::plan::FuzzPlan;
use crate::verdict::{Confirmation, Counterexample};

/// How often the server may have to be started again in all.
const STARTS: usize = 4_000;
/// How many different findings of a tool are made small; more are told as they came.
const INVESTIGATED: usize = 12;
/// How many different findings of a tool are told.
const FOUND: usize = 48;

/// Something that was found, once for each root cause.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) tool: usize,
    pub(super) breach: Breach,
    pub(super) count: usize,
    /// What proves it.
    pub(super) exchanges: Vec<Exchange>,
    pub(super) counterexample: Option<Counterexample>,
    pub(super) confirmation: Option<Confirmation>,
}

/// Everything that is kept while a revision is fuzzed.
pub(super) struct Hunt<'a> {
    pub(super) context: &'a Context,
    pub(super) plan: &'a FuzzPlan,
    pub(super) rig: Rig,
    pub(super) subjects: &'a [Subject],
    pub(super) schemas: Vec<Option<&'a ToolSchema>>,
    /// Whether each tool says that it changes nothing.
    pub(super) only_reads: Vec<bool>,
    /// A plain call of each tool that served it.
    pub(super) canaries: Vec<Shot>,
    /// The lists that the server offers, by method and member.
    pub(super) listed: &'static [(&'static str, &'static str)],
    /// Tools whose answers change by themselves.
    pub(super) changeable: Vec<usize>,
    /// How long the plain call of the tool under test took, each time.
    pub(super) plain_times: Vec<Duration>,
    /// Values out of results.
    pub(super) pool: Pool,
    /// What the tool under test answers again and again.
    pub(super) familiar: Option<Familiar<'a>>,
    pub(super) found: Vec<Found>,
    /// What the hunts side by side have found together.
    pub(super) seen_by_all: SeenByAll,
    pub(super) deadline: Instant,
    /// How long it let the cases pass.
    pub(super) waited: Duration,
    /// The part of the time that the tool under test gets.
    pub(super) turn: Turn,
    /// How long making failures small may take, beside the time for fuzzing.
    pub(super) shrinking_until: Duration,
    pub(super) shrinking_took: Duration,
    pub(super) shrinking: u64,
    pub(super) in_flight: Pace,
    pub(super) ended_early: Option<String>,
    pub(super) patience: Patience,
}

/// A tool's part of the time: what is slow is called less often, rather than at the cost of the others.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    began: Instant,
    share: Duration,
    /// What does not count: making failures small, and waiting for answers that never come.
    spared: Duration,
    /// The slowest call so far.
    slowest: Duration,
    /// How long calls took that were served alone, the first ones of them.
    pub(super) times: Vec<Duration>,
}

impl Turn {
    pub(super) fn new(share: Duration, slowest: Duration) -> Self {
        Self { began: Instant::now(), share, spared: Duration::ZERO, slowest, times: Vec::new() }
    }

    fn is_over(&self) -> bool {
        self.began.elapsed() >= self.share + self.spared
    }

    /// How long the slowest call took so far.
    pub(super) fn slowest(&self) -> Duration {
        self.slowest
    }

    /// What is left of it.
    pub(super) fn left(&self) -> Duration {
        (self.share + self.spared).saturating_sub(self.began.elapsed())
    }
}

impl Hunt<'_> {
    /// What is left of the time for fuzzing, of which making failures small is no part.
    pub(super) fn time_left(&self) -> Duration {
        let until = self.deadline + self.shrinking_took.min(self.shrinking_until);
        until.saturating_duration_since(Instant::now())
    }

    /// Waits until the cases of every revision are through, unless a tool says that it only reads: what its calls change
    /// in the files and the databases that all processes of the server share, the cases must not see. That is no part
    /// of the time for fuzzing.
    pub(super) async fn let_cases_pass(&mut self, of: usize) {
        if self.only_reads[of] {
            return;
        }
        let began = Instant::now();
        self.context.cases_through().await;
        let took = began.elapsed();
        self.deadline += took;
        self.waited += took;
    }

    /// Takes note of time that was no part of the tool's turn.
    pub(super) fn spare(&mut self, took: Duration) {
        self.turn.spared += took;
    }

    /// Why no more calls are to be made, if that is so.
    pub(super) fn is_over(&mut self) -> bool {
        if self.ended_early.is_some() {
            return true;
        }
        if self.context.is_stopping() {
            self.ended_early = Some("the run was interrupted".to_owned());
        } else if self.time_left().is_zero() {
            self.ended_early = Some("the time for it was used up".to_owned());
        } else if self.rig.starts > STARTS {
            self.ended_early = Some(format!("the server had to be started again {STARTS} times"));
        }
        self.ended_early.is_some()
    }

    /// Why the tool under test is left alone, if that is so.
    pub(super) fn is_hopeless(&self) -> Option<String> {
        self.patience.is_hopeless().or_else(|| {
            let share = self.turn.share;
            let slow =
                format!("its calls are slow: called less often, as its share of the time ({share:.1?}) was used up");
            self.turn.is_over().then_some(slow)
        })
    }

    /// Whether the time of the tool under test is up, and nothing else speaks against calling it.
    pub(super) fn is_only_slow(&self) -> bool {
        self.turn.is_over() && !self.patience.was_tried()
    }

    /// Makes the calls of a round and judges what comes of them, in the order in which they were made.
    pub(super) async fn round(
        &mut self,
        shots: &[Shot],
        in_flight: usize,
        tally: &mut Tally,
        stock: &mut Stock,
    ) -> Result<(), String> {
        let (began, shrinking) = (Instant::now(), self.shrinking_took);
        let mut at = 0;
        while at < shots.len() && !self.is_over() && self.is_hopeless().is_none() {
            let soon = self.soon();
            let subject = &self.subjects[stock.tool];
            if self.familiar.as_ref().is_none_or(|familiar| !std::ptr::eq(familiar.subject(), subject)) {
                self.familiar = Some(Familiar::of(subject));
            }
            // Where two answers are held against each other, both are needed.
            let familiar = self.familiar.as_mut().filter(|_| !stock.doubled);
            let burst = self.rig.burst(&shots[at..], in_flight, soon, familiar).await?;
            let (mut done, mut known) = (burst.done, burst.known);
            done.sort_by_key(|(index, _)| *index);
            known.sort_by_key(|known| known.index);
            let context = self.context;
            let breaches = context.judging(|| {
                let mut breaches = Vec::with_capacity(done.len());
                let mut known = known.iter().peekable();
                for (index, exchange) in &done {
                    while let Some(known) = known.next_if(|known| known.index < *index) {
                        self.take_known(&shots[at + known.index], known, tally, stock);
                    }
                    breaches.push(self.take(exchange, tally, stock));
                }
                known.for_each(|known| self.take_known(&shots[at + known.index], known, tally, stock));
                breaches
            });
            let done: Vec<Exchange> = done.into_iter().map(|(_, exchange)| exchange).collect();
            // Making one failure small starts other processes, so what led to the others is kept before.
            let record = if breaches.iter().any(|found| !found.is_empty()) { self.rig.record() } else { Vec::new() };
            for (exchange, breaches) in done.iter().zip(breaches) {
                self.follow(shots[at].tool, exchange, breaches, &record, stock).await?;
            }
            if stock.doubled {
                self.look_at_pairs(&done, stock).await?;
            }
            for (shot, exchange) in self.rig.take_late() {
                let breaches = judge(&self.subjects[shot.tool], &exchange);
                self.follow(shot.tool, &exchange, breaches, &record, stock).await?;
            }
            if let Some(broken) = burst.broken {
                let suspects = burst.open.into_iter().map(|(index, exchange)| (at + index, exchange)).collect();
                self.broken(shots, suspects, &broken, tally, stock).await?;
            }
            at += burst.unsent;
        }
        // Calls that are made one at a time for another reason tell nothing, nor do those that something was found in.
        if in_flight == self.in_flight.now() && self.shrinking_took == shrinking {
            self.in_flight.took(shots.len(), began.elapsed());
        }
        if self.context.is_judging_cases() {
            // Calls beside cases are slower than the tool is.
            self.spare(began.elapsed());
        }
        Ok(())
    }

    /// Finds out which of the calls that were under way ended the server, or hung it.
    async fn broken(
        &mut self,
        shots: &[Shot],
        suspects: Vec<(usize, Exchange)>,
        broken: &Broken,
        tally: &mut Tally,
        stock: &mut Stock,
    ) -> Result<(), String> {
        if *broken == Broken::Flooded {
            self.ended_early = Some("the server wrote without end".to_owned());
            return Ok(());
        }
        if self.rig.is_gone() {
            self.end_with(suspects, stock.tool);
            return Ok(());
        }
        let record = self.rig.record();
        let first = suspects.first().map_or(0, |(_, first)| first.id);
        let history: Vec<Shot> = record.iter().filter(|(id, _)| *id < first).map(|(_, shot)| shot.clone()).collect();
        let alone = suspects.len() == 1;
        let last = suspects.last().map(|(_, last)| last.clone()).filter(|_| !alone);
        let mut culprit = false;
        for (index, exchange) in suspects {
            if self.is_over() || self.is_hopeless().is_some() {
                return Ok(());
            }
            let shot = &shots[index];
            let soon = self.soon();
            let exchange = if alone { exchange } else { self.rig.one(shot, soon).await? };
            let waited = if alone { soon } else { soon * 2 };
            let exchange = self.settle(shot, exchange, &history, waited).await?;
            if exchange.fate == Fate::Answered {
                self.turn.slowest = self.turn.slowest.max(exchange.took);
            }
            culprit |= exchange.fate != Fate::Answered;
            self.patience.broke_off(&exchange);
            if matches!(exchange.fate, Fate::Silent { .. }) {
                self.spare(soon);
            }
            let mut breaches = self.context.judging(|| self.take(&exchange, tally, stock));
            if !self.is_settled() {
                breaches.retain(|breach| breach.oracle != Oracle::Hang);
            }
            self.follow(shot.tool, &exchange, breaches, &record, stock).await?;
        }
        if let (false, Some(last)) = (culprit, last) {
            // None of them does it alone, so it takes some of what was called before.
            self.patience.deaths += 1;
            let breaches = judge(&self.subjects[stock.tool], &last);
            self.follow(stock.tool, &last, breaches, &record, stock).await?;
        }
        Ok(())
    }

    /// Tells the end of a server that is not ours to start again, where no call was seen to end it: by the last one.
    pub(super) fn tell_its_end(&mut self) {
        if self.rig.is_gone()
            && !self.found.iter().any(|found| found.breach.oracle == Oracle::Crash)
            && let Some((shot, exchange)) = self.rig.last_call()
        {
            self.end_with(vec![(0, exchange)], shot.tool);
        }
    }

    /// Tells the end of a server that is not ours to start again: by the last of the calls that were under way, as
    /// nothing can be tried any more.
    fn end_with(&mut self, suspects: Vec<(usize, Exchange)>, tool: usize) {
        self.ended_early = Some("the server died, and it is not ours to start again".to_owned());
        let others = suspects.len().saturating_sub(1);
        let Some((_, last)) = suspects.into_iter().next_back() else { return };
        for mut breach in judge(&self.subjects[tool], &last) {
            if others > 0 {
                let rest = format!("; {others} other calls were under way, and it may be one of them");
                breach.actual.push_str(&rest);
            }
            let found = self.as_it_came(tool, breach, &last, 0);
            self.add(Some(found));
        }
    }

    /// Counts an exchange and judges it.
    fn take(&mut self, exchange: &Exchange, tally: &mut Tally, stock: &mut Stock) -> Vec<Breach> {
        self.patience.answered(exchange);
        let alone = (exchange.alone && exchange.fate == Fate::Answered).then_some(exchange.took);
        let answered = alone.filter(|_| !exchange.answers.is_empty());
        let is_new = tally.count(&exchange.call, outcome(exchange), &class_of(exchange), answered);
        let result = exchange.answers.first().and_then(|answer| answer.get("result"));
        self.learn(&exchange.call, outcome(exchange), is_new, result, alone, stock);
        judge(&self.subjects[stock.tool], exchange)
    }

    /// Counts a call whose answer is known to be in order.
    fn take_known(&mut self, shot: &Shot, known: &Known, tally: &mut Tally, stock: &mut Stock) {
        let met = &known.met;
        self.patience.answered_in_order();
        let is_new = tally.count(&shot.call, met.outcome, &met.class, known.alone);
        self.learn(&shot.call, met.outcome, is_new, met.message.get("result"), known.alone, stock);
    }

    /// Learns from what came of a call what to call with next.
    fn learn(
        &mut self,
        call: &Arc<Call>,
        outcome: CallOutcome,
        is_new: bool,
        result: Option<&Value>,
        alone: Option<Duration>,
        stock: &mut Stock,
    ) {
        const TIMES: usize = 4_096;
        self.turn.slowest = self.turn.slowest.max(alone.unwrap_or_default());
        stock.count(call);
        if is_new {
            stock.keep(call);
        }
        if call.standing == Standing::Valid && outcome == CallOutcome::Success {
            stock.succeeded(call);
            if let Some(result) = result {
                self.pool.learn(stock.tool, result, call);
            }
            self.turn.times.extend(alone.filter(|_| self.turn.times.len() < TIMES));
        }
    }

    /// Counts what is known, and makes small what is new; `record` is what the process was called with.
    async fn follow(
        &mut self,
        tool: usize,
        exchange: &Exchange,
        breaches: Vec<Breach>,
        record: &[(i64, Shot)],
        stock: &mut Stock,
    ) -> Result<(), String> {
        for breach in breaches {
            if let Some(known) = self.known(tool, &breach) {
                known.count += 1;
                continue;
            }
            if self.found.iter().filter(|found| found.tool == tool).count() >= FOUND {
                // A server whose words never repeat makes no more findings than this.
                let alike = |found: &&mut Found| found.tool == tool && found.breach.oracle == breach.oracle;
                if let Some(alike) = self.found.iter_mut().find(alike) {
                    alike.count += 1;
                }
                continue;
            }
            // A call that was tried again alone has a later id than all that came before it.
            let history: Vec<Shot> =
                record.iter().filter(|(id, _)| *id < exchange.id).map(|(_, shot)| shot.clone()).collect();
            let is_many = self.found.iter().filter(|found| found.tool == tool).count() >= INVESTIGATED;
            let found = if is_many || self.shrinking_took >= self.shrinking_until {
                self.as_it_came(tool, breach, exchange, 0)
            } else {
                // As it was made, with what of it came out of earlier results.
                let made = record.iter().find(|(id, shot)| *id == exchange.id && shot.tool == tool);
                let shot = made.map_or_else(|| Shot::new(tool, Arc::clone(&exchange.call)), |(_, shot)| shot.clone());
                let came = breach.clone();
                let found = self.investigate(&Test::Answer, breach, Some((shot, exchange)), history, stock).await?;
                found.unwrap_or_else(|| self.as_it_came(tool, came, exchange, 0))
            };
            if let (Oracle::Crash | Oracle::Hang, Standing::Breaks(site)) =
                (found.breach.oracle, &exchange.call.standing)
            {
                stock.avoid(site);
            }
            self.add(Some(found));
        }
        Ok(())
    }

    pub(super) fn known(&mut self, tool: usize, breach: &Breach) -> Option<&mut Found> {
        self.found.iter_mut().find(|found| found.tool == tool && found.breach.is_like(breach))
    }

    /// A finding that is not made small.
    pub(super) fn as_it_came(&self, tool: usize, breach: Breach, exchange: &Exchange, attempts: usize) -> Found {
        let counterexample = self.counterexample(tool, exchange, exchange, &[], attempts);
        Found {
            tool,
            breach,
            count: 1,
            exchanges: vec![slim(exchange.clone())],
            counterexample: Some(counterexample),
            confirmation: None,
        }
    }

    pub(super) fn counterexample(
        &self,
        tool: usize,
        original: &Exchange,
        smallest: &Exchange,
        before: &[Shot],
        attempts: usize,
    ) -> Counterexample {
        let call = &smallest.call;
        let lines = before
            .iter()
            .enumerate()
            .map(|(at, shot)| self.rig.line(shot, 1_000 + i64::try_from(at).unwrap_or(0)))
            .chain(std::iter::once(Arc::clone(&smallest.line)));
        Counterexample {
            tool: self.subjects[tool].name.clone(),
            kind: original.call.kind,
            violated: match &call.standing {
                Standing::Breaks(site) => Some(site.to_string()),
                Standing::Malformed(_, name) => Some((*name).to_owned()),
                Standing::Valid | Standing::Unknown => None,
            },
            original: original.call.arguments.shown(),
            arguments: call.arguments.shown(),
            preceding: before
                .iter()
                .map(|shot| {
                    serde_json::json!({
                        "name": self.subjects[shot.tool].name,
                        "arguments": shot.call.arguments.shown(),
                    })
                })
                .collect(),
            attempts,
            messages: lines.map(|line| pasted(&line)).collect(),
            file: None,
        }
    }
}

/// A line to paste; what is enormous is cut to its beginning.
fn pasted(line: &[u8]) -> String {
    const MOST: usize = 20_000;
    let text = String::from_utf8_lossy(line);
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}… ({} bytes in all)", &text[..at], line.len()),
        None => text.into_owned(),
    }
}
