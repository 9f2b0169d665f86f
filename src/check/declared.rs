//! The checks of a connection that are about what a server sends only where it was declared, by either side, or asked
//! for.

use serde_json::Value;

use super::list;
use super::seen::{Seen, breach, name_of};
use super::watch::{Index, method_of};
use crate::spec::{Era, Revision};
use crate::wire::Kind;

/// The capability of the client that a request of the server needs.
pub(super) fn needed_capability(method: &str) -> Option<&'static str> {
    match method {
        "sampling/createMessage" => Some("sampling"),
        "elicitation/create" => Some("elicitation"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}

/// Whether the server asks only for what the client declared.
pub(super) fn requests_declared(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, message) in index.received() {
        let Kind::Request { method, .. } = Kind::of(message) else { continue };
        let Some(needed) = needed_capability(method) else { continue };
        let declared = index.record.terms.client_capabilities.get(needed).is_some();
        seen.look(
            (!declared)
                .then(|| breach(format!("{method}, though the client declared no {needed}"), method, &[position])),
        );
    }
    // A client that declared less than everything and had its calls answered has seen the rule kept.
    if seen.seen == 0
        && ["sampling", "roots"].iter().any(|name| index.record.terms.client_capabilities.get(name).is_none())
    {
        seen.seen +=
            index.exchanges.iter().filter(|e| method_of(e.request) == "tools/call" && !e.responses.is_empty()).count();
    }
    seen
}

/// Whether changes of a list are announced only where that was declared.
pub(super) fn list_changed_declared(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, message) in index.received() {
        let method = method_of(message);
        let Some(list) = method.strip_prefix("notifications/").and_then(|rest| rest.strip_suffix("/list_changed"))
        else {
            continue;
        };
        let declared = index.record.terms.declares(&format!("{list}.listChanged"));
        seen.look((!declared).then(|| breach(format!("{method} without {list}.listChanged"), method, &[position])));
    }
    seen
}

/// Whether tools are offered only where they were declared.
pub(super) fn tools_declared(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let Some(opening) = &index.record.terms.opening else { return seen };
    for exchange in &index.exchanges {
        let Some((position, response)) = exchange.responses.first() else { continue };
        let Some(result) = response.get("result") else { continue };
        let offers = match method_of(exchange.request) {
            "tools/list" => list::TOOLS.keys(result).next().is_some(),
            "tools/call" => result.get("isError") != Some(&Value::Bool(true)),
            _ => false,
        };
        if offers {
            let declared = opening.pointer("/capabilities/tools").is_some();
            seen.look((!declared).then(|| {
                breach("no tools among the capabilities", method_of(exchange.request), &[exchange.sent, *position])
            }));
        }
    }
    seen
}

/// Whether a resource is embedded only where resources were declared.
pub(super) fn embedded_needs_resources(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for exchange in index.exchanges.iter().filter(|e| method_of(e.request) == "tools/call") {
        let Some((position, response)) = exchange.responses.first() else { continue };
        let embeds = response
            .pointer("/result/content")
            .and_then(Value::as_array)
            .is_some_and(|items| items.iter().any(|item| item.get("type").is_some_and(|kind| kind == "resource")));
        if embeds {
            let declared = index.record.terms.capability("resources").is_some();
            seen.look((!declared).then(|| {
                breach(
                    "an embedded resource without the resources capability",
                    name_of(exchange.request),
                    &[exchange.sent, *position],
                )
            }));
        }
    }
    seen
}

/// Whether log messages come only where logging was declared.
pub(super) fn logging_declared(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, _) in index.received().filter(|(_, m)| method_of(m) == "notifications/message") {
        let declared = index.record.terms.capability("logging").is_some();
        seen.look((!declared).then(|| breach("a log message without the logging capability", "", &[position])));
    }
    seen
}

/// Whether log messages come only while a request is open that asked for them, in the stateless era.
pub(super) fn log_opt_in(index: &Index<'_>, revision: Revision) -> Seen {
    let mut seen = Seen::default();
    if revision.era() != Era::Stateless {
        return seen;
    }
    let asks = |request: &Value| {
        request.pointer("/params/_meta").is_some_and(|meta| meta.get("io.modelcontextprotocol/logLevel").is_some())
    };
    for (position, _) in index.received().filter(|(_, m)| method_of(m) == "notifications/message") {
        // A message belongs to one of the requests that are open when it comes.
        let asked = index.exchanges.iter().any(|exchange| {
            let answered = exchange.responses.first().map(|(at, _)| *at);
            exchange.sent < position && answered.is_none_or(|at| at > position) && asks(exchange.request)
        });
        seen.look((!asked).then(|| breach("a log message though no open request asked for one", "", &[position])));
    }
    // Calls that did not ask and drew no log message have seen the rule kept.
    let quiet = index.exchanges.iter().filter(|e| method_of(e.request) == "tools/call" && !e.responses.is_empty());
    seen.seen += quiet.filter(|exchange| !asks(exchange.request)).count();
    seen
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
