//! Makes a failure small: fewer calls first, smaller arguments second, each attempt against a live server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::hunt::{Found, Hunt};
use super::rig::Shot;
use super::stock::Stock;
use crate::case::Oracle;
use crate::check::fuzz::{Arguments, Breach, Call, Exchange, Fate, Standing, judge};
use crate::fuzz::{Malformed, Shrinker, Tape};
use crate::verdict::{Confirmation, Verdict};

/// How many calls making one failure small may take.
const ATTEMPTS: usize = 2_000;
/// How long it may take.
const TIME: Duration = Duration::from_secs(8);
/// How often the smallest example is tried again.
const CONFIRMED: usize = 3;
/// A warning of a server that starts in this time is tried again as often as a failure; of a slower one, once.
const QUICK: Duration = Duration::from_millis(300);
/// How many calls before a failure may be its cause, though it shows late.
const LATE: usize = 8;
/// How long a call is waited for that is expected to hang, while it is made small.
const BRIEFLY: Duration = Duration::from_millis(700);

/// What is left for one failure.
struct Budget {
    until: Instant,
    attempts: usize,
}

impl Budget {
    fn is_spent(&self) -> bool {
        self.attempts >= ATTEMPTS || Instant::now() >= self.until
    }
}

impl Hunt<'_> {
    /// Finds the least that it takes to see a breach again.
    pub(super) async fn investigate(
        &mut self,
        tool: usize,
        breach: Breach,
        exchange: &Exchange,
        history: Vec<Shot>,
        stock: &Stock<'_>,
    ) -> Result<Found, String> {
        let began = Instant::now();
        let calls = self.rig.calls;
        let found = self.make_small(tool, breach, exchange, history, stock).await;
        self.shrinking += self.rig.calls - calls;
        self.shrinking_took += began.elapsed();
        found
    }

    async fn make_small(
        &mut self,
        tool: usize,
        breach: Breach,
        exchange: &Exchange,
        history: Vec<Shot>,
        stock: &Stock<'_>,
    ) -> Result<Found, String> {
        let started = self.rig.startup();
        let mut budget = Budget { until: Instant::now() + TIME.max(started * 20).min(TIME * 3), attempts: 0 };
        let mut shot = Shot { tool, call: Arc::clone(&exchange.call) };
        let mut before: Vec<Shot> = Vec::new();
        // What kills needs a fresh process anyway; anything else is tried where it was seen first.
        let mut seen = self.fails(&before, &shot, &breach, false, &mut budget).await?;
        if seen.is_none() && shows_late(breach.oracle) {
            // What a call does after its answer is seen with the next one.
            for earlier in history.iter().rev().take(LATE) {
                if let Some(found) = self.fails(&[], earlier, &breach, true, &mut budget).await? {
                    shot = earlier.clone();
                    seen = Some(found);
                    break;
                }
            }
        }
        let mut smallest = seen;
        if smallest.is_some() {
            let small = self.smaller(&before, &shot, &breach, stock, &mut budget).await?;
            smallest = self.confirmed(&before, shot.tool, small.or(smallest), &breach, 1, &mut budget).await?.0;
        }
        if smallest.is_none() && !history.is_empty() {
            smallest = self.fails(&history, &shot, &breach, true, &mut budget).await?;
            if smallest.is_some() {
                before = self.fewer(history, &shot, &breach, &mut budget).await?;
                smallest = self.smaller(&before, &shot, &breach, stock, &mut budget).await?.or(smallest);
            }
        }
        let times = if breach.verdict == Verdict::Fail || started < QUICK { CONFIRMED } else { 1 };
        let (smallest, failed) = self.confirmed(&before, shot.tool, smallest, &breach, times, &mut budget).await?;
        let Some(smallest) = smallest else {
            // It does not come back: told as it came, and as what it is.
            let counterexample = self.counterexample(tool, exchange, exchange, &[], budget.attempts);
            return Ok(Found {
                tool,
                breach,
                count: 1,
                exchanges: vec![exchange.clone()],
                counterexample: Some(counterexample),
                confirmation: Some(Confirmation { tried: times, failed: 0 }),
            });
        };
        let judged = judge(&self.subjects[shot.tool], &smallest);
        let breach = judged.into_iter().find(|again| again.is_like(&breach)).unwrap_or(breach);
        let counterexample = self.counterexample(shot.tool, exchange, &smallest, &before, budget.attempts);
        Ok(Found {
            tool: shot.tool,
            breach,
            count: 1,
            exchanges: vec![smallest],
            counterexample: Some(counterexample),
            confirmation: Some(Confirmation { tried: times, failed }),
        })
    }

    /// Tries an example again on fresh processes; how often it failed, with the last failure.
    async fn confirmed(
        &mut self,
        before: &[Shot],
        tool: usize,
        example: Option<Exchange>,
        breach: &Breach,
        times: usize,
        budget: &mut Budget,
    ) -> Result<(Option<Exchange>, usize), String> {
        let Some(example) = example else { return Ok((None, 0)) };
        let shot = Shot { tool, call: Arc::clone(&example.call) };
        let (mut last, mut failed) = (None, 0);
        for _ in 0..times {
            if let Some(found) = self.fails(before, &shot, breach, true, budget).await? {
                failed += 1;
                last = Some(found);
            }
        }
        Ok((last, failed))
    }

    /// Makes some calls, then the one; returns it if it breaks the same rule in the same way.
    async fn fails(
        &mut self,
        before: &[Shot],
        shot: &Shot,
        breach: &Breach,
        fresh: bool,
        budget: &mut Budget,
    ) -> Result<Option<Exchange>, String> {
        budget.attempts += 1;
        if fresh || !before.is_empty() {
            self.rig.fresh().await?;
        }
        let limit = if breach.oracle == Oracle::Hang { self.limit().min(BRIEFLY) } else { self.limit() };
        for earlier in before {
            if self.rig.one(earlier, self.limit()).await?.fate != Fate::Answered {
                return Ok(None);
            }
        }
        let mut exchange = self.rig.one(shot, limit).await?;
        if exchange.fate == Fate::Answered && shows_late(breach.oracle) {
            self.rig.wait_for_more(&mut exchange).await;
        }
        let judged = judge(&self.subjects[shot.tool], &exchange);
        Ok(judged.iter().any(|again| again.is_like(breach)).then_some(exchange))
    }

    /// The calls of a history that a failure needs.
    async fn fewer(
        &mut self,
        history: Vec<Shot>,
        shot: &Shot,
        breach: &Breach,
        budget: &mut Budget,
    ) -> Result<Vec<Shot>, String> {
        let mut needed = history;
        let mut size = needed.len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            while at < needed.len() && !budget.is_spent() {
                let end = (at + size).min(needed.len());
                let rest: Vec<Shot> = needed[..at].iter().chain(&needed[end..]).cloned().collect();
                if self.fails(&rest, shot, breach, true, budget).await?.is_some() {
                    needed = rest;
                } else {
                    at = end;
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        Ok(needed)
    }

    /// The smallest arguments of the same class that fail.
    async fn smaller(
        &mut self,
        before: &[Shot],
        shot: &Shot,
        breach: &Breach,
        stock: &Stock<'_>,
        budget: &mut Budget,
    ) -> Result<Option<Exchange>, String> {
        let call = &shot.call;
        if let Standing::Malformed(_, name) = call.standing {
            let Some(bare) = Malformed::all(&json!({})).find(|odd| odd.name == name) else { return Ok(None) };
            let bare = Call { arguments: Arguments::Raw(bare.arguments), ..(**call).clone() };
            let bare = Shot { tool: shot.tool, call: Arc::new(bare) };
            return self.fails(before, &bare, breach, false, budget).await;
        }
        let Arguments::Json(arguments) = &call.arguments else { return Ok(None) };
        let Some(generator) = stock.generator(&call.standing) else { return Ok(None) };
        let of_tape = call
            .tape
            .as_ref()
            .and_then(|tape| Shrinker::new(generator.clone(), Tape::replay(tape.clone())))
            .filter(|shrinker| shrinker.current() == arguments);
        let Some(mut shrinker) = of_tape.or_else(|| Shrinker::of_value(generator, arguments.clone())) else {
            return Ok(None);
        };
        let mut best = None;
        let mut more = shrinker.simplify();
        while more && !budget.is_spent() && !self.context.is_stopping() {
            let candidate =
                Call { arguments: Arguments::Json(shrinker.current().clone()), tape: None, ..(**call).clone() };
            let candidate = Shot { tool: shot.tool, call: Arc::new(candidate) };
            match self.fails(before, &candidate, breach, false, budget).await? {
                Some(exchange) => {
                    best = Some(exchange);
                    more = shrinker.simplify();
                }
                None => more = shrinker.complicate(),
            }
        }
        Ok(best)
    }
}

/// Whether what breaks the rule may show only after the answer.
fn shows_late(oracle: Oracle) -> bool {
    matches!(oracle, Oracle::Crash | Oracle::MalformedAnswer | Oracle::StdoutNoise)
}
