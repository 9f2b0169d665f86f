//! Servers that read ids with an escaped lone surrogate, which the parser of this project rejects.

use serde_json::Value;

use crate::reference::connection_state::Output;
use crate::reference::fault::Fault;

/// The escape in what the tests send.
const ESCAPE: &str = "\\ud800";

/// The character in place of the surrogate while a message is processed: one of a private plane.
const STAND_IN: char = '\u{10D800}';

/// The message of a line that is not valid JSON only because of the surrogate, if a fault reads it.
pub(in crate::reference) fn served(line: &[u8], is_enabled: impl Fn(Fault) -> bool) -> Option<Value> {
    let text = std::str::from_utf8(line).ok().filter(|text| text.contains(ESCAPE))?;
    let character = if is_enabled(Fault::SurrogateIdReplaced) {
        char::REPLACEMENT_CHARACTER
    } else if is_enabled(Fault::SurrogateIdEchoed) {
        STAND_IN
    } else {
        return None;
    };
    serde_json::from_str(&text.replace(ESCAPE, &character.to_string())).ok()
}

/// Writes the surrogate as the escape that was received.
pub(in crate::reference) fn restore(output: &mut [Output]) {
    for written in output {
        if let Output::Bytes(bytes) = written
            && let Ok(text) = std::str::from_utf8(bytes)
            && text.contains(STAND_IN)
        {
            *bytes = text.replace(STAND_IN, ESCAPE).into_bytes();
        }
    }
}
