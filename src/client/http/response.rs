//! Reads one HTTP response, body or stream, to its end or to the size limit, and turns it into messages.
//!
//! Requests of the server within the response are answered on the way. Also collects what later requests need: the
//! protocol version and mirrored parameters. The caller decides what an empty or invalid response leads to.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, Url};
use serde_json::Value;

use super::error_description::describe_error;
use super::event_summary;
use super::header::media_type as media_type_of;
use super::rate_limit::is_rate_limit;
use super::request::{HttpClient, OutgoingRequest, Repetition};
use super::sse_transport::MessageEndpoint;
use crate::client::long_message::LongMessage;
use crate::client::responder::Responder;
use crate::transcript::{BodyText, Entry, Event, HttpEnd, summarize};
use crate::wire::{
    Frame, Id, MAX_MESSAGE_BYTES, MessageKind, SseDecoder, SseEvent, id_of, is_lost_id, messages, same_id,
};

/// Reads the response to a message, and those that resume it.
pub(super) struct ResponseReader<'a> {
    pub(super) client: &'a HttpClient,
    pub(super) responder: &'a Responder,
    pub(super) message_endpoint: &'a MessageEndpoint,
    /// Delivers an answer to the server, which is recorded already.
    pub(super) deliver: &'a (dyn Fn(Arc<Entry>) + Send + Sync),
    /// Whether the message that was sent has a response.
    pub(super) expects_response: bool,
    /// The ids of the requests that are not answered yet.
    pub(super) awaited: Vec<Id>,
    /// Whether any message was received.
    pub(super) received_message: bool,
    pub(super) last_event_id: Option<String>,
    /// How long to wait before the stream is resumed, if the server says so.
    pub(super) retry: Option<Duration>,
    /// The message that is the body of the response, and the responses to its requests, until the end is recorded.
    pub(super) body: Option<(Frame, Vec<Value>)>,
}

impl ResponseReader<'_> {
    /// Reads the body of a response; removes the ids that it answers from `awaited`.
    pub(super) async fn read(&mut self, number: usize, response: Response) -> HttpEnd {
        let (kind, is_limited) = (media_type(&response), is_rate_limit(&response));
        let status = response.status();
        if kind == "text/event-stream" && status.is_success() {
            return self.read_stream(number, response).await;
        }
        let mut end = HttpEnd { number, ..HttpEnd::default() };
        let body = read_body(response, &mut end, self.client.record.limits.line).await;
        let body = self.client.endpoint.masked_bytes(body);
        if body.is_empty() {
            return end;
        }
        if is_limited {
            // Whatever the body says, it is about the rate limit and answers nothing.
            end.text = BodyText::of(&body);
            return end;
        }
        if end.bytes > MAX_MESSAGE_BYTES {
            self.received_message = true;
            self.body = Some((Frame::too_long(&body, end.bytes), Vec::new()));
            return end;
        }
        let frame = Frame::parse_taken(body);
        let speaks = frame.json().is_some_and(|value| {
            messages(value)
                .any(|message| !matches!(MessageKind::of(message), MessageKind::Unknown | MessageKind::Batch(_)))
        });
        // A body that is declared as JSON counts as a message even if it is not a known one.
        // A rejection of a message that has no response may explain itself by an error without an id.
        let explains = !self.expects_response
            && status.as_u16() >= 400
            && frame.json().is_some_and(|value| {
                messages(value).all(|message| message.get("error").is_some() && id_of(message).is_none_or(is_lost_id))
            });
        if explains {
            end.message = frame.json().map(|message| summarize(message).into());
        } else if speaks || is_json(&kind) && status == 200 {
            self.received_message = true;
            end.message = frame.json().map(|message| summarize(message).into());
            let replies = self.settle(&frame);
            self.body = Some((frame, replies));
        } else {
            end.text = BodyText::of(&frame.raw());
        }
        end
    }

    async fn read_stream(&mut self, number: usize, mut response: Response) -> HttpEnd {
        let mut decoder = SseDecoder::default();
        let mut message = LongMessage::default();
        let mut end = HttpEnd { number, ..HttpEnd::default() };
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) => {
                    end.bytes += bytes.len();
                    let mut events = Vec::new();
                    decoder.push(&bytes, |event| events.push(event));
                    end.comments = decoder.comments;
                    for event in events {
                        self.take_event(event, &mut end);
                    }
                }
                Ok(None) => {
                    end.complete = true;
                    break;
                }
                Err(error) => {
                    end.failure = Some(self.client.endpoint.masked(&describe_error(&error)));
                    break;
                }
            }
            // Data that never becomes an event is not awaited either: its end may never arrive.
            let record = &self.client.record;
            let beyond = decoder.pending() > record.limits.line;
            if beyond {
                record.add(Event::Overflow);
            }
            if beyond || end.failure.is_some() || record.state().closed {
                break;
            }
            event_summary::note_defects(&mut end, &decoder);
            self.client.log.save_open_stream(&mut end);
            message.wait_for_room(decoder.pending()).await;
            tokio::task::yield_now().await;
        }
        event_summary::note_defects(&mut end, &decoder);
        end
    }

    fn take_event(&mut self, event: SseEvent, end: &mut HttpEnd) {
        if let Some(id) = &event.id {
            self.last_event_id = Some(id.clone());
        }
        if let Some(retry) = event.retry.as_deref().and_then(|retry| retry.parse().ok()) {
            self.retry = Some(Duration::from_millis(retry));
        }
        let endpoint = &self.client.endpoint;
        let names_endpoint = event.event.as_deref() == Some("endpoint");
        let mut summary = event_summary::summarize(endpoint, &event);
        match event.data {
            Some(data) if names_endpoint && !data.is_empty() && self.message_endpoint.is_awaited() => {
                let text = String::from_utf8_lossy(&data);
                summary.text = Some(event_summary::excerpt(&endpoint.masked(&text)));
                if let Some(failure) = self.message_endpoint.name(endpoint, &text) {
                    end.failure = Some(failure);
                }
            }
            Some(data) if !data.is_empty() => {
                let data = endpoint.masked_bytes(data);
                let frame = if event.dropped == 0 {
                    Frame::parse_taken(data)
                } else {
                    Frame::too_long(&data, data.len() + event.dropped)
                };
                if let Some(message) = frame.json() {
                    (summary.data, summary.message) = ("message", Some(summarize(message).into()));
                }
                self.received_message = true;
                self.take(frame);
            }
            _ => {}
        }
        event_summary::push(&mut end.events, summary);
    }

    /// The request that resumes a stream once more, on a connection of its own: the request itself was received.
    pub(super) fn resumption(&self, url: Url) -> Option<OutgoingRequest> {
        let resumption = self.client.resumption(url, self.last_event_id.as_deref()?);
        Some(OutgoingRequest { repetition: Repetition::UnderWay, ..resumption })
    }

    /// Records the end of a response, and its body if that is a message.
    pub(super) fn finish(&mut self, end: HttpEnd, unanswered: Option<Id>) {
        match self.body.take() {
            None => self.client.log.finish(end, unanswered),
            Some((body, replies)) => {
                if self.client.log.finish_with_body(body, end, unanswered) {
                    self.send(replies);
                }
            }
        }
    }

    /// Records a message of the server and answers it if it is a request.
    fn take(&mut self, frame: Frame) {
        let replies = self.settle(&frame);
        if self.client.record.receive(frame) {
            self.send(replies);
        }
    }

    /// Notes what a message of the server answers, and returns the responses to its requests.
    fn settle(&mut self, frame: &Frame) -> Vec<Value> {
        let mut replies = Vec::new();
        for message in frame.json().into_iter().flat_map(messages) {
            match MessageKind::of(message) {
                MessageKind::Response { id } => {
                    let known = id.and_then(|id| self.awaited.iter().position(|own| same_id(own, id)));
                    // An error with the id null, or with an altered one, is still the result of the request. Without any
                    // id nobody recognizes it, so the request counts as unanswered and nobody waits for it.
                    let altered = id.and_then(|_| (!self.awaited.is_empty()).then_some(0));
                    if let Some(at) = known.or(altered) {
                        self.awaited.remove(at);
                    }
                    self.client.negotiated.store_response(message);
                }
                MessageKind::Request { id, method } => {
                    replies.extend(self.responder.answer(id, method, message.get("params")));
                }
                _ => {}
            }
        }
        replies
    }

    fn send(&self, replies: Vec<Value>) {
        let record = &self.client.record;
        for reply in replies {
            if !record.may_answer() {
                return;
            }
            (self.deliver)(record.add(Event::Sent { frame: Frame::from_value(&reply), step_id: None }));
        }
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
    const MAX_BODY_BYTES: usize = MAX_MESSAGE_BYTES + 1;
    let expected = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
    // Memory that is reserved and not written to is not used.
    let mut body = Vec::with_capacity(expected.min(MAX_BODY_BYTES));
    let mut message = LongMessage::default();
    loop {
        match response.chunk().await {
            Ok(Some(bytes)) => {
                end.bytes += bytes.len();
                let room = MAX_BODY_BYTES.saturating_sub(body.len());
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
        message.wait_for_room(body.len()).await;
    }
}
