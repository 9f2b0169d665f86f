//! The client's responses to requests of the server: those of a client that grants everything, or those of a case.
//!
//! A form is accepted with minimal content, a URL is accepted, a completion is one line of text, and there are no roots,
//! so that no server gets access to a directory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use crate::case::{ClientResponse, Placeholder, fill};
use crate::client::RequestHandler;
use crate::fuzz::{Dialect, Mistake, ToolSchema};
use crate::limits::MAX_CASE_RESPONSES;
use crate::transcript::input_requests;

/// The responses of one client, which the current case may replace.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientResponder(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    by_case: BTreeMap<String, Vec<ClientResponse>>,
    /// How many requests of each method were answered since the case began.
    counts: BTreeMap<String, usize>,
    /// Whether a placeholder in a response of the case could not be filled in.
    unfilled: bool,
}

impl ClientResponder {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the responses of a case from now on.
    pub(crate) fn begin(&self, by_case: &BTreeMap<String, Vec<ClientResponse>>) {
        *self.state() = State { by_case: by_case.clone(), ..State::default() };
    }

    /// Uses the usual responses again; whether every response of the case could be filled in.
    pub(crate) fn end(&self) -> bool {
        !std::mem::take(&mut *self.state()).unfilled
    }

    /// The response to a request, by its method and params; none if the case leaves it unanswered.
    pub(crate) fn reply(&self, method: &str, params: Option<&Value>) -> Option<Result<Value, Value>> {
        let mut state = self.state();
        let count = state.counts.get(method).copied().unwrap_or_default();
        state.counts.insert(method.to_owned(), count + 1);
        let of_case = state.by_case.get(method).filter(|_| count < MAX_CASE_RESPONSES);
        let of_case = of_case.and_then(|replies| replies.get(count).or(replies.last()));
        let filled = match of_case {
            None => return Some(Ok(usual(method, params))),
            Some(ClientResponse::NoResponse) => return None,
            Some(ClientResponse::Result(result)) => filled(result, params, count).map(Ok),
            Some(ClientResponse::Error(error)) => filled(error, params, count).map(Err),
        };
        Some(filled.unwrap_or_else(|| {
            state.unfilled = true;
            Ok(usual(method, params))
        }))
    }

    /// The responses to what an `input_required` result requests, except errors.
    pub(crate) fn to_result(&self, result: &Value) -> Map<String, Value> {
        let answer = |request: &Value| {
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
            self.reply(method, request.get("params"))?.ok()
        };
        input_requests(result).filter_map(|(key, request)| Some((key.to_owned(), answer(request)?))).collect()
    }

    /// The function by which a connection gets responses.
    pub(crate) fn answer(&self) -> RequestHandler {
        let replies = self.clone();
        Arc::new(move |method, params| replies.reply(method, params))
    }
}

/// The result of a client that grants everything.
fn usual(method: &str, params: Option<&Value>) -> Value {
    match method {
        "roots/list" => json!({ "roots": [] }),
        "elicitation/create" if params.and_then(|params| params.get("mode")).is_some_and(|mode| mode == "url") => {
            json!({ "action": "accept" })
        }
        "elicitation/create" => match content(params) {
            Some(content) => json!({ "action": "accept", "content": content }),
            None => json!({ "action": "decline" }),
        },
        _ => json!({
            "role": "assistant",
            "content": { "type": "text", "text": "A short answer." },
            "model": "mcp-conformance",
            "stopReason": "endTurn",
        }),
    }
}

/// The schema of a form.
fn form(params: Option<&Value>) -> Option<ToolSchema> {
    ToolSchema::compile(params?.get("requestedSchema")?, Dialect::Draft202012).ok()
}

fn content(params: Option<&Value>) -> Option<Value> {
    form(params)?.minimal().ok()
}

/// Content of a form that is invalid in the first way that its schema allows.
fn invalid_content(params: Option<&Value>) -> Option<Value> {
    let form = form(params)?;
    let ways = [Mistake::MissingRequired, Mistake::WrongType, Mistake::OutsideEnum];
    ways.into_iter().find_map(|breakage| form.with_mistake(breakage)).map(|broken| broken.arguments)
}

/// The result or error of a case with its placeholders filled in from the request; nothing where that is not possible.
fn filled(response: &Value, params: Option<&Value>, count: usize) -> Option<Value> {
    let mut value_of = |placeholder: &Placeholder| {
        match placeholder {
            Placeholder::ClientRequestContent => content(params),
            Placeholder::ClientRequestInvalidContent => invalid_content(params),
            Placeholder::ClientRequestTool => params.and_then(|params| params.pointer("/tools/0/name")).cloned(),
            Placeholder::ClientRequestCount => Some(json!(count)),
            _ => None,
        }
        .ok_or(())
    };
    fill(response, &mut value_of).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form_of(property: &Value) -> Value {
        json!({"message": "?", "requestedSchema": {"type": "object", "properties": {"a": property}, "required": ["a"]}})
    }

    #[test]
    fn a_form_and_a_url_are_accepted() {
        let params = form_of(&json!({"type": "integer", "minimum": 7}));
        let replies = ClientResponder::default();
        let filled = replies.reply("elicitation/create", Some(&params));
        assert_eq!(filled, Some(Ok(json!({"action": "accept", "content": {"a": 7}}))));
        let page = json!({"mode": "url", "url": "https://example.com"});
        assert_eq!(replies.reply("elicitation/create", Some(&page)), Some(Ok(json!({"action": "accept"}))));
        let unreadable = replies.reply("elicitation/create", Some(&json!({"requestedSchema": 5})));
        assert_eq!(unreadable, Some(Ok(json!({"action": "decline"}))));
    }

    #[test]
    fn the_responses_of_a_case_follow_in_order_and_the_last_is_repeated() {
        let replies = ClientResponder::default();
        let error = json!({"code": -1, "message": "no ${client-request.count}"});
        let broken = json!({"action": "accept", "content": "${client-request.invalid-content}"});
        let by_case = vec![ClientResponse::Result(broken), ClientResponse::Error(error)];
        replies.begin(&BTreeMap::from([("elicitation/create".to_owned(), by_case)]));
        let params = form_of(&json!({"type": "boolean"}));
        let reply = || replies.reply("elicitation/create", Some(&params)).expect("a response");
        let first = reply().expect("a result");
        assert!(first["content"].get("a").is_none_or(|value| !value.is_boolean()), "{first}");
        for number in 1..3 {
            let error = reply().expect_err("an error");
            assert_eq!(error["message"], format!("no {number}"));
        }
        assert!(replies.end());
        assert!(reply().is_ok());
    }

    #[test]
    fn a_response_that_cannot_be_filled_in_becomes_the_usual_one() {
        let replies = ClientResponder::default();
        let by_case = vec![ClientResponse::Result(json!({"name": "${client-request.tool}"}))];
        replies.begin(&BTreeMap::from([("sampling/createMessage".to_owned(), by_case)]));
        let usual = replies.reply("sampling/createMessage", Some(&json!({}))).expect("a response").expect("a result");
        assert_eq!(usual["role"], "assistant");
        assert!(!replies.end());
    }

    #[test]
    fn a_case_may_leave_requests_unanswered() {
        let replies = ClientResponder::default();
        replies.begin(&BTreeMap::from([("sampling/createMessage".to_owned(), vec![ClientResponse::NoResponse])]));
        assert_eq!(replies.reply("sampling/createMessage", None), None);
        assert_eq!(replies.reply("roots/list", None), Some(Ok(json!({"roots": []}))));
        assert!(replies.end());
    }

    #[test]
    fn each_request_in_a_result_is_answered_under_its_key() {
        let result = json!({"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}, "b": {"method": "sampling/createMessage"}}});
        let replies = ClientResponder::default();
        let refusal = vec![ClientResponse::Error(json!({"code": -1}))];
        replies.begin(&BTreeMap::from([("sampling/createMessage".to_owned(), refusal)]));
        assert_eq!(Value::Object(replies.to_result(&result)), json!({"a": {"roots": []}}));
    }
}
