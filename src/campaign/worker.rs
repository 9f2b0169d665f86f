//! A fuzzing worker: calls the tools in its queue one after the other, on its own process of the server.
//!
//! It carries out the steps of the schedule, asks the budget whether to go on, and passes what the oracles suspect to
//! the shrinker.

mod rounds;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::budget::{Budget, Decision, Situation, TimeNeed};
use super::settings::CampaignSettings;
use super::tool_run::{QueuedTool, ToolRun};
use crate::campaign::calls::call_plan::CallPlan;
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::calls::schedule::{Phase, Schedule, Step};
use crate::campaign::calls::tools::FuzzTools;
use crate::campaign::calls::value_pool::ValuePool;
use crate::campaign::failures::failure::{Failure, Failures};
use crate::campaign::failures::replay::{FixedFailure, Replay};
use crate::campaign::failures::shared_failures::SharedFailures;
use crate::campaign::limits::{
    CALLS_IN_FLIGHT, CALLS_OF_SLOW_TOOL_IN_FLIGHT, CALLS_PER_BLOCK, MIN_CALLS_FOR_REPETITION,
};
use crate::campaign::minimizer::failure_test::Suspicion;
use crate::campaign::minimizer::shrink::{Effort, FailureShrinker};
use crate::campaign::monitors::canaries::{Canaries, CanaryScope};
use crate::campaign::monitors::growth::{confirmed_growth, growth_failure};
use crate::campaign::monitors::list_change::ListsBefore;
use crate::campaign::monitors::repeated_calls::RepeatedCalls;
use crate::campaign::monitors::resource_monitor::{ResourceMonitor, ResourceSuspicion};
use crate::campaign::monitors::swapped_responses::{find_swapped_responses, swap_candidates};
use crate::campaign::process::caller::Caller;
use crate::campaign::process::environment::Environment;
use crate::campaign::report::untested::untested;
use crate::case::{Oracle, Regression};
use crate::check::fuzz::{Call, is_misplaced_keyword, misplaced_keywords, unsatisfiable};

/// One worker.
pub(super) struct Worker<'a> {
    environment: &'a Arc<dyn Environment>,
    settings: &'a CampaignSettings<'a>,
    caller: Caller<'a>,
    budget: Budget,
    failures: Failures,
    canaries: Canaries,
    repeated_calls: RepeatedCalls,
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
            repeated_calls: RepeatedCalls::default(),
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
        self.caller.process.set_deadline(self.budget.last_deadline());
        if let Err(problem) = self.choose_canaries().await {
            self.budget.stop(problem);
        }
        self.replay(saved).await.unwrap_or_else(|problem| {
            self.budget.stop(problem);
            Vec::new()
        })
    }

    async fn choose_canaries(&mut self) -> Result<(), String> {
        for canary in self.caller.tools().plain_calls() {
            if !self.is_over() {
                self.canaries.add_if_repeatable(canary, &mut self.caller).await?;
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
        let tool = self.caller.tools().get(queued.tool);
        if self.is_over() {
            queued.note = Some("fuzzing ended before it was called".to_owned());
            return;
        }
        let Some(schema) = &tool.schema else {
            queued.note = Some("its inputSchema cannot be read".to_owned());
            return;
        };
        if let Some(violation) = unsatisfiable(schema) {
            self.failures.add(Failure::of_tool(queued.tool, violation));
            queued.note = Some("no arguments satisfy its inputSchema".to_owned());
            return;
        }
        let choices = (self.settings.seed, self.settings.plan.seeds.as_slice());
        let served = tool.working_arguments.as_ref();
        let call_plan = CallPlan::new(queued.tool, schema, &tool.name, choices, served, self.settings.plan.calls);
        let latency = tool.first_call.unwrap_or_default();
        let share = call_plan.share();
        let need = TimeNeed { calls: share.others(), mutants: share.mutants, latency };
        queued.time_left = self.budget.share(Instant::now(), tools, need);
        let mut run = ToolRun::new(call_plan);
        self.wait_for_cases(queued.tool).await;
        // The startup time of a process does not count: it could take all of the time slice.
        let ready = self.caller.process.ensure_started().await;
        self.begin_tool(queued.time_left, latency);
        let outcome = match ready {
            Ok(()) => self.fuzz_in_phases(&mut run).await,
            Err(problem) => Err(problem),
        };
        queued.time_left = self.budget.slice_left(Instant::now());
        self.check_keywords(&mut run.call_plan);
        queued.note = match outcome {
            Ok(calls_left) => {
                queued.calls_left = calls_left;
                // A part of the calls is reserved for values from other tools' results.
                let is_complete = run.counts.total() + calls_left >= run.call_plan.total();
                let note = self.budget.tool_note(Instant::now(), is_complete, tool.is_slow());
                self.budget.end_tool(run.counts.is_served_mostly());
                note
            }
            Err(problem) => {
                self.budget.stop(problem.clone());
                Some(problem)
            }
        };
        queued.run = Some(run);
    }

    /// Fuzzes a tool with values from the results of all tools.
    pub(super) async fn fuzz_with_shared_values(&mut self, queued: &mut QueuedTool, pool: &ValuePool) {
        let Some(run) = &mut queued.run else { return };
        if queued.note.is_none() && queued.calls_left > 0 {
            self.begin_tool(queued.time_left, Duration::ZERO);
            run.pool = pool.clone();
            let schedule = Schedule::with_shared_values(queued.calls_left);
            if let Err(problem) = self.follow(schedule, run, &mut ResourceMonitor::default()).await {
                self.budget.stop(problem);
            }
            let is_complete = run.counts.total() >= run.call_plan.total();
            let is_slow = self.caller.tools().get(queued.tool).is_slow();
            queued.note = self.budget.tool_note(Instant::now(), is_complete, is_slow);
        }
        queued.note = queued.note.take().or_else(|| run.crashes.note());
        // A call that succeeded in discovery shows that the tool can be used.
        if self.caller.tools().get(queued.tool).working_arguments.is_none() {
            queued.untested = untested(&run.counts, run.call_plan.schema().schema(), run.call_plan.share().others());
        }
    }

    /// Ends the process; returns what was found.
    pub(super) async fn finish(mut self) -> WorkerResult {
        self.report_server_end();
        self.caller.process.end().await;
        let process = &self.caller.process;
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
        Situation { is_stopping: self.environment.is_stopping(), starts: self.caller.process.starts() }
    }

    /// Whether fuzzing has to stop.
    fn is_over(&mut self) -> bool {
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
        self.caller.timeouts.begin_tool(latency);
        self.caller.process.set_deadline(self.budget.last_deadline());
    }

    /// How many calls of a tool are in flight in a phase.
    fn in_flight(&self, phase: Phase, tool: usize) -> usize {
        let fixed = self.settings.plan.in_flight;
        match phase {
            _ if self.caller.tools().get(tool).is_slow() => fixed.unwrap_or(CALLS_OF_SLOW_TOOL_IN_FLIGHT),
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
        let (tool, calls) = (run.tool(), run.call_plan.share().others());
        let doubled = self.caller.tools().get(tool).is_idempotent && calls >= MIN_CALLS_FOR_REPETITION;
        run.call_plan.set_doubled(doubled);
        self.caller.process.ensure_started().await?;
        let mut monitor = ResourceMonitor::begin(self.caller.process.process_id());
        let lists = ListsBefore::read(&mut self.caller, tool).await?;
        self.check_canaries(CanaryScope::OwnTool, run).await?;
        let schedule = Schedule::alone(run.call_plan.share(), doubled);
        let calls_left = self.follow(schedule, run, &mut monitor).await?;
        let continues = self.continues();
        if continues {
            // One call at a time cannot be mixed up with another.
            if calls >= MIN_CALLS_FOR_REPETITION && self.settings.plan.in_flight != Some(1) {
                let candidates = swap_candidates(&mut run.call_plan, &self.canaries);
                let found = find_swapped_responses(&mut self.caller, self.settings, tool, candidates).await?;
                if let Some(found) = found {
                    self.failures.add(found);
                }
            }
            if let Some(suspicion) = lists.compare(&mut self.caller, tool).await? {
                self.investigate(&suspicion, run).await?;
                self.caller.process.restart().await?;
            }
            self.check_canaries(CanaryScope::AllTools, run).await?;
        }
        self.check_growth(&monitor, run).await?;
        Ok(if continues { calls_left } else { 0 })
    }

    /// Follows a schedule to its end; returns the number of calls that were not made.
    async fn follow(
        &mut self,
        mut schedule: Schedule,
        run: &mut ToolRun,
        monitor: &mut ResourceMonitor,
    ) -> Result<u64, String> {
        loop {
            let continues = self.continues();
            match schedule.next(continues) {
                Step::End => return Ok(schedule.left()),
                Step::PlainCall => self.check_canaries(CanaryScope::OwnTool, run).await?,
                Step::Settled => monitor.settle(self.caller.process.process_id()),
                Step::Round(phase, limit) => {
                    let round = self.build_round(phase, limit, run).await?;
                    schedule.record_round(round.len() as u64);
                    self.make_round(phase, round, run, monitor).await?;
                }
            }
        }
    }

    /// Builds at most `limit` calls of a phase.
    async fn build_round(&mut self, phase: Phase, limit: u64, run: &mut ToolRun) -> Result<Vec<FuzzCall>, String> {
        let tool = run.tool();
        let fuzz_calls =
            |calls: Vec<Arc<Call>>| calls.into_iter().map(|call| FuzzCall::new(tool, call)).collect::<Vec<_>>();
        Ok(match phase {
            Phase::Mutants => fuzz_calls(run.call_plan.mutants(limit)),
            Phase::Coverage => fuzz_calls(run.call_plan.coverage(limit)),
            Phase::Malformed => fuzz_calls(run.call_plan.malformed(limit)),
            Phase::Mixed => fuzz_calls(run.call_plan.mixed(limit)),
            Phase::Stateful => {
                let round = run.call_plan.stateful(limit, &run.pool);
                self.caller.with_current_values(round).await?
            }
        })
    }

    /// Makes the calls of a round; several of them may be in flight in the long phase only.
    async fn make_round(
        &mut self,
        phase: Phase,
        mut round: Vec<FuzzCall>,
        run: &mut ToolRun,
        monitor: &mut ResourceMonitor,
    ) -> Result<(), String> {
        if round.is_empty() {
            return Ok(());
        }
        if phase == Phase::Malformed {
            // Other tools already showed that these arguments go unanswered, which is no fault of this tool.
            round.retain(|fuzz_call| !self.budget.counters().is_known_unanswered(fuzz_call));
        }
        round.retain(|fuzz_call| !run.crashes.omits(&fuzz_call.call));
        let in_flight = self.in_flight(phase, run.tool());
        if phase != Phase::Mixed {
            return self.run_round(&round, in_flight, run).await;
        }
        let (began, shrinking) = (Instant::now(), self.budget.shrinking_time());
        self.run_round(&round, in_flight, run).await?;
        if self.budget.shrinking_time() == shrinking {
            monitor.record_round(round.len(), began.elapsed());
        }
        Ok(())
    }

    /// Repeats plain calls and checks that they still succeed.
    async fn check_canaries(&mut self, scope: CanaryScope, run: &mut ToolRun) -> Result<(), String> {
        let tool = run.tool();
        for canary in self.canaries.to_check(tool, scope) {
            let checked = self.canaries.check(&canary, &mut self.caller, tool, &mut run.latencies).await?;
            let Some(suspicion) = checked else { continue };
            if !self.failures.is_known(tool, &suspicion.violation) {
                self.investigate(&suspicion, run).await?;
            }
            self.caller.process.restart().await?;
        }
        Ok(())
    }

    /// Repeats the same calls of a tool if they seem to make something grow, and reports what keeps growing.
    async fn check_growth(&mut self, monitor: &ResourceMonitor, run: &ToolRun) -> Result<(), String> {
        let Some(suspicion) = self.growth_suspicion(monitor, run) else { return Ok(()) };
        let tool = run.tool();
        let calls = run.call_plan.sample_served(CALLS_PER_BLOCK);
        let fuzz_calls: Vec<FuzzCall> = calls.into_iter().map(|call| FuzzCall::new(tool, call)).collect();
        if fuzz_calls.is_empty() {
            return Ok(());
        }
        let (made, began) = (self.caller.process.calls(), Instant::now());
        let in_flight = self.settings.plan.in_flight.unwrap_or(CALLS_IN_FLIGHT);
        for violation in confirmed_growth(&mut self.caller, suspicion, &fuzz_calls, in_flight).await? {
            if !self.failures.is_known(tool, &violation) {
                let found = growth_failure(&mut self.caller, self.settings, tool, violation, &fuzz_calls).await?;
                if let Some(found) = found {
                    self.failures.add(found);
                }
            }
        }
        self.shrinking_calls += self.caller.process.calls() - made;
        self.budget.add_shrinking(began.elapsed());
        Ok(())
    }

    /// What the calls of a tool seem to make grow, if there is time to find out.
    fn growth_suspicion(&mut self, monitor: &ResourceMonitor, run: &ToolRun) -> Option<ResourceSuspicion> {
        // A tool that gets slower with each call runs out of time, which is what this looks for.
        let used_up = run.latencies.shows_trends() && self.budget.is_only_out_of_time(Instant::now());
        let slower = used_up || run.latencies.is_slower();
        let suspicion = match monitor.suspicion(self.caller.process.process_id()) {
            Some(ResourceSuspicion::FilesOrProcesses) => ResourceSuspicion::FilesOrProcesses,
            _ if slower => ResourceSuspicion::Slow,
            suspicion => suspicion?,
        };
        let got_slower = suspicion != ResourceSuspicion::Memory
            && !self.is_over()
            && self.budget.is_only_out_of_time(Instant::now());
        (got_slower || self.continues()).then_some(suspicion)
    }

    /// Adds the keywords of the schema that have no effect where they are.
    fn check_keywords(&mut self, call_plan: &mut CallPlan) {
        call_plan.compile_all();
        let schema = call_plan.schema().schema();
        let idle = call_plan.constraints_without_effect();
        let misplaced = idle.filter(|constraint| is_misplaced_keyword(schema, constraint));
        let misplaced: Vec<String> = misplaced.map(ToString::to_string).collect();
        if let Some(violation) = misplaced_keywords(&misplaced) {
            self.failures.add(Failure::of_tool(call_plan.tool(), violation));
        }
    }

    /// Shrinks a suspected failure, and adds it if it is one.
    async fn investigate(&mut self, suspicion: &Suspicion, run: &ToolRun) -> Result<(), String> {
        let found = self.shrink(suspicion, run).await?;
        if let Some(found) = found {
            self.failures.add(found);
        }
        Ok(())
    }

    /// Shrinks a suspected failure. The time for it counts neither for the tool nor, up to a limit, for the campaign.
    async fn shrink(&mut self, suspicion: &Suspicion, run: &ToolRun) -> Result<Option<Failure>, String> {
        let (made, began) = (self.caller.process.calls(), Instant::now());
        let failing = suspicion.failing.as_ref();
        let is_brief = failing.is_some_and(|(fuzz_call, _)| self.failures.share(fuzz_call.tool, &suspicion.violation));
        let environment = self.environment.as_ref();
        let effort = Effort { is_brief, deadline: self.budget.last_deadline() };
        let shrinker =
            FailureShrinker::new(&mut self.caller, suspicion, &run.call_plan, self.settings, environment, effort);
        let found = shrinker.shrink().await;
        self.caller.process.set_deadline(self.budget.last_deadline());
        self.shrinking_calls += self.caller.process.calls() - made;
        self.budget.add_shrinking(began.elapsed());
        found
    }
}
