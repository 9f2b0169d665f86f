//! Divides the executions of a case among sessions: each takes the next that no other has taken.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The share of one session; by default it is alone, and all executions fall to it.
#[derive(Debug, Default)]
pub(in crate::run::cases) struct ExecutionShare {
    executions: Arc<Mutex<Executions>>,
    /// Whether it is not the session of the queue.
    is_additional: bool,
}

#[derive(Debug, Default)]
struct Executions {
    taken: BTreeSet<usize>,
    has_ended: bool,
}

impl ExecutionShare {
    fn executions(&self) -> MutexGuard<'_, Executions> {
        self.executions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The share of another session in the same executions.
    pub(in crate::run) fn for_another_session(&self) -> Self {
        Self { executions: Arc::clone(&self.executions), is_additional: true }
    }

    /// Takes the execution at a position; false if it falls to another session.
    pub(super) fn take(&self, position: usize, depends_on_session: bool) -> bool {
        !(depends_on_session && self.is_additional) && self.executions().taken.insert(position)
    }

    /// Records that no execution is left.
    pub(in crate::run::cases) fn end(&self) {
        self.executions().has_ended = true;
    }

    /// Whether no execution is left.
    pub(in crate::run::cases) fn has_ended(&self) -> bool {
        self.executions().has_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_is_taken_once_and_those_of_a_session_by_it() {
        let own = ExecutionShare::default();
        let other = own.for_another_session();
        assert!(own.take(0, false) && !other.take(0, false));
        assert!(other.take(1, false) && !own.take(1, false));
        assert!(!other.take(2, true) && own.take(2, true));
        assert!(!other.has_ended());
        own.end();
        assert!(other.has_ended());
    }
}
