//! The client's responses to requests of the server: those of a client that grants everything, unless others replace them
//! for a while.
//!
//! A form is accepted with minimal content, a URL is accepted, a completion is one line of text, and there are no roots,
//! so that no server gets access to a directory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use crate::client::RequestHandler;
use crate::fuzz::{Dialect, ToolSchema};
use crate::transcript::input_requests;

/// A response to a request of the server: a result or an error, or none.
pub(crate) type Reply = Option<Result<Value, Value>>;

/// Chooses the response to a request by its method and params, and by how many requests of the method came before it;
/// none leaves the usual one.
pub(crate) type ReplyChoice = Arc<dyn Fn(&str, Option<&Value>, usize) -> Option<Reply> + Send + Sync>;

/// The responses of one client, which may be replaced for a while.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientResponder(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    choice: Option<ReplyChoice>,
    /// How many requests of each method were answered since the responses were replaced.
    counts: BTreeMap<String, usize>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl ClientResponder {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses other responses from now on.
    pub(crate) fn begin(&self, choice: ReplyChoice) {
        *self.state() = State { choice: Some(choice), ..State::default() };
    }

    /// Uses the usual responses again.
    pub(crate) fn end(&self) {
        *self.state() = State::default();
    }

    /// The response to a request, by its method and params; none leaves it unanswered.
    pub(crate) fn reply(&self, method: &str, params: Option<&Value>) -> Reply {
        let mut state = self.state();
        let count = state.counts.get(method).copied().unwrap_or_default();
        state.counts.insert(method.to_owned(), count + 1);
        let chosen = state.choice.as_ref().and_then(|choice| choice(method, params, count));
        chosen.unwrap_or_else(|| Some(Ok(usual(method, params))))
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
        "elicitation/create" => match form_content(params) {
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
pub(crate) fn form_schema(params: Option<&Value>) -> Option<ToolSchema> {
    ToolSchema::compile(params?.get("requestedSchema")?, Dialect::Draft202012).ok()
}

/// The minimal content of a form.
pub(crate) fn form_content(params: Option<&Value>) -> Option<Value> {
    form_schema(params)?.minimal().ok()
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
    fn other_responses_replace_the_usual_ones_until_they_end() {
        let replies = ClientResponder::default();
        replies.begin(Arc::new(|method, _, count| match method {
            "roots/list" => None,
            "ping" => Some(None),
            _ => Some(Some(Err(json!(count)))),
        }));
        let reply = |method: &str| replies.reply(method, None);
        assert_eq!(["a", "a", "b"].map(reply), [0, 1, 0].map(|count| Some(Err(json!(count)))));
        assert_eq!((reply("ping"), reply("roots/list")), (None, Some(Ok(json!({"roots": []})))));
        replies.end();
        assert!(reply("a").is_some_and(|reply| reply.is_ok()));
    }

    #[test]
    fn each_request_in_a_result_is_answered_under_its_key() {
        let result = json!({"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}, "b": {"method": "sampling/createMessage"}}});
        let replies = ClientResponder::default();
        replies.begin(Arc::new(|method, _, _| (method == "sampling/createMessage").then(|| Some(Err(json!(-1))))));
        assert_eq!(Value::Object(replies.to_result(&result)), json!({"a": {"roots": []}}));
    }
}
