//! Whether the server answers requests while a stream for its own messages is open.
//!
//! A server with one thread may serve nothing but the stream. A client that opens one is then never answered, so the
//! stream is given up for all connections. What this shows of the server is judged by a case with a stream of its own.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::endpoint::GetStreams;
use super::rate_limit::wait_for_slot;
use super::request::{ACCEPT_JSON_OR_STREAM, HttpClient};
use crate::client::record::Record;
use crate::limits::http::{GET_STREAM_HEAD_TIMEOUT, GET_STREAM_PING_FACTOR, GET_STREAM_PING_TIMEOUT, RENEWAL_TIMEOUT};
use crate::transcript::{Entry, Event};

/// Keeps the stream for the server's own messages open, unless the server answers no requests then. `read` opens it and reads it
/// in the background.
pub(super) async fn listen(
    client: &HttpClient,
    known: &Mutex<GetStreams>,
    read: impl Fn() -> JoinHandle<()>,
) -> Option<JoinHandle<()>> {
    // The others wait: their streams would hold up the test.
    let mut known = known.lock().await;
    if *known == GetStreams::HoldUpRequests {
        client.record.go_without_get_stream();
        return None;
    }
    if *known == GetStreams::Usable {
        return Some(read());
    }
    let limit = GET_STREAM_PING_TIMEOUT.max(client.record.opening_time().unwrap_or_default() * GET_STREAM_PING_FACTOR);
    let (stream, is_answered) = open_and_ask(client, &read, limit).await;
    if is_answered {
        *known = GetStreams::Usable;
        return Some(stream);
    }
    close(client, &stream);
    let began = Instant::now();
    // A server that answers no `ping` either way shows nothing.
    let is_answered_without = ping(client, RENEWAL_TIMEOUT).await;
    let limit = GET_STREAM_PING_TIMEOUT.max(began.elapsed() * GET_STREAM_PING_FACTOR);
    let (stream, is_answered) = open_and_ask(client, &read, limit).await;
    if is_answered || !is_answered_without {
        *known = GetStreams::Usable;
        return Some(stream);
    }
    close(client, &stream);
    *known = GetStreams::HoldUpRequests;
    client.record.go_without_get_stream();
    None
}

/// Opens a stream, and finds out whether the server answers a request in time while it is open, or sends none.
async fn open_and_ask(
    client: &HttpClient,
    read: impl Fn() -> JoinHandle<()>,
    limit: Duration,
) -> (JoinHandle<()>, bool) {
    let before = last_stream(&client.record.state().entries);
    let stream = read();
    let head = client.record.at_least_opening(GET_STREAM_HEAD_TIMEOUT);
    let _late = tokio::time::timeout(head, wait_for_head(&client.record, before)).await;
    let is_answered = stream.is_finished() || ping(client, limit).await || stream.is_finished();
    (stream, is_answered)
}

/// Closes a stream, and records its end.
fn close(client: &HttpClient, stream: &JoinHandle<()>) {
    stream.abort();
    let number = last_stream(&client.record.state().entries);
    if let Some(number) = number {
        client.log.give_up(number);
    }
}

/// The number of the last GET that the connection itself made.
fn last_stream(entries: &[Arc<Entry>]) -> Option<usize> {
    entries.iter().rev().find_map(|entry| match &entry.event {
        Event::HttpRequest(request) if request.method == "GET" && request.step_id.is_none() => Some(request.number),
        _ => None,
    })
}

/// Waits until the server has begun to answer a GET after the one before.
async fn wait_for_head(record: &Record, before: Option<usize>) {
    let mut changed = record.changed.subscribe();
    loop {
        let has_begun = {
            let state = record.state();
            let number = last_stream(&state.entries).filter(|number| Some(*number) != before);
            let is_of_stream = |entry: &Arc<Entry>| match &entry.event {
                Event::HttpHead(head) => Some(head.number) == number,
                Event::HttpEnd(end) => Some(end.number) == number,
                _ => false,
            };
            number.is_some() && state.entries.iter().rev().any(is_of_stream)
        };
        if has_begun || changed.changed().await.is_err() {
            return;
        }
    }
}

/// Whether the server answers a `ping` in time, with whatever. It is no part of the record, as it shows nothing of the session.
async fn ping(client: &HttpClient, limit: Duration) -> bool {
    let message = json!({ "jsonrpc": "2.0", "id": "get-stream-check", "method": "ping" });
    wait_for_slot(&client.endpoint, &client.record).await;
    let http = client.endpoint.fresh_client.clone();
    let headers = client.headers(None, ACCEPT_JSON_OR_STREAM);
    let request = http.request(Method::POST, client.endpoint.url.clone()).headers(headers).body(message.to_string());
    tokio::time::timeout(limit, request.send()).await.is_ok()
}
