//! Recognises a tool that no generated call could satisfy: it was not tested, which is no fault of the server.

use serde_json::Value;

use super::counts::ToolCounts;
use crate::check::fuzz::{excerpt, is_environmental, values_remedy};
use crate::event::Untested;

/// How many valid calls a tool has to reject before it counts as untested.
const MIN_REJECTED_CALLS: u64 = 12;
/// The maximum length of the description of a response.
const MAX_RESPONSE_CHARS: usize = 160;

/// Why a tool was not tested, and what would help, unless one of its valid calls succeeded; `budget` is the number of
/// calls that it may get.
pub(in crate::campaign) fn untested(counts: &ToolCounts, schema: &Value, budget: u64) -> Option<Untested> {
    let is_enough = counts.valid > 0 && counts.valid >= MIN_REJECTED_CALLS.min(budget / 4);
    if counts.succeeded > 0 || !is_enough {
        return None;
    }
    let most = counts.most_common_rejection();
    let shown = most.map_or_else(String::new, |most| format!("; most got: {}", excerpt(most, MAX_RESPONSE_CHARS)));
    let reason = format!("none of its {} calls with valid arguments succeeded{shown}", counts.valid);
    let remedy = if most.is_some_and(is_environmental) {
        // Where the network or a service is missing, no arguments are right.
        "let the server reach what it uses, with the credentials that it needs".to_owned()
    } else {
        values_remedy(schema)
    };
    Some(Untested { reason, remedy })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::check::fuzz::{Arguments, Call, Validity};
    use crate::event::CallOutcome;
    use crate::verdict::CallKind;
    use serde_json::json;

    fn counts(responses: &[(CallOutcome, &str)]) -> ToolCounts {
        let mut counts = ToolCounts::default();
        let call = Call {
            kind: CallKind::Valid,
            validity: Validity::Valid,
            arguments: Arguments::Json(json!({})),
            choices: None,
        };
        for (outcome, class) in responses {
            counts.count(&call, *outcome, class, Some(Duration::ZERO));
        }
        counts
    }

    #[test]
    fn a_tool_without_a_successful_call_is_untested_and_what_helps_is_said() {
        let schema = json!({"properties": {"id": {"type": "string"}}, "required": ["id"]});
        let rejected = [(CallOutcome::ToolError, "tool-error: no such item"); 12];
        let found = untested(&counts(&rejected), &schema, 200).expect("no call succeeded");
        assert_eq!(
            found.reason,
            "none of its 12 calls with valid arguments succeeded; most got: tool-error: no such item"
        );
        assert!(found.remedy.contains("--seed-value id=…"), "{}", found.remedy);
        let offline = [(CallOutcome::ToolError, "tool-error: fetch failed"); 12];
        let found = untested(&counts(&offline), &schema, 200).expect("no call succeeded");
        assert!(!found.remedy.contains("--seed-value"), "{}", found.remedy);

        assert_eq!(untested(&counts(&rejected[1..]), &schema, 200), None, "too few calls say nothing");
        assert_eq!(untested(&counts(&[]), &schema, 0), None);
        let served = [&rejected[..], &[(CallOutcome::Success, "success")]].concat();
        assert_eq!(untested(&counts(&served), &schema, 200), None);
    }
}
