//! The checks of a connection that are about subscriptions of the stateless era.

use serde_json::Value;

use super::seen::{Seen, breach};
use super::watch::{Index, method_of};
use crate::spec::{Era, Revision};
use crate::transcript::Exchange;
use crate::wire::{same_id, same_id_loosely};

pub(super) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

pub(super) fn listens<'i, 'a>(index: &'i Index<'a>) -> impl Iterator<Item = &'i Exchange<'a>> {
    index.exchanges.iter().filter(|exchange| method_of(exchange.request) == "subscriptions/listen")
}

/// The subscription that a message says it belongs to.
pub(super) fn subscription_of(message: &Value) -> Option<&Value> {
    const MEMBER: &str = "_meta/io.modelcontextprotocol~1subscriptionId";
    let at = |root: &str| message.pointer(&format!("/{root}/{MEMBER}"));
    at("params").or_else(|| at("result"))
}

/// Whether the first message of each subscription acknowledges it.
pub(super) fn acknowledged_first(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for listen in listens(index) {
        let Some(id) = listen.request.get("id") else { continue };
        let first = index
            .received()
            .filter(|(position, _)| *position > listen.sent)
            .find(|(_, message)| subscription_of(message).is_some_and(|of| same_id(of, id) || same_id_loosely(id, of)));
        let Some((position, message)) = first else { continue };
        let problem = if method_of(message) != ACKNOWLEDGED {
            let what = message.get("method").and_then(Value::as_str).unwrap_or("the response");
            Some(format!("{what} comes first"))
        } else if !subscription_of(message).is_some_and(|of| same_id(of, id)) {
            Some("the acknowledgement has the id in another type".to_owned())
        } else {
            None
        };
        seen.look(problem.map(|problem| breach(problem, "subscriptions/listen", &[listen.sent, position])));
    }
    seen
}

/// Whether a filter member grants anything.
fn grants(value: &Value) -> bool {
    match value {
        Value::Bool(granted) => *granted,
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// Whether each acknowledgement grants nothing that its request did not ask for. Members of extensions
/// are left alone.
pub(super) fn grants_asked(index: &Index<'_>) -> Seen {
    const CORE: [&str; 4] = ["toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions"];
    let mut seen = Seen::default();
    for (position, message) in index.received().filter(|(_, message)| method_of(message) == ACKNOWLEDGED) {
        let of_it = |listen: &&Exchange<'_>| {
            let of = subscription_of(message);
            listen.sent < position && of.zip(listen.request.get("id")).is_some_and(|(of, id)| same_id(of, id))
        };
        let Some(listen) = listens(index).find(of_it) else { continue };
        let Some(asked) = listen.request.pointer("/params/notifications") else { continue };
        let Some(granted) = message.pointer("/params/notifications").and_then(Value::as_object) else { continue };
        let more = CORE.iter().find(|name| {
            let of_granted = granted.get(**name).filter(|value| grants(value));
            of_granted.is_some() && !asked.get(**name).is_some_and(grants)
        });
        seen.look(more.map(|name| {
            breach(format!("{name} is granted, which was not asked for"), ACKNOWLEDGED, &[listen.sent, position])
        }));
    }
    seen
}

/// Whether changes are told only while some subscription is open.
pub(super) fn changes_listened(index: &Index<'_>, revision: Revision) -> Seen {
    let mut seen = Seen::default();
    if revision.era() != Era::Stateless {
        return seen;
    }
    for (position, message) in index.received() {
        let method = method_of(message);
        let change = method.ends_with("/list_changed") || method == "notifications/resources/updated";
        if change && method.starts_with("notifications/") {
            let listening = listens(index).any(|listen| listen.sent < position);
            seen.look((!listening).then(|| breach("a change without a subscription", method, &[position])));
        }
    }
    // Who never listened, had requests answered and heard of no change has seen the rule kept.
    if seen.seen == 0 && listens(index).next().is_none() {
        seen.seen += index.exchanges.iter().filter(|exchange| !exchange.responses.is_empty()).count();
    }
    seen
}
