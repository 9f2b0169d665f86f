//! Repeats requests whose result requests input, in stateless revisions.

use serde_json::{Map, Value, json};

use crate::session::ClientResponder;
use crate::transcript::is_input_required;

/// A request as it was sent, or before it was filled up to a length, and the response to it.
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

/// The result of a response that requests input.
pub(super) fn input_request(served: &AnsweredRequest) -> Option<&Value> {
    served.response.get("result").filter(|result| is_input_required(result))
}

/// The request without its id, and without what an earlier retry added, after a change to its `params`.
pub(super) fn with_params(request: &Value, change: impl FnOnce(&mut Map<String, Value>)) -> Value {
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
}
