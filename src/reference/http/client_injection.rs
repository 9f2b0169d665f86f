//! Fault injection into what keeps the clients of the server apart: responses, replays and updates.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONNECTION, HeaderMap};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::injection::has;
use super::response::{HttpResponse, text_error};
use super::session::Session;
use crate::reference::fault::FaultSet;
use crate::reference::fault::HttpFault::{
    ConnectionsKept, EndedSessionsKept, NewestSessionOnly, ReplaysAnySession, RoutesById, SharedTransport,
    UpdatesEverySession,
};

/// How long a fault holds a response back, so that another client can use the id meanwhile.
const RESPONSE_HOLD_TIMEOUT: Duration = Duration::from_millis(60);

/// Who waits for the response to an id: one map for all clients, which only a fault uses.
#[derive(Default)]
pub(super) struct Routes(Mutex<HashMap<String, oneshot::Sender<HttpResponse>>>);

impl Routes {
    fn waiting(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<HttpResponse>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The response to a message. With one of the faults, a response goes to the client that used its id last, and nothing to the
    /// one that used it before.
    pub(super) async fn respond(
        &self,
        message: &Value,
        own: impl Future<Output = HttpResponse>,
        faults: &FaultSet,
    ) -> HttpResponse {
        let routes_by_id = has(faults, RoutesById) || has(faults, SharedTransport);
        let id = message.get("id").and_then(Value::as_str).filter(|_| routes_by_id);
        let Some(id) = id else { return own.await };
        let (sender, response) = oneshot::channel();
        self.waiting().insert(id.to_owned(), sender);
        let own = own.await;
        tokio::time::sleep(RESPONSE_HOLD_TIMEOUT).await;
        let route = self.waiting().remove(id);
        if let Some(route) = route {
            // The client may have disconnected.
            let _gone = route.send(own);
        }
        match response.await {
            Ok(response) => response,
            // Nobody else will answer, as in a server that has lost the route.
            Err(_) => std::future::pending().await,
        }
    }
}

/// The session that was opened last, which only a fault asks for.
#[derive(Default)]
pub(super) struct NewestSession(Mutex<String>);

impl NewestSession {
    pub(super) fn set(&self, name: &str) {
        name.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Never returns for a call in another session, if a fault serves only the newest one.
    pub(super) async fn wait_for(&self, name: &str, message: &Value, faults: &FaultSet) {
        let is_newest = *self.0.lock().unwrap_or_else(PoisonError::into_inner) == name;
        if has(faults, NewestSessionOnly) && !is_newest && message["method"] == "tools/call" {
            std::future::pending::<()>().await;
        }
    }
}

/// What a server has used up if a fault keeps what clients have left.
#[derive(Default)]
pub(super) struct KeptResources {
    sessions: AtomicUsize,
    connections: AtomicUsize,
    unclosed: Mutex<Vec<TcpStream>>,
}

impl KeptResources {
    /// How many there are.
    const MOST: usize = 200;

    /// Keeps a connection that is over.
    pub(super) fn keep_open(&self, stream: TcpStream) {
        self.unclosed.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }

    /// Refuses a request for which there is nothing left.
    pub(super) fn refuse(&self, headers: &HeaderMap, message: &Value, faults: &FaultSet) -> Option<HttpResponse> {
        let closes = headers.get(CONNECTION).is_some_and(|value| value == "close");
        self.sessions.fetch_add(usize::from(message["method"] == "initialize"), Ordering::Relaxed);
        self.connections.fetch_add(usize::from(closes), Ordering::Relaxed);
        let is_used_up = |fault, used: &AtomicUsize| has(faults, fault) && used.load(Ordering::Relaxed) > Self::MOST;
        (is_used_up(EndedSessionsKept, &self.sessions) || is_used_up(ConnectionsKept, &self.connections))
            .then(|| text_error(StatusCode::INTERNAL_SERVER_ERROR, "too many open files"))
    }
}

/// The events after one, from whichever session it belongs to, if a fault looks for it in all of them.
pub(super) async fn replay_of_any_session(
    sessions: Vec<Session>,
    last: &str,
    faults: &FaultSet,
) -> Option<HttpResponse> {
    let is_own = last
        .split_once('-')
        .is_some_and(|(stream, event)| stream.parse::<usize>().is_ok() && event.parse::<usize>().is_ok());
    if !is_own || !has(faults, ReplaysAnySession) {
        return None;
    }
    for session in sessions {
        let (parts, body) = session.listen(Some(last)).await.into_parts();
        let events = body.collect().await.ok()?.to_bytes();
        if !events.is_empty() {
            return Some(HttpResponse::from_parts(parts, Full::new(events).boxed()));
        }
    }
    None
}

/// Notifies the other sessions of an update of the resource that a session subscribes to, if a fault does so.
pub(super) async fn update_every_session(others: Vec<Session>, message: &Value, faults: &FaultSet) {
    let uri = message.pointer("/params/uri").filter(|_| message["method"] == "resources/subscribe");
    let Some(uri) = uri.filter(|_| has(faults, UpdatesEverySession)) else { return };
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}});
    for session in others {
        session.notify(Bytes::from(notification.to_string())).await;
    }
}
