//! Decides when to stop: the time limit of the campaign, the time slice of a tool, the time for shrinking, restarts,
//! failures and the request to stop.
//!
//! Nothing here reads the clock; the time is an argument.

use std::time::Duration;

use tokio::time::Instant;

use super::settings::CampaignSettings;
use crate::campaign::failures::failure_counters::FailureCounters;
use crate::campaign::limits::{
    CONFIRMING_SHARE, CONFIRMING_TIME, MAX_EVEN_SHARES, MAX_STARTS, MIN_CALLS_IN_SLICE, MIN_TIME_SLICE, SHRINKING_TIME,
    TIME_PER_CALL, TIME_PER_MUTANT_CALL,
};

/// Why a campaign ends at its deadline.
pub(super) const TIME_LIMIT_REACHED: &str = "the time limit was reached";

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    Continue,
    /// Call the next tool, for this reason.
    EndTool(String),
    /// Call no tool any more, for this reason.
    EndCampaign(String),
}

/// What is left of the time of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::campaign) enum ToolTime {
    Left,
    /// Its slice is used up, and no failure speaks against further calls.
    UsedUp,
    /// The tool was given up, or the campaign is over.
    Over,
}

/// What the time slice of a tool depends on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TimeNeed {
    /// The number of planned calls, without those for mutants, and of those.
    pub(super) calls: u64,
    pub(super) mutants: u64,
    /// How long its first call took.
    pub(super) latency: Duration,
    /// How many calls for mutants are in flight.
    pub(super) in_flight: usize,
}

/// What happened outside of the budget.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Situation {
    /// Whether the run was asked to stop.
    pub(super) is_stopping: bool,
    /// How many processes of the server were started.
    pub(super) starts: usize,
}

/// The budget of one worker.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    deadline: Instant,
    /// The time after it for repeating failures that were seen once.
    confirming: Duration,
    /// Whether the user set the time limit, so that the tools share it evenly.
    is_time_fixed: bool,
    /// The minimum time between two calls, and the factor by which time limits are longer than usual.
    pause: Duration,
    slowdown: u32,
    /// How long it waited for the cases to finish.
    waited: Duration,
    slice: TimeSlice,
    /// The time spent on shrinking, and its limit.
    shrinking: Duration,
    max_shrinking: Duration,
    counters: FailureCounters,
    stop_reason: Option<String>,
}

/// The time slice of a tool: a slow tool gets fewer calls instead of delaying the others.
#[derive(Debug, Clone, Copy)]
struct TimeSlice {
    began: Instant,
    share: Duration,
    /// Time that does not count: shrinking, and waiting for missing responses.
    excluded: Duration,
}

impl TimeSlice {
    /// The remaining time.
    fn left(self, now: Instant) -> Duration {
        (self.share + self.excluded).saturating_sub(now.saturating_duration_since(self.began))
    }
}

impl Budget {
    /// The budget of a campaign that begins now.
    pub(super) fn new(settings: &CampaignSettings<'_>, now: Instant) -> Self {
        let (plan, time) = (settings.plan, settings.time());
        let confirming = CONFIRMING_TIME * settings.slowdown();
        // A time limit that the user set includes it.
        let (time, confirming) = match plan.time {
            Some(_) => {
                let confirming = confirming.min(time / CONFIRMING_SHARE);
                (time.saturating_sub(confirming), confirming)
            }
            None => (time, confirming),
        };
        Self {
            deadline: now + time,
            confirming,
            is_time_fixed: plan.time.is_some(),
            slowdown: settings.slowdown(),
            // A rate limit set by the user must not cost the tool its time.
            pause: settings.pause().unwrap_or_default(),
            waited: Duration::ZERO,
            slice: TimeSlice { began: now, share: Duration::ZERO, excluded: Duration::ZERO },
            shrinking: Duration::ZERO,
            max_shrinking: settings.extended(SHRINKING_TIME),
            counters: FailureCounters::default(),
            stop_reason: None,
        }
    }

    /// The budget of another worker, with the same deadline.
    pub(super) fn for_another_worker(&self, settings: &CampaignSettings<'_>, now: Instant) -> Self {
        Self { deadline: self.deadline, ..Self::new(settings, now) }
    }

    /// The remaining time for fuzzing: a time limit that the user set includes shrinking.
    fn time_left(&self, now: Instant) -> Duration {
        let shrinking = if self.is_time_fixed { Duration::ZERO } else { self.shrinking.min(SHRINKING_TIME) };
        (self.deadline + shrinking).saturating_duration_since(now)
    }

    /// When no call is made any more, not even to shrink a failure.
    pub(super) fn last_deadline(&self) -> Instant {
        if self.is_time_fixed { self.deadline } else { self.deadline + SHRINKING_TIME * 2 }
    }

    /// When failures are no longer repeated that were seen once.
    pub(super) fn confirmation_deadline(&self, now: Instant) -> Instant {
        (self.last_deadline() + self.confirming).min(now + self.confirming)
    }

    /// When the calls of the current tool end, failures apart.
    pub(super) fn tool_deadline(&self, now: Instant) -> Instant {
        now + self.slice.left(now).min(self.time_left(now))
    }

    /// The time slice of the next tool, given the number of tools that remain.
    pub(super) fn share(&self, now: Instant, tools: usize, need: TimeNeed) -> Duration {
        let left = self.time_left(now);
        let even = left / u32::try_from(tools.max(1)).unwrap_or(u32::MAX);
        if self.is_time_fixed {
            return even;
        }
        let [calls, mutants] = [need.calls, need.mutants].map(|calls| u32::try_from(calls).unwrap_or(u32::MAX));
        let usual = (TIME_PER_CALL * self.slowdown + self.pause).saturating_mul(calls);
        // They are the most telling calls, so that a tool that takes longer gets the time for all of them.
        let latency = need.latency / u32::try_from(need.in_flight.max(1)).unwrap_or(u32::MAX);
        let time_per_mutant = latency.max(TIME_PER_MUTANT_CALL * self.slowdown) + self.pause;
        let wanted = usual
            .saturating_add(time_per_mutant.saturating_mul(mutants))
            .max(MIN_TIME_SLICE)
            .max(need.latency * MIN_CALLS_IN_SLICE);
        // The time for some tools must not end before the last one is called.
        wanted.min(even * MAX_EVEN_SHARES).min(left)
    }

    /// Begins the time slice of a tool.
    pub(super) fn begin_tool(&mut self, now: Instant, share: Duration) {
        self.counters.begin_tool();
        self.slice = TimeSlice { began: now, share, excluded: Duration::ZERO };
    }

    /// The rest of the tool's time slice.
    pub(super) fn slice_left(&self, now: Instant) -> Duration {
        self.slice.left(now)
    }

    /// Ends with a tool, whose calls were mostly served or not.
    pub(super) fn end_tool(&mut self, is_served_mostly: bool) {
        if let Some(reason) = self.counters.end_tool(is_served_mostly) {
            self.stop(reason);
        }
    }

    /// Excludes time during which cases ran, from the time limit of the campaign.
    pub(super) fn add_wait(&mut self, duration: Duration) {
        self.deadline += duration;
        self.waited += duration;
    }

    /// How long it waited for cases.
    pub(super) fn waited(&self) -> Duration {
        self.waited
    }

    /// Excludes time from the time slice of the tool.
    pub(super) fn exclude_from_slice(&mut self, duration: Duration) {
        self.slice.excluded += duration;
    }

    /// Records time spent on shrinking, which counts neither for the tool nor, up to a limit, for the campaign.
    pub(super) fn add_shrinking(&mut self, duration: Duration) {
        self.shrinking += duration;
        self.exclude_from_slice(duration);
    }

    /// The time spent on shrinking so far.
    pub(super) fn shrinking_time(&self) -> Duration {
        self.shrinking
    }

    /// Whether there is time to shrink another failure.
    pub(super) fn may_shrink(&self, now: Instant) -> bool {
        self.shrinking < self.max_shrinking && now < self.last_deadline()
    }

    /// The failed calls.
    pub(super) fn counters(&self) -> &FailureCounters {
        &self.counters
    }

    pub(super) fn counters_mut(&mut self) -> &mut FailureCounters {
        &mut self.counters
    }

    /// Stops the campaign; an earlier reason is kept.
    pub(super) fn stop(&mut self, reason: String) {
        self.stop_reason.get_or_insert(reason);
    }

    /// Stops the campaign for a reason that replaces an earlier one.
    pub(super) fn stop_finally(&mut self, reason: &str) {
        self.stop_reason = Some(reason.to_owned());
    }

    /// Why the campaign was stopped, if it was.
    pub(super) fn stop_reason(&self) -> Option<&str> {
        self.stop_reason.as_deref()
    }

    /// Decides whether to go on with the tool, and with the campaign.
    pub(super) fn decide(&mut self, now: Instant, situation: Situation) -> Decision {
        if self.is_over(now, situation) {
            return Decision::EndCampaign(self.stop_reason.clone().unwrap_or_default());
        }
        self.tool_end_reason(now).map_or(Decision::Continue, Decision::EndTool)
    }

    /// Whether the campaign has to stop.
    pub(super) fn is_over(&mut self, now: Instant, situation: Situation) -> bool {
        if self.stop_reason.is_some() {
            return true;
        }
        if situation.is_stopping {
            self.stop("the run was interrupted".to_owned());
        } else if self.time_left(now).is_zero() {
            self.stop(TIME_LIMIT_REACHED.to_owned());
        } else if situation.starts > MAX_STARTS {
            self.stop(format!("the server had to be restarted {MAX_STARTS} times"));
        }
        self.stop_reason.is_some()
    }

    /// The reason for abandoning the current tool, if there is one.
    pub(super) fn tool_end_reason(&self, now: Instant) -> Option<String> {
        self.counters.give_up_reason().or_else(|| {
            let share = self.slice.share;
            let is_over = self.slice.left(now).is_zero();
            is_over.then(|| {
                if share.is_zero() {
                    return "no time was left for its planned calls".to_owned();
                }
                format!("its time slice ({share:.1?}) ended before all planned calls were made")
            })
        })
    }

    /// The same for a tool that was called as often as planned, if `is_complete`: that its time is used up as well
    /// matters to nobody. `is_slow` says whether its calls are the reason.
    pub(super) fn tool_note(&self, now: Instant, is_complete: bool, is_slow: bool) -> Option<String> {
        if is_complete {
            return self.counters.give_up_reason();
        }
        let reason = self.tool_end_reason(now)?;
        let is_time = self.counters.give_up_reason().is_none();
        Some(if is_slow && is_time { format!("{reason}, because its calls are slow") } else { reason })
    }

    /// What is left of the time of the current tool.
    pub(super) fn tool_time(&mut self, now: Instant, situation: Situation) -> ToolTime {
        match self.decide(now, situation) {
            Decision::Continue => ToolTime::Left,
            Decision::EndTool(_) if self.is_only_out_of_time(now) => ToolTime::UsedUp,
            _ => ToolTime::Over,
        }
    }

    /// Whether the current tool is out of time and has no failures that speak against further calls.
    fn is_only_out_of_time(&self, now: Instant) -> bool {
        self.slice.left(now).is_zero() && !self.counters.has_failures()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::process::scripted;
    use crate::plan::FuzzPlan;
    use crate::spec::Transport;

    const NEED: TimeNeed = TimeNeed { calls: 200, mutants: 0, latency: Duration::ZERO, in_flight: 1 };

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn plan(calls: u64, time: Option<Duration>, max_rate: Option<f64>) -> FuzzPlan {
        FuzzPlan { time, max_rate, ..scripted::plan(calls) }
    }

    fn settings(plan: &FuzzPlan, transport: Transport) -> CampaignSettings<'_> {
        CampaignSettings { transport, ..scripted::settings(plan) }
    }

    /// The budget of a plan over standard streams, and their beginning.
    fn budget(plan: &FuzzPlan) -> (Budget, Instant) {
        let began = Instant::now();
        (Budget::new(&settings(plan, Transport::Stdio), began), began)
    }

    #[test]
    fn a_slow_tool_ends_after_its_time_slice_and_the_campaign_goes_on() {
        let plan = plan(200, None, None);
        let (mut budget, began) = budget(&plan);
        let share = budget.share(began, 5, NEED);
        assert_eq!(share, seconds(3));
        budget.begin_tool(began, share);
        assert_eq!(budget.decide(began + seconds(2), Situation::default()), Decision::Continue);
        let Decision::EndTool(reason) = budget.decide(began + share, Situation::default()) else {
            panic!("its time is used up")
        };
        assert!(reason.contains("its time slice (3.0s) ended"), "{reason}");
        assert_eq!(budget.tool_time(began + seconds(2), Situation::default()), ToolTime::Left);
        assert_eq!(budget.tool_time(began + share, Situation::default()), ToolTime::UsedUp);
        assert_eq!(budget.tool_note(began + share, false, false).as_deref(), Some(reason.as_str()));
        assert!(budget.tool_note(began + share, false, true).is_some_and(|note| note.contains("its calls are slow")));
        assert_eq!(budget.tool_note(began + share, true, true), None);
        budget.begin_tool(began + share, share);
        assert_eq!(budget.decide(began + share, Situation::default()), Decision::Continue);
    }

    #[test]
    fn a_rate_limit_and_http_lengthen_the_time_slice() {
        let (usual, paced) = (plan(200, None, None), plan(200, None, Some(10.0)));
        let began = Instant::now();
        let share = |plan: &FuzzPlan, transport| {
            Budget::new(&settings(plan, transport), began).share(
                began,
                1,
                TimeNeed { calls: plan.calls.usual(), ..NEED },
            )
        };
        assert_eq!(share(&usual, Transport::Stdio), seconds(3));
        assert_eq!(share(&paced, Transport::Stdio), seconds(23));
        assert_eq!(share(&usual, Transport::Http), seconds(9));
        assert_eq!(share(&plan(1, None, None), Transport::Stdio), MIN_TIME_SLICE);
        // The slice is never longer than what is left.
        assert_eq!(share(&plan(200, None, Some(1.0)), Transport::Stdio), seconds(60));
    }

    #[test]
    fn tools_share_what_is_left_of_a_time_limit() {
        let plan = plan(200, Some(seconds(60)), None);
        let (budget, began) = budget(&plan);
        assert_eq!(budget.share(began, 3, NEED), seconds(18));
        // The first tool needed less than its share, which the others get.
        assert_eq!(budget.share(began + seconds(10), 2, NEED), seconds(22));
        assert_eq!(budget.share(began + seconds(61), 1, NEED), Duration::ZERO);
    }

    #[test]
    fn shrinking_costs_no_fuzzing_time_until_its_own_time_is_used_up() {
        let plan = plan(200, None, None);
        let (mut budget, began) = budget(&plan);
        budget.begin_tool(began, seconds(20));
        budget.add_shrinking(seconds(30));
        assert!(budget.may_shrink(began));
        assert_eq!(budget.slice_left(began + seconds(40)), seconds(10));
        assert_eq!(budget.share(began + seconds(89), 1, NEED), seconds(1));
        budget.add_shrinking(seconds(30));
        assert!(!budget.may_shrink(began));
        assert_eq!(budget.shrinking_time(), seconds(60));
        // Only 45 of the 60 seconds are added to the time limit.
        let decision = budget.decide(began + seconds(105), Situation::default());
        assert_eq!(decision, Decision::EndCampaign(TIME_LIMIT_REACHED.to_owned()));
    }

    #[test]
    fn a_time_limit_of_the_user_includes_shrinking() {
        let plan = plan(200, Some(seconds(10)), None);
        let (mut budget, began) = budget(&plan);
        budget.begin_tool(began, seconds(20));
        budget.add_shrinking(seconds(5));
        // One second is kept for repeating failures that were seen once.
        assert_eq!(budget.last_deadline(), began + seconds(9));
        assert_eq!(budget.confirmation_deadline(began + seconds(3)), began + seconds(4));
        assert_eq!(budget.confirmation_deadline(began + seconds(9)), began + seconds(10));
        assert_eq!(budget.tool_deadline(began + seconds(8)), began + seconds(9));
        assert!(budget.may_shrink(began + seconds(8)) && !budget.may_shrink(began + seconds(9)));
        let decision = budget.decide(began + seconds(9), Situation::default());
        assert_eq!(decision, Decision::EndCampaign(TIME_LIMIT_REACHED.to_owned()));
    }

    #[test]
    fn no_tool_takes_the_time_of_all_others() {
        let plan = plan(200, None, None);
        let (budget, began) = budget(&plan);
        let slow = TimeNeed { latency: seconds(2), ..NEED };
        assert_eq!(budget.share(began, 40, slow), seconds(3));
        let tenth = TimeNeed { mutants: 100, latency: Duration::from_millis(100), ..NEED };
        assert_eq!(budget.share(began, 1, tenth), seconds(13), "its mutants take ten seconds");
        assert_eq!(budget.share(began, 1, TimeNeed { in_flight: 4, ..tenth }), Duration::from_millis(5_500));
        let large = TimeNeed { calls: 1_000, mutants: 1_000, ..NEED };
        assert_eq!((budget.share(began, 2, large), budget.share(began, 40, large)), (seconds(20), seconds(3)));
    }

    #[test]
    fn a_slow_tool_gets_time_for_some_calls() {
        let plan = plan(200, None, None);
        let (budget, began) = budget(&plan);
        assert_eq!(budget.share(began, 5, TimeNeed { latency: seconds(5), ..NEED }), seconds(20));
        assert_eq!(budget.share(began, 5, TimeNeed { latency: Duration::from_millis(10), ..NEED }), seconds(3));
    }

    #[test]
    fn more_time_for_the_whole_is_more_time_to_shrink() {
        for (time, limit) in [(None, 45), (Some(10), 45), (Some(60), 45), (Some(600), 450), (Some(86_400), 4_500)] {
            let plan = plan(200, time.map(seconds), None);
            let (mut budget, began) = budget(&plan);
            budget.add_shrinking(seconds(limit - 1));
            assert!(budget.may_shrink(began), "{time:?}");
            budget.add_shrinking(seconds(1));
            assert!(!budget.may_shrink(began), "{time:?}");
        }
    }

    #[test]
    fn time_in_which_cases_run_does_not_count() {
        let plan = plan(200, Some(seconds(60)), None);
        let (mut budget, began) = budget(&plan);
        budget.add_wait(seconds(100));
        assert_eq!((budget.waited(), budget.share(began + seconds(100), 1, NEED)), (seconds(100), seconds(54)));
        budget.begin_tool(began + seconds(100), seconds(10));
        budget.exclude_from_slice(seconds(5));
        assert_eq!(budget.decide(began + seconds(114), Situation::default()), Decision::Continue);
        assert!(matches!(budget.decide(began + seconds(115), Situation::default()), Decision::EndTool(_)));
        let other = budget.for_another_worker(&settings(&plan, Transport::Stdio), began + seconds(100));
        assert_eq!((other.waited(), other.share(began + seconds(100), 1, NEED)), (Duration::ZERO, seconds(54)));
    }

    #[test]
    fn an_interruption_and_too_many_restarts_end_the_campaign() {
        let plan = plan(200, None, None);
        let (mut budget, began) = budget(&plan);
        budget.begin_tool(began, seconds(1));
        let restarted = |starts| Situation { is_stopping: false, starts };
        assert_eq!(budget.clone().decide(began, restarted(MAX_STARTS)), Decision::Continue);
        assert!(matches!(budget.clone().decide(began, restarted(MAX_STARTS + 1)), Decision::EndCampaign(_)));
        let stopping = Situation { is_stopping: true, starts: 0 };
        assert_eq!(budget.decide(began, stopping), Decision::EndCampaign("the run was interrupted".to_owned()));
        // The first reason stays.
        budget.stop("another reason".to_owned());
        assert_eq!(budget.stop_reason(), Some("the run was interrupted"));
    }
}
