//! Requests to the client in revisions without server requests: in the result of a call, answered by a retry.
//!
//! The server keeps no state between the two. `requestState` carries what the retry needs, with a checksum
//! that detects changes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::call::ToolOutput;
use super::client_request::{ClientRequest, ResponseOutcome};
use super::connection::{Connection, NoResult, Request};
use super::fault::Fault;
use super::injection::client_request as client_request_injection;
use super::message::{INTERNAL_ERROR, MISSING_CAPABILITY, Object, RpcError, invalid_params, object};

/// The only key in `inputRequests`.
const INPUT_KEY: &str = "input";

/// The decoded `requestState`.
#[derive(Debug, Default, PartialEq)]
struct RequestState {
    messages: Vec<Value>,
    rounds: usize,
}

impl Connection<'_> {
    /// Requests input in the result of a call, or completes the call with the input that it has.
    pub(super) fn request_in_result(
        &mut self,
        request: &Request,
        client_request: ClientRequest,
        tool: &str,
        arguments: &Object,
    ) -> Result<ToolOutput, NoResult> {
        let empty = Object::new();
        let params = request.params.as_ref().and_then(Value::as_object).unwrap_or(&empty);
        let declared = "/_meta/io.modelcontextprotocol~1clientCapabilities";
        let client = object(json!(params).pointer(declared).cloned().unwrap_or_default());
        if !client_request.is_allowed(&client, request.revision, self.faults) {
            return Err(self.missing(request, client_request).into());
        }
        let previous = match params.get("requestState") {
            None => RequestState::default(),
            Some(_) if self.is_active_for(request, Fault::MrtrRetryRejected) => {
                return Err(invalid_params("The state is unknown").into());
            }
            Some(encode_state) => {
                match decode_state(encode_state, tool, arguments, self.is_active_for(request, Fault::MrtrStateUnbound))
                {
                    Some(previous) => previous,
                    None if self.is_active_for(request, Fault::MrtrStateUnchecked) => RequestState::default(),
                    None => return Err(invalid_params("requestState is not one of ours").into()),
                }
            }
        };
        self.input_requested = false;
        let lenient = self.is_active_for(request, Fault::MrtrMalformedServed);
        let answer = match params.get("inputResponses") {
            None => None,
            Some(Value::Object(responses)) => responses.get(INPUT_KEY),
            Some(_) if lenient => return Ok(ToolOutput::text("Done.")),
            Some(_) => return Err(invalid_params("inputResponses must be an object").into()),
        };
        let Some(answer) = answer else {
            let retried = params.contains_key("requestState");
            if retried && self.is_active_for(request, Fault::MrtrMissingInputRejected) {
                return Err(invalid_params("The answer is missing").into());
            }
            return Ok(self.input_required(request, client_request, tool, arguments, &previous));
        };
        match client_request.read(answer, &previous.messages, previous.rounds, request.revision, self.faults) {
            ResponseOutcome::Done(reply) => Ok(reply),
            ResponseOutcome::Continue(messages) => {
                let previous = RequestState { messages, rounds: previous.rounds + 1 };
                Ok(self.input_required(request, client_request, tool, arguments, &previous))
            }
            ResponseOutcome::Malformed(_) if lenient => Ok(ToolOutput::text("Done.")),
            ResponseOutcome::Malformed(reason) => Err(invalid_params(reason).into()),
            ResponseOutcome::Hang => Err(NoResult::Deferred),
        }
    }

    fn input_required(
        &mut self,
        request: &Request,
        client_request: ClientRequest,
        tool: &str,
        arguments: &Object,
        previous: &RequestState,
    ) -> ToolOutput {
        self.input_requested = true;
        let mut asked = json!({"method": client_request.method()});
        // The number does not change in a retry, since nothing is counted between calls.
        if let Some(params) = client_request.params(&previous.messages, 1, request.revision, self.faults) {
            asked["params"] = params;
        }
        let mut result = object(json!({
            "resultType": "input_required",
            "inputRequests": {INPUT_KEY: asked},
            "requestState": encode_state(previous, tool, arguments),
        }));
        client_request_injection::inject_into_result(&mut result, request.revision, self.faults);
        ToolOutput::input_required(result)
    }

    /// The error for a call that needs an undeclared client capability.
    fn missing(&self, request: &Request, client_request: ClientRequest) -> RpcError {
        if self.is_active_for(request, Fault::MissingCapabilityCode) {
            return RpcError::new(INTERNAL_ERROR, "The client cannot be asked");
        }
        let mut needed = client_request.required_capabilities();
        if self.is_active_for(request, Fault::MissingCapabilityList) {
            needed = json!(["sampling", "elicitation", "roots"]);
        }
        RpcError::new(MISSING_CAPABILITY, "A client capability is missing")
            .with_data(json!({"requiredCapabilities": needed}))
    }
}

/// FNV-1a over a string and a secret suffix.
fn checksum(text: &str) -> u64 {
    text.bytes()
        .chain(*b"mock state")
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Encodes `requestState`.
fn encode_state(previous: &RequestState, tool: &str, arguments: &Object) -> String {
    let previous =
        json!({"tool": tool, "arguments": arguments, "messages": previous.messages, "rounds": previous.rounds});
    let previous = previous.to_string();
    URL_SAFE_NO_PAD.encode(format!("{:016x}{previous}", checksum(&previous)))
}

/// Decodes a `requestState`, if it is valid for this call; with `unbound`, for any call.
fn decode_state(encode_state: &Value, tool: &str, arguments: &Object, unbound: bool) -> Option<RequestState> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(encode_state.as_str()?).ok()?).ok()?;
    let (given, previous) = text.split_at_checked(16)?;
    if u64::from_str_radix(given, 16).ok()? != checksum(previous) {
        return None;
    }
    let previous: Value = serde_json::from_str(previous).ok()?;
    let bound = previous["tool"] == tool && previous["arguments"] == json!(arguments);
    (bound || unbound).then(|| RequestState {
        messages: previous["messages"].as_array().cloned().unwrap_or_default(),
        rounds: previous["rounds"].as_u64().and_then(|rounds| usize::try_from(rounds).ok()).unwrap_or_default(),
    })
}

/// The state of a call without arguments, for tests.
#[cfg(test)]
pub(super) fn initial_state(tool: &str, rounds: usize) -> String {
    encode_state(&RequestState { rounds, ..RequestState::default() }, tool, &Object::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_back_for_its_own_call_only() {
        let arguments = object(json!({"topic": "é"}));
        let previous = || RequestState { messages: vec![json!({"role": "user"})], rounds: 2 };
        let encode_state = json!(encode_state(&previous(), "ask_user", &arguments));
        assert_eq!(decode_state(&encode_state, "ask_user", &arguments, false), Some(previous()));
        assert_eq!(decode_state(&encode_state, "ask_roots", &arguments, false), None);
        assert_eq!(decode_state(&encode_state, "ask_user", &Object::new(), false), None);
        assert_eq!(decode_state(&encode_state, "ask_user", &Object::new(), true), Some(previous()));
    }

    #[test]
    fn a_state_altered_in_any_one_character_is_refused() {
        let own = initial_state("ask_user", 0);
        for place in 0..own.len() {
            let letter = if &own[place..=place] == "A" { "B" } else { "A" };
            let altered = json!(format!("{}{letter}{}", &own[..place], &own[place + 1..]));
            assert_eq!(decode_state(&altered, "ask_user", &Object::new(), true), None, "{altered}");
        }
        for other in [json!(5), json!(""), json!("é"), json!(own[..own.len() / 2])] {
            assert_eq!(decode_state(&other, "ask_user", &Object::new(), true), None, "{other}");
        }
    }
}
