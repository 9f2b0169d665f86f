//! The hints of a run and their outcomes.

use serde_json::Value;

use crate::case::{Case, Hint};
use crate::event::HintNote;
use crate::spec::Revision;
use crate::text::shortened;
use crate::transcript::is_input_required;

/// A hint and its outcome.
#[derive(Debug, Clone)]
pub(crate) struct HintResult {
    pub(crate) hint: Hint,
    pub(crate) outcome: HintOutcome,
}

/// The outcome of a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HintOutcome {
    /// The response is a result without `isError`.
    Served,
    /// The response is an error or a result with `isError: true`, which may be the purpose of the hint.
    Failed(String),
    /// There was no response.
    Unanswered,
    /// The request was not sent, for this reason.
    NotSent(String),
}

impl HintResult {
    /// Whether the request succeeded and is meant for a case in a revision.
    pub(crate) fn applies_to(&self, case: &Case, revision: Revision) -> bool {
        self.outcome == HintOutcome::Served && self.hint.is_for(case, revision)
    }

    /// The entry in the report.
    pub(crate) fn note(&self) -> HintNote {
        let note = match &self.outcome {
            HintOutcome::Served => None,
            HintOutcome::Failed(how) => Some(format!("it failed: {how}")),
            HintOutcome::Unanswered => Some("it was not answered".to_owned()),
            HintOutcome::NotSent(why) => Some(format!("it was not sent: {why}")),
        };
        HintNote { request: self.hint.request.describe(), purposes: self.hint.purposes.clone(), note }
    }
}

impl HintOutcome {
    /// The outcome that a response means.
    pub(crate) fn of_response(response: &Value) -> Self {
        match response.get("result") {
            Some(result) if is_input_required(result) => Self::Failed("it asks for input repeatedly".to_owned()),
            Some(result) if result.get("isError") != Some(&Value::Bool(true)) => Self::Served,
            Some(result) => {
                let text = result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or("a result with isError");
                Self::Failed(shorten(text))
            }
            None => {
                let error = response.get("error").unwrap_or(&Value::Null);
                let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
                Self::Failed(shorten(&format!("error {} {message}", error.get("code").unwrap_or(&Value::Null))))
            }
        }
    }
}

fn shorten(text: &str) -> String {
    const MAX_CHARS: usize = 120;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    shortened(&line, MAX_CHARS).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_outcome_of_a_request_is_described_briefly() {
        assert_eq!(HintOutcome::of_response(&json!({"result": {"content": []}})), HintOutcome::Served);
        let failed = json!({"result": {"isError": true, "content": [{"type": "text", "text": "no\nsuch  zone"}]}});
        assert_eq!(HintOutcome::of_response(&failed), HintOutcome::Failed("no such zone".to_owned()));
        let error = json!({"error": {"code": -32602, "message": "bad"}});
        assert_eq!(HintOutcome::of_response(&error), HintOutcome::Failed("error -32602 bad".to_owned()));
        let HintOutcome::Failed(long) =
            HintOutcome::of_response(&json!({"error": {"code": 1, "message": "x".repeat(500)}}))
        else {
            panic!("it was refused")
        };
        assert_eq!(long.chars().count(), 121);
    }
}
