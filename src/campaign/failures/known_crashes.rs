//! What the calls that ended the server have in common, so that a crash that comes easily does not hide the rest of a
//! tool: calls like them are omitted, and the others go on.
//!
//! Nothing is compared with a schema or a cause: a feature of arguments is suspected if several calls with it ended the
//! server, and no call with it was answered since the first of them did.

use std::collections::HashSet;

use crate::campaign::calls::features::features;
use crate::check::fuzz::Call;

/// How many calls with a feature have to end the server.
const MIN_CRASHES: usize = 2;
/// After so many omitted calls one is made, and again whenever the number has doubled: the crash may have had another
/// cause.
const FIRST_RETRY: u64 = 8;
/// The maximum number of features of all answered calls.
const MAX_ANSWERED: usize = 1 << 16;

/// The features of the calls of one tool that ended the server, and of those that did not.
#[derive(Debug, Default)]
pub(in crate::campaign) struct KnownCrashes {
    crashes: Vec<HashSet<u64>>,
    answered: HashSet<u64>,
    /// The number of omitted calls.
    omitted: u64,
}

impl KnownCrashes {
    /// Records a call that ended the server.
    pub(in crate::campaign) fn record_crash(&mut self, call: &Call) {
        self.crashes.push(features(call));
    }

    /// Records a call that was answered. It costs nothing as long as no call ended the server.
    pub(in crate::campaign) fn record_answer(&mut self, call: &Call) {
        if !self.crashes.is_empty() && self.answered.len() < MAX_ANSWERED {
            self.answered.extend(features(call));
        }
    }

    /// Whether to omit a call, because it is like those that ended the server.
    pub(in crate::campaign) fn omits(&mut self, call: &Call) -> bool {
        if self.crashes.len() < MIN_CRASHES {
            return false;
        }
        let crashes = |feature: &u64| self.crashes.iter().filter(|crash| crash.contains(feature)).count();
        let is_suspected = |feature: &u64| !self.answered.contains(feature) && crashes(feature) >= MIN_CRASHES;
        if !features(call).iter().any(is_suspected) {
            return false;
        }
        self.omitted += 1;
        self.omitted < FIRST_RETRY || !self.omitted.is_power_of_two()
    }

    /// What the report says of omitted calls.
    pub(in crate::campaign) fn note(&self) -> Option<String> {
        match self.omitted {
            0 => None,
            1 => Some("1 planned call was omitted, because it is like calls that ended the server".to_owned()),
            count => {
                Some(format!("{count} planned calls were omitted, because they are like calls that ended the server"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::fuzz::{Arguments, Validity};
    use crate::verdict::CallKind;
    use serde_json::{Value, json};

    fn call(arguments: Value) -> Call {
        let arguments = Arguments::Json(arguments);
        Call { kind: CallKind::Valid, validity: Validity::Valid, arguments, choices: None }
    }

    #[test]
    fn calls_like_those_that_ended_the_server_are_omitted_and_others_are_not() {
        let mut known = KnownCrashes::default();
        known.record_answer(&call(json!({"text": "a", "limit": 1})));
        known.record_crash(&call(json!({"text": "AB", "limit": 5})));
        assert!(!known.omits(&call(json!({"text": "A"}))), "one crash shows nothing");
        for text in ["ab", "a b", "", "7"] {
            known.record_answer(&call(json!({"text": text, "limit": 5})));
        }
        known.record_crash(&call(json!({"text": "C", "limit": 900})));
        assert!(known.omits(&call(json!({"text": "Z"}))));
        assert!(!known.omits(&call(json!({"text": "z", "limit": 5}))));
        assert!(!known.omits(&call(json!({"limit": 900}))), "one of the crashes had another limit");
        assert!(known.note().is_some_and(|note| note.starts_with("1 planned call")), "{:?}", known.note());
    }

    #[test]
    fn what_was_suspected_wrongly_is_called_again() {
        let mut known = KnownCrashes::default();
        for _ in 0..MIN_CRASHES {
            known.record_crash(&call(json!({"n": -1})));
        }
        let suspected = call(json!({"n": -1}));
        let made: Vec<bool> = (0..64).map(|_| !known.omits(&suspected)).collect();
        assert_eq!(made.iter().filter(|made| **made).count(), 4, "{made:?}");
        known.record_answer(&suspected);
        assert!(!known.omits(&suspected));
    }
}
