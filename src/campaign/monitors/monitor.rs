//! What a monitor is: it is shown the calls of each tool, and may make calls of its own at some [moments](Moment); it
//! shrinks and reports nothing.

use std::time::Duration;

use super::canaries::Canaries;
use crate::campaign::budget::ToolTime;
use crate::campaign::calls::call_plan::CallPlan;
use crate::campaign::calls::long_calls::LongCalls;
use crate::campaign::failures::failure::{Failure, Failures};
use crate::campaign::minimizer::failure_test::Suspicion;
use crate::campaign::process::caller::Caller;
use crate::campaign::process::environment::BoxFuture;
use crate::campaign::settings::CampaignSettings;
use crate::check::fuzz::FuzzExchange;

/// When a monitor may make calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::campaign) enum Moment {
    /// Before the calls of a tool.
    BeforeCalls,
    /// Calls were answered, which [`Monitor::observe`] was shown.
    Answered,
    /// It is time to see whether the tool still works.
    BetweenRounds,
    /// The largest arguments have been sent.
    Settled,
    /// After the calls of a tool; whether time was left for it then.
    AfterCalls { had_time: bool },
}

/// What a monitor found.
#[derive(Debug)]
pub(in crate::campaign) enum Found {
    /// It is made small, and reported if it occurs again.
    Suspicion {
        suspicion: Suspicion,
        /// Whether the process cannot be used any more.
        spoiled: bool,
    },
    /// It was confirmed already.
    Failure(Failure),
    /// Calls that were made to confirm what was suspected, and their time.
    Confirmation { calls: u64, duration: Duration },
}

/// The tool that is called, and what a monitor may use to look at it.
pub(in crate::campaign) struct Watched<'w, 'a> {
    pub(in crate::campaign) caller: &'w mut Caller<'a>,
    pub(in crate::campaign) call_plan: &'w mut CallPlan,
    pub(in crate::campaign) long_calls: &'w LongCalls,
    pub(in crate::campaign) canaries: &'w mut Canaries,
    /// The failures so far.
    pub(in crate::campaign) failures: &'w Failures,
    pub(in crate::campaign) settings: &'w CampaignSettings<'w>,
    pub(in crate::campaign) time: ToolTime,
}

/// Looks for what no single response shows.
pub(in crate::campaign) trait Monitor: Send {
    /// Takes note of calls of the plan's tool that were answered, in the order in which they were made.
    fn observe(&mut self, _call_plan: &CallPlan, _exchanges: &[FuzzExchange]) {}

    /// Takes note of a round of calls with others in flight that no failure interrupted: how many there were, and how
    /// long they took together.
    fn observe_round(&mut self, _calls: usize, _duration: Duration) {}

    /// Looks at the server; an error if it cannot be called any more.
    fn check<'m>(
        &'m mut self,
        moment: Moment,
        watched: &'m mut Watched<'_, '_>,
    ) -> BoxFuture<'m, Result<Vec<Found>, String>>;
}
