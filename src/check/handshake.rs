//! The checks of the handshake: the version that is agreed on, and what may be sent before it is complete.

use std::sync::Arc;

use serde_json::Value;

use super::index::{ConnectionIndex, method_of};
use super::text::shortened;
use super::violation::{CheckResult, Violation};
use crate::spec::{Era, Revision, VersionName};
use crate::transcript::{Entry, Event};
use crate::wire::MessageKind;

/// The position of the client's first message of this method.
fn sent_at(index: &ConnectionIndex<'_>, method: &str) -> Option<usize> {
    index.record.entries.iter().position(|entry| entry.sent().is_some_and(|message| method_of(message) == method))
}

/// The position of `notifications/initialized`; the end of the record if the client never sent it.
fn initialized_at(index: &ConnectionIndex<'_>) -> usize {
    sent_at(index, "notifications/initialized").unwrap_or(index.record.entries.len())
}

/// Checks that the server sends no request but ping before `notifications/initialized`.
pub(super) fn no_requests_before_initialized(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let Some(from) = sent_at(index, "initialize") else { return checked };
    let to = initialized_at(index);
    let early = index.received().find(|(position, message)| {
        (from..to).contains(position)
            && matches!(MessageKind::of(message), MessageKind::Request { method, .. } if method != "ping" && !method.starts_with("notifications/"))
    });
    // An answered ping in between shows that the server had time to send a request.
    let had_time = index.all_exchanges.iter().any(|exchange| {
        method_of(exchange.request) == "ping"
            && exchange.responses.first().is_some_and(|(at, _)| (from..to).contains(at))
    });
    if early.is_some() || had_time {
        checked.record(early.map(|(at, message)| {
            let method = shortened(method_of(message), 60);
            Violation::new(format!("{method} before notifications/initialized"), method, &[from, at])
        }));
    }
    checked
}

/// Checks that a ping between `initialize` and `notifications/initialized` is answered with a result.
pub(super) fn ping_answered_before_initialized(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let exchanges = &index.all_exchanges;
    let opened = exchanges.iter().find(|exchange| method_of(exchange.request) == "initialize");
    let Some(opened) = opened.and_then(|exchange| exchange.responses.first()) else { return checked };
    if opened.1.get("result").is_none() {
        return checked;
    }
    let until = initialized_at(index);
    for exchange in exchanges.iter().filter(|exchange| method_of(exchange.request) == "ping") {
        let Some((position, response)) = exchange.responses.first() else { continue };
        if (opened.0..until).contains(&exchange.sent) && *position < until {
            let is_rejected =
                matches!(MessageKind::of(response), MessageKind::Response { .. }) && response.get("result").is_none();
            checked
                .record(is_rejected.then(|| Violation::new("a ping is rejected", "ping", &[exchange.sent, *position])));
        }
    }
    checked
}

/// Checks that the server does not agree to a version that does not exist.
pub(super) fn unknown_version_not_accepted(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for exchange in &index.all_exchanges {
        let Some(requested) = exchange.request.pointer("/params/protocolVersion").and_then(Value::as_str) else {
            continue;
        };
        let Some((position, response)) = exchange.responses.first() else { continue };
        let Some(agreed) = response.pointer("/result/protocolVersion") else { continue };
        if method_of(exchange.request) == "initialize" && requested.parse::<Revision>().is_err() {
            let is_accepted = agreed == requested;
            checked.record(
                is_accepted.then(|| {
                    Violation::new(format!("the server agrees to {requested}"), "", &[exchange.sent, *position])
                }),
            );
        }
    }
    checked
}

/// Checks that the version offered instead of an unknown one is not older than the judged one, which the server
/// supports.
pub(super) fn version_fallback_newest(index: &ConnectionIndex<'_>, revision: Revision) -> CheckResult {
    let mut checked = CheckResult::default();
    for exchange in &index.all_exchanges {
        let Some(requested) = exchange.request.pointer("/params/protocolVersion").and_then(Value::as_str) else {
            continue;
        };
        let Some((position, response)) = exchange.responses.first() else { continue };
        let offered = response.pointer("/result/protocolVersion").and_then(Value::as_str);
        let Some(offered) = offered.and_then(|version| version.parse::<Revision>().ok()) else { continue };
        let is_unknown = requested.parse::<Revision>().is_err();
        if method_of(exchange.request) == "initialize" && is_unknown && revision.era() == Era::Handshake {
            let is_older = offered < revision;
            checked.record(is_older.then(|| {
                Violation::new(
                    format!("the server offers {offered}, although it supports {revision}"),
                    "",
                    &[exchange.sent, *position],
                )
            }));
        }
    }
    checked
}

/// Checks that the `initialize` with which the client itself opens a connection is answered.
///
/// A wait that timed out shows that it is not, or an end that is not due to other processes: some servers run only once.
pub(super) fn initialize_answered(index: &ConnectionIndex<'_>, revision: Revision) -> CheckResult {
    let mut checked = CheckResult::default();
    let entries = &index.record.entries;
    let Some(exchange) = index.all_exchanges.first() else { return checked };
    let requested = exchange.request.pointer("/params/protocolVersion").and_then(Value::as_str);
    let is_own = matches!(entries[exchange.sent].event, Event::Sent { step_id: None, .. });
    if !is_own || method_of(exchange.request) != "initialize" || requested != Some(revision.as_str()) {
        return checked;
    }
    if !exchange.responses.is_empty() {
        checked.record(None);
        return checked;
    }
    let after = entries.iter().enumerate().skip(exchange.sent);
    let waited = after.clone().find_map(|(position, entry)| match entry.event {
        Event::TimedOut { waited } => Some((position, waited)),
        _ => None,
    });
    let Some((timed_out, waited)) = waited else {
        if index.record.session_parameters.ended_alone {
            checked.record(ended_at_opening(entries, exchange.sent));
        }
        return checked;
    };
    // What else the server sends shows that it runs.
    let other = after.clone().find(|(_, entry)| entry.received().is_some()).map(|(position, _)| position);
    let positions: Vec<usize> = [exchange.sent, timed_out].into_iter().chain(other).collect();
    let actual = format!("no response to `initialize` within {waited:.0?}");
    checked.record(Some(Violation::new(actual, "initialize", &positions)));
    checked
}

/// The end of a connection on which a request was sent, as a violation.
fn ended_at_opening(entries: &[Arc<Entry>], sent: usize) -> Option<Violation> {
    let after = || entries.iter().enumerate().skip(sent);
    let ends = |entry: &Entry| matches!(entry.event, Event::Exited { .. } | Event::Closed);
    let (position, _) = after().find(|(_, entry)| ends(entry))?;
    let status = after().find_map(|(_, entry)| match &entry.event {
        Event::Exited { status } => Some(format!("the process ends ({status})")),
        _ => None,
    });
    let what = status.unwrap_or_else(|| "the connection ends".to_owned());
    let actual = format!("{what} before a response to `initialize`");
    Some(Violation::new(actual, "initialize", &[sent, position]))
}

/// Checks that the judged version, which the server has agreed to, is agreed to on every connection that requests it.
pub(super) fn version_agreed_again(index: &ConnectionIndex<'_>, revision: Revision) -> CheckResult {
    let mut checked = CheckResult::default();
    // A second handshake on a connection is not judged.
    if let Some(exchange) = index.all_exchanges.first() {
        let requested = exchange.request.pointer("/params/protocolVersion").and_then(Value::as_str);
        if method_of(exchange.request) != "initialize" || requested != Some(revision.as_str()) {
            return checked;
        }
        let Some((position, response)) = exchange.responses.first() else { return checked };
        let problem = match response.get("result").map(|result| VersionName::of(&result["protocolVersion"])) {
            Some(name) if name.means(revision) => None,
            Some(VersionName::Valid(version)) => {
                Some(format!("the server answers with {} instead", shortened(version, 40)))
            }
            Some(VersionName::Altered(other)) => Some(format!("the server answers with {other} instead")),
            // No version at all is judged by other cases.
            Some(VersionName::Invalid) => return checked,
            None => Some("the server rejects the handshake".to_owned()),
        };
        checked.record(problem.map(|problem| Violation::new(problem, "initialize", &[exchange.sent, *position])));
    }
    checked
}

/// Checks that requests of the client itself are not rejected because of their version, which `server/discover` lists.
/// Cases send such requests in ways that may be rejected.
pub(super) fn listed_version_served(index: &ConnectionIndex<'_>, revision: Revision) -> CheckResult {
    const UNSUPPORTED_VERSION: i64 = -32_022;
    let mut checked = CheckResult::default();
    let opening = index.record.session_parameters.opening.as_ref();
    let listed = opening.and_then(|opening| opening.get("supportedVersions")?.as_array());
    if !listed.is_some_and(|listed| listed.iter().any(|version| VersionName::of(version).means(revision))) {
        return checked;
    }
    let is_own = |position: usize| matches!(index.record.entries[position].event, Event::Sent { step_id: None, .. });
    for exchange in index.exchanges.iter().filter(|exchange| is_own(exchange.sent)) {
        let Some((position, response)) = exchange.responses.first() else { continue };
        let method = method_of(exchange.request);
        if method != "server/discover" {
            let is_rejected = response.pointer("/error/code").and_then(Value::as_i64) == Some(UNSUPPORTED_VERSION);
            checked.record(is_rejected.then(|| {
                let actual = format!("{method} is rejected with {UNSUPPORTED_VERSION}, although {revision} is listed");
                Violation::new(actual, method, &[exchange.sent, *position])
            }));
        }
    }
    checked
}
