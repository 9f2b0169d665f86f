//! Faults in the envelope of messages: version, ids, errors, and the params of notifications.

use serde_json::{Value, json};

use crate::reference::fault::{Fault, FaultSet};
use crate::reference::message::{METHOD_NOT_FOUND, Object, object};
use crate::reference::revision::Revision;

/// The `_meta` key that names the subscription of a notification.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// An outgoing message and its context.
#[derive(Clone, Debug)]
pub(in crate::reference) struct Outgoing {
    pub(in crate::reference) message: Value,
    pub(in crate::reference) revision: Revision,
    /// The method of the request that it answers, if it is a response.
    pub(in crate::reference) response_to: Option<String>,
    /// Whether that request was well-formed.
    pub(in crate::reference) well_formed: bool,
    /// Whether it opens the connection. Faults of ids do not apply then, because nothing else could be tested
    /// on a connection that never opens.
    pub(in crate::reference) opens: bool,
}

/// Applies faults to a message.
pub(in crate::reference) fn inject(outgoing: &mut Outgoing, faults: &FaultSet) {
    let revision = outgoing.revision;
    let Value::Object(message) = &mut outgoing.message else {
        return;
    };
    let is_active = |fault| faults.is_active(fault, revision);
    if outgoing.response_to.is_some() {
        if is_active(Fault::Jsonrpc10) {
            set(message, "jsonrpc", json!("1.0"));
        }
        inject_into_error(message, outgoing.well_formed, &is_active);
        if !outgoing.opens
            && let Some(id) = message.get("id").and_then(|id| changed_id(id, message, &is_active))
        {
            set(message, "id", id);
        }
        if is_active(Fault::IdsWrongType)
            && let Some(id) = message.get("id")
        {
            let id = id_of_other_type(id);
            set(message, "id", id);
        }
        if is_active(Fault::ResponseWithoutResult) && !outgoing.opens {
            message.retain(|member, _| member != "result" && member != "error");
        }
    } else {
        inject_into_notification(message, revision, &is_active);
    }
    if is_active(Fault::HostileText) {
        super::hostile::append_payload(&mut outgoing.message);
    }
}

fn inject_into_error(message: &mut Object, well_formed: bool, is_active: &dyn Fn(Fault) -> bool) {
    let Some(Value::Object(error)) = message.get_mut("error") else {
        return;
    };
    let unknown_method = error.get("code") == Some(&json!(METHOD_NOT_FOUND));
    if is_active(Fault::ErrorCodeString) && unknown_method {
        set(error, "code", json!(METHOD_NOT_FOUND.to_string()));
    }
    if is_active(Fault::ErrorMessageStack) {
        let trace = "Error: refused\n    at serve (/srv/mock/server.js:41:17)\n    at listen (/srv/mock/server.js:7:3)";
        set(error, "message", json!(trace));
    }
    if is_active(Fault::ErrorIdNull) && well_formed {
        set(message, "id", Value::Null);
    }
    if is_active(Fault::ErrorIdEmpty) {
        set(message, "id", json!(""));
    }
    if is_active(Fault::ReadableIdOmitted) && !well_formed {
        message.shift_remove("id");
    }
    if is_active(Fault::ResultAndError) {
        set(message, "result", json!({}));
    }
}

/// The id that a fault returns instead of the request id.
fn changed_id(id: &Value, message: &Object, is_active: &dyn Fn(Fault) -> bool) -> Option<Value> {
    match id {
        Value::Number(_) => {
            let number = id.as_i64()?;
            if is_active(Fault::IdAsString) && message.contains_key("result") {
                Some(json!(number.to_string()))
            } else if is_active(Fault::NegativeIdPositive) && number < 0 {
                Some(json!(number.unsigned_abs()))
            } else if is_active(Fault::IdAsDouble) && number > 1 << 53 {
                Some(json!(nearest_double(number.unsigned_abs())))
            } else if is_active(Fault::LargeIdRounded) && number >= (1 << 53) - 1 {
                // The next even number is no signed number for the largest one.
                Some(json!(number.unsigned_abs() + number.unsigned_abs() % 2))
            } else {
                None
            }
        }
        Value::String(text) if is_active(Fault::LongIdCut) && text.chars().count() > 255 => {
            Some(json!(text.chars().take(255).collect::<String>()))
        }
        Value::String(text) if is_active(Fault::UnicodeIdMangled) && !text.is_ascii() => {
            let ascii: String = text.chars().map(|letter| if letter.is_ascii() { letter } else { '?' }).collect();
            Some(json!(ascii))
        }
        _ => None,
    }
}

/// An integer beyond 2^53, rounded to the next one that a double can hold.
fn nearest_double(number: u64) -> u64 {
    const MANTISSA_BITS: u32 = 53;
    let step = 1 << (u64::BITS - number.leading_zeros() - MANTISSA_BITS);
    (number + step / 2) / step * step
}

/// Integers as strings, and all other ids as numbers.
fn id_of_other_type(id: &Value) -> Value {
    match id {
        Value::Number(number) => json!(number.to_string()),
        Value::String(text) => json!(text.parse::<i64>().unwrap_or(0)),
        other => other.clone(),
    }
}

fn inject_into_notification(message: &mut Object, revision: Revision, is_active: &dyn Fn(Fault) -> bool) {
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    match method.as_str() {
        "notifications/progress" => {
            if let Some(Value::Object(params)) = message.get_mut("params") {
                if is_active(Fault::ProgressString) {
                    let progress = params.get("progress").map(Value::to_string);
                    set(params, "progress", json!(progress));
                }
                if is_active(Fault::ProgressUnknownToken) {
                    set(params, "progressToken", json!("nobody-gave-this"));
                }
                if is_active(Fault::ProgressTokenAsString)
                    && let Some(token @ Value::Number(_)) = params.get("progressToken")
                {
                    let token = token.to_string();
                    set(params, "progressToken", json!(token));
                }
                if is_active(Fault::ProgressMessageEmpty) {
                    set(params, "message", json!(""));
                }
                if is_active(Fault::TraceparentShort) {
                    set(params, "_meta", json!({"traceparent": "00-b7ad6b7169203331-01"}));
                }
                if is_active(Fault::ProgressOnSubscription) {
                    set(params, "_meta", json!({ SUBSCRIPTION: 7 }));
                }
            }
            // A stateless server does not send list_changed here, so this uses another notification.
            if is_active(Fault::NotificationWithId) && revision.is_modern() {
                set(message, "id", json!(99));
            }
        }
        "notifications/message" => {
            if let Some(Value::Object(params)) = message.get_mut("params") {
                if is_active(Fault::LogLevelLoud) {
                    set(params, "level", json!("loud"));
                }
                if is_active(Fault::LogSecret) {
                    set(params, "data", json!({"authorization": "Bearer 3fa1c0de5e1f0b7c9d2e4a6b8c0d1e2f"}));
                }
                if is_active(Fault::LogOnSubscription) {
                    set(params, "_meta", json!({ SUBSCRIPTION: 7 }));
                }
            }
        }
        "notifications/tools/list_changed" => {
            if is_active(Fault::ListChangedParamsArray) {
                set(message, "params", json!([]));
            }
            if is_active(Fault::NotificationWithId) {
                set(message, "id", json!(99));
            }
        }
        _ => {}
    }
}

fn set(members: &mut Object, name: &str, value: Value) {
    members.insert(name.to_owned(), value);
}

/// The error response of a fault to a notification.
pub(in crate::reference) fn response_to_notification(code: i64, text: &str) -> Value {
    Value::Object(object(json!({
        "jsonrpc": "2.0",
        "id": null,
        "error": {"code": code, "message": text},
    })))
}
