//! What one worker knows about the fuzzing of one tool.

use std::time::Duration;

use serde_json::Value;

use crate::campaign::calls::call_plan::CallPlan;
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::calls::long_calls::LongCalls;
use crate::campaign::calls::schedule::Phase;
use crate::campaign::calls::value_pool::ValuePool;
use crate::campaign::failures::known_crashes::KnownCrashes;
use crate::campaign::limits::LONGER_CALL;
use crate::campaign::report::counts::ToolCounts;
use crate::campaign::report::untested::untested;
use crate::check::fuzz::{
    Call, ExchangeOutcome, FuzzExchange, OracleViolation, Validity, is_misplaced_keyword, misplaced_keywords,
    response_class,
};
use crate::event::{CallOutcome, ToolFuzz, Untested};
use crate::fuzz::Constraint;

/// The fuzzing of one tool: its planned calls, and what their responses showed.
pub(super) struct ToolRun {
    call_plan: CallPlan,
    counts: ToolCounts,
    /// Values from results that calls may use.
    pool: ValuePool,
    /// The calls that ended the server.
    crashes: KnownCrashes,
    /// The calls whose arguments ask the tool to wait.
    long_calls: LongCalls,
    /// How many calls succeeded, and how many of them took no while.
    successes: u64,
    quick_successes: u64,
}

impl ToolRun {
    /// The fuzzing of a tool whose plain call has these arguments, if it has one.
    pub(super) fn new(call_plan: CallPlan, plain: Option<&Value>) -> Self {
        Self {
            long_calls: LongCalls::new(call_plan.schema().schema(), plain),
            call_plan,
            counts: ToolCounts::default(),
            pool: ValuePool::default(),
            crashes: KnownCrashes::default(),
            successes: 0,
            quick_successes: 0,
        }
    }

    /// The index of the tool.
    pub(super) fn tool(&self) -> usize {
        self.call_plan.tool()
    }

    pub(super) fn call_plan(&self) -> &CallPlan {
        &self.call_plan
    }

    pub(super) fn call_plan_mut(&mut self) -> &mut CallPlan {
        &mut self.call_plan
    }

    /// The plan of the calls, and which of them would take long.
    pub(super) fn call_plan_and_long_calls(&mut self) -> (&mut CallPlan, &LongCalls) {
        (&mut self.call_plan, &self.long_calls)
    }

    /// Replaces the values that calls may use.
    fn use_values(&mut self, pool: &ValuePool) {
        self.pool = pool.clone();
    }

    /// The next calls of a phase, at most `limit`.
    pub(super) fn next_calls(&mut self, phase: Phase, limit: u64) -> Vec<FuzzCall> {
        let calls = match phase {
            Phase::Mutants => self.call_plan.mutants(limit),
            Phase::Coverage => self.call_plan.coverage(limit),
            Phase::Malformed => self.call_plan.malformed(limit),
            Phase::Mixed => self.call_plan.mixed(limit),
            Phase::Stateful => return self.call_plan.stateful(limit, &self.pool),
        };
        let tool = self.tool();
        calls.into_iter().map(|call| FuzzCall::new(tool, call)).collect()
    }

    /// The calls of a round without those that would wait long, and those like which ended the server.
    pub(super) fn admit(&mut self, round: Vec<FuzzCall>, phase: Phase) -> Vec<FuzzCall> {
        let schema = self.call_plan.schema();
        let short = round.into_iter().filter_map(|fuzz_call| self.long_calls.admit(fuzz_call, phase, schema));
        short.filter(|fuzz_call| !self.crashes.omits(&fuzz_call.call)).collect()
    }

    /// Records that a call ended the server.
    pub(super) fn record_crash(&mut self, call: &Call) {
        self.crashes.record_crash(call);
    }

    /// Makes no more calls that violate a constraint.
    pub(super) fn avoid(&mut self, constraint: &Constraint) {
        self.call_plan.avoid(constraint);
    }

    /// Counts a call with its outcome, and learns from its response which calls to make next.
    pub(super) fn record(&mut self, exchange: &FuzzExchange, outcome: CallOutcome) {
        let call = &exchange.call;
        let is_timed =
            exchange.alone && exchange.outcome == ExchangeOutcome::Answered && !exchange.responses.is_empty();
        let duration = is_timed.then_some(exchange.duration);
        let is_new = self.counts.count(call, outcome, &response_class(exchange, outcome), duration);
        if !matches!(outcome, CallOutcome::Closed | CallOutcome::NoResponse) {
            self.crashes.record_answer(call);
        }
        self.call_plan.count(call);
        if is_new {
            self.call_plan.add_to_corpus(call);
        }
        if call.validity == Validity::Valid && outcome == CallOutcome::Success {
            self.successes += 1;
            self.quick_successes += u64::from(exchange.duration < LONGER_CALL);
            self.call_plan.record_success(call);
            if let Some(result) = exchange.responses.first().and_then(|answer| answer.get("result")) {
                self.pool.learn(self.call_plan.tool(), result, call);
            }
        }
    }

    /// Whether as many calls were made as planned, apart from those that are left for values of other tools.
    pub(super) fn is_complete(&self, calls_left: u64) -> bool {
        self.counts.total() + calls_left >= self.call_plan.total()
    }

    /// Whether most calls that succeeded were quick, though the first one may have taken longer, as it does while a server
    /// loads things. Some calls of a slow tool are quick: its arguments ask for nothing.
    pub(super) fn is_quick(&self) -> bool {
        self.quick_successes * 2 > self.successes
    }

    /// Whether most calls got a usable response.
    pub(super) fn is_served_mostly(&self) -> bool {
        self.counts.is_served_mostly()
    }

    /// The keywords of the schema that have no effect where they are.
    pub(super) fn misplaced_keywords(&mut self) -> Option<OracleViolation> {
        self.call_plan.compile_all();
        let schema = self.call_plan.schema().schema();
        let idle = self.call_plan.constraints_without_effect();
        let misplaced = idle.filter(|constraint| is_misplaced_keyword(schema, constraint));
        misplaced_keywords(&misplaced.map(ToString::to_string).collect::<Vec<_>>())
    }

    /// Why the tool was not tested, if no call succeeded.
    fn untested(&self) -> Option<Untested> {
        untested(&self.counts, self.call_plan.schema().schema(), self.call_plan.share().others())
    }
}

/// A tool in the queue of a worker.
pub(super) struct QueuedTool {
    tool: usize,
    /// Its fuzzing, once that has begun.
    run: Option<ToolRun>,
    /// The number of calls that are left for values from the results of other tools, and the rest of its time slice.
    calls_left: u64,
    time_left: Duration,
    /// What the report says about it.
    note: Option<String>,
    untested: Option<Untested>,
}

/// What is left to do with a tool.
pub(super) struct RestOfTool<'q> {
    pub(super) run: &'q mut ToolRun,
    pub(super) calls: u64,
    pub(super) time: Duration,
}

impl QueuedTool {
    pub(super) fn new(tool: usize) -> Self {
        Self { tool, run: None, calls_left: 0, time_left: Duration::ZERO, note: None, untested: None }
    }

    /// The index of the tool.
    pub(super) fn tool(&self) -> usize {
        self.tool
    }

    /// Says why the tool is not called.
    pub(super) fn leave_out(&mut self, note: &str) {
        self.note = Some(note.to_owned());
    }

    /// Keeps the fuzzing of the tool on its own, with what is left for values from the results of other tools; a note
    /// says why nothing is.
    pub(super) fn set_run(&mut self, run: ToolRun, calls_left: u64, time_left: Duration, note: Option<String>) {
        *self = Self { run: Some(run), calls_left, time_left, note, ..Self::new(self.tool) };
    }

    /// Its fuzzing, once that has begun.
    pub(super) fn run_mut(&mut self) -> Option<&mut ToolRun> {
        self.run.as_mut()
    }

    /// Values from the results of the tool.
    pub(super) fn pool(&self) -> Option<&ValuePool> {
        self.run.as_ref().map(|run| &run.pool)
    }

    /// What is left to do, with values from the results of all tools.
    pub(super) fn rest(&mut self, pool: &ValuePool) -> Option<RestOfTool<'_>> {
        let run = self.run.as_mut().filter(|_| self.note.is_none() && self.calls_left > 0)?;
        run.use_values(pool);
        Some(RestOfTool { run, calls: self.calls_left, time: self.time_left })
    }

    /// Ends with the tool: a call that succeeded before shows that it can be used.
    pub(super) fn end(&mut self, note: Option<String>, is_known_to_work: bool) {
        self.note = self.note.take().or(note);
        if let Some(run) = &self.run {
            let notes = [self.note.take(), run.crashes.note(), run.long_calls.note()];
            let notes: Vec<String> = notes.into_iter().flatten().collect();
            self.note = Some(notes.join("; ")).filter(|notes| !notes.is_empty());
            self.untested = if is_known_to_work { None } else { run.untested() };
        }
    }

    /// The report of the tool.
    pub(super) fn report(self, name: &str) -> ToolFuzz {
        let report = match self.run {
            Some(run) => run.counts.report(name, Some(&run.call_plan)),
            None => ToolCounts::default().report(name, None),
        };
        ToolFuzz { note: self.note, untested: self.untested, ..report }
    }
}
