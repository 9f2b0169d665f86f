//! Hostile text: markup, terminal escapes, invisible and control characters.

use serde_json::{Value, json};

/// The text to append. It opens and closes markup, colours and retitles a terminal, changes the direction of
/// writing, hides characters and rings the bell.
const PAYLOAD: &str = "<script>alert(1)</script>\"'&]]>--><!-- `|*_[x](javascript:alert(1)) \
\u{1b}[31m\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m \u{202e}evil\u{202c}\u{2066}\u{2069} \
\u{200b}\u{feff}\u{e0041}\u{0}\u{8}\u{7f}\r\n::error::owned\u{2028}";

/// The members with human-readable text; names, URIs, data and types do not change.
const TEXT_MEMBERS: &[&str] = &["title", "description", "instructions", "text", "message", "data", "version"];

/// Appends the payload to every text of a message.
pub(in crate::reference) fn append_payload(message: &mut Value) {
    match message {
        Value::Array(items) => items.iter_mut().for_each(append_payload),
        Value::Object(members) => {
            // Binary data is not text.
            let binary = members.contains_key("mimeType") && members.contains_key("data");
            for (name, value) in members.iter_mut() {
                match value {
                    Value::String(text) if TEXT_MEMBERS.contains(&name.as_str()) && !binary => {
                        // The serialized form of structured content must stay equal to it.
                        if serde_json::from_str::<Value>(text).is_err() {
                            *value = json!(format!("{text}{PAYLOAD}"));
                        }
                    }
                    _ if name == "inputSchema" || name == "outputSchema" => {}
                    _ => append_payload(value),
                }
            }
        }
        _ => {}
    }
}
