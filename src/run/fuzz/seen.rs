//! What hunts side by side know of one another: which failures were seen, of which tools.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::check::fuzz::Breach;

/// The failures that any of the hunts has begun to make small.
#[derive(Debug, Clone, Default)]
pub(super) struct SeenByAll(Arc<Mutex<Vec<(usize, Breach)>>>);

impl SeenByAll {
    fn seen(&self) -> MutexGuard<'_, Vec<(usize, Breach)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another tool failed in the same way before.
    pub(super) fn is_of_another(&self, tool: usize, breach: &Breach) -> bool {
        self.seen().iter().any(|(of, known)| *of != tool && known.is_like(breach))
    }

    /// Takes note of a failure; says whether another tool failed in the same way before.
    pub(super) fn take(&self, tool: usize, breach: &Breach) -> bool {
        let is_of_another = self.is_of_another(tool, breach);
        let mut seen = self.seen();
        if !seen.iter().any(|(of, known)| *of == tool && known.is_like(breach)) {
            seen.push((tool, breach.clone()));
        }
        is_of_another
    }
}

#[cfg(test)]
mod tests {
    use super::SeenByAll;
    use crate::case::Oracle;
    use crate::check::fuzz::Breach;

    #[test]
    fn a_failure_is_known_from_other_tools_alone() {
        let (seen, also) = (SeenByAll::default(), SeenByAll::default());
        let beside = seen.clone();
        let crash = Breach::of_many(Oracle::Crash, "it ended", "at once");
        let hang = Breach::of_many(Oracle::Hang, "it hangs", "for ever");
        assert!(!seen.take(0, &crash));
        assert!(!seen.take(0, &crash), "its own failure says nothing of another tool");
        assert!(beside.is_of_another(1, &crash) && beside.take(1, &crash));
        assert!(seen.is_of_another(0, &crash));
        assert!(!beside.is_of_another(1, &hang), "what was only asked for is not taken note of");
        assert!(!beside.is_of_another(0, &hang));
        assert!(!also.take(1, &crash));
    }
}
