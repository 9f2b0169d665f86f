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
use crate::verdict::Confirmation;

/// How many calls making one failure small may take.
const ATTEMPTS: usize = 2_000;
/// How long it may take.
const TIME: Duration = Duration::from_secs(8);
/// How often the smallest example is tried again.
const CONFIRMED: usize = 3;
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
        let mut budget = Budget { until: Instant::now() + TIME, attempts: 0 };
        let mut shot = Shot { tool, call: Arc::clone(&exchange.call) };
        let mut before: Vec<Shot> = Vec::new();
        let mut seen = self.fails(&before, &shot, &breach, true, &mut budget).await?;
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
        if seen.is_none() && !history.is_empty() {
            seen = self.fails(&history, &shot, &breach, true, &mut budget).await?;
            if seen.is_some() {
                before = self.fewer(history, &shot, &breach, &mut budget).await?;
            }
        }
        let Some(mut smallest) = seen else {
            // It does not come back: told as it came, and as what it is.
            let counterexample = self.counterexample(tool, exchange, exchange, &[], budget.attempts);
            return Ok(Found {
                tool,
                breach,
                count: 1,
                exchanges: vec![exchange.clone()],
                counterexample: Some(counterexample),
                confirmation: Some(Confirmation { tried: 1, failed: 0 }),
            });
        };
        let first = smallest.clone();
        if let Some(found) = self.smaller(&before, &shot, &breach, stock, &mut budget).await? {
            smallest = found;
        }
        let mut failed = 0;
        for round in 0..2 {
            let last = Shot { tool: shot.tool, call: Arc::clone(&smallest.call) };
            failed = 0;
            for _ in 0..CONFIRMED {
                if let Some(found) = self.fails(&before, &last, &breach, true, &mut budget).await? {
                    failed += 1;
                    smallest = found;
                }
            }
            if failed > 0 || round > 0 || smallest.call == first.call {
                break;
            }
            // What was left behind by other attempts made it fail: the first one does without.
            smallest = first.clone();
        }
        let judged = judge(&self.subjects[shot.tool], &smallest);
        let breach = judged.into_iter().find(|again| again.is_like(&breach)).unwrap_or(breach);
        let counterexample = self.counterexample(shot.tool, exchange, &smallest, &before, budget.attempts);
        Ok(Found {
            tool: shot.tool,
            breach,
            count: 1,
            exchanges: vec![smallest],
            counterexample: Some(counterexample),
            confirmation: Some(Confirmation { tried: CONFIRMED, failed }),
        })
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
