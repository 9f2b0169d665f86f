//! Room for long messages: as many servers may write one at the same time as there are connections, and a message takes
//! memory as a line, as a value and as what is kept of it.

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use crate::limits::MAX_WAIT_FOR_ROOM;

/// A message with more bytes than this is read on when there is room for it.
const LONG_MESSAGE_BYTES: usize = 1 << 20;

/// How many of them are read at the same time.
const MAX_AT_ONCE: usize = 2;

static ROOM: Semaphore = Semaphore::const_new(MAX_AT_ONCE);

/// The message that is being read on a connection.
#[derive(Debug, Default)]
pub(super) struct LongMessage {
    room: Option<SemaphorePermit<'static>>,
    /// Until when it waits for room.
    until: Option<Instant>,
}

impl LongMessage {
    /// Waits for room to read more of a message of which this many bytes were read. Gives it back when the next message
    /// is short.
    pub(super) async fn wait_for_room(&mut self, bytes: usize) {
        self.wait_for(&ROOM, bytes).await;
    }

    async fn wait_for(&mut self, all: &'static Semaphore, bytes: usize) {
        if bytes <= LONG_MESSAGE_BYTES {
            *self = Self::default();
        } else if self.room.is_none() {
            let until = *self.until.get_or_insert_with(|| Instant::now() + MAX_WAIT_FOR_ROOM);
            // The semaphore is never closed.
            self.room = timeout_at(until, all.acquire()).await.ok().and_then(Result::ok);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Apart from that of the tests that read long messages at the same time.
    static OWN_ROOM: Semaphore = Semaphore::const_new(MAX_AT_ONCE);

    #[tokio::test(start_paused = true)]
    async fn a_long_message_waits_for_room_and_goes_on_without_it() {
        let began = Instant::now();
        let mut messages: Vec<LongMessage> = Vec::new();
        for _ in 0..MAX_AT_ONCE {
            let mut message = LongMessage::default();
            message.wait_for(&OWN_ROOM, LONG_MESSAGE_BYTES).await;
            assert!(message.room.is_none(), "a short one needs none");
            message.wait_for(&OWN_ROOM, LONG_MESSAGE_BYTES + 1).await;
            assert!(message.room.is_some());
            messages.push(message);
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        let mut other = LongMessage::default();
        other.wait_for(&OWN_ROOM, LONG_MESSAGE_BYTES + 1).await;
        assert!(other.room.is_none() && began.elapsed() >= MAX_WAIT_FOR_ROOM);
        let waited = began.elapsed();
        other.wait_for(&OWN_ROOM, LONG_MESSAGE_BYTES + 2).await;
        assert_eq!(began.elapsed(), waited, "it does not wait again");
        messages[0].wait_for(&OWN_ROOM, 0).await;
        other.wait_for(&OWN_ROOM, LONG_MESSAGE_BYTES + 3).await;
        assert!(other.room.is_some(), "the message before it has ended");
    }
}
