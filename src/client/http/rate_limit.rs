//! Rate limits: how long to wait for a server that answers 429 or 503, and the user's own maximum rate.
//!
//! Decides how often a request is repeated and how long to wait before, and records the wait, since no timeout may
//! run meanwhile. The caller decides what is repeated.

use std::time::Duration;

use reqwest::Response;

use super::endpoint::HttpEndpoint;
use crate::client::record::Record;
use crate::limits::http::{FIRST_RETRY_DELAY, MAX_RETRIES, MAX_RETRY_DELAY};

/// Whether a response says that the server takes no more requests for now. With status 503, only a time says so: without
/// it, the request may be the cause.
pub(super) fn is_rate_limit(response: &Response) -> bool {
    response.status() == 429 || response.status() == 503 && response.headers().contains_key("retry-after")
}

/// How long to wait before a rate-limited request is repeated, if at all: as long as the server says, or longer each
/// time if it says nothing.
pub(super) fn retry_delay(endpoint: &HttpEndpoint, response: &Response, attempt: usize) -> Option<Duration> {
    let status = response.status().as_u16();
    if !matches!(status, 429 | 503) {
        return None;
    }
    let pause = match response.headers().get("retry-after") {
        None => (status == 429).then(|| FIRST_RETRY_DELAY * (1 << attempt.min(MAX_RETRIES))),
        Some(value) => {
            let seconds = value.to_str().ok().and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
            seconds.filter(|pause| *pause <= MAX_RETRY_DELAY)
        }
    };
    let pause = pause.filter(|_| attempt < MAX_RETRIES && !endpoint.is_exhausted());
    if pause.is_none() && is_rate_limit(response) {
        endpoint.exhaust();
    }
    pause
}

/// Waits until a request may be sent under the user's maximum rate.
pub(super) async fn wait_for_slot(endpoint: &HttpEndpoint, record: &Record) {
    if let Some(wait) = endpoint.reserve_slot() {
        wait_paused(record, wait).await;
    }
}

/// Waits as long as the server asks for before a request is repeated.
pub(super) async fn wait_for_server(record: &Record, pause: Duration) {
    wait_paused(record, pause).await;
    record.count_pause(pause);
}

/// Waits, and marks the connection as paused meanwhile.
async fn wait_paused(record: &Record, pause: Duration) {
    let _pausing = PauseGuard::begin(record);
    tokio::time::sleep(pause).await;
}

/// Marks a connection as paused for as long as the guard lives.
struct PauseGuard<'a>(&'a Record);

impl<'a> PauseGuard<'a> {
    fn begin(record: &'a Record) -> Self {
        record.set_paused(true);
        Self(record)
    }
}

impl Drop for PauseGuard<'_> {
    fn drop(&mut self) {
        self.0.set_paused(false);
    }
}
