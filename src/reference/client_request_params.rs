//! The params of requests to the client, in every revision.

use serde_json::{Value, json};

use super::client_request::ClientRequest;
use super::fault::{Fault, FaultSet};
use super::injection::client_request::inject_into_params;
use super::message::{Object, object};
use super::revision::Revision;

/// The params of the request. `messages` continue a sampling request; `number` distinguishes
/// elicitations.
pub(super) fn params(
    client_request: ClientRequest,
    messages: &[Value],
    number: u64,
    revision: Revision,
    faults: &FaultSet,
) -> Option<Value> {
    let mut params = match client_request {
        ClientRequest::Roots | ClientRequest::RootsForFile => Object::new(),
        ClientRequest::Sampling => object(sampling_params()),
        ClientRequest::SamplingWithTools => object(json!({
            "messages": if messages.is_empty() { initial_messages() } else { messages.to_vec() },
            "maxTokens": 100,
            "tools": [{"name": "look_up", "description": "Looks a word up.", "inputSchema": {"type": "object"}}],
            "toolChoice": {"mode": "auto"},
        })),
        ClientRequest::ElicitationForm => {
            object(json!({"message": "Please say a word.", "requestedSchema": form(revision)}))
        }
        ClientRequest::ElicitationUrl => object(json!({
            "mode": "url",
            "message": "Please say a word on our page.",
            "url": format!("https://mock.example/word/{number}"),
        })),
    };
    if client_request == ClientRequest::ElicitationForm && revision >= Revision::V2025_11_25 {
        params.insert("mode".to_owned(), json!("form"));
    }
    if client_request == ClientRequest::ElicitationUrl && !revision.is_modern() {
        params.insert("elicitationId".to_owned(), json!(elicitation_id(number)));
    }
    inject_into_params(&mut params, client_request, revision, faults);
    if client_request == ClientRequest::Roots {
        let array = faults.is_active(Fault::RootsParamsArray, revision);
        return array.then(|| json!([]));
    }
    Some(Value::Object(params))
}

/// The data of the error that the user has to visit a URL first.
pub(super) fn elicitations(number: u64, faults: &FaultSet) -> Value {
    let params = params(ClientRequest::ElicitationUrl, &[], number, Revision::V2025_11_25, faults);
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

pub(super) fn initial_messages() -> Vec<Value> {
    vec![json!({"role": "user", "content": {"type": "text", "text": "Say a word."}})]
}

/// The requested schema, with a field of each kind that the revision has.
pub(super) fn form(revision: Revision) -> Value {
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
        // The page shows `pattern` from this revision on.
        fields["nick"] = json!({"type": "string", "pattern": "^[A-Za-z]+$"});
        fields["days"] =
            json!({"type": "array", "items": {"type": "string", "enum": ["sat", "sun"]}, "default": ["sun"]});
    }
    json!({"type": "object", "properties": fields, "required": ["word"]})
}
