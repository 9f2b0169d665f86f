//! How long we wait for a server that wants to be asked less.
//!
//! Owns what is bearable: how often a request is sent again, how long we wait before, and that a wait is taken note
//! of, since nobody's time is to be counted meanwhile. What is sent again is for whoever asked to say.

use std::time::Duration;

use reqwest::Response;

use super::exchange::Exchanger;
use crate::client::record::Record;

/// How often a request is sent again to a server that asks us to slow down, and the longest that we wait for it.
pub(super) const REPEATED: usize = 3;
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How long we wait the first time where it is not said how long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

impl Exchanger {
    /// How long to wait before a request is sent again to a server that is asked too much, where that is bearable:
    /// as long as the server says, or each time longer where it says nothing.
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

    /// Waits until a request may go, where so many a second are made at most.
    pub(super) async fn keep_pace(&self) {
        if let Some(wait) = self.site.turn() {
            self.rest(wait).await;
        }
    }

    /// Waits, and has it taken note of meanwhile.
    pub(super) async fn rest(&self, pause: Duration) {
        let _pausing = Pausing::begin(&self.record);
        tokio::time::sleep(pause).await;
    }
}

/// Takes note of a request that waits, for as long as it is kept.
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
