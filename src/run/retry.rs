//! Retries of requests whose result requests input, in stateless revisions.

use serde_json::{Map, Value, json};

use super::bindings::{MissingValue, altered};
use super::reply::ClientResponder;
use crate::case::{InputResponses, RequestState, Retry};
use crate::transcript::is_input_required;

/// A request as it was sent, and the response to it.
#[derive(Debug, Clone)]
pub(super) struct AnsweredRequest {
    pub(super) request: Value,
    pub(super) response: Value,
}

impl AnsweredRequest {
    /// Whether the response requests input.
    pub(super) fn requests_input(&self) -> bool {
        input_request(self).is_some()
    }
}

/// The retry of a request with a response to everything that its result requests; nothing if it requests no input.
pub(super) fn plain(served: &AnsweredRequest, replies: &ClientResponder) -> Option<Value> {
    let result = input_request(served)?;
    Some(with_params(&served.request, |params| {
        if result.get("inputRequests").is_some() {
            params.insert("inputResponses".to_owned(), Value::Object(replies.to_result(result)));
        }
        if let Some(state) = result.get("requestState") {
            params.insert("requestState".to_owned(), state.clone());
        }
    }))
}

/// The retry that a case describes; `replaced` are the members of `params` that it replaces.
pub(super) fn of_case(
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

fn input_request(served: &AnsweredRequest) -> Option<&Value> {
    served.response.get("result").filter(|result| is_input_required(result))
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

/// The request without its id, and without what an earlier retry added, after a change to its `params`.
fn with_params(request: &Value, change: impl FnOnce(&mut Map<String, Value>)) -> Value {
    let mut again = request.clone();
    if let Value::Object(members) = &mut again {
        members.remove("id");
        if let Value::Object(params) = members.entry("params").or_insert_with(|| json!({})) {
            params.remove("inputResponses");
            params.remove("requestState");
            change(params);
        }
    }
    again
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
    fn a_plain_retry_has_the_responses_and_the_state_and_no_id() {
        let replies = ClientResponder::default();
        let again = plain(&served_with_request(), &replies).expect("it requests input");
        let params = json!({"name": "a", "inputResponses": {"a": {"roots": []}}, "requestState": "abcd"});
        assert_eq!(again, json!({"method": "tools/call", "params": params}));
        let stateless = served(&json!({"resultType": "input_required", "requestState": "abcd"}));
        let params = json!({"name": "a", "requestState": "abcd"});
        assert_eq!(plain(&stateless, &replies), Some(json!({"method": "tools/call", "params": params})));
        assert_eq!(plain(&served(&json!({"resultType": "complete"})), &replies), None);
    }

    #[test]
    fn a_case_makes_its_retry_invalid() {
        let replies = ClientResponder::default();
        let of = |answers: &str, state: &str| of_case(&served_with_request(), &retry(answers, state), None, &replies);
        let params = |answers, state| of(answers, state).expect("it requests input")["params"].clone();
        assert!(params("none", "echoed").get("inputResponses").is_none());
        assert_eq!(params("malformed", "required")["inputResponses"], json!({"a": 5}));
        assert_eq!(params("extra", "truncated")["requestState"], "ab");
        assert_ne!(params("all", "altered")["requestState"], "abcd");
        let replaced = json!({"name": "b"});
        let other = of_case(&served_with_request(), &retry("string", "echoed"), Some(&replaced), &replies)
            .expect("it requests input");
        assert_eq!(other["params"]["name"], "b");
        let bare = served(&json!({"resultType": "input_required", "inputRequests": {}}));
        assert!(of_case(&bare, &retry("all", "required"), None, &replies).is_err());
        assert!(of_case(&bare, &retry("malformed", "echoed"), None, &replies).is_err());
        let complete = served(&json!({"resultType": "complete"}));
        assert!(of_case(&complete, &retry("all", "echoed"), None, &replies).is_err());
    }
}
