//! What tools request from the client, and how they use the response.
//!
//! The revisions differ in how a request reaches the client: as a JSON-RPC request ([`super::outgoing`]) or in
//! the result of the call ([`super::input_required`]). This module covers what both have in common.

use serde_json::{Value, json};

use super::call::{self, ToolOutput};
use super::fault::{Fault, FaultSet};
use super::injection::client_request as client_request_injection;
use super::message::{Object, object};
use super::revision::Revision;

/// The maximum number of sampling requests in one call of a tool that samples with tools.
const MAX_SAMPLING_ROUNDS: usize = 3;

/// A request that a tool makes to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientRequest {
    /// `roots/list`.
    Roots,
    /// Sampling without tools.
    Sampling,
    /// Sampling with tools.
    SamplingWithTools,
    /// Elicitation in form mode.
    ElicitationForm,
    /// Elicitation in URL mode.
    ElicitationUrl,
}

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

impl ClientRequest {
    const ALL: [Self; 5] =
        [Self::Roots, Self::Sampling, Self::SamplingWithTools, Self::ElicitationForm, Self::ElicitationUrl];

    /// The tool that makes this request.
    const fn tool(self) -> &'static str {
        match self {
            Self::Roots => "ask_roots",
            Self::Sampling => "ask_model",
            Self::SamplingWithTools => "ask_model_with_tools",
            Self::ElicitationForm => "ask_user",
            Self::ElicitationUrl => "ask_user_on_page",
        }
    }

    /// The request that a tool makes, if it makes any.
    pub(super) fn of(tool: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|question| question.tool() == tool)
    }

    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::Roots => "roots/list",
            Self::Sampling | Self::SamplingWithTools => "sampling/createMessage",
            Self::ElicitationForm | Self::ElicitationUrl => "elicitation/create",
        }
    }

    /// The client capabilities that the request needs.
    pub(super) fn required_capabilities(self) -> Value {
        match self {
            Self::Roots => json!({"roots": {}}),
            Self::Sampling => json!({"sampling": {}}),
            Self::SamplingWithTools => json!({"sampling": {"tools": {}}}),
            Self::ElicitationForm => json!({"elicitation": {"form": {}}}),
            Self::ElicitationUrl => json!({"elicitation": {"url": {}}}),
        }
    }

    /// Whether the client's capabilities, or a fault, allow the request.
    pub(super) fn is_allowed(self, client: &Object, revision: Revision, faults: &FaultSet) -> bool {
        let is_active = |fault| faults.is_active(fault, revision);
        let has = |path: &str| path.split('/').try_fold(&json!(client), |value, name| value.get(name)).is_some();
        if is_active(Fault::MrtrUndeclared) {
            return true;
        }
        match self {
            Self::Roots => has("roots"),
            Self::Sampling => has("sampling"),
            Self::SamplingWithTools => {
                has("sampling/tools") || has("sampling") && is_active(Fault::SamplingToolsUndeclared)
            }
            // An empty object means form mode only.
            Self::ElicitationForm => {
                let form = has("elicitation/form") || !has("elicitation/url") || is_active(Fault::ElicitFormUndeclared);
                has("elicitation") && form
            }
            Self::ElicitationUrl => {
                has("elicitation/url") || has("elicitation") && is_active(Fault::ElicitUrlUndeclared)
            }
        }
    }

    /// The params of the request. `messages` continue a sampling request; `number` distinguishes
    /// elicitations.
    pub(super) fn params(
        self,
        messages: &[Value],
        number: u64,
        revision: Revision,
        faults: &FaultSet,
    ) -> Option<Value> {
        let mut params = match self {
            Self::Roots => Object::new(),
            Self::Sampling => object(sampling_params()),
            Self::SamplingWithTools => object(json!({
                "messages": if messages.is_empty() { initial_messages() } else { messages.to_vec() },
                "maxTokens": 100,
                "tools": [{"name": "look_up", "description": "Looks a word up.", "inputSchema": {"type": "object"}}],
                "toolChoice": {"mode": "auto"},
            })),
            Self::ElicitationForm => {
                object(json!({"message": "Please say a word.", "requestedSchema": form(revision)}))
            }
            Self::ElicitationUrl => object(json!({
                "mode": "url",
                "message": "Please say a word on our page.",
                "url": format!("https://mock.example/word/{number}"),
            })),
        };
        if self == Self::ElicitationForm && revision >= Revision::V2025_11_25 {
            params.insert("mode".to_owned(), json!("form"));
        }
        if self == Self::ElicitationUrl && !revision.is_modern() {
            params.insert("elicitationId".to_owned(), json!(elicitation_id(number)));
        }
        client_request_injection::inject_into_params(&mut params, self, revision, faults);
        if self == Self::Roots {
            let array = faults.is_active(Fault::RootsParamsArray, revision);
            return array.then(|| json!([]));
        }
        Some(Value::Object(params))
    }

    /// The outcome of a response, after `rounds` earlier ones.
    pub(super) fn read(
        self,
        response: &Value,
        messages: &[Value],
        rounds: usize,
        revision: Revision,
        faults: &FaultSet,
    ) -> ResponseOutcome {
        let is_active = |fault| faults.is_active(fault, revision);
        match self {
            Self::Roots => match response.get("roots").and_then(Value::as_array) {
                Some(roots) if !roots.is_empty() && is_active(Fault::RootsMissingHangs) => ResponseOutcome::Hang,
                Some(roots) => {
                    ResponseOutcome::Done(ToolOutput::text(format!("The client has {} roots.", roots.len())))
                }
                None => ResponseOutcome::Malformed("roots must be an array"),
            },
            Self::Sampling | Self::SamplingWithTools => {
                let is_valid =
                    response.get("role").is_some_and(|role| role == "assistant") && has_valid_content(response);
                if !is_valid && !is_active(Fault::SamplingContentUnchecked) {
                    return ResponseOutcome::Malformed("the sampling result has no valid content");
                }
                let tool_use_ids = tool_use_ids(response);
                let can_continue = rounds + 1 < MAX_SAMPLING_ROUNDS || is_active(Fault::SamplingEndless);
                if self == Self::SamplingWithTools && !tool_use_ids.is_empty() && can_continue {
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
            Self::ElicitationForm | Self::ElicitationUrl => match response.get("action").and_then(Value::as_str) {
                Some("accept") if self == Self::ElicitationUrl => {
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
            },
        }
    }

    /// Whether a fault never answers the call if the client responds with an error.
    pub(super) fn hangs_on_error(self, revision: Revision, faults: &FaultSet) -> bool {
        let fault = match self {
            Self::Roots => Fault::RootsUnavailableHangs,
            Self::Sampling | Self::SamplingWithTools => Fault::SamplingRejectionHangs,
            Self::ElicitationForm | Self::ElicitationUrl => Fault::ElicitDeclineHangs,
        };
        faults.is_active(fault, revision)
    }
}

/// The tools whose requests the client's capabilities allow.
pub(super) fn tools_for(client: &Object, revision: Revision, faults: &FaultSet) -> Vec<&'static str> {
    let allowed = ClientRequest::ALL.into_iter().filter(|question| question.is_allowed(client, revision, faults));
    let mut tools: Vec<&str> = allowed.map(ClientRequest::tool).collect();
    if revision == Revision::V2025_11_25
        && ClientRequest::ElicitationUrl.is_allowed(client, revision, &FaultSet::none())
    {
        tools.push(TOOL_REQUIRING_URL);
    }
    tools
}

/// All tools that make requests, where capabilities are only known on a call.
pub(super) fn tools() -> Vec<&'static str> {
    ClientRequest::ALL.into_iter().map(ClientRequest::tool).collect()
}

/// The tool that fails with `URLElicitationRequiredError` until the user has visited a URL.
pub(super) const TOOL_REQUIRING_URL: &str = "ask_user_first";

/// The data of that error.
pub(super) fn elicitations(number: u64, faults: &FaultSet) -> Value {
    let params = ClientRequest::ElicitationUrl.params(&[], number, Revision::V2025_11_25, faults);
    json!({"elicitations": [params]})
}

pub(super) fn elicitation_id(number: u64) -> String {
    format!("elicitation-{number}")
}

pub(super) fn sampling_params() -> Value {
    json!({
        "messages": initial_messages(),
        "maxTokens": 16,
        "systemPrompt": "You are brief.",
        "modelPreferences": {"hints": [{"name": "small"}], "speedPriority": 0.5},
    })
}

fn initial_messages() -> Vec<Value> {
    vec![json!({"role": "user", "content": {"type": "text", "text": "Say a word."}})]
}

/// The requested schema, with a field of each kind that the revision has.
fn form(revision: Revision) -> Value {
    let mut fields = json!({
        "word": {"type": "string", "title": "Word", "description": "Any word will do.", "minLength": 1, "maxLength": 80},
        "mail": {"type": "string", "format": "email"},
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "loud": {"type": "boolean", "default": false},
        "colour": {"type": "string", "enum": ["red", "green"]},
    });
    if revision >= Revision::V2025_11_25 {
        fields["colour"] =
            json!({"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]});
        fields["days"] =
            json!({"type": "array", "items": {"type": "string", "enum": ["sat", "sun"]}, "default": ["sun"]});
    }
    json!({"type": "object", "properties": fields, "required": ["word"]})
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
    let tool_use_ids = blocks(message).iter().filter(|block| block["type"] == "tool_use");
    tool_use_ids.filter_map(|block| block.get("id")?.as_str()).collect()
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
    use super::*;

    #[test]
    fn tools_only_make_requests_that_the_client_declared() {
        let tools = |client: Value| tools_for(&object(client), Revision::V2025_11_25, &FaultSet::none());
        assert!(tools(json!({})).is_empty());
        assert_eq!(tools(json!({"elicitation": {}})), ["ask_user"]);
        assert_eq!(tools(json!({"elicitation": {"url": {}}})), ["ask_user_on_page", "ask_user_first"]);
        assert_eq!(tools(json!({"sampling": {}, "roots": {}})), ["ask_roots", "ask_model"]);
        assert_eq!(tools(json!({"sampling": {"tools": {}}})), ["ask_model", "ask_model_with_tools"]);
    }

    #[test]
    fn sampling_with_tools_stops_after_the_maximum_number_of_rounds() {
        let response = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]});
        let read = |rounds| {
            ClientRequest::SamplingWithTools.read(&response, &[], rounds, Revision::V2026_07_28, &FaultSet::none())
        };
        assert!(matches!(read(0), ResponseOutcome::Continue(messages) if messages.len() == 3));
        assert!(matches!(read(MAX_SAMPLING_ROUNDS), ResponseOutcome::Done(_)));
    }

    #[test]
    fn responses_of_the_wrong_shape_are_malformed() {
        for question in ClientRequest::ALL {
            for response in [json!(5), json!({}), json!({"action": "accept", "content": {"word": 5}, "roots": 5})] {
                let read = question.read(&response, &[], 0, Revision::V2026_07_28, &FaultSet::none());
                let page = question == ClientRequest::ElicitationUrl && response.get("action").is_some();
                assert_eq!(matches!(read, ResponseOutcome::Malformed(_)), !page, "{question:?} {response}");
            }
        }
    }
}
