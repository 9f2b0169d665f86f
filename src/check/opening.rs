//! The checks of how a connection is opened: the version that is agreed on, and what may be said before it is.

use serde_json::Value;

use super::act::shortened;
use super::seen::{Seen, breach};
use super::watch::{Index, method_of};
use crate::spec::{Era, Revision};
use crate::wire::Kind;

/// Where the client first sent a message of this method.
fn sent_at(index: &Index<'_>, method: &str) -> Option<usize> {
    let is_wanted = |message: &Value| method_of(message) == method;
    index.record.entries.iter().position(|entry| entry.sent().is_some_and(is_wanted))
}

/// Where the client said that it is ready, if it did; the end of the record otherwise.
fn initialized_at(index: &Index<'_>) -> usize {
    sent_at(index, "notifications/initialized").unwrap_or(index.record.entries.len())
}

/// Whether the server asks nothing but a ping before the client is ready.
pub(super) fn quiet_before_initialized(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let Some(from) = sent_at(index, "initialize") else { return seen };
    let to = initialized_at(index);
    let early = index.received().find(|(position, message)| {
        (from..to).contains(position)
            && matches!(Kind::of(message), Kind::Request { method, .. } if method != "ping" && !method.starts_with("notifications/"))
    });
    // An answered ping in between shows that the server had the time to ask.
    let had_time = index.all.iter().any(|exchange| {
        method_of(exchange.request) == "ping"
            && exchange.responses.first().is_some_and(|(at, _)| (from..to).contains(at))
    });
    if early.is_some() || had_time {
        seen.look(early.map(|(at, message)| {
            let method = shortened(method_of(message), 60);
            breach(format!("{method} before notifications/initialized"), method, &[from, at])
        }));
    }
    seen
}

/// Whether a ping between `initialize` and `notifications/initialized` is answered with a result.
pub(super) fn ping_before_initialized(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let exchanges = &index.all;
    let opened = exchanges.iter().find(|exchange| method_of(exchange.request) == "initialize");
    let Some(opened) = opened.and_then(|exchange| exchange.responses.first()) else { return seen };
    if opened.1.get("result").is_none() {
        return seen;
    }
    let until = initialized_at(index);
    for exchange in exchanges.iter().filter(|exchange| method_of(exchange.request) == "ping") {
        let Some((position, response)) = exchange.responses.first() else { continue };
        if (opened.0..until).contains(&exchange.sent) && *position < until {
            let refused = matches!(Kind::of(response), Kind::Response { .. }) && response.get("result").is_none();
            seen.look(refused.then(|| breach("a ping is refused", "ping", &[exchange.sent, *position])));
        }
    }
    seen
}

/// Whether the server does not agree to a version that nobody knows.
pub(super) fn unknown_version_not_echoed(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for exchange in &index.all {
        let Some(asked) = exchange.request.pointer("/params/protocolVersion").and_then(Value::as_str) else { continue };
        let Some((position, response)) = exchange.responses.first() else { continue };
        let Some(agreed) = response.pointer("/result/protocolVersion") else { continue };
        if method_of(exchange.request) == "initialize" && asked.parse::<Revision>().is_err() {
            let echoed = agreed == asked;
            seen.look(echoed.then(|| breach(format!("the server agrees to {asked}"), "", &[exchange.sent, *position])));
        }
    }
    seen
}

/// Whether the version that is offered for an unknown one is at least as new as the one that is judged,
/// which the server speaks.
pub(super) fn fallback_newest(index: &Index<'_>, revision: Revision) -> Seen {
    let mut seen = Seen::default();
    for exchange in &index.all {
        let Some(asked) = exchange.request.pointer("/params/protocolVersion").and_then(Value::as_str) else { continue };
        let Some((position, response)) = exchange.responses.first() else { continue };
        let offered = response.pointer("/result/protocolVersion").and_then(Value::as_str);
        let Some(offered) = offered.and_then(|version| version.parse::<Revision>().ok()) else { continue };
        let unknown = asked.parse::<Revision>().is_err();
        if method_of(exchange.request) == "initialize" && unknown && revision.era() == Era::Handshake {
            let older = offered < revision;
            seen.look(older.then(|| {
                breach(format!("{offered} is offered, while {revision} is spoken"), "", &[exchange.sent, *position])
            }));
        }
    }
    seen
}

/// Whether the version that is judged, which the server has agreed to, is agreed to on every connection
/// that opens with it.
pub(super) fn version_agreed(index: &Index<'_>, revision: Revision) -> Seen {
    let mut seen = Seen::default();
    // What becomes of a second handshake on a connection is another matter.
    if let Some(exchange) = index.all.first() {
        let asked = exchange.request.pointer("/params/protocolVersion").and_then(Value::as_str);
        if method_of(exchange.request) != "initialize" || asked != Some(revision.as_str()) {
            return seen;
        }
        let Some((position, response)) = exchange.responses.first() else { return seen };
        let agreed = response.pointer("/result/protocolVersion").and_then(Value::as_str);
        let problem = match agreed {
            Some(version) if version == revision.as_str() => None,
            Some(version) => Some(format!("{} is answered instead", shortened(version, 40))),
            None => Some("the handshake is refused".to_owned()),
        };
        seen.look(problem.map(|problem| breach(problem, "initialize", &[exchange.sent, *position])));
    }
    seen
}
