//! A session over HTTP: one connection, and its response streams.
//!
//! The connection runs in its own task, which processes the messages of all requests one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::Bytes;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot};

use super::injection::has;
use super::response::{HttpResponse, empty, full, stream, text_error};
use super::{stream_injection, validation};
use crate::reference::connection::Connection;
use crate::reference::connection_state::Output;
use crate::reference::fault::FaultSet;
use crate::reference::fault::HttpFault::{
    ListenEnds, PrimingMissing, ReplayCrosses, ResumeRejected, SseEndpointSecond, SseReplyInPost,
    SseSessionOutlivesStream, StreamStaysOpen,
};
use crate::reference::interception::Interceptor;
use crate::reference::revision::Revision;
use crate::reference::user::User;

/// How long a response is delayed for a concurrent request, if a fault confuses the two.
const RESPONSE_HOLD_TIMEOUT: Duration = Duration::from_millis(60);
/// How long a stream stays open that a fault keeps open.
const OPEN_STREAM_DURATION: Duration = Duration::from_secs(5);
/// The number of events in the buffer of a stream.
const STREAM_BUFFER_EVENTS: usize = 64;
/// The number of messages that are stored for a stream that is not open yet, and for resumption.
const MAX_STORED_EVENTS: usize = 200;
/// The size of the message of `Fault::HugeLine`.
const HUGE_MESSAGE_BYTES: usize = 100 << 20;

/// The message of a POST.
pub(super) struct Post {
    pub(super) line: Bytes,
    pub(super) message: Value,
    /// Whether it is stateless, in which case the status depends on the error code.
    pub(super) stateless: bool,
}

enum Command {
    Post(Post, oneshot::Sender<HttpResponse>),
    Listen { last: Option<String>, response: oneshot::Sender<HttpResponse> },
    Stream { endpoint: String, response: oneshot::Sender<HttpResponse> },
    Observe(Bytes),
    Notify(Bytes),
}

/// A handle to a session.
#[derive(Clone)]
pub(super) struct Session {
    commands: mpsc::Sender<Command>,
    /// How many messages it was sent after its first.
    pub(super) messages: Arc<AtomicUsize>,
}

/// The maximum time from the end of a session by a fault to the end of the server.
const SERVER_EXIT_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(300);

impl Session {
    /// Opens a session of a user. With `streams`, all messages go to its only stream.
    pub(super) fn open(
        faults: Arc<FaultSet>,
        interceptor: Box<dyn Interceptor>,
        ended: Arc<Notify>,
        (user, streams): (User, bool),
    ) -> Self {
        let (commands, receiver) = mpsc::channel(STREAM_BUFFER_EVENTS);
        tokio::spawn(run(faults, interceptor, ended, (user, streams), receiver));
        Self { commands, messages: Arc::default() }
    }

    async fn ask(&self, command: impl FnOnce(oneshot::Sender<HttpResponse>) -> Command) -> HttpResponse {
        let (sender, response) = oneshot::channel();
        // If a fault has ended the session, there is no response, since the server is about to end as well.
        let _ended = self.commands.send(command(sender)).await;
        if let Ok(response) = response.await {
            return response;
        }
        tokio::time::sleep(SERVER_EXIT_TIMEOUT).await;
        text_error(StatusCode::INTERNAL_SERVER_ERROR, "the session has ended")
    }

    pub(super) async fn post(&self, post: Post) -> HttpResponse {
        self.ask(|response| Command::Post(post, response)).await
    }

    /// Opens the GET stream, or resumes a stream after an event.
    pub(super) async fn listen(&self, last: Option<&str>) -> HttpResponse {
        let last = last.map(str::to_owned);
        self.ask(|response| Command::Listen { last, response }).await
    }

    /// Opens the stream of the HTTP+SSE transport.
    pub(super) async fn stream(&self, endpoint: &str) -> HttpResponse {
        let endpoint = endpoint.to_owned();
        self.ask(|response| Command::Stream { endpoint, response }).await
    }

    /// Processes a message of another session, and only sends the resulting notifications.
    pub(super) async fn observe(&self, line: Bytes) {
        let _ended = self.commands.send(Command::Observe(line)).await;
    }

    /// Sends a notification of another session, which only a fault does.
    pub(super) async fn notify(&self, notification: Bytes) {
        let _ended = self.commands.send(Command::Notify(notification)).await;
    }

    /// Whether the session still runs.
    pub(super) fn is_running(&self) -> bool {
        !self.commands.is_closed()
    }
}

/// An open stream.
struct Stream {
    /// The id of the request that it answers; none for the GET stream.
    id: Option<Value>,
    sender: mpsc::Sender<Bytes>,
    number: usize,
    events: usize,
    faults: Arc<FaultSet>,
}

/// The number of a new stream, unique on this server: without session ids, event ids must be unique across
/// clients.
fn next_stream() -> usize {
    static NUMBER: AtomicUsize = AtomicUsize::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

struct SessionState {
    streams: Vec<Stream>,
    /// Whether all messages go to one stream.
    single_stream: bool,
    /// Messages that wait for a stream.
    queue: Vec<Bytes>,
    /// Sent messages with their event ids, for resumption.
    sent: Vec<(usize, usize, Bytes)>,
    opened: usize,
    has_event_ids: bool,
    faults: Arc<FaultSet>,
}

async fn run(
    faults: Arc<FaultSet>,
    interceptor: Box<dyn Interceptor>,
    ended: Arc<Notify>,
    (user, single_stream): (User, bool),
    mut commands: mpsc::Receiver<Command>,
) {
    let mut connection = Connection::new(&faults, interceptor);
    connection.state.user = user;
    let mut state = SessionState {
        streams: Vec::new(),
        single_stream,
        queue: Vec::new(),
        sent: Vec::new(),
        opened: 0,
        has_event_ids: false,
        faults: Arc::clone(&faults),
    };
    loop {
        let command = if connection.has_delayed_responses() {
            let Ok(command) = tokio::time::timeout(RESPONSE_HOLD_TIMEOUT, commands.recv()).await else {
                let outputs = connection.flush_delayed();
                state.send_to_streams(lines(outputs)).await;
                continue;
            };
            command
        } else {
            commands.recv().await
        };
        let Some(command) = command else { return };
        match command {
            Command::Post(post, response) => {
                let outputs = connection.receive(&post.line);
                state.has_event_ids = connection.revision() == Revision::V2025_11_25 && !post.stateless;
                if outputs.contains(&Output::Close) || outputs.contains(&Output::Crash) {
                    ended.notify_one();
                    return;
                }
                let response_to_post = state.response_to_post(&post, outputs).await;
                // The client may have disconnected.
                let _gone = response.send(response_to_post);
            }
            Command::Listen { last, response } => {
                let _gone = response.send(state.listen(last.as_deref()).await);
            }
            Command::Stream { endpoint, response } => {
                let (sender, body) = mpsc::channel(STREAM_BUFFER_EVENTS);
                if has(&faults, SseEndpointSecond) {
                    let _full = sender.send(Bytes::from_static(b"event: ready\nid: 0\n\n")).await;
                }
                let _full = sender.send(Bytes::from(format!("event: endpoint\ndata: {endpoint}\n\n"))).await;
                state.streams.push(Stream { id: None, sender, number: 0, events: 0, faults: Arc::clone(&faults) });
                let _gone = response.send(stream(body));
            }
            Command::Notify(notification) => state.send_to_streams(vec![notification]).await,
            Command::Observe(line) => {
                let notifications: Vec<Bytes> =
                    lines(connection.receive(&line)).into_iter().filter(is_notification).collect();
                state.send_to_streams(notifications).await;
                if state.streams.is_empty() {
                    return;
                }
            }
        }
    }
}

fn is_notification(line: &Bytes) -> bool {
    serde_json::from_slice::<Value>(line).is_ok_and(|value| value.get("method").is_some() && value.get("id").is_none())
}

/// The lines of an output, without line endings; endless output is limited.
fn lines(outputs: Vec<Output>) -> Vec<Bytes> {
    let mut bytes = Vec::new();
    for output in outputs {
        match output {
            Output::Bytes(line) => bytes.extend_from_slice(&line),
            Output::Huge { begin, end } => {
                bytes.extend_from_slice(&begin);
                bytes.resize(bytes.len() + HUGE_MESSAGE_BYTES, b'x');
                bytes.extend_from_slice(&end);
            }
            Output::Flood(line) => bytes.extend_from_slice(&line.repeat(20_000)),
            // Delays and exits apply to a process only.
            Output::Delay(_) | Output::Freeze | Output::Crash | Output::Close => {}
        }
    }
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(Bytes::copy_from_slice).collect()
}

/// The id of a line, if it is a response.
fn response_id(line: &Bytes) -> Option<Value> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let responds = |value: &Value| value.get("result").is_some() || value.get("error").is_some();
    match &value {
        Value::Array(items) => items.iter().find(|item| responds(item)).map(|item| item["id"].clone()),
        value => responds(value).then(|| value["id"].clone()),
    }
}

/// The status of the response to a POST, which depends on the error code in stateless revisions.
fn status_of(line: &Bytes, post: &Post) -> StatusCode {
    let stateless = post.stateless;
    let code = serde_json::from_slice::<Value>(line).ok().and_then(|value| {
        let has_no_id = value.get("id").is_none_or(Value::is_null);
        value.pointer("/error/code").and_then(Value::as_i64).map(|code| (code, has_no_id))
    });
    match code {
        Some((-32_602, _)) if stateless && validation::lacks_meta(&post.message) => StatusCode::BAD_REQUEST,
        Some((-32_601, false)) if stateless => StatusCode::NOT_FOUND,
        Some((-32_022..=-32_020 | -32_600, _)) if stateless => StatusCode::BAD_REQUEST,
        // An error without an id is about the whole input.
        Some((_, true)) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

impl SessionState {
    /// The response to a POST, from what the connection wrote for it.
    async fn response_to_post(&mut self, post: &Post, outputs: Vec<Output>) -> HttpResponse {
        let written = lines(outputs);
        if self.single_stream {
            return self.accept_for_stream(post, written).await;
        }
        let is_request = |message: &Value| message.get("method").is_some() && message.get("id").is_some();
        let first = match &post.message {
            Value::Array(items) => items.iter().find(|item| is_request(item)),
            message => Some(message).filter(|message| is_request(message)),
        };
        let is_response = post.message.get("result").is_some() || post.message.get("error").is_some();
        let Some(id) = first.map(|message| message["id"].clone()) else {
            // Nothing is to be answered, but invalid input is rejected.
            let (own, other): (Vec<Bytes>, Vec<Bytes>) =
                written.into_iter().partition(|line| !is_response && response_id(line).is_some());
            self.send_to_streams(other).await;
            return match own.first() {
                Some(error) => full(status_of(error, post), "application/json", error.clone()),
                None => empty(StatusCode::ACCEPTED),
            };
        };
        let at = written.iter().position(|line| response_id(line).is_some());
        let has_own_status = at.is_some_and(|at| status_of(&written[at], post) != StatusCode::OK);
        let streams = stream_injection::uses_stream(&post.message, has_own_status, &self.faults);
        if let Some(duplicate_response) =
            at.and_then(|at| stream_injection::duplicate_response(&written[at], &post.message, &self.faults))
        {
            self.send_to_get_stream(duplicate_response).await;
        }
        if let Some(first) = written.first().filter(|_| stream_injection::listens_as_json(&post.message, &self.faults))
        {
            return full(StatusCode::OK, "application/json", first.clone());
        }
        if let Some(at) = at.filter(|_| post.message["method"] == "tasks/get" && !streams) {
            // A poll needs no stream; other messages go to the GET stream.
            let mut written = written;
            let response = written.remove(at);
            self.send_to_streams(written).await;
            return full(status_of(&response, post), "application/json", response);
        }
        match (at, written.as_slice()) {
            // A single response needs no stream, unless the client wants progress.
            (Some(0), [line]) if !streams => full(status_of(line, post), "application/json", line.clone()),
            (Some(0), [line, ..]) if !streams && written.get(1).is_some_and(|next| response_id(next).is_none()) => {
                let line = line.clone();
                self.send_to_streams(written[1..].to_vec()).await;
                full(status_of(&line, post), "application/json", line)
            }
            _ => self.own_stream(post, id, written, at).await,
        }
    }

    /// The response to a POST of the HTTP+SSE transport: what it leads to goes to the stream.
    async fn accept_for_stream(&mut self, post: &Post, written: Vec<Bytes>) -> HttpResponse {
        let is_connected = self.streams.iter().any(|stream| !stream.sender.is_closed());
        if !is_connected && !has(&self.faults, SseSessionOutlivesStream) {
            return text_error(StatusCode::NOT_FOUND, "the stream of the session was closed");
        }
        let replies_in_post = has(&self.faults, SseReplyInPost) && post.message["method"] == "ping";
        if let ([line], true) = (written.as_slice(), replies_in_post) {
            return full(StatusCode::OK, "application/json", line.clone());
        }
        self.send_to_streams(written).await;
        full(StatusCode::ACCEPTED, "text/plain; charset=utf-8", "Accepted")
    }

    /// A stream for the messages that answer a request; `at` is the position of the response among what was written.
    async fn own_stream(&mut self, post: &Post, id: Value, written: Vec<Bytes>, at: Option<usize>) -> HttpResponse {
        let (sender, body) = mpsc::channel(STREAM_BUFFER_EVENTS);
        self.opened = next_stream();
        let faults = Arc::clone(&self.faults);
        let mut own = Stream { id: Some(id), sender, number: self.opened, events: 0, faults };
        let has_event_ids = self.has_event_ids;
        let response_end = at.map_or(written.len(), |at| at + 1);
        let (now, later) = written.split_at(response_end);
        let (for_own_stream, for_other_streams) =
            stream_injection::distribute(now.to_vec(), &post.message, post.stateless, &self.faults);
        if has_event_ids {
            let events = for_own_stream.iter().enumerate();
            self.store_events(events.map(|(at, line)| (own.number, at + 1, line.clone())).collect());
        }
        // A stream without its response stays open, since nothing could be resumed yet.
        let closing_event =
            at.and_then(|_| stream_injection::early_close_event(&post.message, has_event_ids, &self.faults));
        if let Some(closing_event) = closing_event {
            prime(&mut own, has_event_ids).await;
            let _gone = own.sender.send(Bytes::from_static(closing_event)).await;
        } else if at.is_some() {
            let stays_open = has(&self.faults, StreamStaysOpen);
            let unfinished = stream_injection::unfinished_event(&post.message, &self.faults);
            // The stream ends with the response; long output is written while the client reads.
            tokio::spawn(async move {
                prime(&mut own, has_event_ids).await;
                for line in for_own_stream {
                    if !write(&mut own, has_event_ids, line).await {
                        return;
                    }
                }
                if let Some(unfinished) = unfinished {
                    let _gone = own.sender.send(unfinished).await;
                }
                if stays_open {
                    tokio::time::sleep(OPEN_STREAM_DURATION).await;
                }
            });
        } else {
            prime(&mut own, has_event_ids).await;
            for line in for_own_stream {
                write(&mut own, has_event_ids, line).await;
            }
            if !has(&self.faults, ListenEnds) {
                self.streams.push(own);
            }
        }
        self.send_to_streams(for_other_streams).await;
        self.send_to_streams(later.to_vec()).await;
        stream(body)
    }

    fn store_events(&mut self, sent: Vec<(usize, usize, Bytes)>) {
        self.sent.extend(sent);
        let excess = self.sent.len().saturating_sub(MAX_STORED_EVENTS);
        self.sent.drain(..excess);
    }

    /// Sends a line to the GET stream.
    async fn send_to_get_stream(&mut self, line: Bytes) {
        let has_event_ids = self.has_event_ids;
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id.is_none()) {
            write(stream, has_event_ids, line).await;
        }
    }

    /// Sends lines that do not answer the current request to the streams that they belong to.
    async fn send_to_streams(&mut self, written: Vec<Bytes>) {
        for line in written {
            let value: Value = serde_json::from_slice(&line).unwrap_or_default();
            let id = response_id(&line);
            let subscription = value.pointer("/params/_meta/io.modelcontextprotocol~1subscriptionId").cloned();
            let wanted = id.clone().or(subscription);
            let own = self.streams.iter().position(|stream| wanted.is_some() && stream.id == wanted);
            let get_stream = self.streams.iter().position(|stream| stream.id.is_none());
            // A response with an unknown id goes to any stream that waits for a response.
            let waiting = id.is_some().then(|| self.streams.iter().position(|stream| stream.id.is_some())).flatten();
            let Some(at) = own.or(waiting).or(get_stream) else {
                if self.queue.len() < MAX_STORED_EVENTS {
                    self.queue.push(line);
                }
                continue;
            };
            let stream = &mut self.streams[at];
            let event = (stream.number, stream.events + 1, line.clone());
            let is_connected = write(stream, self.has_event_ids, line).await;
            if !is_connected || (id.is_some() && stream.id.is_some()) {
                self.streams.remove(at);
            }
            self.store_events(vec![event]);
        }
    }

    async fn listen(&mut self, last: Option<&str>) -> HttpResponse {
        let after = last.and_then(|last| {
            let (stream, event) = last.split_once('-')?;
            Some((stream.parse::<usize>().ok()?, event.parse::<usize>().ok()?))
        });
        if last.is_some() && has(&self.faults, ResumeRejected) {
            return text_error(StatusCode::BAD_REQUEST, "the stream cannot be resumed");
        }
        if let Some((number, event)) = after {
            let crosses = has(&self.faults, ReplayCrosses);
            let (sender, body) = mpsc::channel(MAX_STORED_EVENTS);
            for (own, at, line) in &self.sent {
                if *own == number && *at > event || crosses && *own != number {
                    let line = stream_injection::replayed_message(line, &self.faults);
                    let text = format!("id: {own}-{at}\ndata: {}\n\n", String::from_utf8_lossy(&line));
                    let _full = sender.send(Bytes::from(text)).await;
                }
            }
            return stream(body);
        }
        self.streams.retain(|stream| stream.id.is_some() || !stream.sender.is_closed());
        if self.streams.iter().any(|stream| stream.id.is_none()) {
            return text_error(StatusCode::CONFLICT, "the stream is already open");
        }
        let (sender, body) = mpsc::channel(STREAM_BUFFER_EVENTS);
        self.opened = next_stream();
        let mut own = Stream { id: None, sender, number: self.opened, events: 0, faults: Arc::clone(&self.faults) };
        prime(&mut own, self.has_event_ids).await;
        self.streams.push(own);
        let queue = std::mem::take(&mut self.queue);
        self.send_to_streams(queue).await;
        stream(body)
    }
}

/// Sends the first event, whose id lets the client resume.
async fn prime(stream: &mut Stream, has_event_ids: bool) {
    if has_event_ids && !has(&stream.faults, PrimingMissing) {
        let text = format!("id: {}\ndata:\n\n", stream_injection::event_id(stream.number, 0, &stream.faults));
        let _gone = stream.sender.send(Bytes::from(text)).await;
    } else {
        let _gone = stream.sender.send(Bytes::from_static(b": open\n\n")).await;
    }
}

/// Sends a message as an event; false if the client has disconnected.
async fn write(stream: &mut Stream, has_event_ids: bool, line: Bytes) -> bool {
    stream.events += 1;
    let mut text = Vec::with_capacity(line.len() + 40);
    let older = stream.number == 0;
    text.extend_from_slice(format!("event: {}\n", stream_injection::event_type(older, &stream.faults)).as_bytes());
    if has_event_ids {
        let id = stream_injection::event_id(stream.number, stream.events, &stream.faults);
        text.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    text.extend_from_slice(&stream_injection::data_field(&line, &stream.faults));
    text.extend_from_slice(b"\n\n");
    stream.sender.send(Bytes::from(text)).await.is_ok()
}
