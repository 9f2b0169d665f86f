//! Opens a new session when the server has ended the one in use.
//!
//! A server may end a session at any time, and answers later requests in it with 404. A client must then open a new one
//! (transports page, section on session management), so that the end of a session is no fault of the server.

use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::negotiated::SESSION_HEADER;
use super::request::{ACCEPT_JSON_OR_STREAM, ACCEPT_STREAM, HttpClient, OutgoingRequest, Repetition};
use super::response::media_type;
use crate::limits::http::{MAX_RENEWAL_BYTES, MAX_RENEWALS, MAX_SESSION_CHECKS, RENEWAL_TIMEOUT};
use crate::raw_text::RawText;
use crate::transcript::{HttpEnd, SetAside, summarize};
use crate::wire::{Frame, SseDecoder};

/// The outcome of an attempt to open a new session.
pub(super) enum Renewal {
    Done,
    /// Another request, which lost the session as well, has opened it.
    DoneBefore,
    Failed,
}

/// The renewals of a connection's session.
#[derive(Debug, Default)]
pub(super) struct SessionRenewals {
    /// One renewal at a time: requests in flight lose the session together.
    turn: Mutex<()>,
    /// How often it was asked whether the session has ended.
    checks: AtomicUsize,
    /// How often a session was opened, if only by the first of two messages.
    openings: AtomicUsize,
}

impl SessionRenewals {
    /// Opens a new session in place of one, if it has ended: status 404 may also be the answer to the request.
    pub(super) async fn renew(&self, client: &HttpClient, ended: &str) -> Renewal {
        let _turn = self.turn.lock().await;
        if client.negotiated.session().as_deref() != Some(ended) {
            return Renewal::DoneBefore;
        }
        if self.openings.load(Ordering::Relaxed) >= MAX_RENEWALS || !self.has_ended(client).await {
            return Renewal::Failed;
        }
        let count = self.openings.fetch_add(1, Ordering::Relaxed);
        let Some(mut initialize) = client.negotiated.opening() else { return Renewal::Failed };
        initialize["id"] = json!(format!("session-renewal-{}", count + 1));
        let Some(opened) = post(client, &initialize, false).await.filter(Answer::is_accepted) else {
            return Renewal::Failed;
        };
        client.negotiated.replace_session(opened.session);
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        if !post(client, &initialized, true).await.is_some_and(|answer| answer.is_accepted()) {
            return Renewal::Failed;
        }
        client.record.count_renewal();
        Renewal::Done
    }

    /// Whether the server knows the session no more: it answers a plain request in it with 404, too.
    async fn has_ended(&self, client: &HttpClient) -> bool {
        let count = self.checks.fetch_add(1, Ordering::Relaxed);
        if count >= MAX_SESSION_CHECKS {
            return false;
        }
        let ping = json!({ "jsonrpc": "2.0", "id": format!("session-check-{}", count + 1), "method": "ping" });
        post(client, &ping, true).await.is_some_and(|answer| answer.status == 404)
    }
}

/// What matters of the response to a request.
struct Answer {
    status: u16,
    /// The session that it names.
    session: Option<String>,
    is_error: bool,
}

impl Answer {
    /// Whether it is no refusal.
    fn is_accepted(&self) -> bool {
        (200..300).contains(&self.status) && !self.is_error
    }
}

/// Makes a request, and reads the response as far as its result; `None` if there is none.
async fn post(client: &HttpClient, message: &Value, in_session: bool) -> Option<Answer> {
    let mut headers = client.headers(None, ACCEPT_JSON_OR_STREAM);
    if !in_session {
        headers.remove(SESSION_HEADER);
        headers.remove("mcp-protocol-version");
    }
    let url = client.endpoint.url.clone();
    let number = client.log.begin_with_body(Method::POST.as_str(), &url, &headers, message.clone());
    let request = OutgoingRequest {
        headers,
        body: Some(RawText::from(Frame::from_value(message).raw().into_owned()).into()),
        repetition: Repetition::UnderWay,
        ..client.request_without_body(Method::POST, ACCEPT_JSON_OR_STREAM)
    };
    let mut end = HttpEnd { number, set_aside: Some(SetAside::SessionRenewal), ..HttpEnd::default() };
    let answered = tokio::time::timeout(RENEWAL_TIMEOUT, async {
        let response = client.send(number, request, false).await.ok()?;
        let status = response.status().as_u16();
        let session = response.headers().get(SESSION_HEADER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let message = read_message(client, response, &mut end).await;
        let is_error = message.as_ref().is_some_and(|message| message.get("error").is_some());
        end.message = message.map(|message| summarize(&message).into());
        Some(Answer { status, session, is_error })
    });
    let answer = answered.await.ok().flatten();
    client.log.finish(end, None);
    answer
}

/// The message in a response, which may be a body or an event, with secrets masked; a stream is not read any further.
async fn read_message(client: &HttpClient, mut response: Response, end: &mut HttpEnd) -> Option<Value> {
    let is_stream = media_type(&response) == ACCEPT_STREAM;
    let (mut decoder, mut body) = (SseDecoder::default(), Vec::new());
    let mut message = None;
    while let Ok(chunk) = response.chunk().await {
        let Some(bytes) = chunk else {
            end.complete = true;
            break;
        };
        end.bytes += bytes.len();
        if is_stream {
            decoder.push(&bytes, |event| {
                let data = event.data.map(|data| client.endpoint.masked_bytes(data));
                let data = data.and_then(|data| serde_json::from_slice::<Value>(&data).ok());
                message = message.take().or(data.filter(|data| data.get("method").is_none()));
            });
        } else {
            body.extend_from_slice(&bytes);
        }
        if message.is_some() || end.bytes > MAX_RENEWAL_BYTES {
            break;
        }
    }
    message.or_else(|| Frame::parse(&client.endpoint.masked_bytes(body)).json().cloned())
}
