//! How many calls each phase of fuzzing a tool gets.

use crate::plan::CallBudget;

/// How a budget of calls is divided among the phases.
#[derive(Debug, Clone, Copy)]
pub(in crate::campaign) struct Share {
    /// What wrong validators accept and reject.
    pub(in crate::campaign) mutants: u64,
    pub(in crate::campaign) coverage: u64,
    pub(in crate::campaign) malformed: u64,
    pub(in crate::campaign) stateful: u64,
    pub(in crate::campaign) rest: u64,
}

impl Share {
    /// The calls that a schema needs: all for mutants of it, and enough of the others to cover each boundary and each
    /// keyword. Calls that no schema asks for, and those of oracles over many calls, are as many as usual.
    pub(super) fn by_need(mutants: u64, bundles: usize, pairs: usize, keywords: usize) -> Self {
        const CALLS_PER_KEYWORD: usize = 3;
        const MAX_CALLS: u64 = 1_200;
        let needed = 2 * bundles + pairs.min(bundles) + CALLS_PER_KEYWORD * keywords;
        let calls = (needed as u64).clamp(CallBudget::USUAL, MAX_CALLS);
        Self::of(calls, mutants, bundles, pairs)
    }

    /// The number of calls of all phases but the one for mutants.
    pub(in crate::campaign) fn others(self) -> u64 {
        self.coverage + self.malformed + self.stateful + self.rest
    }

    /// The number of all calls.
    pub(in crate::campaign) fn total(self) -> u64 {
        self.others().saturating_add(self.mutants)
    }

    /// Divides a budget, given the calls for mutants, which come in addition, and the obligations to cover: bundles of
    /// decisions, then pairs.
    pub(super) fn of(calls: u64, mutants: u64, bundles: usize, pairs: usize) -> Self {
        let usual = (calls * 2 / 5).min((bundles + pairs) as u64);
        let coverage = usual.max((calls / 2).min(bundles as u64));
        let malformed = (calls / 8).clamp(1, 18).min(calls - coverage);
        let stateful = calls / 10;
        let stateful = stateful.min(calls - coverage - malformed);
        Self { mutants, coverage, malformed, stateful, rest: calls - coverage - malformed - stateful }
    }
}
