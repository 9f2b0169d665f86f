//! Shrinks a failure against live processes: first to fewer calls, then to smaller arguments.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::failure_test::Suspicion;
use super::reproduction::{Observation, Reproducer, may_show_late};
use super::shrink_budget::ShrinkBudget;
use crate::campaign::calls::call_plan::CallPlan;
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::calls::vary;
use crate::campaign::failures::failure::{Failure, counterexample, without_large_values};
use crate::campaign::failures::saved_failure;
use crate::campaign::limits::{CONFIRMATIONS, MAX_BRIEF_SHRINK_TIME, MAX_LATE_CALLS, MAX_SHRINK_TIME, QUICK_START};
use crate::campaign::process::caller::Caller;
use crate::campaign::process::environment::Environment;
use crate::campaign::settings::CampaignSettings;
use crate::case::Oracle;
use crate::check::fuzz::{Arguments, Call, ExchangeOutcome, FuzzExchange, OracleViolation, Validity};
use crate::fuzz::{ChoiceSequence, Generator, Malformed, Shrinker};
use crate::verdict::{ArgumentPart, Confirmation, Verdict};

/// How much effort shrinking a failure is worth.
#[derive(Debug, Clone, Copy)]
pub(in crate::campaign) struct Effort {
    /// Whether another tool fails in the same way, so that little effort is enough.
    pub(in crate::campaign) is_brief: bool,
    /// When no call is made any more.
    pub(in crate::campaign) deadline: Instant,
}

/// Finds the smallest sequence of calls that reproduces one failure.
pub(in crate::campaign) struct FailureShrinker<'s, 'a> {
    reproducer: Reproducer<'s, 'a>,
    suspicion: &'s Suspicion,
    call_plan: &'s CallPlan,
    settings: &'s CampaignSettings<'s>,
    environment: &'s dyn Environment,
    effort: Effort,
    budget: ShrinkBudget,
    /// How long the server took to start.
    startup: Duration,
    /// Which parts of the smallest arguments matter.
    parts: Vec<ArgumentPart>,
    /// The response that is missing, waited for as long as for any other.
    unanswered: Option<Observation>,
}

impl<'s, 'a> FailureShrinker<'s, 'a> {
    /// A shrinker for a failure of the tool of this plan.
    pub(in crate::campaign) fn new(
        caller: &'s mut Caller<'a>,
        suspicion: &'s Suspicion,
        call_plan: &'s CallPlan,
        settings: &'s CampaignSettings<'s>,
        environment: &'s dyn Environment,
        effort: Effort,
    ) -> Self {
        let (startup, now) = (caller.process().startup(), Instant::now());
        let budget = if effort.is_brief {
            ShrinkBudget::brief(now, settings.extended(MAX_BRIEF_SHRINK_TIME))
        } else {
            ShrinkBudget::new(now, settings.extended(MAX_SHRINK_TIME), startup)
        };
        let reproducer =
            Reproducer { caller, test: &suspicion.test, violation: &suspicion.violation, is_patient: false };
        Self {
            reproducer,
            suspicion,
            call_plan,
            settings,
            environment,
            effort,
            budget,
            startup,
            parts: Vec::new(),
            unanswered: None,
        }
    }

    /// Shrinks the failure, and confirms and saves the result. A failure that cannot be reproduced is reported as
    /// observed, and as unconfirmed, if there is something to report.
    pub(in crate::campaign) async fn shrink(mut self) -> Result<Option<Failure>, String> {
        let mut confirmed = 0;
        let mut needed: Vec<FuzzCall> = Vec::new();
        let mut observed = None;
        if let Some((failing, _)) = &self.suspicion.failing {
            (needed, observed) = self.find_alone(failing).await?;
            if observed.is_some() {
                let small = self.smallest_failing(&mut needed, observed).await?;
                if !self.effort.is_brief && small.is_some() {
                    self.parts = self.vary_parts(&needed).await?;
                }
                if self.effort.is_brief && !self.may_only_be_late() {
                    let seen_again = Some(Confirmation { tried: 1, failed: 1 });
                    return Ok(small.map(|observation| self.failure(&needed, observation, seen_again)));
                }
                let (repeated, confirmation) = self.count_reproductions(&needed, small.clone(), 1).await?;
                observed = if confirmation.tried > 0 { repeated } else { small };
                confirmed = confirmation.failed;
            } else if self.effort.is_brief {
                return Ok(None);
            }
        }
        if observed.is_none() && !(self.suspicion.preceding.is_empty() && self.suspicion.failing.is_some()) {
            (needed, observed) = self.find_with_preceding().await?;
        }
        let times = if self.suspicion.violation.verdict == Verdict::Fail { CONFIRMATIONS } else { 1 };
        let remaining = times.saturating_sub(confirmed);
        let (mut tried, mut failed) = (confirmed, confirmed);
        if remaining > 0 && observed.is_some() {
            let (observation, repeated) = self.count_reproductions(&needed, observed.clone(), remaining).await?;
            observed = observation.or(observed.filter(|_| confirmed > 0));
            (tried, failed) = (tried + repeated.tried, failed + repeated.failed);
        } else if !self.is_out_of_time() {
            tried = times;
        }
        let confirmation = Some(Confirmation { tried, failed });
        Ok(match observed.filter(|_| failed > 0 && !needed.is_empty()) {
            Some(observation) => Some(self.failure(&needed, observation, confirmation)),
            // Out of time, nothing was repeated that could confirm or refute it.
            None if tried == 0 || self.is_out_of_time() => None,
            None => self.unconfirmed_failure(tried),
        })
    }

    /// Looks for the failure in the failing call on its own, or in one of the calls before it if it may show late.
    async fn find_alone(&mut self, failing: &FuzzCall) -> Result<(Vec<FuzzCall>, Option<Observation>), String> {
        // Only a crash needs a fresh process in any case; other failures are first tried on the current one.
        let needed = vec![failing.clone()];
        // Reused values of this process mean nothing to another one.
        let restart = !failing.reused.is_empty();
        let observed = self.attempt(&needed, restart).await?;
        if observed.is_none() && may_show_late(self.suspicion.violation.oracle) {
            // What a call causes after its response shows in the next call.
            for earlier in self.suspicion.preceding.iter().rev().take(MAX_LATE_CALLS) {
                let observed = self.attempt(std::slice::from_ref(earlier), true).await?;
                if observed.is_some() {
                    return Ok((vec![earlier.clone()], observed));
                }
            }
        }
        Ok((needed, observed))
    }

    /// Looks for the failure in all calls, and shrinks them if it occurs.
    async fn find_with_preceding(&mut self) -> Result<(Vec<FuzzCall>, Option<Observation>), String> {
        let failing = self.suspicion.failing.iter().map(|(fuzz_call, _)| fuzz_call.clone());
        let mut needed: Vec<FuzzCall> = self.suspicion.preceding.iter().cloned().chain(failing).collect();
        self.unanswered = None;
        let Some(observed) = self.attempt(&needed, true).await? else { return Ok((needed, None)) };
        needed.truncate(observed.taken);
        let original = needed.clone();
        needed = self.remove_calls(needed).await?;
        let small = self.shrink_arguments(&mut needed).await?;
        let is_shrunk = small.is_some() || needed.len() < original.len();
        let is_kept = self.keep_if_unanswered(&mut needed, original, is_shrunk).await?;
        Ok((needed, small.filter(|_| is_kept).or(Some(observed))))
    }

    /// Makes calls and checks whether the failure occurs again; not once the time for shrinking is up.
    async fn attempt(&mut self, calls: &[FuzzCall], restart: bool) -> Result<Option<Observation>, String> {
        // The first attempts of a brief effort may take longer than it.
        let deadline = if self.effort.is_brief { self.effort.deadline } else { self.budget.deadline() };
        let deadline = deadline.min(self.effort.deadline);
        self.attempt_until(deadline, calls, restart).await
    }

    /// The same with a deadline: an attempt that it cuts short shows nothing.
    async fn attempt_until(
        &mut self,
        deadline: Instant,
        calls: &[FuzzCall],
        restart: bool,
    ) -> Result<Option<Observation>, String> {
        self.reproducer.caller.set_deadline(deadline);
        if self.is_out_of_time() {
            return Ok(None);
        }
        if !calls.is_empty() {
            self.budget.record_attempt();
        }
        let attempted = self.reproducer.attempt(calls, restart).await;
        if self.is_out_of_time() { Ok(attempted.ok().flatten()) } else { attempted }
    }

    /// Whether the response that is missing was not waited for as long as others are: a late one is no missing one.
    fn may_only_be_late(&self) -> bool {
        let full = self.reproducer.caller.timeouts().full();
        let is_short =
            |exchange: &FuzzExchange| matches!(exchange.outcome, ExchangeOutcome::TimedOut { waited } if waited < full);
        self.suspicion.violation.oracle == Oracle::Hang
            && self.unanswered.is_none()
            && self.suspicion.failing.as_ref().is_some_and(|(_, exchange)| is_short(exchange))
    }

    /// Shrinks the arguments of a call that fails by itself.
    async fn smallest_failing(
        &mut self,
        needed: &mut Vec<FuzzCall>,
        observed: Option<Observation>,
    ) -> Result<Option<Observation>, String> {
        let original = needed.clone();
        let is_hang = self.suspicion.violation.oracle == Oracle::Hang;
        let small = if is_hang && self.effort.is_brief { None } else { self.shrink_arguments(needed).await? };
        let is_kept = self.keep_if_unanswered(needed, original, small.is_some()).await?;
        Ok(small.filter(|_| is_kept).or(observed))
    }

    /// Keeps what was shrunk. While that is done, a missing response is not waited for as long as others are; if one comes
    /// after all, what was taken away only says how long a call takes, and the calls stay as they were made.
    async fn keep_if_unanswered(
        &mut self,
        needed: &mut Vec<FuzzCall>,
        original: Vec<FuzzCall>,
        is_shrunk: bool,
    ) -> Result<bool, String> {
        if self.suspicion.violation.oracle != Oracle::Hang {
            return Ok(true);
        }
        if is_shrunk {
            self.unanswered = self.attempt_patiently(needed).await?;
        }
        if self.unanswered.is_some() {
            return Ok(true);
        }
        *needed = original;
        if !self.may_only_be_late() {
            let failing = self.suspicion.failing.as_ref();
            self.unanswered = failing.map(|(_, exchange)| Observation::of(exchange.clone()));
        }
        Ok(false)
    }

    /// Makes calls on a fresh process, and waits for the last response as long as for any other.
    async fn attempt_patiently(&mut self, calls: &[FuzzCall]) -> Result<Option<Observation>, String> {
        self.reproducer.is_patient = true;
        let found = self.attempt_until(self.effort.deadline, calls, true).await;
        self.reproducer.is_patient = false;
        found
    }

    /// Whether no further call is made at the moment.
    fn is_out_of_time(&self) -> bool {
        self.reproducer.caller.process().is_out_of_time()
    }

    fn is_spent(&self) -> bool {
        self.budget.is_spent(Instant::now())
    }

    /// The failure, represented by the last of the calls that it needs.
    fn failure(&self, needed: &[FuzzCall], observation: Observation, confirmation: Option<Confirmation>) -> Failure {
        let Suspicion { test, violation, failing, .. } = self.suspicion;
        let caller = &*self.reproducer.caller;
        let (tool, before) = match needed.split_last() {
            Some((last, before)) => (last.tool, before),
            None => (failing.as_ref().map_or(0, |(fuzz_call, _)| fuzz_call.tool), needed),
        };
        // The hanging call had a longer timeout originally than while shrinking, unless it was waited for again.
        let is_worse = |repeated: &OracleViolation| repeated.oracle != Oracle::Hang || self.unanswered.is_some();
        let observation = self.unanswered.clone().unwrap_or(observation);
        let repeated = caller
            .judge_again(violation.oracle, tool, &observation.exchange)
            .into_iter()
            .find(|repeated| repeated.has_same_cause_as(violation) && is_worse(repeated));
        let violation = repeated.unwrap_or_else(|| violation.clone());
        let original = failing.as_ref().map_or(&observation.exchange, |(_, exchange)| exchange);
        let attempts = self.budget.attempts();
        let mut counterexample = counterexample(caller, tool, original, &observation.exchange, before, attempts);
        counterexample.parts.clone_from(&self.parts);
        if let Some(path) = saved_failure::save(self.settings, caller.tools(), test, &violation, needed) {
            counterexample.file = Some(path);
        }
        let exchanges =
            std::iter::once(observation.exchange).chain(observation.supporting).map(without_large_values).collect();
        let counterexample = Some(counterexample);
        Failure { exchanges, counterexample, confirmation, ..Failure::of_tool(tool, violation) }
    }

    /// The failure as observed, if it was observed in a response.
    fn unconfirmed_failure(&self, tried: usize) -> Option<Failure> {
        let (fuzz_call, exchange) = self.suspicion.failing.as_ref().filter(|_| !self.may_only_be_late())?;
        let (violation, attempts) = (self.suspicion.violation.clone(), self.budget.attempts());
        Some(Failure {
            confirmation: Some(Confirmation { tried, failed: 0 }),
            ..Failure::unshrunk(self.reproducer.caller, fuzz_call.tool, violation, exchange, attempts)
        })
    }

    /// Repeats calls on fresh processes as long as there is time; returns the last failure and how often they failed.
    async fn count_reproductions(
        &mut self,
        calls: &[FuzzCall],
        observed: Option<Observation>,
        times: usize,
    ) -> Result<(Option<Observation>, Confirmation), String> {
        let (mut last, mut confirmation) = (None, Confirmation { tried: 0, failed: 0 });
        if observed.is_some() {
            for _ in 0..times {
                let is_patient = self.may_only_be_late();
                let found = if is_patient {
                    self.attempt_patiently(calls).await?
                } else {
                    self.attempt_until(self.effort.deadline, calls, true).await?
                };
                if found.is_none() && self.is_out_of_time() {
                    break;
                }
                confirmation.tried += 1;
                if is_patient {
                    if found.is_none() {
                        break;
                    }
                    self.unanswered.clone_from(&found);
                }
                if found.is_some() {
                    confirmation.failed += 1;
                    last = found;
                }
            }
        }
        Ok((last, confirmation))
    }

    /// Removes calls that the failure does not need; the failing one stays if there is one.
    async fn remove_calls(&mut self, calls: Vec<FuzzCall>) -> Result<Vec<FuzzCall>, String> {
        let mut needed = calls;
        let prefix = self.reproducer.failing_prefix(&needed, &self.budget).await;
        let prefix = if self.is_out_of_time() { prefix.ok().flatten() } else { prefix? };
        if let Some(length) = prefix {
            needed.truncate(length);
        }
        for calls in shorter_sequences(&needed) {
            if calls.len() < needed.len()
                && !self.is_spent()
                && let Some(observation) = self.attempt(&calls, true).await?
            {
                needed = calls;
                needed.truncate(observation.taken);
            }
        }
        let fixed = usize::from(self.suspicion.failing.is_some());
        let mut size = needed.len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            loop {
                let last = needed.len() - fixed;
                if at >= last || needed.len() == 1 || self.is_spent() {
                    break;
                }
                let end = (at + size).min(last);
                let rest: Vec<FuzzCall> = needed[..at].iter().chain(&needed[end..]).cloned().collect();
                match self.attempt(&rest, true).await? {
                    Some(observation) => {
                        needed = rest;
                        needed.truncate(observation.taken);
                    }
                    None => at = end,
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        Ok(needed)
    }

    /// Finds the smallest arguments of the same class that fail: of the last call first, then of the preceding calls.
    async fn shrink_arguments(&mut self, calls: &mut [FuzzCall]) -> Result<Option<Observation>, String> {
        const MAX_CALLS_TO_SHRINK_ALL: usize = 4;
        let mut best = None;
        let many = calls.len() > MAX_CALLS_TO_SHRINK_ALL;
        for at in (0..calls.len()).rev() {
            if many && at + 1 < calls.len() {
                break;
            }
            best = self.shrink_arguments_at(at, calls).await?.or(best);
        }
        Ok(best)
    }

    async fn shrink_arguments_at(&mut self, at: usize, calls: &mut [FuzzCall]) -> Result<Option<Observation>, String> {
        let fuzz_call = calls[at].clone();
        let call = &fuzz_call.call;
        if let Validity::Malformed(_, name) = call.validity {
            let Some(kind) = Malformed::kinds().into_iter().find(|kind| kind.name == name) else { return Ok(None) };
            let bare = kind.of(&json!({}));
            calls[at].call = Arc::new(Call { arguments: Arguments::Raw(bare.arguments), ..(**call).clone() });
            let observed = self.attempt(calls, false).await?;
            if observed.is_none() {
                calls[at] = fuzz_call;
            }
            return Ok(observed);
        }
        let Arguments::Json(arguments) = &call.arguments else { return Ok(None) };
        let Some(generator) = self.generator(&fuzz_call) else { return Ok(None) };
        let from_choices = call
            .choices
            .as_ref()
            .and_then(|choices| Shrinker::new(generator.clone(), ChoiceSequence::replay(choices.by(&generator))))
            .filter(|shrinker| shrinker.current() == arguments);
        let Some(mut shrinker) = from_choices.or_else(|| Shrinker::of_value(generator, arguments.clone())) else {
            return Ok(None);
        };
        let (mut best, mut smallest) = (None, fuzz_call.clone());
        let mut progress = shrinker.simplify();
        while progress && !self.is_spent() && !self.environment.is_stopping() {
            let arguments = Arguments::Json(shrinker.current().clone());
            calls[at].call = Arc::new(Call { arguments, choices: None, ..(**call).clone() });
            if let Some(observation) = self.attempt(calls, false).await? {
                best = Some(observation);
                smallest = calls[at].clone();
                progress = shrinker.simplify();
            } else {
                progress = shrinker.complicate();
            }
        }
        calls[at] = smallest;
        Ok(best)
    }

    /// Tries other values in place of each part of the smallest arguments of a call that fails by itself. What fails
    /// late, or only after waiting, would take too long.
    async fn vary_parts(&mut self, needed: &[FuzzCall]) -> Result<Vec<ArgumentPart>, String> {
        let [failing] = needed else { return Ok(Vec::new()) };
        let Arguments::Json(arguments) = &failing.call.arguments else { return Ok(Vec::new()) };
        if self.suspicion.violation.oracle == Oracle::Hang || self.startup >= QUICK_START {
            return Ok(Vec::new());
        }
        let Some(generator) = self.generator(failing) else { return Ok(Vec::new()) };
        let mut concluded = Vec::new();
        for part in vary::parts(arguments, &generator) {
            let mut failed = Vec::new();
            for variant in &part.variants {
                if self.is_spent() || self.environment.is_stopping() {
                    return Ok(concluded);
                }
                let mut varied = failing.clone();
                let arguments = Arguments::Json(variant.clone());
                varied.call = Arc::new(Call { arguments, choices: None, ..(*failing.call).clone() });
                failed.push(self.attempt(&[varied], false).await?.is_some());
            }
            concluded.push(vary::conclude(&part, &failed));
        }
        Ok(if self.is_out_of_time() { Vec::new() } else { concluded })
    }

    /// The generator for arguments of the same class as those of a call.
    fn generator(&self, fuzz_call: &FuzzCall) -> Option<Generator> {
        let validity = &fuzz_call.call.validity;
        if fuzz_call.tool == self.call_plan.tool() {
            return self.call_plan.generator(validity);
        }
        let schema = self.reproducer.caller.tools().schema(fuzz_call.tool);
        schema.filter(|_| *validity == Validity::Valid).map(|schema| schema.valid().clone())
    }
}

/// Shorter sequences of calls that are often enough: the calls whose results the last one reuses, the last calls, or
/// the calls of one tool, always with the last call.
fn shorter_sequences(needed: &[FuzzCall]) -> Vec<Vec<FuzzCall>> {
    let Some((last, before)) = needed.split_last() else { return Vec::new() };
    let mut shorter: Vec<Vec<FuzzCall>> = Vec::new();
    if !last.reused.is_empty() {
        let is_source = |fuzz_call: &&FuzzCall| {
            let mut sources = last.reused.iter().filter_map(|reused| reused.source.as_ref());
            sources.any(|source| Arc::ptr_eq(source, &fuzz_call.call))
        };
        let sources: Vec<FuzzCall> = before.iter().filter(is_source).cloned().collect();
        // The same call may have been made more than once.
        shorter.extend(sources.last().map(|source| vec![source.clone(), last.clone()]));
        shorter.push(sources.into_iter().chain([last.clone()]).collect());
    }
    let lengths = [1, 2, 3, 5, 9, 17]
        .into_iter()
        .filter(|length| *length < needed.len())
        .map(|length| needed[needed.len() - length..].to_vec());
    shorter.extend(lengths);
    let tools: BTreeSet<usize> = needed.iter().map(|fuzz_call| fuzz_call.tool).collect();
    for tool in tools {
        let own = before.iter().filter(|fuzz_call| fuzz_call.tool == tool).cloned();
        shorter.push(own.chain([last.clone()]).collect());
    }
    shorter
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::calls::fuzz_call::ReusedValue;
    use crate::campaign::calls::value_pool::Origin;
    use crate::campaign::limits::MAX_BRIEF_ATTEMPTS;
    use crate::campaign::process::scripted::{Answer, ReceivedCall, ScriptedServer, suspect_last_of, valid_call};
    use serde_json::Value;

    /// More time than any of these failures takes.
    const TIME: Duration = Duration::from_secs(300);

    fn call(tool: usize, number: usize) -> FuzzCall {
        valid_call(tool, json!({ "number": number }))
    }

    fn numbers(sequences: &[Vec<FuzzCall>]) -> Vec<Vec<u64>> {
        let number = |fuzz_call: &FuzzCall| match &fuzz_call.call.arguments {
            Arguments::Json(arguments) => arguments["number"].as_u64().unwrap_or_default(),
            Arguments::Raw(bytes) => panic!("{bytes:?}"),
        };
        sequences.iter().map(|calls| calls.iter().map(number).collect()).collect()
    }

    #[test]
    fn shorter_sequences_end_with_the_last_call() {
        let calls: Vec<FuzzCall> = (0..6).map(|number| call(number % 2, number)).collect();
        let expected: [&[u64]; 6] = [&[5], &[4, 5], &[3, 4, 5], &[1, 2, 3, 4, 5], &[0, 2, 4, 5], &[1, 3, 5]];
        assert_eq!(numbers(&shorter_sequences(&calls)), expected);
        assert!(shorter_sequences(&[]).is_empty());
    }

    #[test]
    fn the_sources_of_reused_values_are_tried_first() {
        let mut calls: Vec<FuzzCall> = [7, 8, 9].map(|number| call(0, number)).to_vec();
        // The first call is made again.
        calls.insert(2, calls[0].clone());
        let origin = Origin { tool: 0, pointer: "/structuredContent/id".to_owned(), in_text: false };
        let source = Some(Arc::clone(&calls[0].call));
        calls[3].reused = [ReusedValue { property: "id".to_owned(), origin, source }].into();
        assert_eq!(numbers(&shorter_sequences(&calls))[..2], [vec![7, 9], vec![7, 7, 9]]);
    }

    /// A server with two tools: `book` takes a city and a number of nights, `open` a name.
    fn server(script: impl Fn(&ReceivedCall<'_>) -> Answer + Send + Sync + 'static) -> ScriptedServer {
        let book = json!({ "city": { "type": "string" }, "nights": { "type": "integer", "minimum": 0 } });
        ScriptedServer::new(&[("book", book), ("open", json!({ "name": { "type": "string" } }))], script)
    }

    fn book(city: &str, nights: u64) -> FuzzCall {
        valid_call(0, json!({ "city": city, "nights": nights }))
    }

    fn open(name: &str) -> FuzzCall {
        valid_call(1, json!({ "name": name }))
    }

    /// Makes calls, the last of which fails, and shrinks the failure.
    async fn shrink(server: &ScriptedServer, calls: &[FuzzCall], is_brief: bool, time: Duration) -> Option<Failure> {
        let (settings, mut caller) = (server.settings(), server.caller());
        let suspicion = suspect_last_of(&mut caller, calls).await;
        let call_plan = server.call_plan(suspicion.failing.as_ref().expect("a call failed").0.tool);
        let effort = Effort { is_brief, deadline: Instant::now() + time };
        let environment = server.environment();
        let shrinker = FailureShrinker::new(&mut caller, &suspicion, &call_plan, &settings, environment, effort);
        shrinker.shrink().await.expect("the server can be called")
    }

    /// The smallest arguments that fail, the `params` of the calls before them, and how often the failure was confirmed.
    fn smallest(found: Option<Failure>) -> (Value, Vec<Value>, Option<Confirmation>) {
        let found = found.expect("there is a failure");
        let counterexample = found.counterexample.expect("there is a call");
        (counterexample.arguments, counterexample.preceding, found.confirmation)
    }

    #[tokio::test(start_paused = true)]
    async fn a_crash_by_one_argument_is_shrunk_to_it() {
        let server = server(|call| if call.integer("nights") > 100 { Answer::Exit } else { Answer::text("booked") });
        let calls = [book("Ulm", 2), open("desk"), book("Ravensburg", 70_000)];
        let found = shrink(&server, &calls, false, TIME).await;
        let confirmation = Some(Confirmation { tried: CONFIRMATIONS, failed: CONFIRMATIONS });
        assert_eq!(smallest(found), (json!({ "city": "", "nights": 101 }), Vec::new(), confirmation));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_takes_as_long_as_its_arguments_say_is_not_shrunk_to_one_that_is_answered() {
        let server = server(|call| {
            let seconds = u64::try_from(call.integer("nights")).unwrap_or_default();
            if seconds == 0 { Answer::text("booked") } else { Answer::late(seconds) }
        });
        let found = shrink(&server, &[book("Ravensburg", 70_000)], false, TIME).await;
        assert_eq!(smallest(found).0, json!({ "city": "Ravensburg", "nights": 70_000 }), "one night takes a second");
        let server =
            super::tests::server(|call| if call.integer("nights") > 100 { Answer::Silence } else { Answer::text("") });
        let found = shrink(&server, &[book("Ravensburg", 70_000)], false, TIME).await;
        assert_eq!(smallest(found).0, json!({ "city": "", "nights": 101 }), "101 nights are never booked");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_takes_longer_by_earlier_calls_is_not_shrunk_to_one_that_is_answered() {
        let answer = |wait: fn(u64) -> Answer| {
            server(move |call| {
                let opened = call.earlier.iter().filter(|(tool, _)| tool == "open").count();
                let opened = u64::try_from(opened).unwrap_or_default();
                if call.tool == "book" && opened > 0 { wait(opened) } else { Answer::text("booked") }
            })
        };
        let calls: Vec<_> = (0..90).map(|_| open("desk")).chain([book("Ravensburg", 90)]).collect();
        let late = answer(Answer::late);
        let (smallest_late, preceding, _) = smallest(shrink(&late, &calls, false, TIME).await);
        assert_eq!(smallest_late, json!({ "city": "Ravensburg", "nights": 90 }));
        assert_eq!(preceding.len(), 90, "each of them takes a second");
        let silent = answer(|_| Answer::Silence);
        let (smallest_silent, preceding, _) = smallest(shrink(&silent, &calls, false, TIME).await);
        assert_eq!(smallest_silent, json!({ "city": "", "nights": 0 }));
        assert_eq!(preceding, [json!({ "name": "open", "arguments": { "name": "" } })]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crash_that_needs_an_earlier_call_keeps_both() {
        let server = server(|call| {
            let is_open = call.earlier.iter().any(|(tool, _)| tool == "open");
            if is_open && call.integer("nights") > 5 { Answer::Exit } else { Answer::text("booked") }
        });
        let calls = [book("Ulm", 2), open("desk"), book("Bonn", 3), book("Trier", 4), book("Ravensburg", 90)];
        let found = shrink(&server, &calls, false, TIME).await;
        let confirmation = Some(Confirmation { tried: CONFIRMATIONS, failed: CONFIRMATIONS });
        let preceding = vec![json!({ "name": "open", "arguments": { "name": "" } })];
        assert_eq!(smallest(found), (json!({ "city": "", "nights": 6 }), preceding, confirmation));
    }

    #[tokio::test(start_paused = true)]
    async fn a_crash_of_one_process_alone_is_reported_as_unconfirmed() {
        let server = server(|call| {
            let is_first = call.process == 0 && call.tool == "book";
            if is_first { Answer::Exit } else { Answer::text("booked") }
        });
        let found = shrink(&server, &[open("desk"), book("Ravensburg", 90)], false, TIME).await;
        let confirmation = Some(Confirmation { tried: CONFIRMATIONS, failed: 0 });
        // Nothing was shrunk, since nothing failed again.
        assert_eq!(smallest(found), (json!({ "city": "Ravensburg", "nights": 90 }), Vec::new(), confirmation));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_for_which_no_time_is_left_is_neither_confirmed_nor_refuted() {
        let server = server(|_| Answer::Exit);
        assert!(shrink(&server, &[book("Ulm", 2)], false, Duration::ZERO).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_known_from_another_tool_is_shrunk_with_few_attempts_and_repeated_once() {
        let server = server(|call| {
            let is_long = call.arguments["city"].as_str().is_some_and(|city| city.len() > 20);
            if is_long && call.integer("nights") > 4_321 { Answer::Exit } else { Answer::text("booked") }
        });
        let calls = [book(&"Zwiefaltendorf".repeat(4), 70_000)];
        let brief = shrink(&server, &calls, true, TIME).await.expect("there is a failure");
        let thorough = shrink(&server, &calls, false, TIME).await.expect("there is a failure");
        let [brief_attempts, attempts] = [&brief, &thorough].map(|found| {
            let counterexample = found.counterexample.as_ref().expect("there is a call");
            counterexample.attempts
        });
        let seen_again = Some(Confirmation { tried: 1, failed: 1 });
        assert_eq!((brief_attempts, brief.confirmation), (MAX_BRIEF_ATTEMPTS, seen_again));
        assert!(attempts > MAX_BRIEF_ATTEMPTS && thorough.confirmation.is_some(), "{attempts} attempts");
    }

    #[tokio::test(start_paused = true)]
    async fn a_hang_is_shrunk_only_as_long_as_there_is_time() {
        const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
        const LEAST: u64 = 987_654_321;
        let all =
            |value: Value| Value::Object(NAMES.map(|name| (name.to_owned(), value.clone())).into_iter().collect());
        let tool = ("sum", all(json!({ "type": "integer", "minimum": 0 })));
        let server = ScriptedServer::new(&[tool], |call| {
            let is_large = |name: &&str| call.arguments[*name].as_u64() >= Some(LEAST);
            if NAMES.iter().all(is_large) { Answer::Silence } else { Answer::text("added") }
        });
        let (settings, mut caller) = (server.settings(), server.caller());
        let suspicion = suspect_last_of(&mut caller, &[valid_call(0, all(json!(u64::MAX >> 12)))]).await;
        let (call_plan, environment, began) = (server.call_plan(0), server.environment(), Instant::now());
        let effort = Effort { is_brief: false, deadline: began + TIME };
        let shrinker = FailureShrinker::new(&mut caller, &suspicion, &call_plan, &settings, environment, effort);
        let limit = shrinker.budget.deadline() - began;
        let found = shrinker.shrink().await.expect("the server can be called");
        let (arguments, _, confirmation) = smallest(found);
        assert_eq!(confirmation, Some(Confirmation { tried: CONFIRMATIONS, failed: CONFIRMATIONS }));
        assert_ne!(arguments, all(json!(LEAST)), "it takes longer to get there");
        // Each confirmation waits once more, and one wait for the smallest call is as long as for any other.
        let elapsed = began.elapsed();
        let longest = limit + caller.timeouts().full() + Duration::from_secs(3);
        assert!(elapsed >= limit && elapsed <= longest, "{elapsed:?}");
    }
}
