//! Divides the executions of a case among sessions: each takes the next that no other has taken.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::run::cases::additional_session::{Opening, Openings};

/// The share of one session; by default it is alone, and all executions fall to it.
#[derive(Debug, Default)]
pub(in crate::run::cases) struct ExecutionShare {
    executions: Arc<Mutex<Executions>>,
    openings: Openings,
    /// Whether it is not the session of the queue.
    is_additional: bool,
}

#[derive(Debug, Default)]
struct Executions {
    /// How many there are about.
    count: usize,
    taken: BTreeSet<usize>,
    has_ended: bool,
}

impl ExecutionShare {
    /// The share of the session of the queue in about so many executions.
    pub(in crate::run::cases) fn of(count: usize) -> Self {
        let executions = Executions { count, ..Executions::default() };
        Self { executions: Arc::new(Mutex::new(executions)), ..Self::default() }
    }

    fn executions(&self) -> MutexGuard<'_, Executions> {
        self.executions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The share of another session in the same executions.
    pub(in crate::run) fn for_another_session(&self) -> Self {
        let (executions, openings) = (Arc::clone(&self.executions), self.openings.clone());
        Self { executions, openings, is_additional: true }
    }

    /// Begins to open another session for what is left, unless those that are being opened suffice.
    pub(in crate::run::cases) fn begin_opening(&self) -> Option<Opening> {
        let left = {
            let executions = self.executions();
            if executions.has_ended { 0 } else { executions.count.saturating_sub(executions.taken.len()) }
        };
        self.openings.begin(left)
    }

    /// Takes the execution at a position; false if it falls to another session.
    pub(super) fn take(&self, position: usize, depends_on_session: bool) -> bool {
        !(depends_on_session && self.is_additional) && self.executions().taken.insert(position)
    }

    /// Records that no execution is left.
    pub(in crate::run::cases) fn end(&self) {
        self.executions().has_ended = true;
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
    }

    #[test]
    fn sessions_are_opened_for_what_is_left() {
        let own = ExecutionShare::of(3);
        let other = own.for_another_session();
        assert!(own.take(0, false));
        let openings = [own.begin_opening(), other.begin_opening()];
        assert!(openings.iter().all(Option::is_some) && other.begin_opening().is_none());
        drop(openings);
        assert!(other.take(1, false) && other.begin_opening().is_some());
        own.end();
        assert!(other.begin_opening().is_none());
    }
}
