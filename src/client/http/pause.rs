//! Rate limits: how long to wait for a server that answers 429 or 503, and the user's own maximum rate.
//!
//! Decides how often a request is repeated and how long to wait before, and records the wait, since no timeout may
//! run meanwhile. The caller decides what is repeated.

use std::time::Duration;

use reqwest::Response;

use super::exchange::Exchanger;
use crate::client::record::Record;

/// How often a request is repeated for a server that asks the client to slow down, and the longest wait before.
pub(super) const REPEATED: usize = 3;
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The first wait, if the server does not say how long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

impl Exchanger {
    /// How long to wait before a rate-limited request is repeated, if at all: as long as the server says, or longer
    /// each time if it says nothing.
    pub(super) fn pause(&self, response: &Response, attempt: usize) -> Option<Duration> {
        let status = response.status().as_u16();
        if !matches!(status, 429 | 503) {
            return None;
        }
        let pause = match response.headers().get("retry-after") {
            None => (status == 429).then(|| FIRST_PAUSE * (1 << attempt.min(REPEATED))),
            Some(value) => {
                let seconds = value.to_str().ok().and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
                seconds.filter(|pause| *pause <= LONGEST_PAUSE)
            }
        };
        let pause = pause.filter(|_| attempt < REPEATED && !self.site.is_exhausted());
        if pause.is_none() && status == 429 {
            self.site.exhaust();
        }
        pause
    }

    /// Waits until a request may be sent under the user's maximum rate.
    pub(super) async fn keep_pace(&self) {
        if let Some(wait) = self.site.turn() {
            self.rest(wait).await;
        }
    }

    /// Waits, and marks the connection as paused meanwhile.
    pub(super) async fn rest(&self, pause: Duration) {
        let _pausing = Pausing::begin(&self.record);
        tokio::time::sleep(pause).await;
    }
}

/// Marks a connection as paused for as long as the guard lives.
struct Pausing<'a>(&'a Record);

impl<'a> Pausing<'a> {
    fn begin(record: &'a Record) -> Self {
        record.pause(true);
        Self(record)
    }
}

impl Drop for Pausing<'_> {
    fn drop(&mut self) {
        self.0.pause(false);
    }
}
