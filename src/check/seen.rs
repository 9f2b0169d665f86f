//! What a check of a connection says: how much it saw, and what of it was wrong.
//!
//! Owns how a breach is put together and how it names a request. What is made of one is for `watch`.

use serde_json::Value;

use super::watch::method_of;

/// A breach of a rule, with its place.
pub(super) struct Breach {
    pub(super) actual: String,
    pub(super) subject: String,
    pub(super) positions: Vec<usize>,
    pub(super) value: Option<Value>,
}

/// What a check saw of a connection.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) seen: usize,
    pub(super) breaches: Vec<Breach>,
}

impl Seen {
    /// Takes note of one more thing that was seen, and of what is wrong with it.
    pub(super) fn look(&mut self, breach: Option<Breach>) {
        self.seen += 1;
        self.breaches.extend(breach);
    }
}

/// A breach in messages at these positions, of which none is shown as the value that is wrong.
pub(super) fn breach(actual: impl Into<String>, subject: impl Into<String>, positions: &[usize]) -> Breach {
    Breach { actual: actual.into(), subject: subject.into(), positions: positions.to_vec(), value: None }
}

/// What a breach calls a request: its method, and what it is about.
pub(super) fn name_of(request: &Value) -> String {
    match request.pointer("/params/name").and_then(Value::as_str) {
        Some(name) => format!("{} {name}", method_of(request)),
        None => method_of(request).to_owned(),
    }
}
