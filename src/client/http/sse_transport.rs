//! The HTTP+SSE transport: one stream that names an endpoint for messages and carries every response.
//!
//! Owns that endpoint, from the moment the stream is opened. The connection opens the stream, reads it like any other
//! and delivers messages.
//!
//! Source: `basic/transports#http-with-sse` of 2024-11-05.

use reqwest::Url;
use tokio::sync::watch;

use super::endpoint::HttpEndpoint;
use super::error_text;

/// The message endpoint that an HTTP+SSE stream names.
#[derive(Debug, Clone, PartialEq, Default)]
enum State {
    #[default]
    NotRequested,
    Awaited,
    Named(Url),
    Failed,
}

/// The endpoint for messages of an HTTP+SSE connection.
#[derive(Debug)]
pub(super) struct MessageEndpoint(watch::Sender<State>);

impl Default for MessageEndpoint {
    fn default() -> Self {
        Self(watch::Sender::new(State::default()))
    }
}

impl MessageEndpoint {
    /// Its URL, once the stream has named it.
    pub(super) fn url(&self) -> Option<Url> {
        match &*self.0.borrow() {
            State::Named(url) => Some(url.clone()),
            _ => None,
        }
    }

    /// Whether a stream is open that has not named an endpoint yet.
    pub(super) fn is_awaited(&self) -> bool {
        *self.0.borrow() == State::Awaited
    }

    /// Stores the endpoint that a stream names. Returns an error text for an endpoint at another origin: nothing is
    /// sent there, and a check reports that no response arrived.
    pub(super) fn name(&self, server: &HttpEndpoint, text: &str) -> Option<String> {
        let text = text.trim();
        let url = server.url.join(text).ok().filter(|url| server.is_same_origin(url));
        let failure = url.is_none().then(|| server.masked(&format!("{} ({text})", error_text::OTHER_ORIGIN)));
        self.0.send_replace(url.map_or(State::Failed, State::Named));
        failure
    }

    /// Notes that a stream is requested; returns whether it is the first one, which the caller then opens.
    pub(super) fn request(&self) -> bool {
        self.0.send_if_modified(|state| {
            let first = *state == State::NotRequested;
            if first {
                *state = State::Awaited;
            }
            first
        })
    }

    /// Notes that the stream has ended; returns whether it had named an endpoint or failed to.
    pub(super) fn end(&self) -> bool {
        self.0.send_replace(State::Failed) != State::Awaited
    }

    /// Waits until the stream has named an endpoint or ended; returns whether it has named one.
    pub(super) async fn wait_until_named(&self) -> bool {
        let mut changed = self.0.subscribe();
        let settled = changed.wait_for(|state| matches!(state, State::Named(_) | State::Failed)).await;
        settled.is_ok_and(|state| matches!(*state, State::Named(_)))
    }
}
