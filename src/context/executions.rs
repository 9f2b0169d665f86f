//! The executions of cases in a run, in any revision: each has a number, by which a message is assigned to its case.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The case of each execution.
#[derive(Debug, Default)]
pub(crate) struct Executions(Mutex<Vec<String>>);

impl Executions {
    fn cases(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a new execution of a case; returns its number.
    pub(crate) fn begin(&self, case: &str) -> usize {
        let mut cases = self.cases();
        cases.push(case.to_owned());
        cases.len() - 1
    }

    /// The case of an execution.
    pub(crate) fn case_of(&self, execution: usize) -> Option<String> {
        self.cases().get(execution).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_of_the_same_case_have_numbers_of_their_own() {
        let executions = Executions::default();
        assert_eq!(executions.case_of(0), None);
        assert_eq!(["a", "b", "a"].map(|case| executions.begin(case)), [0, 1, 2]);
        assert_eq!([1, 2, 3].map(|number| executions.case_of(number)), [Some("b".into()), Some("a".into()), None]);
    }
}
