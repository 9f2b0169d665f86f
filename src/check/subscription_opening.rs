//! The checks of how subscriptions of the stateless era are opened: acknowledged first, with what was requested.

use serde_json::Value;

use super::index::{ConnectionIndex, method_of};
use super::violation::{CheckResult, Violation};
use crate::transcript::Exchange;
use crate::wire::{same_id, same_id_loosely};

pub(super) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The requests that open subscriptions.
pub(super) fn subscriptions<'i, 'a>(index: &'i ConnectionIndex<'a>) -> impl Iterator<Item = &'i Exchange<'a>> {
    index.exchanges_of("subscriptions/listen")
}

/// The id of the subscription that a message names as its own.
pub(super) fn subscription_id(message: &Value) -> Option<&Value> {
    const MEMBER: &str = "_meta/io.modelcontextprotocol~1subscriptionId";
    let at = |root: &str| message.pointer(&format!("/{root}/{MEMBER}"));
    at("params").or_else(|| at("result"))
}

/// Checks that the first message of each subscription acknowledges it, with the id of its request.
pub(super) fn acknowledged_first(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for subscription in subscriptions(index) {
        let Some(id) = subscription.request.get("id") else { continue };
        let first = index
            .received()
            .filter(|(position, _)| *position > subscription.sent)
            .find(|(_, message)| subscription_id(message).is_some_and(|of| same_id(of, id) || same_id_loosely(id, of)));
        let Some((position, message)) = first else { continue };
        let problem = if method_of(message) != ACKNOWLEDGED {
            let kind = message.get("method").and_then(Value::as_str).unwrap_or("the response");
            Some(format!("{kind} comes first"))
        } else if !subscription_id(message).is_some_and(|of| same_id(of, id)) {
            Some("the acknowledgement has the id with another JSON type".to_owned())
        } else {
            None
        };
        checked.record(
            problem.map(|problem| Violation::new(problem, "subscriptions/listen", &[subscription.sent, position])),
        );
    }
    checked
}

/// Whether a member of a filter grants or requests anything.
fn grants(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// Checks that each acknowledgement grants nothing that its request did not contain. Members of extensions are not
/// judged.
pub(super) fn grants_only_requested(index: &ConnectionIndex<'_>) -> CheckResult {
    const FILTER_MEMBERS: [&str; 4] =
        ["toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions"];
    let mut checked = CheckResult::default();
    for (position, message) in index.received().filter(|(_, message)| method_of(message) == ACKNOWLEDGED) {
        let is_of_it = |subscription: &&Exchange<'_>| {
            let of = subscription_id(message);
            subscription.sent < position
                && of.zip(subscription.request.get("id")).is_some_and(|(of, id)| same_id(of, id))
        };
        let Some(subscription) = subscriptions(index).find(is_of_it) else { continue };
        let Some(requested) = subscription.request.pointer("/params/notifications") else { continue };
        let Some(granted) = message.pointer("/params/notifications").and_then(Value::as_object) else { continue };
        let unrequested = FILTER_MEMBERS.iter().find(|name| {
            let grant = granted.get(**name).filter(|value| grants(value));
            grant.is_some() && !requested.get(**name).is_some_and(grants)
        });
        checked.record(unrequested.map(|name| {
            Violation::new(
                format!("{name} is granted but was not requested"),
                ACKNOWLEDGED,
                &[subscription.sent, position],
            )
        }));
    }
    checked
}
