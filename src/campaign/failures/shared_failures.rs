//! The failures that all workers have started to shrink, and the late calls that they have found, by tool.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::case::Oracle;
use crate::check::fuzz::OracleViolation;

/// The failures that any worker has started to shrink, and the late calls that it has found.
#[derive(Debug, Clone, Default)]
pub(in crate::campaign) struct SharedFailures(Arc<Mutex<Vec<(usize, OracleViolation)>>>);

impl SharedFailures {
    fn failures(&self) -> MutexGuard<'_, Vec<(usize, OracleViolation)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another tool failed in the same way before.
    pub(super) fn is_known_from_another_tool(&self, tool: usize, violation: &OracleViolation) -> bool {
        self.failures().iter().any(|(of, known)| *of != tool && known.has_same_cause_as(violation))
    }

    /// Whether a failure of this kind was recorded.
    pub(super) fn any_of(&self, oracle: Oracle) -> bool {
        self.failures().iter().any(|(_, known)| known.oracle == oracle)
    }

    /// Records a failure; returns whether another tool failed in the same way before.
    pub(in crate::campaign) fn record(&self, tool: usize, violation: &OracleViolation) -> bool {
        let is_known_from_another_tool = self.is_known_from_another_tool(tool, violation);
        let mut failures = self.failures();
        if !failures.iter().any(|(of, known)| *of == tool && known.has_same_cause_as(violation)) {
            failures.push((tool, violation.clone()));
        }
        is_known_from_another_tool
    }
}

#[cfg(test)]
mod tests {
    use super::SharedFailures;
    use crate::case::Oracle;
    use crate::check::fuzz::OracleViolation;

    #[test]
    fn a_failure_is_known_only_from_other_tools() {
        let (failures, unrelated) = (SharedFailures::default(), SharedFailures::default());
        let clone = failures.clone();
        let crash = OracleViolation::from_many_calls(Oracle::Crash, "it ended", "at once");
        let hang = OracleViolation::from_many_calls(Oracle::Hang, "it hangs", "for ever");
        assert!(!failures.record(0, &crash));
        assert!(!failures.record(0, &crash), "a failure of the same tool does not count");
        assert!(clone.is_known_from_another_tool(1, &crash) && clone.record(1, &crash));
        assert!(failures.is_known_from_another_tool(0, &crash));
        assert!(!clone.is_known_from_another_tool(1, &hang), "a lookup records nothing");
        assert!(!clone.is_known_from_another_tool(0, &hang));
        assert!(!unrelated.record(1, &crash));
        assert!(clone.any_of(Oracle::Crash) && !clone.any_of(Oracle::LatencyGrowth));
    }
}
