//! The HTTP+SSE transport: one stream that names an endpoint for messages and carries every response.
//!
//! Owns that endpoint, from the moment the stream is opened. Other modules find out whether a server uses this
//! transport, and read the stream like any other.
//!
//! Source: `basic/transports#http-with-sse` of 2024-11-05.

use std::sync::Arc;

use reqwest::{Method, Url};

use super::connection::HttpConnection;
use super::error_text;
use super::request::{ACCEPT_JSON_OR_STREAM, ACCEPT_STREAM, OutgoingRequest};
use crate::transcript::{Entry, Event};

/// The message endpoint that an HTTP+SSE stream names.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum MessageEndpoint {
    #[default]
    NotRequested,
    Awaited,
    Named(Url),
    Failed,
}

impl HttpConnection {
    /// The URL to which messages are sent.
    pub(super) fn message_url(&self) -> Url {
        match &*self.message_endpoint.borrow() {
            MessageEndpoint::Named(url) if !self.stateless => url.clone(),
            _ => self.endpoint.url.clone(),
        }
    }

    /// Whether a stream is open that has not named an endpoint yet.
    pub(super) fn awaits_endpoint(&self) -> bool {
        *self.message_endpoint.borrow() == MessageEndpoint::Awaited
    }

    /// Stores the endpoint that a stream names. Returns an error text for an endpoint at another origin: nothing is
    /// sent there, and a check reports that no response arrived.
    pub(super) fn name_endpoint(&self, text: &str) -> Option<String> {
        let text = text.trim();
        let url = self.endpoint.url.join(text).ok().filter(|url| self.endpoint.is_same_origin(url));
        let failure = url.is_none().then(|| self.endpoint.masked(&format!("{} ({text})", error_text::OTHER_ORIGIN)));
        self.message_endpoint.send_replace(url.map_or(MessageEndpoint::Failed, MessageEndpoint::Named));
        failure
    }

    /// Opens the HTTP+SSE stream; returns whether it names a message endpoint.
    pub(super) async fn open_sse_stream(self: &Arc<Self>) -> bool {
        let mut named = self.message_endpoint.subscribe();
        let mut first = false;
        self.message_endpoint.send_if_modified(|endpoint| {
            first = *endpoint == MessageEndpoint::NotRequested;
            if first {
                *endpoint = MessageEndpoint::Awaited;
            }
            first
        });
        if first {
            let this = Arc::clone(self);
            drop(self.spawn_task(async move {
                let order = this.request_without_body(Method::GET, this.endpoint.url.clone(), ACCEPT_STREAM);
                this.exchange(order).await;
                let lost = *this.message_endpoint.borrow() != MessageEndpoint::Awaited;
                this.message_endpoint.send_replace(MessageEndpoint::Failed);
                // The stream is the connection: without it nothing more can arrive.
                if lost {
                    this.record.add(Event::Closed);
                }
            }));
        }
        let settled =
            named.wait_for(|endpoint| matches!(endpoint, MessageEndpoint::Named(_) | MessageEndpoint::Failed)).await;
        settled.is_ok_and(|endpoint| matches!(*endpoint, MessageEndpoint::Named(_)))
    }

    /// Sends a message over the HTTP+SSE transport.
    pub(super) async fn deliver_by_sse(self: &Arc<Self>, sent: Arc<Entry>) {
        if !self.open_sse_stream().await {
            self.record.add(Event::Closed);
            return;
        }
        let MessageEndpoint::Named(url) = self.message_endpoint.borrow().clone() else { return };
        let Event::Sent { frame, .. } = &sent.event else { return };
        let headers = self.headers(frame.json(), ACCEPT_JSON_OR_STREAM);
        // The response arrives on the stream; the POST only shows whether the message was accepted.
        let order = |attempt| OutgoingRequest {
            method: Method::POST,
            url: url.clone(),
            headers: headers.clone(),
            body: Some(frame.raw.clone()),
            carries: Some(Arc::clone(&sent)),
            awaited: Vec::new(),
            attempt,
            resume: false,
            defers_end: false,
        };
        let _taken = self.exchange_with_retries(order).await;
    }
}
