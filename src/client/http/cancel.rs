//! Cancellation of requests: when it may be sent, and in which form.
//!
//! Tracks which tasks read the responses to which requests, and how long a request may take before it is cancelled.
//! HTTP requests can overtake each other, so a cancellation waits until the request has arrived.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::task::AbortHandle;

use super::exchange_log::ExchangeLog;
use crate::client::record::Record;
use crate::limits::http::{ARRIVAL_SHARE_OF_OPENING, ARRIVAL_TIMEOUT, FIRST_EVENT_TIMEOUT};
use crate::transcript::{Entry, Event};
use crate::wire::{Id, id_of, method_of, same_id};

/// The id of the request that a message cancels.
pub(super) fn cancelled(message: &Value) -> Option<&Id> {
    method_of(message).filter(|method| *method == "notifications/cancelled")?;
    message.pointer("/params/requestId")
}

/// The requests whose responses are still being read.
#[derive(Debug, Default)]
pub(super) struct InFlightRequests(Mutex<Vec<(Id, AbortHandle)>>);

impl InFlightRequests {
    fn requests(&self) -> MutexGuard<'_, Vec<(Id, AbortHandle)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the requests whose responses a task reads.
    pub(super) fn track(&self, ids: Vec<Id>, task: &AbortHandle) {
        let mut requests = self.requests();
        requests.retain(|(_, task_of_request)| !task_of_request.is_finished());
        requests.extend(ids.into_iter().map(|id| (id, task.clone())));
    }

    /// Closes the response to a request.
    pub(super) fn close(&self, id: &Id) {
        for (_, task_of_request) in self.requests().iter().filter(|(own, _)| same_id(own, id)) {
            task_of_request.abort();
        }
    }
}

/// Waits until a request that is about to be cancelled has arrived: one that arrived later would be served anyway.
pub(super) async fn wait_for_arrival(record: &Record, id: &Id) {
    // The way there is a part of what its first answer took.
    let way = record.opening_time().unwrap_or_default() / ARRIVAL_SHARE_OF_OPENING;
    let limit = ARRIVAL_TIMEOUT.max(way);
    let _not_arrived = tokio::time::timeout(limit, wait_for_response_head(record, id)).await;
}

/// Waits until the server has begun to answer a request.
async fn wait_for_response_head(record: &Record, id: &Id) {
    let carries = |entry: &Arc<Entry>| {
        let Event::HttpRequest(request) = &entry.event else { return None };
        let own = id_of(request.carries.as_ref()?.sent()?)?;
        same_id(own, id).then_some(request.number)
    };
    let mut changed = record.changed.subscribe();
    loop {
        let begun = {
            let state = record.state();
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

/// Waits for the first event of a subscription that is about to be cancelled: a stream that is closed before it shows
/// nothing.
pub(super) async fn wait_for_first_event(record: &Record, log: &ExchangeLog, id: &Id) {
    let limit = record.at_least_opening(FIRST_EVENT_TIMEOUT);
    let _silent = tokio::time::timeout(limit, first_event(record, log, id)).await;
}

async fn first_event(record: &Record, log: &ExchangeLog, id: &Id) {
    let listens = |entry: &Arc<Entry>| {
        let Event::HttpRequest(request) = &entry.event else { return None };
        let message = request.carries.as_ref()?.sent()?;
        let wanted =
            method_of(message) == Some("subscriptions/listen") && id_of(message).is_some_and(|own| same_id(own, id));
        wanted.then_some(request.number)
    };
    let mut changed = record.changed.subscribe();
    loop {
        let number = record.state().entries.iter().rev().find_map(listens);
        let Some(number) = number else { return };
        // An open stream without events is silent; a stream that is not open has ended.
        if !log.is_silent(number) || changed.changed().await.is_err() {
            return;
        }
    }
}
