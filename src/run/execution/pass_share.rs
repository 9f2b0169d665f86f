//! Divides the passes of a case among sessions: each takes the next that no other has taken.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The share of one session; by default it is alone, and all passes fall to it.
#[derive(Debug, Default)]
pub(in crate::run) struct PassShare {
    passes: Arc<Mutex<Passes>>,
    /// Whether it is not the session of the queue.
    is_additional: bool,
}

#[derive(Debug, Default)]
struct Passes {
    taken: BTreeSet<usize>,
    has_ended: bool,
}

impl PassShare {
    fn passes(&self) -> MutexGuard<'_, Passes> {
        self.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The share of another session in the same passes.
    pub(in crate::run) fn for_another_session(&self) -> Self {
        Self { passes: Arc::clone(&self.passes), is_additional: true }
    }

    /// Takes the pass at a position; false if it falls to another session.
    pub(super) fn take(&self, position: usize, depends_on_session: bool) -> bool {
        !(depends_on_session && self.is_additional) && self.passes().taken.insert(position)
    }

    /// Records that no pass is left.
    pub(in crate::run) fn end(&self) {
        self.passes().has_ended = true;
    }

    /// Whether no pass is left.
    pub(in crate::run) fn has_ended(&self) -> bool {
        self.passes().has_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_is_taken_once_and_those_of_a_session_by_it() {
        let own = PassShare::default();
        let other = own.for_another_session();
        assert!(own.take(0, false) && !other.take(0, false));
        assert!(other.take(1, false) && !own.take(1, false));
        assert!(!other.take(2, true) && own.take(2, true));
        assert!(!other.has_ended());
        own.end();
        assert!(other.has_ended());
    }
}
