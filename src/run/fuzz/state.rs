//! What calls leave behind: lists that change, other calls that are served no more, answers that go astray.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::hunt::{Found, Hunt};
use super::shot::{Served, Shot};
use super::shrink::{Test, both_differ, result_of};
use super::stock::Stock;
use crate::case::Oracle;
use crate::check::fuzz::{Breach, Call, Exchange, excerpt, outcome};
use crate::event::CallOutcome;

/// How many other tools are called again after the calls of one.
const CANARIES: usize = 16;
/// A call that takes longer is not made again and again.
const QUICK: Duration = Duration::from_millis(250);
/// How many pages of a list are compared.
const PAGES: usize = 16;
/// How many calls of other tools take part in that.
const OTHERS: usize = 4;
/// How many calls are held against each other for swapped answers.
const SWAPPED: usize = 40;
/// How long picking them may take.
const PICKING: Duration = Duration::from_millis(400);

impl Hunt<'_> {
    /// Keeps only the plain calls that are served more than once, and soon: what creates something need not be.
    pub(super) async fn choose_canaries(&mut self) -> Result<(), String> {
        for canary in std::mem::take(&mut self.canaries) {
            let mut served = !self.is_over();
            for _ in 0..2 {
                if served {
                    let exchange = self.rig.one(&canary, self.soon()).await?;
                    served = outcome(&exchange) == CallOutcome::Success && exchange.took < QUICK;
                }
            }
            if served {
                self.canaries.push(canary);
            }
        }
        Ok(())
    }

    /// Calls again what returned the values that these calls hold: another process does not know them, and this one
    /// may have forgotten them since.
    pub(super) async fn renewed(&mut self, shots: Vec<Shot>) -> Result<Vec<Shot>, String> {
        let mut served: Vec<Served> = Vec::new();
        for feed in shots.iter().flat_map(|shot| shot.fed.iter()) {
            let Some(source) = &feed.source else { continue };
            let is_it = |call: &Arc<Call>| Arc::ptr_eq(call, source);
            if served.iter().any(|(_, call, _)| is_it(call)) {
                continue;
            }
            let exchange = self.rig.one(&Shot::new(feed.origin.tool, Arc::clone(source)), self.limit()).await?;
            if let Some(result) = exchange.answers.first().and_then(|answer| answer.get("result")) {
                served.push((feed.origin.tool, Arc::clone(source), result.clone()));
            }
        }
        Ok(shots.iter().map(|shot| shot.fed_exactly_by(&served)).collect())
    }

    /// What the server lists, in the form that is compared.
    pub(super) async fn lists(&mut self) -> Result<Option<Value>, String> {
        if self.listed.is_empty() {
            return Ok(None);
        }
        self.rig.ready().await?;
        let limit = self.limit();
        let mut lists = Vec::new();
        for (method, member) in self.listed {
            let mut cursor = None;
            for _ in 0..PAGES {
                let began = Instant::now();
                let Some(mut result) = self.rig.listing(method, cursor, limit).await else {
                    if began.elapsed() >= limit {
                        // It is not asked for again, as each time would take as long.
                        self.listed = &[];
                    }
                    return Ok(None);
                };
                cursor = result.get("nextCursor").filter(|cursor| cursor.is_string()).cloned();
                lists.push(result.get_mut(*member).map(Value::take).unwrap_or_default());
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(Some(Value::Array(lists)))
    }

    /// Holds the lists after the calls of a tool that says `readOnlyHint` against those before.
    pub(super) async fn look_at_lists(&mut self, before: Option<Value>, stock: &Stock) -> Result<(), String> {
        let after = self.lists().await?;
        // Lists that differ from one look to the next change by themselves.
        if before.is_none() || after.is_none() || before == after || after != self.lists().await? {
            return Ok(());
        }
        let breach = Breach::of_many(
            Oracle::ReadOnly,
            "a tool that says readOnlyHint changes what the server lists",
            "a list has other contents after the calls than before",
        );
        let calls: Vec<Shot> = self.rig.history().into_iter().filter(|shot| shot.tool == stock.tool).collect();
        let found = self.investigate(&Test::Lists, breach, None, calls, stock).await?;
        self.add(found);
        self.rig.fresh().await
    }

    /// Calls again what was served before; says whether all of it still is.
    pub(super) async fn look_at_canaries(&mut self, own: bool, stock: &Stock) -> Result<(), String> {
        let canaries: Vec<Shot> = self.canaries.clone();
        for canary in canaries.iter().filter(|canary| !own || canary.tool == stock.tool).take(CANARIES) {
            let is_known = self.rig.has_history();
            let now = self.rig.one(canary, self.soon()).await?;
            if canary.tool == stock.tool {
                self.plain_times.push(now.took);
            }
            if outcome(&now) == CallOutcome::Success || !is_known || is_limited(&now) {
                continue;
            }
            // What was called before it: of many that are served, none need be listed.
            let mut calls = self.rig.history();
            calls.pop();
            self.rig.fresh().await?;
            let fresh = self.rig.one(canary, self.limit()).await?;
            if outcome(&fresh) != CallOutcome::Success {
                // It is served no more at all, whatever was called.
                self.canaries.retain(|known| known.tool != canary.tool);
                continue;
            }
            let name = &self.subjects[canary.tool].name;
            let said = now.answers.first().map_or_else(
                || "it is not answered".to_owned(),
                |answer| format!("it is answered by {}", excerpt(&answer.to_string(), 200)),
            );
            let breach = Breach::of_many(
                Oracle::WorseAfter,
                format!("after some calls a plain call of {name} is served no more"),
                said,
            );
            if self.known(stock.tool, &breach).is_none() {
                let found = self.investigate(&Test::Canary(canary.clone()), breach, None, calls, stock).await?;
                self.add(found);
            }
            self.rig.fresh().await?;
        }
        Ok(())
    }

    /// Looks at calls of a tool that says `idempotentHint` that were made twice in a row.
    pub(super) async fn look_at_pairs(&mut self, done: &[Exchange], stock: &Stock) -> Result<(), String> {
        for pair in done.windows(2) {
            if !Arc::ptr_eq(&pair[0].call, &pair[1].call) || !both_differ(&pair[0], &pair[1]) {
                continue;
            }
            let breach = Breach::of_many(
                Oracle::Idempotent,
                "a tool that says idempotentHint answers the same call otherwise the second time",
                "the second answer differs, while first answers of fresh processes do not",
            );
            if self.known(stock.tool, &breach).is_some() || self.changeable.contains(&stock.tool) {
                return Ok(());
            }
            let shot = Shot::new(stock.tool, Arc::clone(&pair[0].call));
            self.rig.fresh().await?;
            let mut budget = super::shrink::Budget::new(self.rig.startup());
            let calls = std::slice::from_ref(&shot);
            if self.fails(&Test::Again, calls, &breach, true, &mut budget).await?.is_none() {
                // Its answers change by themselves: a time, a random number.
                self.changeable.push(stock.tool);
                return Ok(());
            }
            let found = self.investigate(&Test::Again, breach, Some((shot, &pair[0])), Vec::new(), stock).await?;
            self.add(found);
            return Ok(());
        }
        Ok(())
    }

    /// Looks for answers that go to another call than their own.
    pub(super) async fn look_for_swaps(&mut self, stock: &mut Stock) -> Result<(), String> {
        let tool = stock.tool;
        let others = self.canaries.iter().filter(|canary| canary.tool != tool).take(OTHERS).cloned();
        // Those that were served differ in one value at a time, often; new ones differ in all of them.
        let (mut known, mut new) = (stock.picked(SWAPPED / 2).into_iter(), stock.valid_ones(SWAPPED / 2).into_iter());
        let mut own = Vec::new();
        while known.len() + new.len() > 0 {
            own.extend(new.next().into_iter().chain(known.next()).map(|call| Shot::new(tool, call)));
        }
        let candidates: Vec<Shot> = own.into_iter().chain(others).collect();
        if let Some(found) = self.swaps(tool, candidates).await? {
            self.add(Some(found));
        }
        Ok(())
    }

    /// Makes calls one by one and then all at once; only an answer that is known to belong to another of them is
    /// a swapped one.
    pub(super) async fn swaps(&mut self, tool: usize, candidates: Vec<Shot>) -> Result<Option<Found>, String> {
        let mut picked: Vec<(Shot, Value)> = Vec::new();
        let began = Instant::now();
        for shot in candidates {
            if began.elapsed() > PICKING {
                break;
            }
            let exchange = self.rig.one(&shot, self.limit()).await?;
            let is_new =
                |known: &(Shot, Value)| (known.0.tool, &known.0.call.arguments) != (shot.tool, &shot.call.arguments);
            if outcome(&exchange) == CallOutcome::Success
                && let Some(result) = result_of(&exchange)
                && picked.iter().all(is_new)
            {
                picked.push((shot, result));
            }
        }
        // Only where results differ can one be told from another, and most often none goes astray.
        if picked.iter().all(|(_, result)| *result == picked[0].1) || self.astray(&picked).await?.is_none() {
            return Ok(None);
        }
        // What answers the same call otherwise the next time proves nothing. Twice in a row and the other way round,
        // so that what alternates, or depends on the call before, does not look stable.
        let mut stable = Vec::new();
        for (shot, result) in picked.into_iter().rev() {
            let mut same = true;
            for _ in 0..2 {
                same &= result_of(&self.rig.one(&shot, self.limit()).await?).as_ref() == Some(&result);
            }
            if same {
                stable.push((shot, result));
            }
        }
        let picked = stable;
        let mut swapped: Option<(Exchange, usize)> = None;
        let mut seen = 0;
        for _ in 0..3 {
            match self.astray(&picked).await? {
                Some((exchange, own, other)) => {
                    // Alone, each of the two still gets its own.
                    for at in [own, other] {
                        let alone = self.rig.one(&picked[at].0, self.limit()).await?;
                        if result_of(&alone).as_ref() != Some(&picked[at].1) {
                            return Ok(None);
                        }
                    }
                    seen += 1;
                    swapped = Some((exchange, other));
                }
                None if seen == 0 => return Ok(None),
                None => {}
            }
        }
        let shots: Vec<Shot> = picked.into_iter().map(|(shot, _)| shot).collect();
        let Some((exchange, other)) = swapped.filter(|_| seen > 1) else { return Ok(None) };
        let whose = excerpt(&String::from_utf8_lossy(&shots[other].call.arguments.bytes()), 120);
        let mut breach = Breach::of_many(
            Oracle::AnswersSwapped,
            "a call that is under way with others gets the answer of another",
            format!("the answer is the one of the call with {whose}"),
        );
        breach.verdict = crate::verdict::Verdict::Fail;
        let mut calls: Vec<Shot> = shots.iter().filter(|shot| shot.call != exchange.call).cloned().collect();
        let mut counterexample = self.counterexample(tool, &exchange, &exchange, &calls, 3);
        calls.extend(shots.iter().find(|shot| shot.call == exchange.call).cloned());
        counterexample.file = self.write_down(&Test::AtOnce, &breach, &calls);
        Ok(Some(Found {
            tool,
            breach,
            count: seen,
            exchanges: vec![exchange],
            counterexample: Some(counterexample),
            confirmation: None,
        }))
    }

    /// Makes calls all at once: the first that got the result of another which lost its own, with the positions of both.
    async fn astray(&mut self, picked: &[(Shot, Value)]) -> Result<Option<(Exchange, usize, usize)>, String> {
        let shots: Vec<Shot> = picked.iter().map(|(shot, _)| shot.clone()).collect();
        let burst = self.rig.burst(&shots, shots.len(), self.limit(), None).await?;
        if burst.broken.is_some() {
            return Ok(None);
        }
        let got: Vec<(usize, Option<Value>)> =
            burst.done.iter().map(|(index, exchange)| (*index, result_of(exchange))).collect();
        let lost = |at: usize| {
            let own = got.iter().find(|(index, _)| *index == at);
            own.is_some_and(|(_, result)| result.as_ref() != Some(&picked[at].1))
        };
        Ok(burst.done.iter().find_map(|(own, exchange)| {
            let result = result_of(exchange).filter(|_| lost(*own))?;
            let is_other = |(at, (_, known)): &(usize, &(Shot, Value))| *known == result && lost(*at);
            let (other, _) = picked.iter().enumerate().find(is_other)?;
            Some((exchange.clone(), *own, other))
        }))
    }

    /// Adds what was found, or counts it to what is known.
    pub(super) fn add(&mut self, found: Option<Found>) {
        let Some(found) = found else { return };
        match self.known(found.tool, &found.breach) {
            Some(known) => known.count += found.count,
            None => self.found.push(found),
        }
    }
}

/// Whether an answer says that there were too many calls, as a server is asked to.
fn is_limited(exchange: &Exchange) -> bool {
    let said = exchange.answers.first().map(|answer| answer.to_string().to_lowercase()).unwrap_or_default();
    ["rate limit", "rate-limit", "ratelimit", "too many", "throttl", "quota", "429"]
        .iter()
        .any(|word| said.contains(word))
}
