//! A call that waits for its response.

use std::sync::Arc;

use tokio::time::Instant;

/// A call that is in flight.
pub(super) struct PendingCall {
    pub(super) index: usize,
    pub(super) id: i64,
    /// What was sent.
    pub(super) line: Arc<[u8]>,
    /// The id of a request sent after a line that need not be answered.
    pub(super) fence: Option<i64>,
    /// Whether the server responded to the line, though not to the request after it.
    pub(super) reacted: bool,
    pub(super) since: Instant,
    pub(super) alone: bool,
}

impl PendingCall {
    /// A call that was made earlier.
    pub(super) fn of(id: i64, line: Arc<[u8]>) -> Self {
        Self { index: 0, id, line, fence: None, reacted: false, since: Instant::now(), alone: false }
    }

    /// The id of the request that has to be answered.
    pub(super) fn answered_id(&self) -> i64 {
        self.fence.unwrap_or(self.id)
    }
}
