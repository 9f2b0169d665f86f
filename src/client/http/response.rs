//! Reads one HTTP response, body or stream, to its end or to the size limit, and turns it into messages.
//!
//! Requests of the server within the response are answered on the way. Also collects what later requests need: the
//! protocol version and mirrored parameters. The caller decides what an empty or invalid response leads to.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;

use super::connection::{ExchangeOutcome, HttpConnection};
use super::error_text::describe_error;
use super::event_summary;
use super::header::{Mirrored, media_type as media_type_of, mirrored};
use crate::transcript::{Event, HttpEnd, messages, summarize};
use crate::wire::{Frame, Id, MAX_MESSAGE_BYTES, MessageKind, SseDecoder, SseEvent, same_id};

impl HttpConnection {
    /// Reads the body of a response; removes the ids that it answers from `awaited`.
    pub(super) async fn read(
        self: &Arc<Self>,
        number: usize,
        response: Response,
        expects_response: bool,
        awaited: &mut Vec<Id>,
        outcome: &mut ExchangeOutcome,
    ) -> HttpEnd {
        let kind = media_type(&response);
        if kind == "text/event-stream" && response.status().is_success() {
            return self.read_stream(number, response, awaited, outcome).await;
        }
        let mut end = HttpEnd { number, ..HttpEnd::default() };
        let body = read_body(response, &mut end, self.record.limits.line).await;
        let body = self.endpoint.masked_bytes(body);
        if body.is_empty() {
            return end;
        }
        if outcome.status == Some(429) {
            // Whatever the body says, it is about the rate limit and answers nothing.
            end.text = event_summary::beginning(&body);
            return end;
        }
        if end.bytes > MAX_MESSAGE_BYTES {
            outcome.received_message = true;
            self.record.receive(Frame::too_long(&body, end.bytes));
            return end;
        }
        let frame = Frame::parse(&body);
        let speaks = frame.json().is_some_and(|value| {
            messages(value)
                .any(|message| !matches!(MessageKind::of(message), MessageKind::Unknown | MessageKind::Batch(_)))
        });
        // A body that is declared as JSON counts as a message even if it is not a known one.
        // A rejection of a message that has no response may explain itself by an error without an id.
        let explains = !expects_response
            && outcome.status.is_some_and(|status| status >= 400)
            && frame.json().is_some_and(|value| {
                messages(value)
                    .all(|message| message.get("error").is_some() && message.get("id").is_none_or(Value::is_null))
            });
        if explains {
            end.message = frame.json().map(summarize);
        } else if speaks || is_json(&kind) && outcome.status == Some(200) {
            outcome.received_message = true;
            end.message = frame.json().map(summarize);
            self.take(frame, awaited);
        } else {
            end.text = event_summary::beginning(&body);
        }
        end
    }

    async fn read_stream(
        self: &Arc<Self>,
        number: usize,
        mut response: Response,
        awaited: &mut Vec<Id>,
        outcome: &mut ExchangeOutcome,
    ) -> HttpEnd {
        let mut decoder = SseDecoder::default();
        let mut end = HttpEnd { number, ..HttpEnd::default() };
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) => {
                    end.bytes += bytes.len();
                    let mut events = Vec::new();
                    decoder.push(&bytes, |event| events.push(event));
                    end.comments = decoder.comments;
                    for event in events {
                        self.take_event(event, &mut end, awaited, outcome);
                    }
                }
                Ok(None) => {
                    end.complete = true;
                    break;
                }
                Err(error) => {
                    end.failure = Some(self.endpoint.masked(&describe_error(&error)));
                    break;
                }
            }
            // Data that never becomes an event is not awaited either: its end may never arrive.
            let beyond = decoder.pending() > self.record.limits.line;
            if beyond {
                self.record.add(Event::Overflow);
            }
            if beyond || end.failure.is_some() || self.record.state().closed {
                break;
            }
            self.save_open_stream(number, &mut end);
            tokio::task::yield_now().await;
        }
        end
    }

    /// Saves the state of a stream that is still open, in case it never ends. Only new events are added: on a stream
    /// that carries every response, copying all of them would take longer each time.
    fn save_open_stream(&self, number: usize, end: &mut HttpEnd) {
        let all = std::mem::take(&mut end.events);
        let mut state = self.state();
        let mut events = state.open.remove(&number).map(|noted| noted.events).unwrap_or_default();
        events.extend(all.iter().skip(events.len()).cloned());
        state.open.insert(number, HttpEnd { number, events, ..end.clone() });
        end.events = all;
    }

    fn take_event(
        self: &Arc<Self>,
        event: SseEvent,
        end: &mut HttpEnd,
        awaited: &mut Vec<Id>,
        outcome: &mut ExchangeOutcome,
    ) {
        if let Some(id) = &event.id {
            outcome.last_event_id = Some(id.clone());
        }
        if let Some(retry) = event.retry.as_deref().and_then(|retry| retry.parse().ok()) {
            outcome.retry = Some(Duration::from_millis(retry));
        }
        let names_endpoint = event.event.as_deref() == Some("endpoint");
        let mut summary = event_summary::summarize(&self.endpoint, &event);
        match event.data {
            Some(data) if names_endpoint && !data.is_empty() && self.awaits_endpoint() => {
                let text = String::from_utf8_lossy(&data);
                summary.text = Some(event_summary::excerpt(&self.endpoint.masked(&text)));
                if let Some(failure) = self.name_endpoint(&text) {
                    end.failure = Some(failure);
                }
            }
            Some(data) if !data.is_empty() => {
                let data = self.endpoint.masked_bytes(data);
                let frame = if event.dropped == 0 {
                    Frame::parse(&data)
                } else {
                    Frame::too_long(&data, data.len() + event.dropped)
                };
                if let Some(message) = frame.json() {
                    (summary.data, summary.message) = ("message", Some(summarize(message)));
                }
                outcome.received_message = true;
                self.take(frame, awaited);
            }
            _ => {}
        }
        event_summary::push(&mut end.events, summary);
    }

    /// Records a message of the server and answers it if it is a request.
    fn take(self: &Arc<Self>, frame: Frame, awaited: &mut Vec<Id>) {
        let mut replies = Vec::new();
        if let Some(value) = frame.json() {
            for message in messages(value) {
                match MessageKind::of(message) {
                    MessageKind::Response { id } => {
                        let known = id.and_then(|id| awaited.iter().position(|own| same_id(own, id)));
                        // An error without an id, or with an altered one, is still the result of the request.
                        if let Some(at) = known.or((!awaited.is_empty()).then_some(0)) {
                            awaited.remove(at);
                        }
                        self.store_negotiated(message);
                    }
                    MessageKind::Request { id, method } => {
                        replies.push(self.responder.answer(id, method, message.get("params")));
                    }
                    _ => {}
                }
            }
        }
        if !self.record.receive(frame) {
            return;
        }
        for reply in replies {
            if !self.record.may_answer() {
                return;
            }
            let sent = self.record.add(Event::Sent { frame: Frame::from_value(&reply), step_id: None });
            let this = Arc::clone(self);
            drop(self.spawn_task(async move { this.deliver(sent).await }));
        }
    }

    /// Stores what later requests must repeat from a response.
    fn store_negotiated(&self, response: &Value) {
        let Some(result) = response.get("result") else { return };
        if !self.stateless
            && let Some(version) = result.get("protocolVersion").and_then(Value::as_str)
            && result.get("capabilities").is_some()
        {
            // The header was added in 2025-06-18; versions are dates, so they compare as strings.
            self.state().version = (version >= "2025-06-18").then(|| version.to_owned());
        }
        if self.stateless && result.get("tools").is_some() {
            self.state().mirrored.extend(mirrored(result));
        }
    }

    /// Sets which tool parameters are mirrored into headers.
    pub(super) fn set_mirrored(&self, mirrored: Mirrored) {
        self.state().mirrored = mirrored;
    }
}

/// The media type of a response, without parameters, in lower case.
pub(super) fn media_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media_type_of(value)
}

fn is_json(kind: &str) -> bool {
    kind == "application/json" || kind.ends_with("+json")
}

/// Reads a body: at most `limit` bytes, of which at most one message's worth is kept in memory.
async fn read_body(mut response: Response, end: &mut HttpEnd, limit: usize) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(bytes)) => {
                end.bytes += bytes.len();
                let room = (MAX_MESSAGE_BYTES + 1).saturating_sub(body.len());
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Ok(None) => {
                end.complete = true;
                return body;
            }
            Err(error) => {
                end.failure = Some(describe_error(&error));
                return body;
            }
        }
        if end.bytes > limit {
            return body;
        }
    }
}
