//! Text that attacks whoever shows it: markup, terminal escapes, invisible and control characters.

use serde_json::{Value, json};

/// What is added to every text. It opens and closes markup, colours and retitles a terminal, turns the
/// direction of writing around, hides characters and rings the bell.
const PAYLOAD: &str = "<script>alert(1)</script>\"'&]]>--><!-- `|*_[x](javascript:alert(1)) \
\u{1b}[31m\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m \u{202e}evil\u{202c}\u{2066}\u{2069} \
\u{200b}\u{feff}\u{e0041}\u{0}\u{8}\u{7f}\r\n::error::owned\u{2028}";

/// The members that hold text for people; names, URIs, data and types stay as they are.
const TEXTS: &[&str] = &["title", "description", "instructions", "text", "message", "data", "version"];

/// Adds the payload to every text of a message.
pub(in crate::reference) fn deface(message: &mut Value) {
    match message {
        Value::Array(items) => items.iter_mut().for_each(deface),
        Value::Object(members) => {
            // The schemas of a tool describe arguments, and bytes are no text.
            let binary = members.contains_key("mimeType") && members.contains_key("data");
            for (name, value) in members.iter_mut() {
                match value {
                    Value::String(text) if TEXTS.contains(&name.as_str()) && !binary => {
                        // The text copy of structured content has to stay a copy.
                        if serde_json::from_str::<Value>(text).is_err() {
                            *value = json!(format!("{text}{PAYLOAD}"));
                        }
                    }
                    _ if name == "inputSchema" || name == "outputSchema" => {}
                    _ => deface(value),
                }
            }
        }
        _ => {}
    }
}
