//! A process that stopped answering, kept while it may only be slow.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::campaign::limits::SLOW_PROCESS_END_TIMEOUTS;
use crate::client::{UnrecordedConnection, WaitOutcome};
use crate::transcript::messages;
use crate::wire::{MessageKind, is_lost_id, same_id_loosely};

/// A process that did not answer a call in time, while others are used.
pub(super) struct SlowProcess {
    pipe: Option<UnrecordedConnection>,
}

impl SlowProcess {
    pub(in crate::campaign) fn new(pipe: UnrecordedConnection) -> Self {
        Self { pipe: Some(pipe) }
    }

    /// The response to a request, if it arrives in time.
    pub(super) async fn response_to(mut self, id: i64, limit: Duration) -> Option<Value> {
        let pipe = self.pipe.as_mut()?;
        let began = Instant::now();
        while let WaitOutcome::Ready(frame) = pipe.next(limit.saturating_sub(began.elapsed())).await {
            let own = |message: &&Value| match MessageKind::of(message) {
                MessageKind::Response { id: Some(got) } => !is_lost_id(got) && same_id_loosely(&id.into(), got),
                _ => false,
            };
            if let Some(answer) = frame.json().into_iter().flat_map(messages).find(own) {
                return Some(answer.clone());
            }
        }
        None
    }
}

impl Drop for SlowProcess {
    fn drop(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            tokio::spawn(pipe.end(SLOW_PROCESS_END_TIMEOUTS));
        }
    }
}
