//! What happens when a hidden fault shows.

use serde_json::{Value, json};

use crate::reference::message::Object;

/// What happens when a hidden fault shows.
pub(super) enum Effect {
    /// The process ends without an answer.
    Crash,
    /// The call is never answered; others are.
    Hang,
    /// Nothing is answered any more.
    Freeze,
    /// An error of the protocol in place of the answer.
    ProtocolError(i64, &'static str),
    /// An error of the tool in place of the answer.
    ToolError(&'static str),
    /// The result is changed.
    ChangeResult(fn(&mut Object)),
    /// The result is another one each time.
    ChangeResultEachCall(fn(&mut Object, u64)),
    /// The arguments are mended before they are checked, so that they are accepted.
    SkipValidation(fn(&mut Object)),
    /// The bytes of the answer are changed.
    ChangeBytes(fn(&mut Vec<u8>)),
    /// The id of the answer is changed.
    ChangeMessage(fn(&mut Value)),
    /// The answer goes to the next call in flight, and the answer of that one here.
    SwapResponses,
    /// From now on this tool fails with these words.
    BreakTool(&'static str, &'static str),
    /// So many bytes are never given back.
    LeakMemory(usize),
    /// Each such call takes so many microseconds longer than the one before.
    SlowDown(u64),
    /// A file is opened and never closed.
    LeakFile,
    /// A process is started and never ended.
    LeakProcess,
    /// From now on the list of tools has one more.
    AddTool,
    /// A tool is listed whose definition is odd.
    ListTool(fn() -> Value),
    /// A tool is listed whose calls all fail.
    ListFailingTool(fn() -> Value),
}

/// Sets the text of the first block.
pub(super) fn set_text(result: &mut Object, string: &str) {
    if let Some(block) = result.get_mut("content").and_then(|content| content.get_mut(0)) {
        block["text"] = json!(string);
    }
}

/// Changes a member of the structured content, and the copy of it that is text.
pub(super) fn set_structured(result: &mut Object, key: &str, value: Value) {
    let Some(structured) = result.get_mut("structuredContent") else { return };
    structured[key] = value;
    let copy = structured.to_string();
    set_text(result, &copy);
}

/// Puts a log message before a line.
pub(super) fn add_noise(line: &mut Vec<u8>) {
    line.splice(0..0, *b"[debug] transform: took a shortcut\n");
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

/// Writes quotes as whoever builds JSON by hand does.
pub(super) fn unescape_quotes(line: &mut Vec<u8>) {
    *line = String::from_utf8_lossy(line).replace("\\\"", "\"").into_bytes();
}

/// Writes line breaks as whoever builds JSON by hand does.
pub(super) fn unescape_breaks(line: &mut Vec<u8>) {
    *line = String::from_utf8_lossy(line).replace("\\n", "\n").into_bytes();
}
