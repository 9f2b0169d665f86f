//! The entries of a transcript: each message and event of a connection, with its time.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::wire::{Frame, Id, JsonText};

/// The step of a case for which an entry was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StepId {
    /// The run of the case's steps, counted over the whole test run.
    pub execution: usize,
    /// The position of the step within its case.
    pub step: usize,
}

/// The step at which the server ended while it was shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShutdownStep {
    /// The process had ended before the shutdown began.
    AlreadyExited,
    /// It ended after its standard input was closed.
    StdinClosed,
    /// It ended after SIGTERM.
    Sigterm,
    /// Its process group had to be killed.
    Sigkill,
    /// It keeps running: over HTTP only the session was ended.
    Disconnected,
}

impl ShutdownStep {
    /// The name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AlreadyExited => "already-exited",
            Self::StdinClosed => "stdin-closed",
            Self::Sigterm => "sigterm",
            Self::Sigkill => "sigkill",
            Self::Disconnected => "disconnected",
        }
    }
}

/// Something that happened on a connection.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A line that the client sent.
    Sent {
        /// The line.
        frame: Frame,
        /// The step that it belongs to; none for messages that the session itself sends.
        step_id: Option<StepId>,
    },
    /// A line that the server wrote to its standard output.
    Received(Frame),
    /// Text that the server wrote to its standard error.
    Stderr(String),
    /// The client made an HTTP request.
    HttpRequest(HttpRequest),
    /// The head of an HTTP response: status and headers.
    HttpHead(HttpHead),
    /// The end of an HTTP response.
    HttpEnd(Box<HttpEnd>),
    /// A wait that timed out.
    TimedOut {
        /// How long the client waited.
        waited: Duration,
    },
    /// The client gave up on the server: it left valid requests unanswered, while its connection was open.
    Abandoned,
    /// The server closed its standard output.
    Closed,
    /// The process ended.
    Exited {
        /// The exit status as text, such as `exit status: 1`.
        status: String,
    },
    /// The server wrote more than a transcript keeps; the rest was dropped.
    Overflow,
    /// The client shut the server down.
    Shutdown {
        /// The step at which the server ended.
        step: ShutdownStep,
        /// The time from closing the server's standard input to its end, as far as the client waited.
        duration: Duration,
        /// The names of the processes of its group that still ran some time after it had exited by itself or on SIGTERM;
        /// `None` if nothing is known of them.
        left_running: Option<Vec<String>>,
    },
}

/// An event with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Time since the connection was opened.
    pub at: Duration,
    /// What happened.
    pub event: Event,
}

impl Entry {
    /// Whether it is a received line of which only the beginning of long strings is kept.
    #[must_use]
    pub(crate) fn is_shortened(&self) -> bool {
        matches!(&self.event, Event::Received(frame) if frame.is_shortened())
    }

    /// The JSON value that was received, if this entry is a received line.
    #[must_use]
    pub fn received(&self) -> Option<&Value> {
        match &self.event {
            Event::Received(frame) => frame.json(),
            _ => None,
        }
    }

    /// The JSON value that was sent, if this entry is a sent line.
    #[must_use]
    pub fn sent(&self) -> Option<&Value> {
        match &self.event {
            Event::Sent { frame, .. } => frame.json(),
            _ => None,
        }
    }
}

/// An HTTP request of the client.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HttpRequest {
    /// Its number on the connection, from 0.
    pub number: usize,
    /// The method, such as `POST`.
    pub method: String,
    /// The path and query.
    pub target: String,
    /// The headers that the client chooses, names in lower case; secret values are masked. Most requests of a connection
    /// share them.
    pub headers: Arc<[(String, String)]>,
    /// The entry of the message in the request body, if there is one.
    pub carries: Option<Arc<Entry>>,
    /// The step of a case that made this request directly; none for requests that carry the connection's messages.
    pub step_id: Option<StepId>,
    /// The body of a request that a case makes directly: a message or a string.
    pub body: Option<JsonText>,
}

/// The head of an HTTP response.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HttpHead {
    /// The number of the request.
    pub number: usize,
    /// The status code.
    pub status: u16,
    /// The headers in the order received, names in lower case. Most responses of a connection share them.
    pub headers: Arc<[(String, String)]>,
}

impl HttpHead {
    /// The value of a header; the first value if there are several.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// The end of an HTTP response, or of what the client read of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HttpEnd {
    /// The number of the request.
    pub number: usize,
    /// The number of body bytes that were read.
    pub bytes: usize,
    /// The beginning of a body that is neither a message nor a stream; of any body if a case made the request.
    pub text: BodyText,
    /// The message in the body, if there is one; for an ordinary request only its small members.
    pub message: Option<JsonText>,
    /// The events of a stream, the first thousand at most.
    pub events: Vec<SseEventSummary>,
    /// The number of comment lines in a stream.
    pub comments: usize,
    /// How a stream is malformed: `message-without-data`, `data-not-json`, `data-not-a-message` or
    /// `unfinished-event`.
    pub defects: Vec<&'static str>,
    /// Why the response was not read to its end, or did not arrive at all.
    pub failure: Option<String>,
    /// Whether the server ended the response; otherwise the client did.
    pub complete: bool,
    /// The id of the request that the response should have answered and did not.
    pub unanswered: Option<Id>,
    /// How URLs in the response relate to the server's URL, if a case made the request.
    pub standing: Option<Value>,
    /// Where a server on this machine listens, if a case made the request: `loopback` or `every-address`.
    pub listens_at: Option<&'static str>,
    /// How many connections that clients have closed a server on this machine has not, if a case waited for that.
    pub half_closed: Option<usize>,
    /// Why the exchange says nothing about the server's behaviour, if so: the request was made again.
    pub set_aside: Option<SetAside>,
}

impl HttpEnd {
    /// The beginning of the body, as far as it is kept.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match (&self.text, &self.message) {
            (BodyText::Beginning(text), _) => Cow::Borrowed(text),
            (BodyText::OfMessage, Some(message)) => {
                let text = message.text();
                BodyText::beginning_of(text.as_bytes()).into_owned().into()
            }
            (BodyText::OfMessage, None) | (BodyText::None, _) => Cow::default(),
        }
    }
}

/// The beginning of the body of an HTTP response.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum BodyText {
    /// Nothing is kept.
    #[default]
    None,
    /// The beginning itself.
    Beginning(Box<str>),
    /// The body is the text of its message, and is not kept twice.
    OfMessage,
}

impl BodyText {
    /// How much of a body is kept, in bytes.
    const MAX_BYTES: usize = 4_096;

    /// The beginning of a body.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        Self::from(Self::beginning_of(body).as_ref())
    }

    fn beginning_of(body: &[u8]) -> Cow<'_, str> {
        String::from_utf8_lossy(&body[..body.len().min(Self::MAX_BYTES)])
    }
}

impl From<&str> for BodyText {
    fn from(text: &str) -> Self {
        if text.is_empty() { Self::None } else { Self::Beginning(text.into()) }
    }
}

/// Why an HTTP exchange is no part of what is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetAside {
    /// The server had ended the session (status 404), so the client opened a new one and made the request again.
    SessionEnded,
    /// It opened the new session.
    SessionRenewal,
    /// The server closed the connection under the request, so the client made it again on another one.
    ConnectionClosed,
    /// It did so again before it had read a large body: what it answered, if anything, is lost.
    BodyUnread,
}

impl SetAside {
    /// All reasons.
    pub(crate) const ALL: [Self; 4] =
        [Self::SessionEnded, Self::SessionRenewal, Self::ConnectionClosed, Self::BodyUnread];

    /// The name in transcript files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionEnded => "session-ended",
            Self::SessionRenewal => "session-renewal",
            Self::ConnectionClosed => "connection-closed",
            Self::BodyUnread => "body-unread",
        }
    }
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SseEventSummary {
    /// The type, where the event names one.
    pub event: Option<String>,
    /// The id, where the event sets one.
    pub id: Option<String>,
    /// The reconnection time as written, where the event sets one.
    pub retry: Option<String>,
    /// `none`, `empty`, `message` (JSON) or `other`.
    pub data: &'static str,
    /// The message in the event; for an ordinary request only its small members.
    pub message: Option<JsonText>,
    /// The beginning of data that is not JSON.
    pub text: Option<String>,
}
