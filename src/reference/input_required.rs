//! Requests to the client in revisions without server requests: in the result of a call, answered by a retry.
//!
//! The server keeps no state between the two. `requestState` carries what the retry needs, with a checksum
//! that detects changes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::call::ToolOutput;
use super::client_request::ClientRequest;
use super::client_request_params;
use super::client_response::{self, ResponseOutcome, WaitingCall};
use super::connection_state::{ConnectionState, NoResult, Request};
use super::fault::{Fault, HttpFault};
use super::injection::client_request as client_request_injection;
use super::message::{INTERNAL_ERROR, MISSING_CAPABILITY, Object, RpcError, invalid_params, object};
use crate::fnv;

/// The only key in `inputRequests`.
const INPUT_KEY: &str = "input";

/// The decoded `requestState`.
#[derive(Debug, Default, PartialEq)]
struct RequestState {
    messages: Vec<Value>,
    rounds: usize,
}

/// Requests input in the result of a call, or completes the call with the input that it has.
pub(super) fn request_in_result(
    connection: &mut ConnectionState<'_>,
    request: &Request,
    client_request: ClientRequest,
    tool: &str,
    arguments: &Object,
) -> Result<ToolOutput, NoResult> {
    let empty = Object::new();
    let params = request.params.as_ref().and_then(Value::as_object).unwrap_or(&empty);
    let declared = "/_meta/io.modelcontextprotocol~1clientCapabilities";
    let client = object(json!(params).pointer(declared).cloned().unwrap_or_default());
    if !client_request.is_allowed(&client, request.revision, connection.faults) {
        return Err(missing_capability(connection, request, client_request).into());
    }
    let owner = owner(connection);
    let state = match params.get("requestState") {
        None => RequestState::default(),
        Some(_) if connection.is_active_for(request, Fault::MrtrRetryRejected) => {
            return Err(invalid_params("requestState is unknown").into());
        }
        Some(encoded) => {
            match decode_state(
                encoded,
                owner,
                (tool, arguments),
                connection.is_active_for(request, Fault::MrtrStateUnbound),
            ) {
                Some(state) => state,
                None if connection.is_active_for(request, Fault::MrtrStateUnchecked) => RequestState::default(),
                None => return Err(invalid_params("requestState is invalid").into()),
            }
        }
    };
    connection.input_requested = false;
    let lenient = connection.is_active_for(request, Fault::MrtrMalformedServed);
    let response = match params.get("inputResponses") {
        None => None,
        Some(Value::Object(responses)) => responses.get(INPUT_KEY),
        Some(_) if lenient => return Ok(ToolOutput::text("Done.")),
        Some(_) => return Err(invalid_params("inputResponses must be an object").into()),
    };
    let Some(response) = response else {
        let retried = params.contains_key("requestState");
        if retried && connection.is_active_for(request, Fault::MrtrMissingInputRejected) {
            return Err(invalid_params("inputResponses is missing").into());
        }
        return Ok(input_required(connection, request, client_request, tool, arguments, &state));
    };
    let RequestState { messages, rounds } = &state;
    let call = WaitingCall { client_request, arguments, messages, rounds: *rounds, revision: request.revision };
    match client_response::read(call, response, connection.faults) {
        ResponseOutcome::Done(output) => Ok(output),
        ResponseOutcome::Continue(messages) => {
            let state = RequestState { messages, rounds: state.rounds + 1 };
            Ok(input_required(connection, request, client_request, tool, arguments, &state))
        }
        ResponseOutcome::Malformed(_) if lenient => Ok(ToolOutput::text("Done.")),
        ResponseOutcome::Malformed(reason) => Err(invalid_params(reason).into()),
        ResponseOutcome::Hang => Err(NoResult::Deferred),
    }
}

fn input_required(
    connection: &mut ConnectionState<'_>,
    request: &Request,
    client_request: ClientRequest,
    tool: &str,
    arguments: &Object,
    state: &RequestState,
) -> ToolOutput {
    connection.input_requested = true;
    let mut input_request = json!({"method": client_request.method()});
    // The number does not change in a retry, since nothing is counted between calls.
    if let Some(params) =
        client_request_params::params(client_request, &state.messages, 1, request.revision, connection.faults)
    {
        input_request["params"] = params;
    }
    let mut result = object(json!({
        "resultType": "input_required",
        "inputRequests": {INPUT_KEY: input_request},
        "requestState": encode_state(state, owner(connection), tool, arguments),
    }));
    client_request_injection::inject_into_result(&mut result, request.revision, connection.faults);
    ToolOutput::input_required(result)
}

/// The error for a call that needs an undeclared client capability.
fn missing_capability(connection: &ConnectionState<'_>, request: &Request, client_request: ClientRequest) -> RpcError {
    if connection.is_active_for(request, Fault::MissingCapabilityCode) {
        return RpcError::new(INTERNAL_ERROR, "The client does not support the request");
    }
    let mut needed = client_request.required_capabilities();
    if connection.is_active_for(request, Fault::MissingCapabilityList) {
        needed = json!(["sampling", "elicitation", "roots"]);
    }
    RpcError::new(MISSING_CAPABILITY, "A client capability is missing")
        .with_data(json!({"requiredCapabilities": needed}))
}

/// What the state of a user is protected with, so that it is invalid for any other user.
fn owner(connection: &ConnectionState<'_>) -> &'static str {
    let shared = connection.is_enabled(Fault::Http(HttpFault::AuthStateShared));
    if shared { "" } else { connection.user.prefix() }
}

/// A hash of the name of a user, a string and a secret suffix.
fn checksum(owner: &str, text: &str) -> u64 {
    fnv::hash(owner.bytes().chain(text.bytes()).chain(*b"mock state"))
}

/// Encodes `requestState`.
fn encode_state(state: &RequestState, owner: &str, tool: &str, arguments: &Object) -> String {
    let state = json!({"tool": tool, "arguments": arguments, "messages": state.messages, "rounds": state.rounds});
    let state = state.to_string();
    URL_SAFE_NO_PAD.encode(format!("{:016x}{state}", checksum(owner, &state)))
}

/// Decodes a `requestState`, if it is valid for this user and this call; with `unbound`, for any call.
fn decode_state(
    encoded: &Value,
    owner: &str,
    (tool, arguments): (&str, &Object),
    unbound: bool,
) -> Option<RequestState> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(encoded.as_str()?).ok()?).ok()?;
    let (expected, state) = text.split_at_checked(16)?;
    if u64::from_str_radix(expected, 16).ok()? != checksum(owner, state) {
        return None;
    }
    let state: Value = serde_json::from_str(state).ok()?;
    let bound = state["tool"] == tool && state["arguments"] == json!(arguments);
    (bound || unbound).then(|| RequestState {
        messages: state["messages"].as_array().cloned().unwrap_or_default(),
        rounds: state["rounds"].as_u64().and_then(|rounds| usize::try_from(rounds).ok()).unwrap_or_default(),
    })
}

/// The state of a call without arguments, for tests.
#[cfg(test)]
pub(super) fn initial_state(tool: &str, rounds: usize) -> String {
    encode_state(&RequestState { rounds, ..RequestState::default() }, "", tool, &Object::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_state_is_only_valid_for_its_own_call() {
        let arguments = object(json!({"topic": "é"}));
        let state = || RequestState { messages: vec![json!({"role": "user"})], rounds: 2 };
        let encoded = json!(encode_state(&state(), "", "ask_user", &arguments));
        assert_eq!(decode_state(&encoded, "", ("ask_user", &arguments), false), Some(state()));
        assert_eq!(decode_state(&encoded, "", ("ask_roots", &arguments), false), None);
        assert_eq!(decode_state(&encoded, "", ("ask_user", &Object::new()), false), None);
        assert_eq!(decode_state(&encoded, "second ", ("ask_user", &arguments), false), None);
        assert_eq!(decode_state(&encoded, "", ("ask_user", &Object::new()), true), Some(state()));
    }

    #[test]
    fn request_state_with_any_character_changed_is_rejected() {
        let own = initial_state("ask_user", 0);
        for place in 0..own.len() {
            let letter = if &own[place..=place] == "A" { "B" } else { "A" };
            let altered = json!(format!("{}{letter}{}", &own[..place], &own[place + 1..]));
            assert_eq!(decode_state(&altered, "", ("ask_user", &Object::new()), true), None, "{altered}");
        }
        for other in [json!(5), json!(""), json!("é"), json!(own[..own.len() / 2])] {
            assert_eq!(decode_state(&other, "", ("ask_user", &Object::new()), true), None, "{other}");
        }
    }
}
