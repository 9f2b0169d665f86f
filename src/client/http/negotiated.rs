//! What later requests of a connection must repeat: the HTTP session, the protocol version, and the parameters that
//! are mirrored into headers.
//!
//! Owns these values, from the response that sets them. Does not decide which requests are made.

use std::sync::{Mutex, MutexGuard, PoisonError};

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::header::{Mirrored, mirrored, stateless};
use crate::wire::{Id, id_of, method_of, same_id_loosely};

/// The version in the header of a stateless request that names none.
const STATELESS: &str = "2026-07-28";

/// The header that names the session.
pub(super) const SESSION_HEADER: &str = "mcp-session-id";

/// The values that the server and the client agreed on.
#[derive(Debug)]
pub(super) struct Negotiated {
    /// Whether the connection is of the stateless era, in which each request is self-contained.
    is_stateless: bool,
    values: Mutex<Values>,
}

#[derive(Debug, Default)]
struct Values {
    session: Option<String>,
    /// The id of the last `initialize` request and the version that it requests.
    requested: Option<(Id, String)>,
    /// The last `initialize` request, to open a new session with.
    opening: Option<Value>,
    /// The negotiated version, if requests must name it.
    version: Option<String>,
    mirrored: Mirrored,
}

impl Negotiated {
    /// The values before the first response.
    pub(super) fn new(is_stateless: bool) -> Self {
        Self { is_stateless, values: Mutex::default() }
    }

    fn values(&self) -> MutexGuard<'_, Values> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the connection is of the stateless era.
    pub(super) fn is_stateless(&self) -> bool {
        self.is_stateless
    }

    /// The HTTP session that the server opened, if there is one.
    pub(super) fn session(&self) -> Option<String> {
        self.values().session.clone()
    }

    /// The request that opened the session.
    pub(super) fn opening(&self) -> Option<Value> {
        self.values().opening.clone()
    }

    /// Continues in another session, or without one.
    pub(super) fn replace_session(&self, session: Option<String>) {
        self.values().session = session;
    }

    /// The headers that the protocol requires with a message, or with a request without one.
    pub(super) fn headers(&self, message: Option<&Value>) -> Vec<(String, String)> {
        let values = self.values();
        if self.is_stateless {
            return stateless(message.unwrap_or(&Value::Null), STATELESS, &values.mirrored);
        }
        let version = values.version.clone().map(|version| ("mcp-protocol-version".to_owned(), version));
        let session = values.session.clone().map(|session| (SESSION_HEADER.to_owned(), session));
        version.into_iter().chain(session).collect()
    }

    /// Stores the session that the successful response to `initialize` names in its headers.
    pub(super) fn store_session(&self, headers: &HeaderMap) {
        if let Some(session) = headers.get(SESSION_HEADER).filter(|_| !self.is_stateless) {
            self.values().session = Some(String::from_utf8_lossy(session.as_bytes()).into_owned());
        }
    }

    /// Stores which version a message requests, if it is an `initialize` request.
    pub(super) fn store_request(&self, message: &Value) {
        if method_of(message) == Some("initialize")
            && let (Some(id), Some(Value::String(version))) =
                (id_of(message), message.pointer("/params/protocolVersion"))
        {
            let mut values = self.values();
            values.requested = Some((id.clone(), version.clone()));
            values.opening = Some(message.clone());
        }
    }

    /// Stores what later requests must repeat from a JSON-RPC response.
    pub(super) fn store_response(&self, response: &Value) {
        let Some(result) = response.get("result") else { return };
        let mut values = self.values();
        let id = response.get("id").unwrap_or(&Value::Null);
        if !self.is_stateless
            && let Some((_, requested)) = values.requested.take_if(|(requested, _)| same_id_loosely(requested, id))
        {
            // A server that names no version is taken to agree.
            let named = result.get("protocolVersion").and_then(Value::as_str).filter(|version| is_date(version));
            let version = named.unwrap_or(&requested);
            // The header was added in 2025-06-18; versions are dates, so they compare as strings.
            values.version = (version >= "2025-06-18").then(|| version.to_owned());
        }
        if self.is_stateless && result.get("tools").is_some() {
            values.mirrored.extend(mirrored(result));
        }
    }

    /// Sets which tool parameters are mirrored into headers.
    pub(super) fn set_mirrored(&self, mirrored: Mirrored) {
        self.values().mirrored = mirrored;
    }
}

/// Whether a version is a date, as all versions are.
fn is_date(version: &str) -> bool {
    version.len() == 10 && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}
