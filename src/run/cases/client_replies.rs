//! The responses of a case to requests of the server, in place of the usual ones of a client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::case::{ClientResponse, Placeholder, fill};
use crate::fuzz::Mistake;
use crate::limits::MAX_CASE_RESPONSES;
use crate::session::{Reply, ReplyChoice, form_content, form_schema};

/// The responses of a case, by method.
#[derive(Debug)]
pub(super) struct CaseReplies {
    by_method: BTreeMap<String, Vec<ClientResponse>>,
    /// The URI of the folder that the run made for the case.
    root: Option<String>,
    /// Whether a placeholder in a response could not be filled in.
    unfilled: AtomicBool,
}

impl CaseReplies {
    pub(in crate::run) fn new(by_method: &BTreeMap<String, Vec<ClientResponse>>, root: Option<String>) -> Arc<Self> {
        Arc::new(Self { by_method: by_method.clone(), root, unfilled: AtomicBool::new(false) })
    }

    /// The function by which a session gets them.
    pub(in crate::run) fn choice(self: &Arc<Self>) -> ReplyChoice {
        let replies = Arc::clone(self);
        Arc::new(move |method, params, count| replies.reply(method, params, count))
    }

    /// Whether every response so far could be filled in.
    pub(super) fn are_filled(&self) -> bool {
        !self.unfilled.load(Ordering::Relaxed)
    }

    /// The response of the case to a request of which `count` others of the method came before; the last one is repeated.
    fn reply(&self, method: &str, params: Option<&Value>, count: usize) -> Option<Reply> {
        let replies = self.by_method.get(method).filter(|_| count < MAX_CASE_RESPONSES)?;
        let filled = match replies.get(count).or(replies.last())? {
            ClientResponse::NoResponse => return Some(None),
            ClientResponse::Result(result) => self.filled(result, params, count).map(Ok),
            ClientResponse::Error(error) => self.filled(error, params, count).map(Err),
        };
        self.unfilled.fetch_or(filled.is_none(), Ordering::Relaxed);
        filled.map(Some)
    }

    /// The result or error of a case with its placeholders filled in; nothing where that is not possible.
    fn filled(&self, response: &Value, params: Option<&Value>, count: usize) -> Option<Value> {
        let mut value_of = |placeholder: &Placeholder| {
            match placeholder {
                Placeholder::ClientRequestContent => form_content(params),
                Placeholder::ClientRequestInvalidContent => invalid_content(params),
                Placeholder::ClientRequestTool => params.and_then(|params| params.pointer("/tools/0/name")).cloned(),
                Placeholder::ClientRequestCount => Some(json!(count)),
                Placeholder::Root => self.root.as_deref().map(Value::from),
                _ => None,
            }
            .ok_or(())
        };
        fill(response, &mut value_of).ok()
    }
}

/// Content of a form that is invalid in the first way that its schema allows.
fn invalid_content(params: Option<&Value>) -> Option<Value> {
    let form = form_schema(params)?;
    let ways = [Mistake::MissingRequired, Mistake::WrongType, Mistake::OutsideEnum];
    ways.into_iter().find_map(|breakage| form.with_mistake(breakage)).map(|broken| broken.arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::ClientResponder;

    const SAMPLING: &str = "sampling/createMessage";

    /// A client with the responses of a case to requests of a method, and these.
    fn client(method: &str, responses: Vec<ClientResponse>) -> (ClientResponder, Arc<CaseReplies>) {
        let (client, replies) =
            (ClientResponder::default(), CaseReplies::new(&BTreeMap::from([(method.to_owned(), responses)]), None));
        client.begin(replies.choice());
        (client, replies)
    }

    #[test]
    fn the_responses_of_a_case_follow_in_order_and_the_last_is_repeated() {
        let error = json!({"code": -1, "message": "no ${client-request.count}"});
        let broken = json!({"action": "accept", "content": "${client-request.invalid-content}"});
        let responses = vec![ClientResponse::Result(broken), ClientResponse::Error(error)];
        let (client, replies) = client("elicitation/create", responses);
        let form = json!({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]});
        let params = json!({"message": "?", "requestedSchema": form});
        let reply = || client.reply("elicitation/create", Some(&params)).expect("a response");
        let first = reply().expect("a result");
        assert!(first["content"].get("a").is_none_or(|value| !value.is_boolean()), "{first}");
        for number in 1..MAX_CASE_RESPONSES {
            let error = reply().expect_err("an error");
            assert_eq!(error["message"], format!("no {number}"));
        }
        assert!(reply().is_ok(), "the server repeats its request");
        assert!(replies.are_filled());
        client.end();
        assert!(reply().is_ok());
    }

    #[test]
    fn a_response_that_cannot_be_filled_in_becomes_the_usual_one() {
        let named = ClientResponse::Result(json!({"name": "${client-request.tool}"}));
        let (client, replies) = client(SAMPLING, vec![named]);
        let usual = client.reply(SAMPLING, Some(&json!({}))).expect("a response").expect("a result");
        assert_eq!(usual["role"], "assistant");
        assert!(!replies.are_filled());
        let filled = client.reply(SAMPLING, Some(&json!({"tools": [{"name": "add"}]})));
        assert_eq!(filled, Some(Ok(json!({"name": "add"}))));
        assert!(!replies.are_filled(), "one was not");
    }

    #[test]
    fn a_case_may_leave_requests_unanswered() {
        let (client, replies) = client(SAMPLING, vec![ClientResponse::NoResponse]);
        assert_eq!(client.reply(SAMPLING, None), None);
        assert_eq!(client.reply("roots/list", None), Some(Ok(json!({"roots": []}))));
        assert!(replies.are_filled());
    }
}
