//! A process that fell silent, kept for as long as it may only be slow.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::rig::PATIENCE;
use crate::client::{Pipe, Waited};
use crate::transcript::messages;
use crate::wire::{Kind, same_id_loosely};

/// A process that did not answer a call while others may be called.
pub(super) struct Parked {
    pipe: Option<Pipe>,
}

impl Parked {
    pub(super) fn new(pipe: Pipe) -> Self {
        Self { pipe: Some(pipe) }
    }

    /// The answer to a request, if it comes after all.
    pub(super) async fn answer_to(mut self, id: i64, limit: Duration) -> Option<Value> {
        let pipe = self.pipe.as_mut()?;
        let began = Instant::now();
        while let Waited::Came(frame) = pipe.next(limit.saturating_sub(began.elapsed())).await {
            let own = |message: &&Value| match Kind::of(message) {
                Kind::Response { id: Some(got) } => !got.is_null() && same_id_loosely(&id.into(), got),
                _ => false,
            };
            if let Some(answer) = frame.json().into_iter().flat_map(messages).find(own) {
                return Some(answer.clone());
            }
        }
        None
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            tokio::spawn(pipe.end(PATIENCE));
        }
    }
}
