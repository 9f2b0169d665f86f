//! One line of a transcript file, as its JSON says it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::transcript::entry::{HttpEnd, SetAside, SseEventSummary};
use crate::wire::JsonText;

/// One line. Members that are absent have their usual value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SavedLine {
    /// The connection that the line belongs to; any name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) connection: Option<String>,
    /// The time since the connection was opened, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at_ms: Option<f64>,
    /// Who sent the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) direction: Option<Direction>,
    /// The case that sent it, and the number of its step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) case: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<usize>,
    /// The HTTP request or response that the line is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) http: Option<SavedHttp>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<Value>,
    /// The line itself, where the message does not show how it was written, or where there is no message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    /// The same in Base64, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) base64: Option<String>,
    /// The length of the line in bytes, where only its beginning is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<usize>,
    /// What is wrong with the line, where its bytes do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) framing_error: Option<String>,
    /// What happened, where that is no message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) event: Option<SavedEvent>,
}

/// The direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Direction {
    ClientToServer,
    ServerToClient,
}

/// An event that is no message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub(super) enum SavedEvent {
    /// The connection begins. Passive cases leave one out that is not `watched`.
    Opened {
        purpose: String,
        #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
        watched: bool,
    },
    /// Text of the server's standard error.
    Stderr { text: String },
    /// The client gave up waiting.
    TimedOut { waited_ms: f64 },
    /// The client gave up on the server, which left valid requests unanswered.
    Abandoned,
    /// The server closed its output.
    Closed,
    /// The process ended.
    Exited { status: String },
    /// The server wrote more than was kept.
    Overflow,
    /// The client shut the server down.
    Shutdown {
        step: String,
        duration_ms: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_running: Option<Vec<String>>,
    },
    /// The run judged the connection in a revision; `opening` is the result that opened it, unless it `ended_alone`.
    Judged {
        revision: String,
        client_capabilities: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opening: Option<Value>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ended_alone: bool,
    },
}

/// What replaces a secret.
pub(super) const SECRET: &str = "[secret]";

/// Header names whose values are not kept.
const SECRET_HEADERS: [&str; 4] = ["authorization", "cookie", "set-cookie", "proxy-authorization"];

/// Whether the value of a header of this name, in lower case, is not kept.
pub(super) fn is_secret_header(name: &str) -> bool {
    SECRET_HEADERS.contains(&name)
}

fn yes() -> bool {
    true
}

/// The part of an HTTP exchange that a line is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SavedHttp {
    /// The number of the request on the connection, from 0; in a response, that of the last request if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exchange: Option<usize>,
    /// The method, path and query of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    /// The status of a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    /// The headers: each name with its value, or with a list of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) headers: Option<Map<String, Value>>,
    /// The message of an earlier line that a request carries: its number among the client's messages on the
    /// connection, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) carries: Option<usize>,
    /// The body of a request that a case made itself: a message or a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<Value>,
    /// The fields of one event of a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sse: Option<SavedSse>,
    /// The end of a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<SavedEnd>,
}

/// The fields of a server-sent event, other than a message in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SavedSse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) event: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retry: Option<String>,
    /// Data that is no message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<String>,
}

/// The end of an HTTP response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SavedEnd {
    #[serde(default)]
    pub(super) bytes: usize,
    /// Whether the server ended the response; otherwise the client did.
    #[serde(default)]
    pub(super) complete: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    events: Vec<SavedSummary>,
    #[serde(default, skip_serializing_if = "is_zero")]
    comments: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    defects: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unanswered: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url_relation: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    listens_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    half_closed: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    set_aside: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What is kept of an event of a stream at the end of its response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SavedSummary {
    data: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// The kinds of event data, where a server listens, and the defects of streams, by name.
const DATA_KINDS: [&str; 4] = ["none", "empty", "message", "other"];
const LISTENERS: [&str; 2] = ["loopback", "every-address"];
const DEFECTS: [&str; 4] = ["message-without-data", "data-not-json", "data-not-a-message", "unfinished-event"];

fn known(names: &[&'static str], name: &str) -> Result<&'static str, String> {
    let found = names.iter().find(|known| **known == name);
    found.copied().ok_or_else(|| format!("`{name}` is none of {}", names.join(", ")))
}

impl SavedEnd {
    pub(super) fn of(end: &HttpEnd, mask: &dyn Fn(&str) -> String) -> Self {
        let shown = |text: &Option<String>| text.as_deref().map(mask);
        let summary = |event: &SseEventSummary| SavedSummary {
            data: event.data.to_owned(),
            event: shown(&event.event),
            id: shown(&event.id),
            retry: shown(&event.retry),
            message: event.message.as_ref().map(|message| masked(mask, &message.value())),
            text: shown(&event.text),
        };
        Self {
            bytes: end.bytes,
            complete: end.complete,
            text: mask(&end.text()),
            message: end.message.as_ref().map(|message| masked(mask, &message.value())),
            events: end.events.iter().map(summary).collect(),
            comments: end.comments,
            defects: end.defects.iter().map(|&defect| defect.to_owned()).collect(),
            failure: shown(&end.failure),
            unanswered: end.unanswered.as_ref().map(|id| masked(mask, id)),
            listens_at: end.listens_at.map(str::to_owned),
            half_closed: end.half_closed,
            url_relation: end.standing.as_ref().map(|relation| masked(mask, relation)),
            set_aside: end.set_aside.map(|reason| reason.as_str().to_owned()),
        }
    }

    /// The end of the response to a request.
    pub(super) fn restored(self, number: usize) -> Result<HttpEnd, String> {
        let summary = |event: SavedSummary| {
            Ok(SseEventSummary {
                event: event.event,
                id: event.id,
                retry: event.retry,
                data: known(&DATA_KINDS, &event.data)?,
                message: event.message.map(JsonText::from),
                text: event.text,
            })
        };
        let set_aside = |name: String| {
            let reason = SetAside::ALL.into_iter().find(|reason| reason.as_str() == name);
            reason.ok_or_else(|| format!("`{name}` is no reason for which an exchange is set aside"))
        };
        Ok(HttpEnd {
            number,
            bytes: self.bytes,
            text: self.text.as_str().into(),
            message: self.message.map(JsonText::from),
            events: self.events.into_iter().map(summary).collect::<Result<_, String>>()?,
            comments: self.comments,
            defects: self.defects.iter().map(|name| known(&DEFECTS, name)).collect::<Result<_, _>>()?,
            failure: self.failure,
            complete: self.complete,
            unanswered: self.unanswered,
            listens_at: self.listens_at.map(|name| known(&LISTENERS, &name)).transpose()?,
            half_closed: self.half_closed,
            standing: self.url_relation,
            set_aside: self.set_aside.map(set_aside).transpose()?,
        })
    }
}

/// A value with the secrets in its strings masked.
pub(super) fn masked(mask: &dyn Fn(&str) -> String, value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(mask(text)),
        Value::Array(items) => Value::Array(items.iter().map(|item| masked(mask, item)).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (mask(name), masked(mask, value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
