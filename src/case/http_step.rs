//! The part of the case language for HTTP: the requests that a step makes itself, and statuses of responses.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

#[cfg(test)]
use super::schema_types as types;

/// An HTTP request. It has the headers that the client would send (Accept, Content-Type, Mcp-Session-Id,
/// MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Param-* and those of the user), unless `headers` says otherwise;
/// placeholders are filled in in every string.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "http"))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HttpCall {
    /// The method.
    #[cfg_attr(test, schemars(regex(pattern = "^[A-Z]+$"), extend("examples" = ["POST", "GET", "DELETE"])))]
    pub method: String,
    /// The path and query, from the root of the server; by default those of the endpoint for messages.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub path: Option<String>,
    /// Headers that replace those that the client would send.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Headers>"))]
    pub headers: BTreeMap<String, HeaderValues>,
    /// A message, completed as for `send` and `notify`, a list of them for a batch, or a string that is sent as it is.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::HttpBody>"))]
    pub body: Option<Value>,
    /// Whether header names are written in title case, such as Mcp-Method; by default in lower case.
    #[serde(default)]
    pub title_case_headers: bool,
    /// Whether Mcp-Name and Mcp-Param-* are encoded in Base64 also where that is not necessary.
    #[serde(default)]
    pub base64: bool,
    /// How the body is sent.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = "whole")))]
    pub transfer: Transfer,
    /// How far the response is read before it is closed.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = "response")))]
    pub until: Until,
    /// For how many milliseconds the response is read at most; by default 300 for a GET, otherwise the timeout of a
    /// request. With `keep-open`, the timeout of a request is added, so that it outlasts the waits of later steps.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 1, max = 10_000)))]
    pub timeout_ms: Option<u64>,
    /// Whether later steps go on while the response is read: until the case ends, or a step has `close`.
    #[serde(default)]
    pub keep_open: bool,
    /// How often the request is made, each time after the response to the one before, as long as the status is a success.
    /// Every response has to be a right one. On a server that is too slow for all of them, the case is skipped.
    #[serde(default = "once")]
    #[cfg_attr(test, schemars(range(min = 1, max = MAX_TIMES), extend("default" = 1)))]
    pub times: u32,
    /// What follows each response.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = "nothing")))]
    pub after: After,
}

/// What follows the response to an HTTP request of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum After {
    /// nothing
    #[default]
    Nothing,
    /// the session that the response opened is ended, by DELETE
    EndSession,
}

/// How often a step may make its request.
pub(crate) const MAX_TIMES: u32 = 1_000;

fn once() -> u32 {
    1
}

impl HttpCall {
    /// The headers that the step replaces, each with its values; none where it is left out.
    pub fn replaced(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.headers.iter().map(|(name, values)| {
            let values = match values {
                HeaderValues::Absent => Vec::new(),
                HeaderValues::One(value) => vec![value.as_str()],
                HeaderValues::Several(values) => values.iter().map(String::as_str).collect(),
            };
            (name.as_str(), values)
        })
    }

    /// How its body is sent, as an addition to a description; empty for the usual way.
    #[must_use]
    pub fn transfer_text(&self) -> &'static str {
        match self.transfer {
            Transfer::Whole => "",
            Transfer::Chunked => ", in chunks",
            Transfer::Paused => ", with a pause in the body",
        }
    }

    /// How often it is made and what follows each time, as an addition to a description; empty for a single request.
    #[must_use]
    pub fn repetition_text(&self) -> String {
        let times = if self.times > 1 { format!(", {} times", self.times) } else { String::new() };
        if self.after == After::EndSession { format!("{times}, each session ended with DELETE") } else { times }
    }

    /// The strings in its path and headers.
    pub(super) fn strings(&self) -> impl Iterator<Item = &str> {
        let values = self.headers.values().flat_map(|values| match values {
            HeaderValues::Absent => &[],
            HeaderValues::One(value) => std::slice::from_ref(value),
            HeaderValues::Several(values) => values.as_slice(),
        });
        self.path.iter().chain(values).map(String::as_str)
    }
}

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum HeaderValues {
    /// It is left out.
    Absent,
    /// It has this value.
    One(String),
    /// It is repeated, once for each value.
    Several(Vec<String>),
}

/// How the body of an HTTP request of a step is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum Transfer {
    /// at once, with Content-Length
    #[default]
    Whole,
    /// in chunks, with Transfer-Encoding: chunked instead of Content-Length
    Chunked,
    /// in two parts with a pause of 300 ms between them, with Content-Length
    Paused,
}

/// How far the response to an HTTP request of a step is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// to the end of its header section
    Headers,
    /// to the first event of a stream
    Event,
    /// to the JSON-RPC response to the message
    #[default]
    Response,
    /// to its end
    End,
    /// to the JSON-RPC response, and until the server has closed most connections that clients have closed, for at most eight
    /// seconds
    Closed,
}

/// An HTTP status, or a class of statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusPattern {
    /// This status.
    Code(u16),
    /// Every status that begins with this digit.
    Class(u16),
}

impl StatusPattern {
    /// Whether a status matches.
    #[must_use]
    pub fn fits(self, status: u16) -> bool {
        match self {
            Self::Code(own) => own == status,
            Self::Class(digit) => digit == status / 100,
        }
    }
}

impl std::fmt::Display for StatusPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Class(digit) => write!(f, "{digit}xx"),
        }
    }
}

impl<'de> Deserialize<'de> for StatusPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Code(u16),
            Class(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Code(code) => Ok(Self::Code(code)),
            Written::Class(text) => match text.as_bytes() {
                [digit @ b'1'..=b'5', b'x', b'x'] => Ok(Self::Class(u16::from(digit - b'0'))),
                _ => Err(serde::de::Error::custom(format!("`{text}` is not a class of statuses such as `4xx`"))),
            },
        }
    }
}

/// The transport over HTTP that a case is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum HttpKind {
    /// Streamable HTTP
    #[default]
    Streamable,
    /// HTTP+SSE of 2024-11-05
    Sse,
    /// either
    Any,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn headers_are_left_out_set_or_repeated() {
        let call: HttpCall = serde_json::from_value(json!({
            "method": "POST", "headers": {"a": null, "b": "x", "c": ["y", "z"]}, "body": "raw"
        }))
        .expect("a call");
        let replaced: Vec<(&str, Vec<&str>)> = call.replaced().collect();
        assert_eq!(replaced, [("a", vec![]), ("b", vec!["x"]), ("c", vec!["y", "z"])]);
        assert_eq!(call.until, Until::Response);
    }

    #[test]
    fn a_status_is_a_number_or_a_class() {
        let wanted: Vec<StatusPattern> = serde_json::from_value(json!([404, "2xx"])).expect("statuses");
        assert!(wanted[0].fits(404) && !wanted[0].fits(405));
        assert!(wanted[1].fits(204) && !wanted[1].fits(304));
        assert!(serde_json::from_value::<StatusPattern>(json!("6xx")).is_err());
    }
}
