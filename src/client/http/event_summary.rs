//! What a transcript keeps of a response besides its messages: the beginning of a body that is not a message, and a
//! summary of each event of a stream.
//!
//! Limits how much is kept, and masks secrets in event fields. The reader of the response decides whether data is a
//! message.

use serde_json::Value;

use super::endpoint::HttpEndpoint;
use crate::limits::http::MAX_EVENTS;
use crate::text::first_chars;
use crate::transcript::{HttpEnd, SseEventSummary};
use crate::wire::{SseDecoder, SseEvent};

const MAX_EXCERPT_CHARS: usize = 500;

/// The fields of an event; its data does not count as a message yet.
pub(super) fn summarize(endpoint: &HttpEndpoint, event: &SseEvent) -> SseEventSummary {
    let shown = |text: &Option<String>| text.as_deref().map(|text| endpoint.masked(text));
    let data = match &event.data {
        None => "none",
        Some(data) if data.is_empty() => "empty",
        Some(_) => "other",
    };
    SseEventSummary {
        event: shown(&event.event),
        id: shown(&event.id),
        retry: shown(&event.retry),
        data,
        ..SseEventSummary::default()
    }
}

/// Notes how a stream is malformed, as far as it was read. Data of events with a type of their own need not be JSON.
pub(super) fn note_defects(end: &mut HttpEnd, decoder: &SseDecoder) {
    let is_message = |event: &SseEventSummary| event.event.as_deref().is_none_or(|kind| kind == "message");
    let is_ended = end.complete || end.failure.is_some();
    let defects = [
        ("message-without-data", decoder.has_bare_message()),
        ("data-not-json", end.events.iter().any(|event| event.data == "other" && is_message(event))),
        (
            "data-not-a-message",
            end.events.iter().any(|event| {
                is_message(event) && event.message.as_ref().is_some_and(|message| is_foreign(&message.value()))
            }),
        ),
        ("unfinished-event", is_ended && decoder.has_unfinished_data()),
    ];
    end.defects = defects.into_iter().filter_map(|(name, is_present)| is_present.then_some(name)).collect();
}

/// Whether JSON has nothing of a JSON-RPC message, or of a batch of them.
fn is_foreign(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            !["jsonrpc", "id", "method", "result", "error"].iter().any(|name| members.contains_key(*name))
        }
        Value::Array(items) => items.iter().any(is_foreign),
        _ => true,
    }
}

/// The beginning of event data that is not a message.
pub(super) fn excerpt(text: &str) -> String {
    first_chars(text, MAX_EXCERPT_CHARS).to_owned()
}

/// Adds a summary, up to the maximum number.
pub(super) fn push(summaries: &mut Vec<SseEventSummary>, summary: SseEventSummary) {
    if summaries.len() < MAX_EVENTS {
        summaries.push(summary);
    }
}
