//! The part of the case language that speaks of HTTP: requests of a case's own, and what their answers are.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An HTTP request that a step makes itself. Headers that the client would send are there unless the step
/// says otherwise.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HttpCall {
    /// The method.
    pub method: String,
    /// The path and query, from the root of the server; by default where messages go.
    #[serde(default)]
    pub path: Option<String>,
    /// Headers in the place of those that the client would send.
    #[serde(default)]
    pub headers: BTreeMap<String, HeaderValues>,
    /// A message, filled in as for `send` and `notify`, or a text that stands as it is.
    #[serde(default)]
    pub body: Option<Value>,
    /// Whether names of headers are written in title case.
    #[serde(default)]
    pub title_case_headers: bool,
    /// Whether Mcp-Name and Mcp-Param-* are written in Base64 also where that is not needed.
    #[serde(default)]
    pub base64: bool,
    /// How far the answer is read.
    #[serde(default)]
    pub until: Until,
    /// For how many milliseconds it is read at most.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Whether later steps go on while the answer is read: until the case ends or a step closes it.
    #[serde(default)]
    pub keep_open: bool,
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
}

/// What a header is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum HeaderValues {
    /// It is left out.
    Absent,
    /// It has this value.
    One(String),
    /// It stands there several times.
    Several(Vec<String>),
}

/// How far the answer to a request of a step is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// To the end of its head; then it is closed.
    Headers,
    /// To the first event of a stream.
    Event,
    /// To the response to the message that was sent.
    #[default]
    Response,
    /// To its end.
    End,
}

/// A status of an answer, or a class of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// This status.
    Code(u16),
    /// Every status that begins with this digit.
    Class(u16),
}

impl Status {
    /// Whether a status is meant.
    #[must_use]
    pub fn fits(self, status: u16) -> bool {
        match self {
            Self::Code(own) => own == status,
            Self::Class(digit) => digit == status / 100,
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Class(digit) => write!(f, "{digit}xx"),
        }
    }
}

impl<'de> Deserialize<'de> for Status {
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
                _ => Err(serde::de::Error::custom(format!("`{text}` is no class of statuses such as `4xx`"))),
            },
        }
    }
}

/// The transport over HTTP that a case is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpKind {
    /// Streamable HTTP: one endpoint that answers each POST.
    #[default]
    Streamable,
    /// HTTP+SSE of 2024-11-05: a stream that names an endpoint for messages.
    Sse,
    /// Either.
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
        let wanted: Vec<Status> = serde_json::from_value(json!([404, "2xx"])).expect("statuses");
        assert!(wanted[0].fits(404) && !wanted[0].fits(405));
        assert!(wanted[1].fits(204) && !wanted[1].fits(304));
        assert!(serde_json::from_value::<Status>(json!("6xx")).is_err());
    }
}
