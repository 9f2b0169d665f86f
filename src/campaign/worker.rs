//! A fuzzing worker: calls the tools in its queue one after the other, on its own process of the server.
//!
//! It carries out the steps of the schedule, asks the budget whether to go on, and passes what the oracles suspect to
//! the shrinker.

mod investigation;
mod long_texts;
mod rounds;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub(super) use self::long_texts::send_long_texts;
use super::budget::{Budget, Decision, Situation, TimeNeed};
use super::monitors;
use super::monitors::monitor::{Moment, Monitor};
use super::settings::CampaignSettings;
use super::tool_run::{QueuedTool, RestOfTool, ToolRun};
use crate::campaign::calls::call_plan::CallPlan;
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::calls::schedule::{Phase, Schedule, Step};
use crate::campaign::calls::tools::{FuzzTools, SelectedTool};
use crate::campaign::calls::value_pool::ValuePool;
use crate::campaign::failures::failure::{Failure, Failures};
use crate::campaign::failures::replay::{FixedFailure, Replay};
use crate::campaign::failures::shared_failures::SharedFailures;
use crate::campaign::limits::{
    CALLS_IN_FLIGHT, CALLS_OF_SLOW_TOOL_IN_FLIGHT, MAX_CANARY_DURATION, MIN_CALLS_FOR_REPETITION,
};
use crate::campaign::monitors::canaries::Canaries;
use crate::campaign::process::caller::Caller;
use crate::campaign::process::environment::Environment;
use crate::case::{Oracle, Regression};
use crate::check::fuzz::unsatisfiable;

/// One worker.
pub(super) struct Worker<'a> {
    environment: &'a Arc<dyn Environment>,
    settings: &'a CampaignSettings<'a>,
    caller: Caller<'a>,
    budget: Budget,
    failures: Failures,
    canaries: Canaries,
    monitors: Vec<Box<dyn Monitor>>,
    /// How many calls were made to shrink or confirm failures.
    shrinking_calls: u64,
}

/// The result of one worker.
pub(super) struct WorkerResult {
    pub(super) failures: Failures,
    /// How many calls were made, and how many of them to shrink or confirm failures.
    pub(super) calls: u64,
    pub(super) shrinking_calls: u64,
    pub(super) restarts: usize,
    /// How long it waited for the cases to finish.
    pub(super) waited: Duration,
    pub(super) stop_reason: Option<String>,
    /// Whether the server was abandoned because it does not serve calls.
    pub(super) given_up: bool,
    /// Whether the resource usage of the server's process was visible.
    pub(super) had_process: bool,
}

impl<'a> Worker<'a> {
    /// The first worker of a campaign that began at this time.
    pub(super) fn new(
        environment: &'a Arc<dyn Environment>,
        settings: &'a CampaignSettings<'a>,
        tools: &'a FuzzTools,
        shared_failures: &SharedFailures,
        began: Instant,
    ) -> Self {
        Self {
            environment,
            settings,
            caller: Caller::new(environment, settings, tools),
            budget: Budget::new(settings, began),
            failures: Failures::new(shared_failures),
            canaries: Canaries::default(),
            monitors: monitors::all(),
            shrinking_calls: 0,
        }
    }

    /// Another worker, which starts where this one is now. The time that this one waited for cases does not count for
    /// it either.
    pub(super) fn another(&self, shared_failures: &SharedFailures) -> Self {
        let now = Instant::now();
        Self {
            budget: self.budget.for_another_worker(self.settings, now),
            canaries: self.canaries.clone(),
            ..Self::new(self.environment, self.settings, self.caller.tools(), shared_failures, now)
        }
    }

    /// Chooses the plain calls to repeat, and replays saved failures; returns those that no longer fail.
    pub(super) async fn prepare(&mut self, saved: &[(PathBuf, Regression)]) -> Vec<FixedFailure> {
        self.caller.set_deadline(self.budget.last_deadline());
        if let Err(problem) = self.choose_canaries().await {
            self.budget.stop(problem);
        }
        self.replay(saved).await.unwrap_or_else(|problem| {
            self.budget.stop(problem);
            Vec::new()
        })
    }

    /// How long a call of each tool usually takes. The first one may have taken longer, as the machine and the server were busy.
    pub(super) fn usual_durations(&self) -> Vec<Duration> {
        let tools = self.caller.tools().all().iter().enumerate();
        let usual = |(tool, selected): (usize, &SelectedTool)| self.canaries.shortest(tool).or(selected.first_call);
        tools.map(|tool| usual(tool).unwrap_or_default()).collect()
    }

    async fn choose_canaries(&mut self) -> Result<(), String> {
        let limit = self.settings.extended(MAX_CANARY_DURATION);
        for canary in self.caller.tools().plain_calls() {
            if !self.is_over() {
                self.canaries.add_if_repeatable(canary, limit, &mut self.caller).await?;
            }
        }
        Ok(())
    }

    /// Replays saved failures; returns those that no longer fail.
    async fn replay(&mut self, saved: &[(PathBuf, Regression)]) -> Result<Vec<FixedFailure>, String> {
        let mut fixed = Vec::new();
        for (path, regression) in saved {
            if self.is_over() {
                break;
            }
            let Some(replay) = Replay::new(regression, self.caller.tools(), &self.canaries) else { continue };
            if replay.is_concurrent() && self.settings.plan.in_flight == Some(1) {
                continue;
            }
            for tool in replay.tools() {
                self.wait_for_cases(tool).await;
            }
            let oracle = replay.oracle();
            match replay.run(&mut self.caller, self.settings, &self.failures, path).await? {
                Some(found) => self.failures.add(found),
                // A call that was cut short shows nothing.
                None if self.is_over() => break,
                None => fixed.push(self.fixed_failure(oracle, path)),
            }
        }
        Ok(fixed)
    }

    /// A saved failure that no longer fails; its file is removed if the user wants that.
    pub(super) fn fixed_failure(&self, oracle: Oracle, path: &Path) -> FixedFailure {
        let folder = self.settings.failure_folder.as_ref();
        let removed = folder.is_some_and(|folder| folder.record_fixed(path, self.settings.plan.prune));
        FixedFailure { oracle, path: path.to_string_lossy().into_owned(), removed }
    }

    /// Fuzzes a tool on its own if possible; `tools` is the number of tools that remain, with this one.
    pub(super) async fn fuzz_alone(&mut self, queued: &mut QueuedTool, tools: usize) {
        let tool = self.caller.tools().get(queued.tool());
        if self.is_over() {
            return queued.leave_out("fuzzing ended before it was called");
        }
        let Some(schema) = &tool.schema else { return queued.leave_out("its inputSchema cannot be read") };
        if let Some(violation) = unsatisfiable(schema) {
            self.failures.add(Failure::of_tool(queued.tool(), violation));
            return queued.leave_out("no arguments satisfy its inputSchema");
        }
        let choices = (self.settings.seed, self.settings.plan.seeds.as_slice());
        let served = tool.working_arguments.as_ref();
        let call_plan = CallPlan::new(queued.tool(), schema, &tool.name, choices, served, self.settings.plan.calls);
        let latency = tool.first_call.unwrap_or_default();
        let share = call_plan.share();
        let mut run = ToolRun::new(call_plan, served);
        let in_flight = self.in_flight(Phase::Mutants, &run);
        let need = TimeNeed { calls: share.others(), mutants: share.mutants, latency, in_flight };
        let time = self.budget.share(Instant::now(), tools, need);
        self.wait_for_cases(queued.tool()).await;
        // The startup time of a process does not count: it could take all of the time slice.
        let ready = self.caller.ensure_started().await;
        self.begin_tool(time, latency);
        let outcome = match ready {
            Ok(()) => self.fuzz_in_phases(&mut run).await,
            Err(problem) => Err(problem),
        };
        let time_left = self.budget.slice_left(Instant::now());
        if let Some(violation) = run.misplaced_keywords() {
            self.failures.add(Failure::of_tool(run.tool(), violation));
        }
        let (calls_left, note) = match outcome {
            Ok(calls_left) => {
                let note = self.budget.tool_note(Instant::now(), run.is_complete(calls_left), tool.is_slow());
                self.budget.end_tool(run.is_served_mostly());
                (calls_left, note)
            }
            Err(problem) => {
                self.budget.stop(problem.clone());
                (0, Some(problem))
            }
        };
        queued.set_run(run, calls_left, time_left, note);
    }

    /// Fuzzes a tool with values from the results of all tools.
    pub(super) async fn fuzz_with_shared_values(&mut self, queued: &mut QueuedTool, pool: &ValuePool) {
        let tool = self.caller.tools().get(queued.tool());
        let mut note = None;
        if let Some(RestOfTool { run, calls, time }) = queued.rest(pool) {
            self.begin_tool(time, Duration::ZERO);
            if let Err(problem) = self.follow(Schedule::with_shared_values(calls), run).await {
                self.budget.stop(problem);
            }
            note = self.budget.tool_note(Instant::now(), run.is_complete(0), tool.is_slow());
        }
        queued.end(note, tool.working_arguments.is_some());
    }

    /// Ends the process; returns what was found.
    pub(super) async fn finish(mut self) -> WorkerResult {
        self.report_server_end();
        self.caller.end().await;
        let process = self.caller.process();
        WorkerResult {
            calls: process.calls(),
            shrinking_calls: self.shrinking_calls,
            restarts: process.starts().saturating_sub(1),
            waited: self.budget.waited(),
            stop_reason: self.budget.stop_reason().map(str::to_owned),
            given_up: self.budget.counters().has_given_up(),
            had_process: process.had_process(),
            failures: self.failures,
        }
    }

    /// What the budget depends on.
    fn situation(&self) -> Situation {
        Situation { is_stopping: self.environment.is_stopping(), starts: self.caller.process().starts() }
    }

    /// Whether fuzzing has to stop.
    pub(super) fn is_over(&mut self) -> bool {
        let situation = self.situation();
        self.budget.is_over(Instant::now(), situation)
    }

    /// Whether to make further calls of the current tool.
    fn continues(&mut self) -> bool {
        let situation = self.situation();
        self.budget.decide(Instant::now(), situation) == Decision::Continue
    }

    fn begin_tool(&mut self, time: Duration, latency: Duration) {
        self.budget.begin_tool(Instant::now(), time);
        self.caller.begin_tool(latency, self.budget.last_deadline());
    }

    /// How many calls of a tool are in flight in a phase.
    fn in_flight(&self, phase: Phase, run: &ToolRun) -> usize {
        let (fixed, tool) = (self.settings.plan.in_flight, self.caller.tools().get(run.tool()));
        match phase {
            _ if tool.is_slow() => fixed.unwrap_or(CALLS_OF_SLOW_TOOL_IN_FLIGHT),
            _ if tool.takes_a_while() && !run.is_quick() => fixed.unwrap_or(CALLS_IN_FLIGHT),
            Phase::Mixed => fixed.unwrap_or(CALLS_IN_FLIGHT),
            Phase::Mutants | Phase::Coverage | Phase::Malformed | Phase::Stateful => 1,
        }
    }

    /// Waits until the cases of every revision have finished, unless the tool is annotated `readOnlyHint`: cases must
    /// not see what its calls change in files or databases that all processes of the server share. The wait does not
    /// count as fuzzing time.
    async fn wait_for_cases(&mut self, tool: usize) {
        if self.caller.tools().get(tool).is_read_only {
            return;
        }
        let began = Instant::now();
        self.environment.wait_for_cases().await;
        self.budget.add_wait(began.elapsed());
    }

    /// Runs the phases that need only this tool; returns how many calls are left for those that use other tools'
    /// results.
    async fn fuzz_in_phases(&mut self, run: &mut ToolRun) -> Result<u64, String> {
        let share = run.call_plan().share();
        let doubled = self.caller.tools().get(run.tool()).is_idempotent && share.others() >= MIN_CALLS_FOR_REPETITION;
        run.call_plan_mut().set_doubled(doubled);
        self.check(Moment::BeforeCalls, run).await?;
        let calls_left = self.follow(Schedule::alone(share, doubled), run).await?;
        let had_time = self.continues();
        self.check(Moment::AfterCalls { had_time }, run).await?;
        Ok(if had_time { calls_left } else { 0 })
    }

    /// Follows a schedule to its end; returns the number of calls that were not made.
    async fn follow(&mut self, mut schedule: Schedule, run: &mut ToolRun) -> Result<u64, String> {
        loop {
            let continues = self.continues();
            match schedule.next(continues) {
                Step::End => return Ok(schedule.left()),
                Step::PlainCall => self.check(Moment::BetweenRounds, run).await?,
                Step::Settled => self.check(Moment::Settled, run).await?,
                Step::Round(phase, limit) => {
                    let round = self.build_round(phase, limit, run).await?;
                    schedule.record_round(round.len() as u64);
                    self.make_round(phase, round, run).await?;
                }
            }
        }
    }

    /// Builds at most `limit` calls of a phase.
    async fn build_round(&mut self, phase: Phase, limit: u64, run: &mut ToolRun) -> Result<Vec<FuzzCall>, String> {
        let round = run.next_calls(phase, limit);
        if phase == Phase::Stateful { self.caller.with_current_values(round).await } else { Ok(round) }
    }

    /// Makes the calls of a round; several of them may be in flight in the long phase only.
    async fn make_round(&mut self, phase: Phase, mut round: Vec<FuzzCall>, run: &mut ToolRun) -> Result<(), String> {
        if round.is_empty() {
            return Ok(());
        }
        if phase == Phase::Malformed {
            // Other tools already showed that these arguments go unanswered, which is no fault of this tool.
            round.retain(|fuzz_call| !self.budget.counters().is_known_unanswered(fuzz_call));
        }
        let round = run.admit(round, phase);
        let in_flight = self.in_flight(phase, run);
        let (began, shrinking) = (Instant::now(), self.budget.shrinking_time());
        self.run_round(&round, in_flight, run).await?;
        if phase == Phase::Mixed && self.budget.shrinking_time() == shrinking {
            let duration = began.elapsed();
            self.monitors.iter_mut().for_each(|monitor| monitor.observe_round(round.len(), duration));
        }
        Ok(())
    }
}
