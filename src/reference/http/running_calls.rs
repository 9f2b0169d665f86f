//! Calls over HTTP that take a while, and their cancellation meanwhile.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::HeaderMap;
use serde_json::Value;
use tokio::sync::{Mutex as Turn, mpsc, oneshot};
use tokio::time::Instant;

use super::response::{HttpResponse, full, stream};
use crate::reference::fault::FaultSet;
use crate::reference::latency::{
    CancellationEffect, CancelledCalls, Overload, TimeLeft, answer_to_cancelled, cancelled_id, latency_of, overload,
    serves_in_turn,
};

/// A call that runs.
#[derive(Debug)]
struct RunningCall {
    session: Option<String>,
    id: Value,
    left: TimeLeft,
    cancelled: oneshot::Sender<CancellationEffect>,
}

/// The calls of all sessions that run, and those that were cancelled while they ran.
#[derive(Debug, Default)]
pub(super) struct RunningCalls {
    running: Mutex<(Vec<RunningCall>, CancelledCalls)>,
    /// What each message waits for with a fault that serves them one after the other.
    turn: Turn<()>,
}

impl RunningCalls {
    fn running(&self) -> MutexGuard<'_, (Vec<RunningCall>, CancelledCalls)> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as long as the answer to a message takes; the response instead of it, if the message is cancelled meanwhile.
    pub(super) async fn wait(&self, headers: &HeaderMap, message: &Value, faults: &FaultSet) -> Option<HttpResponse> {
        let latency = latency_of(message, faults);
        if serves_in_turn(faults) && message.get("method").is_some_and(|method| method != "initialize") {
            let _turn = self.turn.lock().await;
            tokio::time::sleep(latency).await;
            return None;
        }
        let id = message.get("id").filter(|_| latency > Duration::ZERO)?;
        let (cancelled, cancellation) = oneshot::channel();
        if overload(self.running().0.len(), faults) == Some(Overload::Unanswered) {
            std::future::pending::<()>().await;
        }
        let left = TimeLeft { begun: Instant::now(), latency };
        self.running().0.push(RunningCall { session: session(headers), id: id.clone(), left, cancelled });
        let effect = tokio::time::timeout(latency, cancellation).await;
        self.running().0.retain(|call| !call.cancelled.is_closed());
        let answer = match effect {
            Ok(Ok(CancellationEffect::Answers)) => answer_to_cancelled(id),
            // The stream ends without a response.
            Ok(Ok(CancellationEffect::Stops | CancellationEffect::Exits)) => return Some(stream(mpsc::channel(1).1)),
            Ok(Err(_)) | Err(_) => return None,
        };
        Some(full(StatusCode::OK, "application/json", answer.to_string()))
    }

    /// Whether the server exits because too many calls run.
    pub(super) fn are_too_many(&self, faults: &FaultSet) -> bool {
        overload(self.running().0.len(), faults) == Some(Overload::Exits)
    }

    /// Handles a message that may cancel a call; whether the server exits.
    pub(super) fn cancel(&self, headers: &HeaderMap, message: &Value, faults: &FaultSet) -> bool {
        let Some(id) = cancelled_id(message).filter(|_| !serves_in_turn(faults)) else { return false };
        let (running, cancelled) = &mut *self.running();
        let session = session(headers);
        let at = running.iter().position(|call| call.session == session && call.id == *id);
        let effect = cancelled.cancel(id, at.map(|at| running[at].left), faults);
        if let (Some(effect), Some(at)) = (effect, at) {
            let _ended = running.swap_remove(at).cancelled.send(effect);
        }
        effect == Some(CancellationEffect::Exits)
    }
}

/// The session of a request.
fn session(headers: &HeaderMap) -> Option<String> {
    headers.get("mcp-session-id").and_then(|value| value.to_str().ok()).map(str::to_owned)
}
