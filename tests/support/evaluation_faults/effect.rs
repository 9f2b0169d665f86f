//! The effects of evaluation faults.

use serde_json::{Value, json};

use super::Object;

/// The effect of an evaluation fault.
pub(super) enum Effect {
    /// The process exits without a response.
    Crash,
    /// The call is never answered; others are.
    Hang,
    /// The server stops responding.
    Freeze,
    /// A protocol error replaces the response.
    ProtocolError(i64, &'static str),
    /// A tool error replaces the result.
    ToolError(&'static str),
    /// Changes the result.
    ChangeResult(fn(&mut Object)),
    /// Changes the result, differently on each call.
    ChangeResultEachCall(fn(&mut Object, u64)),
    /// Corrects the arguments before validation, so that they are accepted.
    SkipValidation(fn(&mut Object)),
    /// Changes the bytes of the response.
    ChangeBytes(fn(&mut Vec<u8>)),
    /// Changes the response message.
    ChangeMessage(fn(&mut Value)),
    /// Swaps the response with that of the next concurrent call.
    SwapResponses,
    /// From now on this tool fails with this message.
    BreakTool(&'static str, &'static str),
    /// Leaks this number of bytes.
    LeakMemory(usize),
    /// Each call takes this number of microseconds longer than the one before.
    SlowDown(u64),
    /// Leaks a file descriptor.
    LeakFile,
    /// Leaks a child process.
    LeakProcess,
    /// Adds a tool to the list.
    AddTool,
    /// Lists a tool with an invalid definition.
    ListTool(fn() -> Value),
    /// Lists a tool whose calls all fail.
    ListFailingTool(fn() -> Value),
}

/// Sets the text of the first content block.
pub(super) fn set_text(result: &mut Object, string: &str) {
    if let Some(block) = result.get_mut("content").and_then(|content| content.get_mut(0)) {
        block["text"] = json!(string);
    }
}

/// Sets a member of the structured content and of its serialized text.
pub(super) fn set_structured(result: &mut Object, key: &str, value: Value) {
    let Some(structured) = result.get_mut("structuredContent") else { return };
    structured[key] = value;
    let copy = structured.to_string();
    set_text(result, &copy);
}

/// Inserts a log line before a line.
pub(super) fn add_noise(line: &mut Vec<u8>) {
    line.splice(0..0, *b"[debug] transform: took a shortcut\n");
}

/// Inserts a log notification of no known level before a line.
pub(super) fn add_odd_log(line: &mut Vec<u8>) {
    let params = json!({ "level": "warn", "data": "search: took a shortcut" });
    let message = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
    line.splice(0..0, format!("{message}\n").into_bytes());
}

/// Writes a line twice.
pub(super) fn duplicate(line: &mut Vec<u8>) {
    line.extend_from_within(..);
}

/// Writes the first half of a line as a line.
pub(super) fn truncate(line: &mut Vec<u8>) {
    line.truncate(line.len() / 2);
    line.push(b'\n');
}

/// Removes the escapes of quotes, as in JSON built by hand.
pub(super) fn unescape_quotes(line: &mut Vec<u8>) {
    *line = String::from_utf8_lossy(line).replace("\\\"", "\"").into_bytes();
}

/// Removes the escapes of line breaks, as in JSON built by hand.
pub(super) fn unescape_breaks(line: &mut Vec<u8>) {
    *line = String::from_utf8_lossy(line).replace("\\n", "\n").into_bytes();
}
