//! How tools use the client's response to their request.

use serde_json::{Value, json};

use super::call::{self, ToolOutput};
use super::client_request::ClientRequest;
use super::client_request_params::{form, initial_messages};
use super::fault::{Fault, FaultSet};
use super::message::Object;
use super::revision::Revision;
use super::root_file;

/// The maximum number of sampling requests in one call of a tool that samples with tools.
const MAX_SAMPLING_ROUNDS: usize = 3;

/// The outcome of the client's response.
#[derive(Debug, PartialEq)]
pub(super) enum ResponseOutcome {
    /// The tool has its input.
    Done(ToolOutput),
    /// The model used tools: sampling continues with these messages.
    Continue(Vec<Value>),
    /// The response does not match the request, for this reason.
    Malformed(&'static str),
    /// A fault never answers the call.
    Hang,
}

/// A call that waits for a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingCall<'a> {
    pub(super) client_request: ClientRequest,
    pub(super) arguments: &'a Object,
    /// The messages of a sampling request, and how many responses came before.
    pub(super) messages: &'a [Value],
    pub(super) rounds: usize,
    pub(super) revision: Revision,
}

/// The outcome of a response.
pub(super) fn read(call: WaitingCall<'_>, response: &Value, faults: &FaultSet) -> ResponseOutcome {
    let WaitingCall { client_request, arguments, messages, rounds, revision } = call;
    let is_active = |fault| faults.is_active(fault, revision);
    match client_request {
        ClientRequest::RootsForFile => match response.get("roots").and_then(Value::as_array) {
            Some(roots) => ResponseOutcome::Done(root_file::read(roots, arguments, revision, faults)),
            None => ResponseOutcome::Malformed("roots must be an array"),
        },
        ClientRequest::Roots => match response.get("roots").and_then(Value::as_array) {
            Some(roots) if !roots.is_empty() && is_active(Fault::RootsMissingHangs) => ResponseOutcome::Hang,
            Some(roots) => ResponseOutcome::Done(ToolOutput::text(format!("The client has {} roots.", roots.len()))),
            None => ResponseOutcome::Malformed("roots must be an array"),
        },
        ClientRequest::Sampling | ClientRequest::SamplingWithTools => {
            let is_valid = response.get("role").is_some_and(|role| role == "assistant") && has_valid_content(response);
            if !is_valid && !is_active(Fault::SamplingContentUnchecked) {
                return ResponseOutcome::Malformed("the sampling result has no valid content");
            }
            let tool_use_ids = tool_use_ids(response);
            let can_continue = rounds + 1 < MAX_SAMPLING_ROUNDS || is_active(Fault::SamplingEndless);
            if client_request == ClientRequest::SamplingWithTools && !tool_use_ids.is_empty() && can_continue {
                return ResponseOutcome::Continue(continue_messages(
                    messages,
                    response,
                    &tool_use_ids,
                    revision,
                    faults,
                ));
            }
            ResponseOutcome::Done(ToolOutput::text("The model responded."))
        }
        ClientRequest::ElicitationForm | ClientRequest::ElicitationUrl => {
            match response.get("action").and_then(Value::as_str) {
                Some("accept") if client_request == ClientRequest::ElicitationUrl => {
                    ResponseOutcome::Done(ToolOutput::text("The user visits the page."))
                }
                Some("accept") => {
                    let content = response.get("content").unwrap_or(&Value::Null);
                    let violation =
                        call::violation(&form(revision), content, faults).is_ok_and(|violation| violation.is_some());
                    if violation && !is_active(Fault::ElicitContentUnchecked) {
                        return ResponseOutcome::Malformed("the content violates the requested schema");
                    }
                    ResponseOutcome::Done(ToolOutput::text("The user filled in the form."))
                }
                Some("decline" | "cancel") if is_active(Fault::ElicitDeclineHangs) => ResponseOutcome::Hang,
                Some("decline" | "cancel") => ResponseOutcome::Done(ToolOutput::text("The user declined.")),
                _ => ResponseOutcome::Malformed("action must be accept, decline or cancel"),
            }
        }
    }
}

fn blocks(message: &Value) -> &[Value] {
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks,
        Some(block) => std::slice::from_ref(block),
        None => &[],
    }
}

/// Whether a sampling result has content of known types only.
fn has_valid_content(message: &Value) -> bool {
    let fits = |block: &Value| match block.get("type").and_then(Value::as_str) {
        Some("text") => block.get("text").is_some_and(Value::is_string),
        Some("image" | "audio") => block.get("data").is_some_and(Value::is_string),
        Some("tool_use") => block.get("id").is_some_and(Value::is_string),
        _ => false,
    };
    !blocks(message).is_empty() && blocks(message).iter().all(fits)
}

/// The ids of the tool uses in a sampling result.
fn tool_use_ids(message: &Value) -> Vec<&str> {
    let tool_uses = blocks(message).iter().filter(|block| block["type"] == "tool_use");
    tool_uses.filter_map(|block| block.get("id")?.as_str()).collect()
}

/// The messages so far, the sampling result, and the results of the tools that it used.
fn continue_messages(
    messages: &[Value],
    response: &Value,
    tool_use_ids: &[&str],
    revision: Revision,
    faults: &FaultSet,
) -> Vec<Value> {
    let mut messages = if messages.is_empty() { initial_messages() } else { messages.to_vec() };
    messages.push(json!({"role": "assistant", "content": response["content"]}));
    let skipped = usize::from(faults.is_active(Fault::SamplingUnbalanced, revision));
    let mut results: Vec<Value> = tool_use_ids
        .iter()
        .skip(skipped)
        .map(|id| {
            let content = json!([{"type": "text", "text": "It is a word."}]);
            json!({"type": "tool_result", "toolUseId": id, "content": content})
        })
        .collect();
    if faults.is_active(Fault::SamplingResultsMixed, revision) {
        results.push(json!({"type": "text", "text": "Go on."}));
    }
    messages.push(json!({"role": "user", "content": results}));
    messages
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    /// A call without arguments.
    fn call(client_request: ClientRequest, rounds: usize) -> WaitingCall<'static> {
        static NONE: LazyLock<Object> = LazyLock::new(Object::new);
        WaitingCall { client_request, arguments: &NONE, messages: &[], rounds, revision: Revision::V2026_07_28 }
    }

    #[test]
    fn sampling_with_tools_stops_after_the_maximum_number_of_rounds() {
        let response = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]});
        let read = |rounds| super::read(call(ClientRequest::SamplingWithTools, rounds), &response, &FaultSet::none());
        assert!(matches!(read(0), ResponseOutcome::Continue(messages) if messages.len() == 3));
        assert!(matches!(read(MAX_SAMPLING_ROUNDS), ResponseOutcome::Done(_)));
    }

    #[test]
    fn responses_of_the_wrong_shape_are_malformed() {
        for question in ClientRequest::ALL {
            for response in [json!(5), json!({}), json!({"action": "accept", "content": {"word": 5}, "roots": 5})] {
                let read = super::read(call(question, 0), &response, &FaultSet::none());
                let page = question == ClientRequest::ElicitationUrl && response.get("action").is_some();
                assert_eq!(matches!(read, ResponseOutcome::Malformed(_)), !page, "{question:?} {response}");
            }
        }
    }
}
