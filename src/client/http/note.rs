//! What is kept of an answer beside its messages: the beginning of a body that is none, and a note of each event of
//! a stream.
//!
//! Owns how much that is, and that secrets are masked in what an event says of itself. Whether data is a message is
//! for whoever reads the answer to say.

use super::site::Site;
use crate::transcript::SseNote;
use crate::wire::SseEvent;

/// How much of a body that is no message is kept, in bytes.
const KEPT: usize = 4_096;

/// How many events of a stream are noted, and how many characters of one that is no JSON.
const NOTED: usize = 1_000;
const SHOWN: usize = 500;

/// The beginning of a body.
pub(super) fn beginning(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(KEPT)]).into_owned()
}

/// What an event says of itself; data that it has counts as no message yet.
pub(super) fn of(site: &Site, event: &SseEvent) -> SseNote {
    let shown = |text: &Option<String>| text.as_deref().map(|text| site.masked(text));
    let data = match &event.data {
        None => "none",
        Some(data) if data.is_empty() => "empty",
        Some(_) => "other",
    };
    SseNote { event: shown(&event.event), id: shown(&event.id), retry: shown(&event.retry), data, ..SseNote::default() }
}

/// The beginning of an event's data that is no message.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

/// Keeps a note, as long as there is room.
pub(super) fn keep(notes: &mut Vec<SseNote>, note: SseNote) {
    if notes.len() < NOTED {
        notes.push(note);
    }
}
