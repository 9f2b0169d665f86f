//! The content blocks that tools return, and their binary data.
//!
//! The tools decide which content types a revision has; a block only adapts its members to the revision.

use serde_json::{Value, json};

use super::message::{Object, object};
use super::revision::Revision;

/// An 8 by 8 pixel PNG of one colour.
pub(super) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mO4kGCAFTEMLQkAisZYAaTCWaMAAAAASUVORK5CYII=";
/// A 4 ms WAV tone of 500 Hz. Its base64 has both characters that the URL-safe alphabet replaces.
pub(super) const WAV: &str =
    "UklGRkQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YSAAAACQv+T6/e3NoG9AGwUCEjJfkL/k+v3tzaBvQBsFAhIyXw==";
/// The value of every `lastModified`.
pub(super) const LAST_MODIFIED: &str = "2025-01-12T15:00:58Z";

pub(super) fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

pub(super) fn image() -> Value {
    json!({"type": "image", "data": PNG, "mimeType": "image/png"})
}

pub(super) fn audio() -> Value {
    json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"})
}

/// A link to a listed resource.
pub(super) fn link(resource: &Object) -> Value {
    let mut block = object(json!({"type": "resource_link"}));
    block.extend(resource.clone());
    Value::Object(block)
}

/// An embedded resource.
pub(super) fn embedded(contents: &Object) -> Value {
    json!({"type": "resource", "resource": contents})
}

/// The annotations of content and resources: audience, priority and, if the revision has it, `lastModified`.
pub(super) fn annotations(revision: Revision) -> Value {
    let mut annotations = json!({"audience": ["user", "assistant"], "priority": 0.5});
    if revision >= Revision::V2025_06_18 {
        annotations["lastModified"] = json!(LAST_MODIFIED);
    }
    annotations
}

/// An icon as a data: URL.
pub(super) fn icon() -> Value {
    json!({"src": format!("data:image/png;base64,{PNG}"), "mimeType": "image/png", "sizes": ["8x8"]})
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn the_image_is_a_png_and_the_audio_is_a_wav() {
        let png = STANDARD.decode(PNG).expect("the image is base64");
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
        let wav = STANDARD.decode(WAV).expect("the audio is base64");
        assert!(wav.starts_with(b"RIFF") && &wav[8..12] == b"WAVE");
        assert!(WAV.contains('+') && WAV.contains('/'));
    }
}
