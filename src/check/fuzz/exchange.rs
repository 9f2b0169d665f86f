//! A fuzzed call with its responses, and the tool that was called.

use std::sync::Arc;
use std::time::Duration;

use jsonschema::Validator;
use serde_json::Value;

use super::call::Call;
use super::message_text::excerpt;
use crate::fuzz::{AskedTime, Dialect, Domain, ToolSchema};
use crate::spec::Revision;
use crate::wire::{Frame, MessageKind};

/// How waiting for the response to a call ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ExchangeOutcome {
    /// The server responded, or no response is required.
    Answered,
    /// The server did not respond, and neither did a new process that was given more time.
    TimedOut {
        /// How long the client waited.
        waited: Duration,
    },
    /// The server exited, or closed its output.
    Exited {
        /// The exit status, as text.
        status: String,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
}

/// The status of a server over HTTP that closed the connection but is still running.
pub(crate) const CONNECTION_DROPPED: &str =
    "it closed the connection without a response, twice, and still accepts connections";

/// What a server wrote during a call besides responses: the first of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct OtherOutput {
    /// The lines that are no JSON-RPC messages.
    pub noise: Vec<String>,
    /// The requests and notifications.
    pub messages: Vec<Value>,
}

impl OtherOutput {
    /// Adds a line that is no message.
    pub(crate) fn add_noise(&mut self, frame: &Frame) {
        const MAX_NOISE: usize = 16;
        if self.noise.len() < MAX_NOISE {
            self.noise.push(excerpt(&frame.text(), 500));
        }
    }

    /// Adds the requests and notifications of a line.
    pub(crate) fn add_messages(&mut self, frame: &Frame) {
        const MAX_MESSAGES: usize = 16;
        const MAX_BYTES: usize = 64 << 10;
        let lines = match frame.json() {
            Some(Value::Array(messages)) => messages.as_slice(),
            Some(message) => std::slice::from_ref(message),
            None => &[],
        };
        let is_own = |message: &&Value| {
            matches!(MessageKind::of(message), MessageKind::Request { .. } | MessageKind::Notification { .. })
        };
        if frame.memory_bytes() <= MAX_BYTES {
            let left = MAX_MESSAGES.saturating_sub(self.messages.len());
            self.messages.extend(lines.iter().filter(is_own).take(left).cloned());
        }
    }

    /// Moves what another has to the end of this.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.noise.append(&mut other.noise);
        self.messages.append(&mut other.messages);
    }
}

/// A call and its responses.
#[derive(Debug, Clone)]
pub(crate) struct FuzzExchange {
    /// The call.
    pub call: Arc<Call>,
    /// The line that was sent.
    pub line: Arc<[u8]>,
    /// The id of the request.
    pub id: i64,
    /// The responses that belong to it, in order.
    pub responses: Vec<Value>,
    /// What the server wrote meanwhile besides.
    pub other: OtherOutput,
    /// How waiting for it ended.
    pub outcome: ExchangeOutcome,
    /// How long it took.
    pub duration: Duration,
    /// Whether no other call was open, so that the time is its own.
    pub alone: bool,
}

#[cfg(test)]
impl FuzzExchange {
    /// A call with valid arguments that was answered at once by these responses.
    pub(crate) fn answered(arguments: Value, responses: Vec<Value>) -> Self {
        let line = serde_json::json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo", "arguments": arguments },
        });
        let call = Call {
            kind: crate::verdict::CallKind::Valid,
            validity: super::call::Validity::Valid,
            arguments: super::call::Arguments::Json(arguments),
            choices: None,
        };
        Self {
            call: Arc::new(call),
            line: line.to_string().into_bytes().into(),
            id: 1,
            responses,
            other: OtherOutput::default(),
            outcome: ExchangeOutcome::Answered,
            duration: Duration::ZERO,
            alone: true,
        }
    }
}

/// A tool whose calls are judged.
#[derive(Debug)]
pub(crate) struct FuzzedTool {
    /// Its name.
    pub name: String,
    /// The revision that it is called in.
    pub revision: Revision,
    /// The schema that its structured results have to conform to.
    pub output: Option<Validator>,
    /// Strings that an error may contain, since the client or the command line of the server contains them.
    pub known: Vec<String>,
    /// The texts of its definition that may contain a path, which an error may repeat.
    pub texts: Vec<String>,
    /// What its arguments say about how long a call takes.
    pub asked_time: AskedTime,
}

impl FuzzedTool {
    /// A tool by its definition.
    #[must_use]
    pub(crate) fn new(definition: &Value, revision: Revision, known: Vec<String>) -> Self {
        let schema = definition.get("outputSchema").filter(|_| revision >= Revision::V2025_06_18);
        // The cases about tool definitions judge a schema that cannot be compiled safely.
        let is_safe = |schema: &&Value| ToolSchema::compile_for(schema, Dialect::Draft202012, Domain::Any).is_ok();
        Self {
            name: definition.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            revision,
            output: schema.filter(is_safe).and_then(|schema| jsonschema::options().offline().build(schema).ok()),
            known,
            texts: texts_with_paths(definition),
            asked_time: definition.get("inputSchema").map(AskedTime::of).unwrap_or_default(),
        }
    }
}

/// The strings in a definition with a slash or a backslash.
fn texts_with_paths(definition: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![definition];
    while let Some(value) = pending.pop() {
        match value {
            Value::String(text) if text.contains(['/', '\\']) => found.push(text.clone()),
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => pending.extend(members.values()),
            _ => {}
        }
    }
    found
}
