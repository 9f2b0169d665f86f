//! The retry that a case makes of a request whose result requests input.

use serde_json::{Map, Value, json};

use super::tool_arguments::{MissingValue, altered};
use crate::case::{InputResponses, RequestState, Retry};
use crate::run::input_retry::{AnsweredRequest, input_request, with_params};
use crate::session::ClientResponder;

/// The retry that a case describes; `replaced` are the members of `params` that it replaces.
pub(super) fn retry_request(
    served: &AnsweredRequest,
    retry: &Retry,
    replaced: Option<&Value>,
    replies: &ClientResponder,
) -> Result<Value, MissingValue> {
    let unfilled = |reason: &str| Err(MissingValue(reason.to_owned()));
    let Some(result) = input_request(served) else { return unfilled("the server did not request input") };
    let requested = result.get("inputRequests").and_then(Value::as_object);
    let answers = match retry.input_responses {
        InputResponses::None => None,
        InputResponses::String => Some(json!("conformance")),
        InputResponses::Empty => Some(json!({})),
        InputResponses::Malformed if requested.is_none_or(Map::is_empty) => {
            return unfilled("the server requested no input");
        }
        InputResponses::Malformed => {
            Some(requested.into_iter().flatten().map(|(key, _)| (key.clone(), json!(5))).collect())
        }
        InputResponses::All => requested.map(|_| Value::Object(replies.to_result(result))),
        InputResponses::Extra => {
            let mut answers = replies.to_result(result);
            answers.insert("conformance-unused".to_owned(), json!({ "action": "cancel" }));
            Some(Value::Object(answers))
        }
    };
    let sent = result.get("requestState");
    let text = sent.and_then(Value::as_str);
    let state = match retry.request_state {
        RequestState::Echoed => sent.cloned(),
        RequestState::Required => match sent {
            Some(sent) => Some(sent.clone()),
            None => return unfilled("the server sent no requestState"),
        },
        RequestState::Altered | RequestState::Truncated => {
            match text.and_then(|text| changed(text, retry.request_state)) {
                Some(changed) => Some(json!(changed)),
                None => return unfilled("the server sent no requestState"),
            }
        }
    };
    Ok(with_params(&served.request, |params| {
        params.extend(
            [("inputResponses", answers), ("requestState", state)]
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?))),
        );
        for (name, value) in replaced.and_then(Value::as_object).into_iter().flatten() {
            params.insert(name.clone(), value.clone());
        }
    }))
}

fn changed(state: &str, how: RequestState) -> Option<String> {
    match how {
        RequestState::Truncated => {
            let half: String = state.chars().take(state.chars().count() / 2).collect();
            (!half.is_empty()).then_some(half)
        }
        _ => altered(state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(result: &Value) -> AnsweredRequest {
        let request = json!({"id": 1, "method": "tools/call", "params": {"name": "a", "requestState": "old"}});
        AnsweredRequest { request, response: json!({"id": 1, "result": result}) }
    }

    fn served_with_request() -> AnsweredRequest {
        let requests = json!({"a": {"method": "roots/list"}});
        served(&json!({"resultType": "input_required", "inputRequests": requests, "requestState": "abcd"}))
    }

    fn retry(answers: &str, state: &str) -> Retry {
        serde_json::from_value(json!({"step": "x", "input-responses": answers, "request-state": state}))
            .expect("a retry")
    }

    #[test]
    fn a_case_makes_its_retry_invalid() {
        let replies = ClientResponder::default();
        let of =
            |answers: &str, state: &str| retry_request(&served_with_request(), &retry(answers, state), None, &replies);
        let params = |answers, state| of(answers, state).expect("it requests input")["params"].clone();
        assert!(params("none", "echoed").get("inputResponses").is_none());
        assert_eq!(params("malformed", "required")["inputResponses"], json!({"a": 5}));
        assert_eq!(params("extra", "truncated")["requestState"], "ab");
        assert_ne!(params("all", "altered")["requestState"], "abcd");
        let replaced = json!({"name": "b"});
        let other = retry_request(&served_with_request(), &retry("string", "echoed"), Some(&replaced), &replies)
            .expect("it requests input");
        assert_eq!(other["params"]["name"], "b");
        let bare = served(&json!({"resultType": "input_required", "inputRequests": {}}));
        assert!(retry_request(&bare, &retry("all", "required"), None, &replies).is_err());
        assert!(retry_request(&bare, &retry("malformed", "echoed"), None, &replies).is_err());
        let complete = served(&json!({"resultType": "complete"}));
        assert!(retry_request(&complete, &retry("all", "echoed"), None, &replies).is_err());
    }
}
