//! What one worker knows about the fuzzing of one tool.

use std::time::Duration;

use crate::campaign::calls::call_plan::CallPlan;
use crate::campaign::calls::value_pool::ValuePool;
use crate::campaign::failures::known_crashes::KnownCrashes;
use crate::campaign::monitors::latency_monitor::LatencyMonitor;
use crate::campaign::report::counts::ToolCounts;
use crate::event::{ToolFuzz, Untested};

/// The fuzzing of one tool: its planned calls, and what their responses showed.
pub(super) struct ToolRun {
    pub(super) call_plan: CallPlan,
    pub(super) counts: ToolCounts,
    /// Values from results that calls may use.
    pub(super) pool: ValuePool,
    pub(super) latencies: LatencyMonitor,
    /// The calls that ended the server.
    pub(super) crashes: KnownCrashes,
}

impl ToolRun {
    pub(super) fn new(call_plan: CallPlan) -> Self {
        Self {
            call_plan,
            counts: ToolCounts::default(),
            pool: ValuePool::default(),
            latencies: LatencyMonitor::default(),
            crashes: KnownCrashes::default(),
        }
    }

    /// The index of the tool.
    pub(super) fn tool(&self) -> usize {
        self.call_plan.tool()
    }
}

/// A tool in the queue of a worker.
pub(super) struct QueuedTool {
    /// The index of the tool.
    pub(super) tool: usize,
    /// Its fuzzing, once that has begun.
    pub(super) run: Option<ToolRun>,
    /// The number of calls that are left for values from the results of other tools.
    pub(super) calls_left: u64,
    /// The rest of its time slice.
    pub(super) time_left: Duration,
    /// What the report says about it.
    pub(super) note: Option<String>,
    /// Why it was not tested, if no call succeeded.
    pub(super) untested: Option<Untested>,
}

impl QueuedTool {
    pub(super) fn new(tool: usize) -> Self {
        Self { tool, run: None, calls_left: 0, time_left: Duration::ZERO, note: None, untested: None }
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
