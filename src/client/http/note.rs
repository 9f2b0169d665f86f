//! What a transcript keeps of a response besides its messages: the beginning of a body that is not a message, and a
//! summary of each event of a stream.
//!
//! Limits how much is kept, and masks secrets in event fields. The reader of the response decides whether data is a
//! message.

use super::site::Site;
use crate::transcript::SseNote;
use crate::wire::SseEvent;

/// How much of a body that is not a message is kept, in bytes.
const KEPT: usize = 4_096;

/// How many events of a stream are kept, and how many characters of one that is not JSON.
const NOTED: usize = 1_000;
const SHOWN: usize = 500;

/// The beginning of a body.
pub(super) fn beginning(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(KEPT)]).into_owned()
}

/// The fields of an event; its data does not count as a message yet.
pub(super) fn of(site: &Site, event: &SseEvent) -> SseNote {
    let shown = |text: &Option<String>| text.as_deref().map(|text| site.masked(text));
    let data = match &event.data {
        None => "none",
        Some(data) if data.is_empty() => "empty",
        Some(_) => "other",
    };
    SseNote { event: shown(&event.event), id: shown(&event.id), retry: shown(&event.retry), data, ..SseNote::default() }
}

/// The beginning of event data that is not a message.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

/// Adds a summary, up to the maximum number.
pub(super) fn keep(notes: &mut Vec<SseNote>, note: SseNote) {
    if notes.len() < NOTED {
        notes.push(note);
    }
}
