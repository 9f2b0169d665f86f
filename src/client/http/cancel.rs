//! Cancellation of requests: when it may be sent, and in which form.
//!
//! Tracks which tasks read the responses to which requests, and how long a request may take before it is cancelled.
//! HTTP requests can overtake each other, so a cancellation waits until the request has arrived.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::AbortHandle;

use super::connection::HttpConnection;
use crate::transcript::{Entry, Event};
use crate::wire::{Id, same_id};

/// How long to wait for the first event of a subscription before it is cancelled.
const FIRST_EVENT_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a request may take to reach the server before it is cancelled.
const ARRIVAL_TIMEOUT: Duration = Duration::from_millis(50);

/// The id of the request that a message cancels.
pub(super) fn cancelled(message: &Value) -> Option<&Id> {
    message.get("method").filter(|method| *method == "notifications/cancelled")?;
    message.pointer("/params/requestId")
}

impl HttpConnection {
    /// Cancels a request by closing the stream that answers it.
    pub(super) async fn cancel_by_closing(&self, id: &Id) {
        let _silent = tokio::time::timeout(FIRST_EVENT_TIMEOUT, self.wait_for_first_event(id)).await;
        self.close(id);
    }

    /// Waits until a request that is about to be cancelled has arrived: one that arrived later would be served anyway.
    pub(super) async fn wait_for_arrival(&self, id: &Id) {
        let _not_arrived = tokio::time::timeout(ARRIVAL_TIMEOUT, self.wait_for_response_head(id)).await;
    }

    /// Records the requests whose responses a task reads.
    pub(super) fn track_requests(&self, ids: Vec<Id>, task: &AbortHandle) {
        let mut state = self.state();
        state.in_flight.retain(|(_, task_of_request)| !task_of_request.is_finished());
        state.in_flight.extend(ids.into_iter().map(|id| (id, task.clone())));
    }

    /// Waits until the server has begun to answer a request.
    async fn wait_for_response_head(&self, id: &Id) {
        let carries = |entry: &Arc<Entry>| {
            let Event::HttpRequest(request) = &entry.event else { return None };
            let own = request.carries.as_ref()?.sent()?.get("id")?;
            same_id(own, id).then_some(request.number)
        };
        let mut changed = self.record.changed.subscribe();
        loop {
            let begun = {
                let state = self.record.state();
                let number = state.entries.iter().rev().find_map(carries);
                let is_head = |entry: &Arc<Entry>| match &entry.event {
                    Event::HttpHead(head) => Some(head.number) == number,
                    _ => false,
                };
                number.is_some() && state.entries.iter().rev().any(is_head)
            };
            if begun || changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits for the first event of a subscription: a stream that is closed before it shows nothing.
    async fn wait_for_first_event(&self, id: &Id) {
        let listens = |entry: &Arc<Entry>| {
            let Event::HttpRequest(request) = &entry.event else { return None };
            let message = request.carries.as_ref()?.sent()?;
            let wanted = message.get("method").is_some_and(|method| method == "subscriptions/listen")
                && message.get("id").is_some_and(|own| same_id(own, id));
            wanted.then_some(request.number)
        };
        let mut changed = self.record.changed.subscribe();
        loop {
            let number = self.record.state().entries.iter().rev().find_map(listens);
            let Some(number) = number else { return };
            // An open stream without events is silent; a stream that is not open has ended.
            let silent = self.state().open.get(&number).is_some_and(|end| end.events.is_empty());
            if !silent || changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Closes the response to a request.
    fn close(&self, id: &Id) {
        let state = self.state();
        for (_, task_of_request) in state.in_flight.iter().filter(|(own, _)| same_id(own, id)) {
            task_of_request.abort();
        }
    }
}
