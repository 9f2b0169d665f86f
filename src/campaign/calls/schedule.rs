//! Decides what to do next with a tool: the phases of fuzzing in order, the size of their rounds, and the checks
//! between them.
//!
//! It makes no calls: it is asked for the next step and told how many calls were built for it.

use std::collections::VecDeque;

use super::share::Share;
use crate::campaign::limits::{CALLS_PER_ROUND, MAX_CALLS_PER_ROUND};

/// A kind of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::campaign) enum Phase {
    /// What wrong validators accept and reject.
    Mutants,
    /// Boundaries and branches of the schema.
    Coverage,
    /// Malformed arguments.
    Malformed,
    /// Calls with values from results.
    Stateful,
    /// Valid and invalid calls, of which several may be in flight.
    Mixed,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::campaign) enum Step {
    /// Make at most this many calls.
    Round(Phase, u64),
    /// Repeat the plain call of the tool.
    PlainCall,
    /// Take the memory usage as settled: the largest arguments have been sent.
    Settled,
    /// Nothing is left.
    End,
}

/// A part of the schedule.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Rounds of calls until the budget is spent, each followed by the plain call if so.
    Rounds {
        phase: Phase,
        budget: u64,
        checked: bool,
    },
    Check(Step),
}

/// The schedule of one tool.
#[derive(Debug)]
pub(in crate::campaign) struct Schedule {
    /// The stages that are not finished, the current one first.
    stages: VecDeque<Stage>,
    /// Calls of finished phases that were not made; the last phase makes them.
    unused: u64,
    /// Calls that are reserved for the results of other tools.
    reserved: u64,
    /// Whether each call of the coverage phase is made twice, which counts once.
    doubled: bool,
    /// The size of the rounds of mixed calls.
    round: u64,
    /// Whether the plain call follows the current round.
    check_is_due: bool,
}

impl Schedule {
    /// The schedule of a tool on its own.
    pub(in crate::campaign) fn alone(share: Share, doubled: bool) -> Self {
        let rounds = |phase, budget, checked| Stage::Rounds { phase, budget, checked };
        let stages = [
            rounds(Phase::Mutants, share.mutants, false),
            rounds(Phase::Coverage, share.coverage, false),
            Stage::Check(Step::PlainCall),
            rounds(Phase::Malformed, share.malformed, false),
            Stage::Check(Step::Settled),
            rounds(Phase::Mixed, share.rest, true),
        ];
        Self::of(&stages, share.stateful, doubled)
    }

    /// The schedule of the remaining calls of a tool, once the results of all tools are known.
    pub(in crate::campaign) fn with_shared_values(calls: u64) -> Self {
        let rounds = |phase, budget| Stage::Rounds { phase, budget, checked: false };
        let stages = [rounds(Phase::Stateful, calls), rounds(Phase::Mixed, 0), Stage::Check(Step::PlainCall)];
        Self::of(&stages, 0, false)
    }

    fn of(stages: &[Stage], reserved: u64, doubled: bool) -> Self {
        Self {
            stages: stages.iter().copied().collect(),
            unused: 0,
            reserved,
            doubled,
            round: CALLS_PER_ROUND,
            check_is_due: false,
        }
    }

    /// The next step; there are no more rounds unless the tool `continues`.
    pub(in crate::campaign) fn next(&mut self, continues: bool) -> Step {
        if std::mem::take(&mut self.check_is_due) {
            return Step::PlainCall;
        }
        while let Some(stage) = self.stages.front_mut() {
            match stage {
                Stage::Check(step) => {
                    let step = *step;
                    self.stages.pop_front();
                    return step;
                }
                Stage::Rounds { phase, budget, .. } => {
                    if *phase == Phase::Mixed && self.unused > 0 {
                        *budget += std::mem::take(&mut self.unused);
                    }
                    let (phase, budget) = (*phase, *budget);
                    if budget > 0 && continues {
                        return Step::Round(phase, budget.min(self.round_size(phase, budget)));
                    }
                    self.end_phase();
                }
            }
        }
        Step::End
    }

    /// Records how many calls were built for the current round; none ends the phase.
    pub(in crate::campaign) fn record_round(&mut self, calls: u64) {
        let Some(Stage::Rounds { phase, budget, checked }) = self.stages.front_mut() else { return };
        if calls == 0 {
            self.end_phase();
            return;
        }
        // The second of two equal calls only checks the first one.
        let counted = if *phase == Phase::Coverage && self.doubled { calls / 2 } else { calls };
        *budget = budget.saturating_sub(counted);
        self.check_is_due = *checked;
    }

    /// The number of calls that were not made.
    pub(in crate::campaign) fn left(&self) -> u64 {
        self.reserved + self.unused
    }

    /// The size of the rounds of a phase; a long phase has long rounds.
    fn round_size(&mut self, phase: Phase, budget: u64) -> u64 {
        if phase != Phase::Mixed {
            return CALLS_PER_ROUND;
        }
        // It is determined at the beginning of the phase, and never gets smaller.
        self.round = self.round.max((budget / 8).clamp(CALLS_PER_ROUND, MAX_CALLS_PER_ROUND));
        self.round
    }

    fn end_phase(&mut self) {
        if let Some(Stage::Rounds { budget, .. }) = self.stages.pop_front() {
            self.unused += budget;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for all steps, if as many calls as possible are built for each round.
    fn steps(schedule: &mut Schedule) -> Vec<Step> {
        let mut steps = Vec::new();
        loop {
            let step = schedule.next(true);
            if let Step::Round(_, calls) = step {
                schedule.record_round(calls);
            }
            steps.push(step);
            if step == Step::End {
                return steps;
            }
        }
    }

    /// Asks for all steps of a tool that does not continue.
    fn remaining_steps(schedule: &mut Schedule) -> Vec<Step> {
        let mut steps = vec![schedule.next(false)];
        while steps.last() != Some(&Step::End) {
            steps.push(schedule.next(false));
        }
        steps
    }

    fn share(coverage: u64, malformed: u64, stateful: u64, rest: u64) -> Share {
        Share { mutants: 0, coverage, malformed, stateful, rest }
    }

    #[test]
    fn the_phases_follow_each_other_in_rounds() {
        let mut schedule = Schedule::alone(share(40, 10, 20, 50), false);
        let expected = [
            Step::Round(Phase::Coverage, 32),
            Step::Round(Phase::Coverage, 8),
            Step::PlainCall,
            Step::Round(Phase::Malformed, 10),
            Step::Settled,
            Step::Round(Phase::Mixed, 32),
            Step::PlainCall,
            Step::Round(Phase::Mixed, 18),
            Step::PlainCall,
            Step::End,
        ];
        assert_eq!(steps(&mut schedule), expected);
        assert_eq!(schedule.left(), 20);
    }

    #[test]
    fn calls_that_cannot_be_built_are_made_in_the_last_phase() {
        let mut schedule = Schedule::alone(share(40, 10, 0, 5), false);
        assert_eq!(schedule.next(true), Step::Round(Phase::Coverage, 32));
        schedule.record_round(12);
        assert_eq!(schedule.next(true), Step::Round(Phase::Coverage, 28));
        schedule.record_round(0);
        assert_eq!(schedule.next(true), Step::PlainCall);
        assert_eq!(schedule.next(true), Step::Round(Phase::Malformed, 10));
        schedule.record_round(6);
        assert_eq!(schedule.next(true), Step::Round(Phase::Malformed, 4));
        schedule.record_round(0);
        assert_eq!(schedule.next(true), Step::Settled);
        // 28 calls of the first phase, 4 of the second one, and its own 5.
        assert_eq!(schedule.next(true), Step::Round(Phase::Mixed, 32));
        schedule.record_round(0);
        assert_eq!((schedule.next(true), schedule.left()), (Step::End, 37));
    }

    #[test]
    fn doubled_calls_count_once_in_the_coverage_phase() {
        let mut schedule = Schedule::alone(share(32, 0, 0, 0), true);
        assert_eq!(schedule.next(true), Step::Round(Phase::Coverage, 32));
        schedule.record_round(32);
        assert_eq!(schedule.next(true), Step::Round(Phase::Coverage, 16));
        schedule.record_round(32);
        assert_eq!(steps(&mut schedule), [Step::PlainCall, Step::Settled, Step::End]);
    }

    #[test]
    fn a_tool_that_does_not_continue_is_only_checked() {
        let mut schedule = Schedule::alone(share(40, 10, 20, 50), false);
        assert_eq!(schedule.next(true), Step::Round(Phase::Coverage, 32));
        schedule.record_round(32);
        assert_eq!(remaining_steps(&mut schedule), [Step::PlainCall, Step::Settled, Step::End]);
        assert_eq!(schedule.left(), 20 + 8 + 10 + 50);
    }

    #[test]
    fn a_long_phase_has_long_rounds() {
        let mut schedule = Schedule::alone(share(0, 0, 0, 4_000), false);
        assert_eq!((schedule.next(true), schedule.next(true)), (Step::PlainCall, Step::Settled));
        assert_eq!(schedule.next(true), Step::Round(Phase::Mixed, 500));
        schedule.record_round(500);
        assert_eq!((schedule.next(true), schedule.next(true)), (Step::PlainCall, Step::Round(Phase::Mixed, 500)));
        // A round may come out shorter.
        schedule.record_round(499);
        let mut rounds = steps(&mut schedule).into_iter().filter(|step| matches!(step, Step::Round(..)));
        assert_eq!(rounds.next_back(), Some(Step::Round(Phase::Mixed, 1)));
        let mut longest = Schedule::with_shared_values(1_000_000);
        assert_eq!(longest.next(true), Step::Round(Phase::Stateful, 32));
        longest.record_round(0);
        assert_eq!(longest.next(true), Step::Round(Phase::Mixed, 1_024));
    }

    #[test]
    fn calls_without_fitting_values_become_mixed_calls() {
        let mut schedule = Schedule::with_shared_values(40);
        assert_eq!(schedule.next(true), Step::Round(Phase::Stateful, 32));
        schedule.record_round(5);
        assert_eq!(schedule.next(true), Step::Round(Phase::Stateful, 32));
        schedule.record_round(0);
        assert_eq!(schedule.next(true), Step::Round(Phase::Mixed, 32));
        schedule.record_round(32);
        let rest = [Step::Round(Phase::Mixed, 3), Step::PlainCall, Step::End];
        assert_eq!(steps(&mut schedule), rest);
    }
}
