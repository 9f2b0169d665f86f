//! The checks of the handshake: the version that is agreed on, and what may be sent before it is complete.

use serde_json::Value;

use super::index::{ConnectionIndex, method_of};
use super::text::shortened;
use super::violation::{CheckResult, Violation};
use crate::spec::{Era, Revision};
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
            let uses_sse_transport = offered < revision;
            checked.record(uses_sse_transport.then(|| {
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
        let agreed = response.pointer("/result/protocolVersion").and_then(Value::as_str);
        let problem = match agreed {
            Some(version) if version == revision.as_str() => None,
            Some(version) => Some(format!("the server answers with {} instead", shortened(version, 40))),
            None => Some("the server rejects the handshake".to_owned()),
        };
        checked.record(problem.map(|problem| Violation::new(problem, "initialize", &[exchange.sent, *position])));
    }
    checked
}
