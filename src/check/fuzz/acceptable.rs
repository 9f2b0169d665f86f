//! Whether a response has no violation whatever the arguments were, so that it need not be judged again with others.
//!
//! Arguments only ever excuse: a path that the client sent is no leak, and strings of the arguments are not part of a
//! signature. So a response without violations to a call without arguments has none for any call of the same
//! [`ValidityClass`]. The result depends on the response and the class alone, as neither the call nor its arguments are known.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::argument_validity::is_annotation;
use super::call::{Arguments, Call, Validity};
use super::exchange::{ExchangeOutcome, FuzzExchange, FuzzedTool};
use super::judge::judge;
use crate::fuzz::{Constraint, Grammar};
use crate::verdict::CallKind;

/// What matters about the validity of a call's arguments to the judge of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValidityClass {
    /// The schema allows the arguments.
    Valid,
    /// They violate a keyword that a server has to assert.
    Violates,
    /// They violate a keyword that a server may treat as an annotation.
    ViolatesAnnotation,
    /// They are an object beyond what schemas describe.
    OddObject,
    /// They are JSON but not an object.
    OtherJson,
    /// It is unknown whether they are valid.
    Unknown,
}

impl ValidityClass {
    /// How many there are.
    pub(crate) const COUNT: usize = 6;

    /// The class of a validity; none if no response is required.
    #[must_use]
    pub(crate) fn of(validity: &Validity) -> Option<Self> {
        match validity {
            Validity::Valid => Some(Self::Valid),
            Validity::Violates(constraint) if is_annotation(constraint) => Some(Self::ViolatesAnnotation),
            Validity::Violates(_) => Some(Self::Violates),
            Validity::Malformed(Grammar::Object, _) => Some(Self::OddObject),
            Validity::Malformed(Grammar::OtherJson, _) => Some(Self::OtherJson),
            Validity::Malformed(Grammar::NotJson | Grammar::Beyond, _) => None,
            Validity::Unknown => Some(Self::Unknown),
        }
    }

    /// A validity of this class.
    fn example(self) -> Validity {
        let violates = |keyword: &str| {
            let constraint = Constraint { pointer: String::new(), keyword: keyword.to_owned(), name: None };
            Validity::Violates(Arc::new(constraint))
        };
        match self {
            Self::Valid => Validity::Valid,
            Self::Violates => violates("type"),
            Self::ViolatesAnnotation => violates("format"),
            Self::OddObject => Validity::Malformed(Grammar::Object, ""),
            Self::OtherJson => Validity::Malformed(Grammar::OtherJson, ""),
            Self::Unknown => Validity::Unknown,
        }
    }
}

/// Whether a response has no violation for any call of a class with its id.
#[must_use]
pub(crate) fn has_no_violation(fuzzed_tool: &FuzzedTool, response: &Value, id: i64, class: ValidityClass) -> bool {
    let call = Call {
        kind: CallKind::Valid,
        validity: class.example(),
        arguments: Arguments::Json(Value::Object(Map::new())),
        choices: None,
    };
    let exchange = FuzzExchange {
        call: Arc::new(call),
        line: Arc::default(),
        id,
        responses: vec![response.clone()],
        noise: Vec::new(),
        outcome: ExchangeOutcome::Answered,
        duration: Duration::ZERO,
        alone: false,
    };
    judge(fuzzed_tool, &exchange).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Revision;
    use serde_json::json;

    #[test]
    fn a_response_without_violations_for_no_arguments_has_none_for_any() {
        let fuzzed_tool = FuzzedTool::new(&json!({"name": "t"}), Revision::V2025_11_25, Vec::new());
        let constraint = |pointer: &str, keyword: &str| {
            let constraint = Constraint { pointer: pointer.to_owned(), keyword: keyword.to_owned(), name: None };
            Validity::Violates(Arc::new(constraint))
        };
        let validities = [
            Validity::Valid,
            Validity::Unknown,
            constraint("/properties/a", "type"),
            constraint("", "required"),
            constraint("/properties/a", "maximum"),
            constraint("/properties/a", "format"),
            Validity::Malformed(Grammar::OtherJson, "null"),
            Validity::Malformed(Grammar::Object, "deep"),
        ];
        let arguments = [
            Arguments::Json(json!({"a": "/home/anna/x", "sk-abcdefghijklmnop": []})),
            Arguments::Json(json!({"a": {}})),
            Arguments::Json(Value::Null),
            Arguments::Raw(b"open /home/anna/x".to_vec()),
        ];
        let text = |text: &str, error: bool| json!({"content": [{"type": "text", "text": text}], "isError": error});
        let responses = [
            json!({"id": 7, "result": text("fine", false)}),
            json!({"id": 7, "result": text("Not now.", true)}),
            json!({"id": 7, "result": text("open /home/anna/x failed", true)}),
            json!({"id": 7, "result": text("Invalid input: a", true)}),
            json!({"id": 7, "result": {"content": 1}}),
            json!({"id": 7, "error": {"code": -32602, "message": "invalid"}}),
            json!({"id": 7, "error": {"code": -32603, "message": "oops"}}),
            json!({"id": 7, "error": {"code": -32000, "message": "oops"}}),
            json!({"id": 8, "result": text("fine", false)}),
        ];
        let (mut fine, mut odd) = (0, 0);
        for (validity, answer) in validities.iter().flat_map(|s| responses.iter().map(move |a| (s, a))) {
            let class = ValidityClass::of(validity).expect("it requires a response");
            let is_acceptable = has_no_violation(&fuzzed_tool, answer, 7, class);
            for arguments in &arguments {
                let call = Call {
                    kind: CallKind::Invalid,
                    validity: validity.clone(),
                    arguments: arguments.clone(),
                    choices: None,
                };
                let exchange = FuzzExchange {
                    call: Arc::new(call),
                    line: Arc::default(),
                    id: 7,
                    responses: vec![answer.clone()],
                    noise: Vec::new(),
                    outcome: ExchangeOutcome::Answered,
                    duration: Duration::ZERO,
                    alone: true,
                };
                let violations = judge(&fuzzed_tool, &exchange);
                assert!(!is_acceptable || violations.is_empty(), "{validity:?} {answer} {violations:?}");
            }
            fine += usize::from(is_acceptable);
            odd += usize::from(!is_acceptable);
        }
        assert!(fine > 10 && odd > 10, "{fine} {odd}");
    }
}
