//! The rule that the server does not send too many messages of a kind within a second.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::index::{ConnectionIndex, is_served, method_of};
use super::violation::{CheckResult, Violation};
use crate::case::{Absence, AtMostPerSecond};
use crate::transcript::Transcript;
use crate::wire::MessageKind;

const PERIOD: Duration = Duration::from_secs(1);

/// Checks that the server sends at most so many messages of a method within a second.
pub(super) fn at_most_per_second(index: &ConnectionIndex<'_>, rule: &AtMostPerSecond) -> CheckResult {
    let mut checked = CheckResult::default();
    let what = match &rule.per {
        Some(path) => {
            let name = path.as_str().rsplit('/').next().unwrap_or_default();
            format!("{} `{}` with the same {name} within a second", rule.count, rule.method)
        }
        None => format!("{} `{}` within a second", rule.count, rule.method),
    };
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (position, message) in index.received().filter(|(_, message)| is_of_method(message, &rule.method)) {
        let group = match &rule.per {
            Some(path) => path.find(message).first().map(|(_, value)| value.to_string()),
            None => Some(String::new()),
        };
        if let Some(group) = group {
            groups.entry(group).or_default().push(position);
        }
    }
    let time = |position: usize| index.record.entries[position].at;
    for positions in groups.values() {
        let mut bursts = positions.windows(rule.count + 1);
        let burst = bursts.find(|burst| time(burst[rule.count]).saturating_sub(time(burst[0])) < PERIOD);
        checked
            .record(burst.map(|burst| {
                Violation::new(format!("more than {what}"), "", &[burst[0], burst[1], burst[rule.count]])
            }));
    }
    if rule.absence == Absence::Pass && index.exchanges.iter().any(is_served) {
        checked.record(None);
    }
    checked
}

/// Finds a kind of notification that comes more often than once a second between two positions, during which nothing
/// is asked of the server. What it sends within half a second belongs to what came before.
pub(super) fn frequent_notification(record: &Transcript, from: usize, to: usize) -> Option<Violation> {
    const GRACE: Duration = Duration::from_millis(500);
    let time = |position: usize| record.entries[position].at;
    let waited = time(to).saturating_sub(time(from)).saturating_sub(GRACE);
    let mut kinds: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for position in (from + 1..to).filter(|at| time(*at).saturating_sub(time(from)) > GRACE) {
        let Some(message) = record.entries[position].received() else { continue };
        if matches!(MessageKind::of(message), MessageKind::Notification { .. }) {
            kinds.entry(method_of(message)).or_default().push(position);
        }
    }
    kinds.into_iter().find_map(|(method, positions)| {
        let between = time(*positions.last()?).saturating_sub(time(positions[0]));
        // So many fit into the time at one a second, wherever it begins.
        let is_frequent = Duration::from_secs(positions.len() as u64) > waited + PERIOD && between > PERIOD / 2;
        let text = format!("{} `{method}` in {:.1} s in which nothing is asked", positions.len(), waited.as_secs_f64());
        is_frequent.then(|| Violation::new(text, "", &[&[from][..], &positions[..3.min(positions.len())]].concat()))
    })
}

/// Whether a message is a notification or a request of the server with this method.
fn is_of_method(message: &Value, method: &str) -> bool {
    // A notification that carries an id by mistake counts all the same.
    method_of(message) == method
        && (method.starts_with("notifications/") || matches!(MessageKind::of(message), MessageKind::Request { .. }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::check::{IndexedConnections, RecordedConnection};
    use crate::spec::Revision;
    use crate::transcript::{Entry, Event, SessionParameters, Transcript};
    use crate::wire::Frame;

    const COUNT: usize = 200;

    /// How many violations there are in so many log messages, one every few milliseconds.
    fn violations(count: usize, interval_ms: u64) -> usize {
        let message =
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}});
        let entry = |number: usize| {
            let at = Duration::from_millis(interval_ms * number as u64);
            Arc::new(Entry { at, event: Event::Received(Frame::from_value(&message)) })
        };
        let transcript =
            Transcript { entries: (0..count).map(entry).collect(), session_parameters: SessionParameters::default() };
        let connected = [RecordedConnection { label: String::new(), transcript }];
        let watched = IndexedConnections::new(&connected, Revision::V2025_11_25);
        let rule = json!({"count": COUNT, "method": "notifications/message"});
        let rule: AtMostPerSecond = serde_json::from_value(rule).expect("a rule");
        watched.connections.iter().map(|index| at_most_per_second(index, &rule).violations.len()).sum()
    }

    /// Whether list changes at these times, in milliseconds, are too frequent in two seconds of waiting.
    fn is_frequent(times_ms: &[u64]) -> bool {
        let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let entry = |at_ms: &u64| {
            let at = Duration::from_millis(*at_ms);
            Arc::new(Entry { at, event: Event::Received(Frame::from_value(&change)) })
        };
        let entries: Vec<_> = [0].iter().chain(times_ms).chain(&[2_000]).map(entry).collect();
        let to = entries.len() - 1;
        let record = Transcript { entries, session_parameters: SessionParameters::default() };
        super::frequent_notification(&record, 0, to).is_some()
    }

    #[test]
    fn only_what_comes_more_often_than_once_a_second_is_frequent() {
        assert!(is_frequent(&[330, 660, 990, 1_320, 1_650, 1_980]));
        assert!(is_frequent(&[600, 1_000, 1_400]));
        assert!(!is_frequent(&[]));
        assert!(!is_frequent(&[900, 1_900]));
        assert!(!is_frequent(&[10, 20, 30, 40, 50, 60]));
        assert!(!is_frequent(&[900, 901, 902, 903]));
    }

    #[test]
    fn a_burst_is_more_than_the_limit_within_a_second() {
        assert_eq!(violations(COUNT, 0), 0);
        assert_eq!(violations(COUNT + 1, 0), 1);
        assert_eq!(violations(COUNT * 10, 5), 0);
        assert_eq!(violations(COUNT * 10, 4), 1);
    }
}
