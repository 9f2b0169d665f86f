//! Where the faults of HTTP take effect: requests are altered before they are looked at, and answers before
//! they go out, so that the server itself knows nothing of them.

use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use serde_json::Value;

use super::answer::Answer;
use super::fault::HttpFault::{self, MethodHeaderUnchecked, Notification200};
use crate::mock::fault::{Fault, FaultSet};

/// Whether a fault is switched on.
pub(super) fn has(faults: &FaultSet, fault: HttpFault) -> bool {
    faults.contains(Fault::Http(fault))
}

/// A header's value made of a text, where it can be.
fn value_of(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("unsayable"))
}

/// A POST with its message, before it is looked at.
pub(super) fn alter_post(headers: &mut HeaderMap, message: &Value, stateless: bool, faults: &FaultSet) {
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    if stateless && has(faults, MethodHeaderUnchecked) && headers.contains_key("mcp-method") {
        headers.insert("mcp-method", value_of(method));
    }
}

/// What an answer answers.
pub(super) struct Asked<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    /// The message of a POST.
    pub(super) message: Option<&'a Value>,
    pub(super) stateless: bool,
}

impl Asked<'_> {
    fn is_notification(&self) -> bool {
        self.message.is_some_and(|message| message.get("method").is_some() && message.get("id").is_none())
    }
}

/// An answer, before it goes out.
pub(super) fn alter_answer(mut answer: Answer, asked: &Asked<'_>, faults: &FaultSet) -> Answer {
    if has(faults, Notification200) && asked.is_notification() && answer.status() == StatusCode::ACCEPTED {
        *answer.status_mut() = StatusCode::OK;
    }
    answer
}
