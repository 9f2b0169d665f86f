//! The checks of a connection that are about resources, prompts and the way it was opened.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::act::shortened;
use super::connection::{Page, Seen, breach, cache_scope_same_in, pages_of};
use super::watch::{Index, method_of};
use crate::spec::{Era, Revision};
use crate::transcript::Event;
use crate::wire::Kind;

/// A list, and what its items are known by.
pub(super) struct List {
    method: &'static str,
    items: &'static str,
    key: &'static str,
}

pub(super) const RESOURCES: List = List { method: "resources/list", items: "resources", key: "uri" };
pub(super) const PROMPTS: List = List { method: "prompts/list", items: "prompts", key: "name" };

/// Whether no two different items of a walk over a list go by the same key. The same item once more is
/// what a list yields that changes while its pages are read.
pub(super) fn unique(index: &Index<'_>, list: &List) -> Seen {
    let mut seen = Seen::default();
    for walk in pages_of(index, list.method) {
        let mut known: BTreeMap<&str, (usize, &Value)> = BTreeMap::new();
        for (number, page) in walk.iter().enumerate() {
            for item in page.result.get(list.items).and_then(Value::as_array).into_iter().flatten() {
                let Some(key) = item.get(list.key).and_then(Value::as_str) else { continue };
                let Some((first, same)) = known.get(key).map(|(first, other)| (*first, *other == item)) else {
                    known.insert(key, (number, item));
                    seen.look(None);
                    continue;
                };
                let positions = [walk[first].positions, page.positions].concat();
                seen.look((!same).then(|| {
                    let actual = format!("two items have the {} `{}`", list.key, shortened(key, 80));
                    breach(actual, list.method, &positions)
                }));
            }
        }
    }
    seen
}

pub(super) fn cache_scope_same(index: &Index<'_>) -> Seen {
    let mut all = Seen::default();
    for method in ["resources/list", "resources/templates/list", "prompts/list"] {
        let seen = cache_scope_same_in(index, method);
        all.seen += seen.seen;
        all.breaches.extend(seen.breaches);
    }
    all
}

/// Whether updates come only while the client is subscribed to something. Which resource they are of
/// is left alone, since it may be a part of one.
pub(super) fn updates_subscribed(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let uri = |request: &Value| request.pointer("/params/uri").map(Value::to_string);
    for (position, message) in index.received() {
        let method = method_of(message);
        if method != "notifications/resources/updated" {
            continue;
        }
        let subscribed = index.exchanges.iter().any(|exchange| {
            method_of(exchange.request) == "resources/subscribe"
                && exchange.sent < position
                && !index.exchanges.iter().any(|other| {
                    method_of(other.request) == "resources/unsubscribe"
                        && other.sent > exchange.sent
                        && uri(other.request) == uri(exchange.request)
                        && other.responses.first().is_some_and(|(answered, _)| *answered < position)
                })
        });
        seen.look((!subscribed).then(|| breach("an update without a subscription", method, &[position])));
    }
    seen
}

/// Where the client said that it is ready, if it did; the end of the record otherwise.
fn initialized_at(index: &Index<'_>) -> usize {
    let entries = &index.record.entries;
    let told = |message: &Value| method_of(message) == "notifications/initialized";
    entries.iter().position(|entry| entry.sent().is_some_and(told)).unwrap_or(entries.len())
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

/// Whether a list that changed between two readings was announced, where that was promised.
pub(super) fn changed_sent(index: &Index<'_>, list: &List) -> Seen {
    let mut seen = Seen::default();
    if !index.record.terms.declares(&format!("{}.listChanged", list.items)) {
        return seen;
    }
    let announcement = format!("notifications/{}/list_changed", list.items);
    let keys = |walk: &[Page<'_>]| -> BTreeSet<String> {
        let items = walk.iter().filter_map(|page| page.result.get(list.items)?.as_array()).flatten();
        items.filter_map(|item| item.get(list.key)?.as_str()).map(str::to_owned).collect()
    };
    let mut whole = pages_of(index, list.method);
    whole.retain(|walk| walk.last().is_some_and(|page| page.result.get("nextCursor").is_none()));
    for pair in whole.windows(2) {
        if keys(&pair[0]) == keys(&pair[1]) {
            continue;
        }
        let (from, to) = (pair[0][0].positions[0], pair[1].last().map_or(0, |page| page.positions[1]));
        let told = index.received().any(|(at, message)| at > from && method_of(message) == announcement);
        seen.look((!told).then(|| breach("the list changed without a notification", list.method, &[from, to])));
    }
    seen
}

/// Whether the prompts that the survey asked for without arguments, which none of them requires, were
/// served. An error that says what is amiss with the server or the client is no refusal.
pub(super) fn prompts_got(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for exchange in index.exchanges.iter().filter(|exchange| method_of(exchange.request) == "prompts/get") {
        let of_survey = matches!(index.record.entries[exchange.sent].event, Event::Sent { mark: None, .. });
        let plain = exchange.request.pointer("/params/arguments").is_none();
        let Some((position, response)) = exchange.responses.first().filter(|_| of_survey && plain) else { continue };
        let code = response.pointer("/error/code").and_then(Value::as_i64);
        let refused = code.is_some_and(|code| !matches!(code, -32603 | -32042 | -32021));
        let name = exchange.request.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
        seen.look(refused.then(|| {
            let subject = format!("prompts/get {}", shortened(name, 60));
            breach("the prompt is refused", subject, &[exchange.sent, *position])
        }));
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
