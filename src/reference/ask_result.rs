//! Questions of the stateless era: asked in the result of a call, answered in the next one.
//!
//! Nothing is remembered between the two. What the second call has to know stands in `requestState`,
//! with a check over it that nobody else can make.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::ask::{Question, Read};
use super::call::Reply;
use super::connection::{Connection, Request, Stop};
use super::deviation::asking;
use super::fault::Fault;
use super::message::{INTERNAL_ERROR, MISSING_CAPABILITY, Object, Refusal, invalid_params, object};

/// The key under which the one request stands.
const KEY: &str = "input";

/// What the state says of the call that it was made for.
#[derive(Debug, Default, PartialEq)]
struct Told {
    messages: Vec<Value>,
    rounds: usize,
}

impl Connection<'_> {
    /// Asks in the result of a call, or makes a result of the answer that the call brings.
    pub(super) fn ask_in_result(
        &mut self,
        request: &Request,
        question: Question,
        tool: &str,
        arguments: &Object,
    ) -> Result<Reply, Stop> {
        let empty = Object::new();
        let params = request.params.as_ref().and_then(Value::as_object).unwrap_or(&empty);
        let declared = "/_meta/io.modelcontextprotocol~1clientCapabilities";
        let client = object(json!(params).pointer(declared).cloned().unwrap_or_default());
        if !question.is_allowed(&client, request.revision, self.faults) {
            return Err(self.missing(request, question).into());
        }
        let told = match params.get("requestState") {
            None => Told::default(),
            Some(_) if self.fails(request, Fault::MrtrRetryRejected) => {
                return Err(invalid_params("The state is unknown").into());
            }
            Some(state) => match read_state(state, tool, arguments, self.fails(request, Fault::MrtrStateUnbound)) {
                Some(told) => told,
                None if self.fails(request, Fault::MrtrStateUnchecked) => Told::default(),
                None => return Err(invalid_params("requestState is not one of ours").into()),
            },
        };
        self.asked = false;
        let lax = self.fails(request, Fault::MrtrMalformedServed);
        let answer = match params.get("inputResponses") {
            None => None,
            Some(Value::Object(responses)) => responses.get(KEY),
            Some(_) if lax => return Ok(Reply::text("Done.")),
            Some(_) => return Err(invalid_params("inputResponses must be an object").into()),
        };
        let Some(answer) = answer else {
            let retried = params.contains_key("requestState");
            if retried && self.fails(request, Fault::MrtrMissingInputRejected) {
                return Err(invalid_params("The answer is missing").into());
            }
            return Ok(self.asking(request, question, tool, arguments, &told));
        };
        match question.read(answer, &told.messages, told.rounds, request.revision, self.faults) {
            Read::Done(reply) => Ok(reply),
            Read::Again(messages) => {
                let told = Told { messages, rounds: told.rounds + 1 };
                Ok(self.asking(request, question, tool, arguments, &told))
            }
            Read::Malformed(_) if lax => Ok(Reply::text("Done.")),
            Read::Malformed(reason) => Err(invalid_params(reason).into()),
            Read::Never => Err(Stop::Later),
        }
    }

    fn asking(&mut self, request: &Request, question: Question, tool: &str, arguments: &Object, told: &Told) -> Reply {
        self.asked = true;
        let mut asked = json!({"method": question.method()});
        // The same elicitation is asked again under the same number: nothing is counted between calls.
        if let Some(params) = question.params(&told.messages, 1, request.revision, self.faults) {
            asked["params"] = params;
        }
        let mut result = object(json!({
            "resultType": "input_required",
            "inputRequests": {KEY: asked},
            "requestState": state(told, tool, arguments),
        }));
        asking::deviate_result(&mut result, request.revision, self.faults);
        Reply::asking(result)
    }

    /// The refusal of a call that needs what the client did not declare.
    fn missing(&self, request: &Request, question: Question) -> Refusal {
        if self.fails(request, Fault::MissingCapabilityCode) {
            return Refusal::new(INTERNAL_ERROR, "The client cannot be asked");
        }
        let mut needed = question.needs();
        if self.fails(request, Fault::MissingCapabilityList) {
            needed = json!(["sampling", "elicitation", "roots"]);
        }
        Refusal::new(MISSING_CAPABILITY, "A client capability is missing")
            .with_data(json!({"requiredCapabilities": needed}))
    }
}

/// FNV-1a over a text and a word that no client is told.
fn check(text: &str) -> u64 {
    text.bytes()
        .chain(*b"mock state")
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The state of a call that asks.
fn state(told: &Told, tool: &str, arguments: &Object) -> String {
    let told = json!({"tool": tool, "arguments": arguments, "messages": told.messages, "rounds": told.rounds});
    let told = told.to_string();
    URL_SAFE_NO_PAD.encode(format!("{:016x}{told}", check(&told)))
}

/// What a state says, if it is ours and of this call; `unbound` lets it be of any.
fn read_state(state: &Value, tool: &str, arguments: &Object, unbound: bool) -> Option<Told> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(state.as_str()?).ok()?).ok()?;
    let (given, told) = text.split_at_checked(16)?;
    if u64::from_str_radix(given, 16).ok()? != check(told) {
        return None;
    }
    let told: Value = serde_json::from_str(told).ok()?;
    let bound = told["tool"] == tool && told["arguments"] == json!(arguments);
    (bound || unbound).then(|| Told {
        messages: told["messages"].as_array().cloned().unwrap_or_default(),
        rounds: told["rounds"].as_u64().and_then(|rounds| usize::try_from(rounds).ok()).unwrap_or_default(),
    })
}

/// The state by which a tool asks without arguments, for scripts that do not wait for it.
#[cfg(test)]
pub(super) fn state_of(tool: &str, rounds: usize) -> String {
    state(&Told { rounds, ..Told::default() }, tool, &Object::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_back_for_its_own_call_only() {
        let arguments = object(json!({"topic": "é"}));
        let told = || Told { messages: vec![json!({"role": "user"})], rounds: 2 };
        let state = json!(state(&told(), "ask_user", &arguments));
        assert_eq!(read_state(&state, "ask_user", &arguments, false), Some(told()));
        assert_eq!(read_state(&state, "ask_roots", &arguments, false), None);
        assert_eq!(read_state(&state, "ask_user", &Object::new(), false), None);
        assert_eq!(read_state(&state, "ask_user", &Object::new(), true), Some(told()));
    }

    #[test]
    fn a_state_altered_in_any_one_character_is_refused() {
        let own = state_of("ask_user", 0);
        for place in 0..own.len() {
            let letter = if &own[place..=place] == "A" { "B" } else { "A" };
            let altered = json!(format!("{}{letter}{}", &own[..place], &own[place + 1..]));
            assert_eq!(read_state(&altered, "ask_user", &Object::new(), true), None, "{altered}");
        }
        for other in [json!(5), json!(""), json!("é"), json!(own[..own.len() / 2])] {
            assert_eq!(read_state(&other, "ask_user", &Object::new(), true), None, "{other}");
        }
    }
}
