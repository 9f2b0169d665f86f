//! The older transport, HTTP+SSE: one stream that names an endpoint for messages and carries every answer.
//!
//! Owns the endpoint, from the moment that a stream is opened in the hope of one. Whether a server is of that kind
//! is found out elsewhere, and what its stream brings is read like any other.
//!
//! Source: `basic/transports#http-with-sse` of 2024-11-05.

use std::sync::Arc;

use reqwest::{Method, Url};

use super::exchange::Exchanger;
use super::request::{BOTH, Order, STREAM};
use super::trouble;
use crate::transcript::{Entry, Event};

/// The endpoint for messages that a stream of the older transport names.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Endpoint {
    #[default]
    Unasked,
    Awaited,
    Named(Url),
    Failed,
}

impl Exchanger {
    /// Where messages go.
    pub(super) fn message_url(&self) -> Url {
        match &*self.endpoint.borrow() {
            Endpoint::Named(url) if !self.stateless => url.clone(),
            _ => self.site.url.clone(),
        }
    }

    /// Whether a stream is open that has named no endpoint yet.
    pub(super) fn awaits_endpoint(&self) -> bool {
        *self.endpoint.borrow() == Endpoint::Awaited
    }

    /// Takes the endpoint that a stream names; returns what is wrong with one that lies elsewhere, which is where
    /// nothing is sent to: a check sees that nothing came of it.
    pub(super) fn name_endpoint(&self, text: &str) -> Option<String> {
        let text = text.trim();
        let url = self.site.url.join(text).ok().filter(|url| self.site.is_same_origin(url));
        let trouble = url.is_none().then(|| self.site.masked(&format!("{} ({text})", trouble::ELSEWHERE)));
        self.endpoint.send_replace(url.map_or(Endpoint::Failed, Endpoint::Named));
        trouble
    }

    /// Opens the stream of the older transport; whether it names an endpoint for messages.
    pub(super) async fn opens_a_stream(self: &Arc<Self>) -> bool {
        let mut named = self.endpoint.subscribe();
        let mut first = false;
        self.endpoint.send_if_modified(|endpoint| {
            first = *endpoint == Endpoint::Unasked;
            if first {
                *endpoint = Endpoint::Awaited;
            }
            first
        });
        if first {
            let this = Arc::clone(self);
            drop(self.aside(async move {
                let order = this.empty(Method::GET, this.site.url.clone(), STREAM);
                this.exchange(order).await;
                let lost = *this.endpoint.borrow() != Endpoint::Awaited;
                this.endpoint.send_replace(Endpoint::Failed);
                // The stream is the connection: with it nothing more can come.
                if lost {
                    this.record.add(Event::Closed);
                }
            }));
        }
        let settled = named.wait_for(|endpoint| matches!(endpoint, Endpoint::Named(_) | Endpoint::Failed)).await;
        settled.is_ok_and(|endpoint| matches!(*endpoint, Endpoint::Named(_)))
    }

    /// Sends a message by the older transport.
    pub(super) async fn deliver_by_sse(self: &Arc<Self>, sent: Arc<Entry>) {
        if !self.opens_a_stream().await {
            self.record.add(Event::Closed);
            return;
        }
        let Endpoint::Named(url) = self.endpoint.borrow().clone() else { return };
        let Event::Sent { frame, .. } = &sent.event else { return };
        let headers = self.headers(frame.json(), BOTH);
        // The answer comes on the stream; what the POST says is whether the message was taken.
        let order = |attempt| Order {
            method: Method::POST,
            url: url.clone(),
            headers: headers.clone(),
            body: Some(frame.raw.clone()),
            carries: Some(Arc::clone(&sent)),
            awaited: Vec::new(),
            attempt,
            resume: false,
            hold: false,
        };
        let _taken = self.insist(order).await;
    }
}
