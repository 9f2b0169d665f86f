//! The checks of a connection that are about how often the server writes of its own accord.
//!
//! No text names a number, so the limits are far beyond what a conforming server has a use for.

use std::collections::BTreeMap;
use std::time::Duration;

use super::seen::{Seen, breach};
use super::watch::{Index, method_of};
use crate::wire::Kind;

/// The stretch of time that is looked at.
const STRETCH: Duration = Duration::from_secs(1);

/// How many log messages may come within it.
const LOGS: usize = 200;

/// How often progress on one token may be reported within it.
const PROGRESS: usize = 100;

/// How often the server may ping within it.
const PINGS: usize = 20;

/// Messages at these positions, of which so many may come within the stretch.
fn paced(index: &Index<'_>, positions: &[usize], limit: usize, what: &str, seen: &mut Seen) {
    let at = |position: usize| index.record.entries[position].at;
    let burst = positions.windows(limit + 1).find(|window| at(window[limit]).saturating_sub(at(window[0])) < STRETCH);
    if !positions.is_empty() {
        seen.look(burst.map(|window| {
            breach(format!("more than {limit} {what} within a second"), "", &[window[0], window[1], window[limit]])
        }));
    }
}

fn positions(index: &Index<'_>, method: &str) -> Vec<usize> {
    index.received().filter(|(_, message)| method_of(message) == method).map(|(position, _)| position).collect()
}

pub(super) fn logs(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    paced(index, &positions(index, "notifications/message"), LOGS, "log messages", &mut seen);
    seen
}

pub(super) fn progress(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let mut by_token: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (position, message) in index.received().filter(|(_, m)| method_of(m) == "notifications/progress") {
        if let Some(token) = message.pointer("/params/progressToken") {
            by_token.entry(token.to_string()).or_default().push(position);
        }
    }
    for positions in by_token.values() {
        paced(index, positions, PROGRESS, "progress notifications on one token", &mut seen);
    }
    seen
}

/// A server that was used and never pinged has not pinged too often.
pub(super) fn pings(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let asked = index.received().filter(|(_, m)| matches!(Kind::of(m), Kind::Request { method: "ping", .. }));
    let positions: Vec<usize> = asked.map(|(position, _)| position).collect();
    paced(index, &positions, PINGS, "pings", &mut seen);
    if index.exchanges.iter().any(|exchange| !exchange.responses.is_empty()) {
        seen.look(None);
    }
    seen
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::check::Connected;
    use crate::check::watch::Watched;
    use crate::spec::Revision;
    use crate::transcript::{Entry, Event, Terms, Transcript};
    use crate::wire::Frame;

    /// How many breaches there are in so many log messages, one every few milliseconds.
    fn breaches(count: usize, apart: u64) -> usize {
        let message =
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}});
        let entry = |number: usize| {
            let at = Duration::from_millis(apart * number as u64);
            Arc::new(Entry { at, event: Event::Received(Frame::of(&message)) })
        };
        let transcript = Transcript { entries: (0..count).map(entry).collect(), terms: Terms::default() };
        let connected = [Connected { label: String::new(), transcript }];
        let watched = Watched::new(&connected, Revision::V2025_11_25);
        watched.connections.iter().map(|index| logs(index).breaches.len()).sum()
    }

    #[test]
    fn a_burst_is_more_than_the_limit_within_a_second() {
        assert_eq!(breaches(LOGS, 0), 0);
        assert_eq!(breaches(LOGS + 1, 0), 1);
        assert_eq!(breaches(LOGS * 10, 5), 0);
        assert_eq!(breaches(LOGS * 10, 4), 1);
    }
}
