//! How a request is cancelled: when that may be said, and what says it.
//!
//! Owns which tasks read the answers to which requests, and how long a request is given before it is taken back.
//! Requests overtake each other over HTTP, so that a cancellation waits until there is something to cancel.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::AbortHandle;

use super::exchange::Exchanger;
use crate::transcript::{Entry, Event};
use crate::wire::{Id, same_id};

/// How long the first event of a subscription is waited for before it is cancelled.
const FIRST_WORD: Duration = Duration::from_millis(500);

/// How long a request is given to reach the server before it is cancelled.
const HEARD: Duration = Duration::from_millis(50);

/// The request that a message cancels.
pub(super) fn cancelled(message: &Value) -> Option<&Id> {
    message.get("method").filter(|method| *method == "notifications/cancelled")?;
    message.pointer("/params/requestId")
}

impl Exchanger {
    /// Cancels a request by the end of the stream that answers it.
    pub(super) async fn cancel_by_closing(&self, id: &Id) {
        let _silent = tokio::time::timeout(FIRST_WORD, self.first_word(id)).await;
        self.close(id);
    }

    /// Waits until a request that is about to be cancelled has come: one that came later would be served all the same.
    pub(super) async fn let_arrive(&self, id: &Id) {
        let _unheard = tokio::time::timeout(HEARD, self.heard(id)).await;
    }

    /// Takes note of the requests that a task reads the answer to.
    pub(super) fn note_asked(&self, asked: Vec<Id>, task: &AbortHandle) {
        let mut state = self.state();
        state.asked.retain(|(_, asking)| !asking.is_finished());
        state.asked.extend(asked.into_iter().map(|id| (id, task.clone())));
    }

    /// Waits until the server has begun to answer a request.
    async fn heard(&self, id: &Id) {
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

    /// Waits for the first event of a subscription: closed before it, the stream would tell nothing.
    async fn first_word(&self, id: &Id) {
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
            // What is open has said nothing as long as it has no event; what is not has ended.
            let silent = self.state().open.get(&number).is_some_and(|end| end.events.is_empty());
            if !silent || changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Closes the answer to a request.
    fn close(&self, id: &Id) {
        let state = self.state();
        for (_, asking) in state.asked.iter().filter(|(own, _)| same_id(own, id)) {
            asking.abort();
        }
    }
}
