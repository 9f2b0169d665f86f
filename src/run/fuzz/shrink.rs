//! Makes a failure small: fewer calls first, smaller arguments second, each attempt against a live server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::hunt::{Found, Hunt};
use super::shot::{Served, Shot};
use super::stock::Stock;
use crate::case::Oracle;
use crate::check::fuzz::{Arguments, Breach, Call, Exchange, Fate, Standing, excerpt, judge, outcome};
use crate::event::CallOutcome;
use crate::fuzz::{Malformed, Shrinker, Tape};
use crate::verdict::{Confirmation, Verdict};

/// How many calls making one failure small may take.
const ATTEMPTS: usize = 3_000;
/// How long it may take.
const TIME: Duration = Duration::from_secs(12);
/// The same where another tool fails in the same way: its root cause is likely the same.
const BRIEF_ATTEMPTS: usize = 32;
const BRIEF: Duration = Duration::from_millis(300);
/// How often the smallest example is tried again.
const CONFIRMED: usize = 3;
/// A warning of a server that starts in this time is tried again as often as a failure; of a slower one, once.
const QUICK: Duration = Duration::from_millis(300);
/// How many calls before a failure may be its cause, though it shows late.
const LATE: usize = 8;

/// What is left for one failure.
pub(super) struct Budget {
    until: Instant,
    most: usize,
    pub(super) attempts: usize,
}

impl Budget {
    pub(super) fn new(started: Duration) -> Self {
        Self { until: Instant::now() + TIME.max(started * 20).min(TIME * 3), most: ATTEMPTS, attempts: 0 }
    }

    /// What a failure gets that another tool has shown before.
    fn brief() -> Self {
        Self { until: Instant::now() + BRIEF, most: BRIEF_ATTEMPTS, attempts: 0 }
    }

    fn is_spent(&self) -> bool {
        self.attempts >= self.most || Instant::now() >= self.until
    }
}

/// How a failure is seen again.
#[derive(Debug, Clone)]
pub(super) enum Test {
    /// In the answer to the last call.
    Answer,
    /// In lists that differ before the calls and after them.
    Lists,
    /// In the answer to the last call when that is made once more.
    Again,
    /// In another call, which is served no more.
    Canary(Shot),
    /// In what grows while the calls are made again and again.
    Stretches,
    /// In answers that go to another of the calls, when they are made all at once.
    AtOnce,
}

/// A failure that was seen: the last call, and what proves it beside that.
#[derive(Debug, Clone)]
pub(super) struct Sight {
    pub(super) exchange: Exchange,
    pub(super) more: Vec<Exchange>,
    /// How many of the calls it took: fewer than were to be made, where an earlier one failed in this way.
    taken: usize,
}

impl Hunt<'_> {
    /// Finds the least that it takes to see a breach again.
    ///
    /// `calls` are those before the failure, oldest first; the last call is `exchange` where the failure is seen
    /// in an answer, and the last of `calls` otherwise.
    pub(super) async fn investigate(
        &mut self,
        test: &Test,
        breach: Breach,
        shot: Option<(Shot, &Exchange)>,
        calls: Vec<Shot>,
        stock: &Stock,
    ) -> Result<Option<Found>, String> {
        let began = Instant::now();
        let made = self.rig.calls;
        let found = self.make_small(test, breach, shot, calls, stock).await;
        self.shrinking += self.rig.calls - made;
        self.shrinking_took += began.elapsed();
        self.spare(began.elapsed());
        found
    }

    async fn make_small(
        &mut self,
        test: &Test,
        breach: Breach,
        shot: Option<(Shot, &Exchange)>,
        calls: Vec<Shot>,
        stock: &Stock,
    ) -> Result<Option<Found>, String> {
        let started = self.rig.startup();
        let tool = shot.as_ref().map(|(shot, _)| shot.tool);
        let brief = tool.is_some_and(|tool| self.seen_by_all.take(tool, &breach));
        let mut budget = if brief { Budget::brief() } else { Budget::new(started) };
        let mut tried = 0;
        let mut needed: Vec<Shot> = Vec::new();
        let mut seen = None;
        if let Some((failing, _)) = &shot {
            // What kills needs a fresh process anyway; anything else is tried where it was seen first.
            needed = vec![failing.clone()];
            // What holds values of this process means nothing to another one by itself.
            let fresh = !failing.fed.is_empty();
            seen = self.fails(test, &needed, &breach, fresh, &mut budget).await?;
            if seen.is_none() && shows_late(breach.oracle) {
                // What a call does after its answer is seen with the next one.
                for earlier in calls.iter().rev().take(LATE) {
                    seen = self.fails(test, std::slice::from_ref(earlier), &breach, true, &mut budget).await?;
                    if seen.is_some() {
                        needed = vec![earlier.clone()];
                        break;
                    }
                }
            }
            if seen.is_some() {
                let small = self.smaller(test, &mut needed, &breach, stock, &mut budget).await?.or(seen);
                if brief {
                    return Ok(small.map(|sight| self.told(test, breach, shot.as_ref(), &needed, sight, None, &budget)));
                }
                seen = self.confirmed(test, &needed, small, &breach, 1, &mut budget).await?.0;
                tried = usize::from(seen.is_some());
            } else if brief {
                return Ok(None);
            }
        }
        if seen.is_none() && !(calls.is_empty() && shot.is_some()) {
            needed = calls;
            needed.extend(shot.iter().map(|(shot, _)| shot.clone()));
            seen = self.fails(test, &needed, &breach, true, &mut budget).await?;
            if let Some(sight) = &seen {
                needed.truncate(sight.taken);
                needed = self.fewer(test, needed, shot.is_some(), &breach, &mut budget).await?;
                seen = self.smaller(test, &mut needed, &breach, stock, &mut budget).await?.or(seen);
            }
        }
        let times = if breach.verdict == Verdict::Fail || started < QUICK { CONFIRMED } else { 1 };
        let more = times.saturating_sub(tried);
        let mut failed = tried;
        if more > 0 {
            let (sight, again) = self.confirmed(test, &needed, seen.clone(), &breach, more, &mut budget).await?;
            seen = sight.or(seen.filter(|_| tried > 0));
            failed += again;
        }
        let Some(sight) = seen.filter(|_| failed > 0 && !needed.is_empty()) else {
            // It does not come back: told as it came, and as what it is, where there is something to tell.
            return Ok(shot.map(|(shot, exchange)| Found {
                confirmation: Some(Confirmation { tried: times, failed: 0 }),
                ..self.as_it_came(shot.tool, breach, exchange, budget.attempts)
            }));
        };
        let confirmation = Some(Confirmation { tried: times, failed });
        Ok(Some(self.told(test, breach, shot.as_ref(), &needed, sight, confirmation, &budget)))
    }

    /// The finding that a failure makes, by the last of the calls that it needs.
    #[expect(clippy::too_many_arguments, reason = "they are the parts of one finding")]
    fn told(
        &self,
        test: &Test,
        breach: Breach,
        shot: Option<&(Shot, &Exchange)>,
        needed: &[Shot],
        sight: Sight,
        confirmation: Option<Confirmation>,
        budget: &Budget,
    ) -> Found {
        let (tool, before) = match needed.split_last() {
            Some((last, before)) => (last.tool, before),
            None => (shot.map_or(0, |(shot, _)| shot.tool), needed),
        };
        let judged = judge(&self.subjects[tool], &sight.exchange);
        // How long a hanging call was waited for was longer than it is while it is made small.
        let again = judged.into_iter().find(|again| again.is_like(&breach) && again.oracle != Oracle::Hang);
        let breach = again.unwrap_or(breach);
        let original = shot.map_or(&sight.exchange, |(_, exchange)| exchange);
        let mut counterexample = self.counterexample(tool, original, &sight.exchange, before, budget.attempts);
        if let Some(path) = self.write_down(test, &breach, needed) {
            counterexample.file = Some(path);
        }
        let exchanges = std::iter::once(sight.exchange).chain(sight.more).map(slim).collect();
        Found { tool, breach, count: 1, exchanges, counterexample: Some(counterexample), confirmation }
    }

    /// Tries calls again on fresh processes; the last failure, and how often they failed.
    async fn confirmed(
        &mut self,
        test: &Test,
        calls: &[Shot],
        seen: Option<Sight>,
        breach: &Breach,
        times: usize,
        budget: &mut Budget,
    ) -> Result<(Option<Sight>, usize), String> {
        let (mut last, mut failed) = (None, 0);
        if seen.is_some() {
            for _ in 0..times {
                if let Some(found) = self.fails(test, calls, breach, true, budget).await? {
                    failed += 1;
                    last = Some(found);
                }
            }
        }
        Ok((last, failed))
    }

    /// Makes calls and says whether the failure is seen again.
    pub(super) async fn fails(
        &mut self,
        test: &Test,
        calls: &[Shot],
        breach: &Breach,
        fresh: bool,
        budget: &mut Budget,
    ) -> Result<Option<Sight>, String> {
        let Some((shot, before)) = calls.split_last() else { return Ok(None) };
        budget.attempts += 1;
        let untouched = matches!(test, Test::Lists | Test::Canary(_));
        if fresh || untouched || !before.is_empty() {
            self.rig.fresh().await?;
        }
        let lists = if matches!(test, Test::Lists) { self.lists().await? } else { None };
        // A garbled answer is one that never comes, too.
        let silent = matches!(breach.oracle, Oracle::Hang | Oracle::MalformedAnswer | Oracle::StdoutNoise);
        let limit = if silent { self.briefly() } else { self.limit() };
        let mut served: Vec<Served> = Vec::new();
        for (at, earlier) in before.iter().enumerate() {
            let exchange = self.rig.one(&earlier.fed_by(&served), self.limit()).await?;
            if let Some(result) = exchange.answers.first().and_then(|answer| answer.get("result")) {
                served.push((earlier.tool, Arc::clone(&earlier.call), result.clone()));
            }
            if exchange.fate != Fate::Answered {
                // It may be the failure that is looked for, come earlier.
                let judged = judge(&self.subjects[earlier.tool], &exchange);
                let like = judged.iter().any(|again| again.is_like(breach)) && matches!(test, Test::Answer);
                return Ok(like.then(|| Sight { exchange, more: Vec::new(), taken: at + 1 }));
            }
        }
        let shot = &shot.fed_by(&served);
        let mut exchange = self.rig.one(shot, limit).await?;
        if exchange.fate == Fate::Answered && shows_late(breach.oracle) {
            self.rig.wait_for_more(&mut exchange).await;
        }
        let more = match test {
            Test::Answer => {
                let judged = judge(&self.subjects[shot.tool], &exchange);
                judged.iter().any(|again| again.is_like(breach)).then(Vec::new)
            }
            // These are seen in no single answer, and are not made small.
            Test::Stretches | Test::AtOnce => None,
            Test::Lists => {
                let after = self.lists().await?;
                (lists.is_some() && after.is_some() && lists != after).then(Vec::new)
            }
            Test::Again => self.differs(shot, &exchange, fresh).await?.map(|second| vec![second]),
            Test::Canary(canary) => {
                let after = self.rig.one(canary, self.soon()).await?;
                (outcome(&after) != CallOutcome::Success).then(|| vec![after])
            }
        };
        Ok(more.map(|more| Sight { exchange, more, taken: calls.len() }))
    }

    /// The second answer to a call, if it differs from the first and, where that is asked for, first answers do not.
    async fn differs(&mut self, shot: &Shot, first: &Exchange, control: bool) -> Result<Option<Exchange>, String> {
        let second = self.rig.one(shot, self.limit()).await?;
        if !both_differ(first, &second) {
            return Ok(None);
        }
        if control {
            self.rig.fresh().await?;
            let other = self.rig.one(shot, self.limit()).await?;
            if result_of(&other) != result_of(first) {
                return Ok(None);
            }
        }
        Ok(Some(second))
    }

    /// The calls that a failure needs, of those that were made; the last is kept where it is `fixed`.
    async fn fewer(
        &mut self,
        test: &Test,
        calls: Vec<Shot>,
        fixed: bool,
        breach: &Breach,
        budget: &mut Budget,
    ) -> Result<Vec<Shot>, String> {
        let mut needed = calls;
        if let Some(length) = self.locate(test, &needed, budget).await? {
            needed.truncate(length);
        }
        // Often those suffice that returned what the last one holds, or the last calls, or those of one tool.
        let mut shorter: Vec<Vec<Shot>> = Vec::new();
        if let Some((last, before)) = needed.split_last()
            && !last.fed.is_empty()
        {
            let is_source = |shot: &&Shot| {
                let mut sources = last.fed.iter().filter_map(|feed| feed.source.as_ref());
                sources.any(|source| Arc::ptr_eq(source, &shot.call))
            };
            let sources: Vec<Shot> = before.iter().filter(is_source).cloned().collect();
            // The same call may have been made more than once.
            shorter.extend(sources.last().map(|source| vec![source.clone(), last.clone()]));
            shorter.push(sources.into_iter().chain([last.clone()]).collect());
        }
        let lengths = [1, 2, 3, 5, 9, 17]
            .into_iter()
            .filter(|length| *length < needed.len())
            .map(|length| needed[needed.len() - length..].to_vec());
        shorter.extend(lengths);
        if let Some(last) = needed.last() {
            let tools: BTreeSet<usize> = needed.iter().map(|shot| shot.tool).collect();
            for tool in tools {
                let mut own: Vec<Shot> =
                    needed[..needed.len() - 1].iter().filter(|s| s.tool == tool).cloned().collect();
                own.push(last.clone());
                shorter.push(own);
            }
        }
        for calls in shorter {
            if calls.len() < needed.len()
                && !budget.is_spent()
                && let Some(sight) = self.fails(test, &calls, breach, true, budget).await?
            {
                needed = calls;
                needed.truncate(sight.taken);
            }
        }
        let mut size = needed.len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            loop {
                let last = needed.len() - usize::from(fixed);
                if at >= last || needed.len() == 1 || budget.is_spent() {
                    break;
                }
                let end = (at + size).min(last);
                let rest: Vec<Shot> = needed[..at].iter().chain(&needed[end..]).cloned().collect();
                match self.fails(test, &rest, breach, true, budget).await? {
                    Some(sight) => {
                        needed = rest;
                        needed.truncate(sight.taken);
                    }
                    None => at = end,
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        Ok(needed)
    }

    /// How many calls it takes until another call or a list shows a failure, looked at after each.
    async fn locate(&mut self, test: &Test, calls: &[Shot], budget: &mut Budget) -> Result<Option<usize>, String> {
        if !matches!(test, Test::Lists | Test::Canary(_)) {
            return Ok(None);
        }
        self.rig.fresh().await?;
        let before = if matches!(test, Test::Lists) { self.lists().await? } else { None };
        for (at, shot) in calls.iter().enumerate() {
            if budget.is_spent() || self.rig.one(shot, self.limit()).await?.fate != Fate::Answered {
                return Ok(None);
            }
            let shows = if let Test::Canary(canary) = test {
                outcome(&self.rig.one(canary, self.soon()).await?) != CallOutcome::Success
            } else {
                let after = self.lists().await?;
                after.is_some() && after != before
            };
            if shows {
                return Ok(Some(at + 1));
            }
        }
        Ok(None)
    }

    /// The smallest arguments of the same class that fail: of the last call first, then of those before it.
    async fn smaller(
        &mut self,
        test: &Test,
        calls: &mut [Shot],
        breach: &Breach,
        stock: &Stock,
        budget: &mut Budget,
    ) -> Result<Option<Sight>, String> {
        const BEFORE: usize = 4;
        let mut best = None;
        let many = calls.len() > BEFORE;
        for at in (0..calls.len()).rev() {
            if many && at + 1 < calls.len() {
                break;
            }
            best = self.smaller_at(at, test, calls, breach, stock, budget).await?.or(best);
        }
        Ok(best)
    }

    async fn smaller_at(
        &mut self,
        at: usize,
        test: &Test,
        calls: &mut [Shot],
        breach: &Breach,
        stock: &Stock,
        budget: &mut Budget,
    ) -> Result<Option<Sight>, String> {
        let shot = calls[at].clone();
        let call = &shot.call;
        if let Standing::Malformed(_, name) = call.standing {
            let Some(odd) = Malformed::kinds().into_iter().find(|odd| odd.name == name) else { return Ok(None) };
            let bare = odd.of(&json!({}));
            calls[at].call = Arc::new(Call { arguments: Arguments::Raw(bare.arguments), ..(**call).clone() });
            let seen = self.fails(test, calls, breach, false, budget).await?;
            if seen.is_none() {
                calls[at] = shot;
            }
            return Ok(seen);
        }
        let Arguments::Json(arguments) = &call.arguments else { return Ok(None) };
        let own = shot.tool == stock.tool;
        let generator = if own {
            stock.generator(&call.standing)
        } else {
            let schema = self.schemas[shot.tool];
            schema.filter(|_| call.standing == Standing::Valid).map(|schema| schema.valid().clone())
        };
        let Some(generator) = generator else { return Ok(None) };
        let of_tape = call
            .tape
            .as_ref()
            .and_then(|tape| Shrinker::new(generator.clone(), Tape::replay(tape.by(&generator))))
            .filter(|shrinker| shrinker.current() == arguments);
        let Some(mut shrinker) = of_tape.or_else(|| Shrinker::of_value(generator, arguments.clone())) else {
            return Ok(None);
        };
        let (mut best, mut smallest) = (None, shot.clone());
        let mut more = shrinker.simplify();
        while more && !budget.is_spent() && !self.context.is_stopping() {
            let arguments = Arguments::Json(shrinker.current().clone());
            calls[at].call = Arc::new(Call { arguments, tape: None, ..(**call).clone() });
            if let Some(sight) = self.fails(test, calls, breach, false, budget).await? {
                best = Some(sight);
                smallest = calls[at].clone();
                more = shrinker.simplify();
            } else {
                more = shrinker.complicate();
            }
        }
        calls[at] = smallest;
        Ok(best)
    }
}

/// An exchange without what is enormous in its answers, to be kept.
pub(super) fn slim(mut exchange: Exchange) -> Exchange {
    const LARGEST: usize = 64 << 10;
    for answer in &mut exchange.answers {
        let text = answer.to_string();
        if text.len() > LARGEST {
            *answer = Value::String(excerpt(&text, 4_000));
        }
    }
    exchange
}

/// Whether two answers are successes whose results differ.
pub(super) fn both_differ(first: &Exchange, second: &Exchange) -> bool {
    let served = outcome(first) == CallOutcome::Success && outcome(second) == CallOutcome::Success;
    served && result_of(first) != result_of(second)
}

/// What a call returned, without what is about the answer rather than in it.
pub(super) fn result_of(exchange: &Exchange) -> Option<Value> {
    let mut result = exchange.answers.first()?.get("result")?.clone();
    if let Some(members) = result.as_object_mut() {
        members.shift_remove("_meta");
    }
    Some(result)
}

/// Whether what breaks the rule may show only after the answer.
fn shows_late(oracle: Oracle) -> bool {
    matches!(oracle, Oracle::Crash | Oracle::MalformedAnswer | Oracle::StdoutNoise)
}
