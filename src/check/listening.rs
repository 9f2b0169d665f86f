//! The checks of what subscriptions of the stateless era deliver.
//!
//! What a server tells after a subscription was cancelled, and before it answers a later request, may have
//! been on its way and is left alone.

use std::collections::BTreeSet;

use serde_json::Value;

use super::act::shortened;
use super::connection::{Seen, breach, pages_of};
use super::subscription::{ACKNOWLEDGED, listens, subscription_of};
use super::watch::{Index, method_of};
use crate::transcript::Exchange;
use crate::wire::{same_id, same_id_loosely};

/// A list whose changes can be listened for.
pub(super) struct Listed {
    method: &'static str,
    items: &'static str,
    key: &'static str,
    capability: &'static str,
    /// The member of the filter that asks for its changes.
    member: &'static str,
    notification: &'static str,
}

pub(super) const TOOLS: Listed = Listed {
    method: "tools/list",
    items: "tools",
    key: "name",
    capability: "tools.listChanged",
    member: "toolsListChanged",
    notification: "notifications/tools/list_changed",
};

const PROMPTS: Listed = Listed {
    method: "prompts/list",
    items: "prompts",
    key: "name",
    capability: "prompts.listChanged",
    member: "promptsListChanged",
    notification: "notifications/prompts/list_changed",
};

const RESOURCES: Listed = Listed {
    method: "resources/list",
    items: "resources",
    key: "uri",
    capability: "resources.listChanged",
    member: "resourcesListChanged",
    notification: "notifications/resources/list_changed",
};

const UPDATED: &str = "notifications/resources/updated";

fn filter_of<'a>(listen: &Exchange<'a>) -> Option<&'a Value> {
    listen.request.pointer("/params/notifications")
}

fn uris<'a>(filter: &'a Value) -> impl Iterator<Item = &'a str> {
    filter.get("resourceSubscriptions").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Whether a filter asks for a notification; of an update, of this uri or of what it is a part of.
fn asks_for(filter: &Value, message: &Value) -> bool {
    let method = method_of(message);
    if method == UPDATED {
        let uri = message.pointer("/params/uri").and_then(Value::as_str).unwrap_or_default();
        return uris(filter).any(|asked| uri.starts_with(asked.trim_end_matches('/')));
    }
    let list = [&TOOLS, &PROMPTS, &RESOURCES].into_iter().find(|list| list.notification == method);
    list.is_some_and(|list| filter.get(list.member) == Some(&Value::Bool(true)))
}

/// Whether a message tells of a change.
fn is_change(message: &Value) -> bool {
    let method = method_of(message);
    method == UPDATED || [TOOLS, PROMPTS, RESOURCES].iter().any(|list| list.notification == method)
}

/// Where the client cancelled a request, if it did.
fn cancelled_at(index: &Index<'_>, id: &Value) -> Option<usize> {
    index.record.entries.iter().position(|entry| {
        entry.sent().is_some_and(|sent| {
            method_of(sent) == "notifications/cancelled"
                && sent.pointer("/params/requestId").is_some_and(|of| same_id(of, id))
        })
    })
}

/// From where on a cancelled subscription has to be silent: a request that was sent after the cancellation
/// is answered there.
fn silent_from(index: &Index<'_>, listen: &Exchange<'_>) -> Option<usize> {
    let cancelled = cancelled_at(index, listen.request.get("id")?)?;
    let later = index.exchanges.iter().filter(|exchange| exchange.sent > cancelled);
    later.filter_map(|exchange| exchange.responses.first().map(|(at, _)| *at)).min()
}

/// Whether a subscription was open over a stretch of the record: acknowledged before, neither answered nor
/// cancelled until after it.
fn open_over(index: &Index<'_>, listen: &Exchange<'_>, from: usize, to: usize) -> bool {
    let Some(id) = listen.request.get("id") else { return false };
    let acknowledged = index.received().any(|(at, message)| {
        at < from && method_of(message) == ACKNOWLEDGED && subscription_of(message).is_some_and(|of| same_id(of, id))
    });
    acknowledged
        && listen.responses.first().is_none_or(|(at, _)| *at > to)
        && cancelled_at(index, id).is_none_or(|at| at > to)
}

/// Whether a subscription to something that the server declared is acknowledged.
pub(super) fn served(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let terms = &index.record.terms;
    for listen in listens(index) {
        let (Some(id), Some(filter)) = (listen.request.get("id"), filter_of(listen)) else { continue };
        let lists = [TOOLS, PROMPTS, RESOURCES];
        let of_list = lists.iter().any(|list| terms.declares(list.capability) && filter.get(list.member).is_some());
        let of_resource = terms.declares("resources.subscribe") && uris(filter).next().is_some();
        if !of_list && !of_resource {
            continue;
        }
        let acknowledged = index.received().any(|(at, message)| {
            at > listen.sent
                && method_of(message) == ACKNOWLEDGED
                && subscription_of(message).is_some_and(|of| same_id_loosely(id, of))
        });
        let refused = listen.responses.first().filter(|(_, response)| response.get("error").is_some());
        let had_time = index.exchanges.iter().any(|other| other.sent > listen.sent && !other.responses.is_empty());
        match refused {
            Some((at, response)) => {
                let code = response.pointer("/error/code").map_or_else(|| "no code".to_owned(), Value::to_string);
                seen.look(Some(breach(format!("an error with {code}"), "subscriptions/listen", &[listen.sent, *at])));
            }
            None if acknowledged => seen.look(None),
            None if had_time => {
                seen.look(Some(breach("no acknowledgement", "subscriptions/listen", &[listen.sent])));
            }
            None => {}
        }
    }
    seen
}

/// Whether what is told while the client listens carries the id of the request that it listens by.
pub(super) fn tagged(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, message) in index.received().filter(|(_, message)| is_change(message)) {
        let mut before = listens(index).filter(|listen| listen.sent < position).peekable();
        if before.peek().is_none() {
            continue;
        }
        let of = subscription_of(message);
        let known = before.any(|listen| of.zip(listen.request.get("id")).is_some_and(|(of, id)| same_id(of, id)));
        seen.look((!known).then(|| {
            let tag = of.map_or_else(|| "without an id".to_owned(), |id| format!("under the id {id}"));
            breach(format!("{} {tag}", method_of(message)), method_of(message), &[position])
        }));
    }
    seen
}

/// Whether nothing is told that no subscription of the client asked for.
pub(super) fn only_asked(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, message) in index.received().filter(|(_, message)| is_change(message)) {
        let of = subscription_of(message);
        let before: Vec<&Exchange<'_>> = listens(index).filter(|listen| listen.sent < position).collect();
        let own = before.iter().find(|listen| of.zip(listen.request.get("id")).is_some_and(|(of, id)| same_id(of, id)));
        // What names no subscription may belong to any; that it names none is another rule's.
        let candidates = own.map_or(before.as_slice(), std::slice::from_ref);
        if candidates.is_empty() {
            continue;
        }
        let asked = candidates.iter().any(|listen| filter_of(listen).is_some_and(|filter| asks_for(filter, message)));
        seen.look((!asked).then(|| {
            let uri = message.pointer("/params/uri").and_then(Value::as_str).unwrap_or_default();
            let actual = format!("{} {}", method_of(message), shortened(uri, 80));
            breach(actual.trim_end(), method_of(message), &[candidates[0].sent, position])
        }));
    }
    seen
}

/// Whether a subscription that the client cancelled delivers nothing more.
pub(super) fn cancelled(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for listen in listens(index) {
        let (Some(id), Some(from)) = (listen.request.get("id"), silent_from(index, listen)) else { continue };
        let late = index.received().find(|(at, message)| {
            *at > from
                && method_of(message).starts_with("notifications/")
                && subscription_of(message).is_some_and(|of| same_id(of, id))
        });
        seen.look(late.map(|(at, message)| {
            let method = shortened(method_of(message), 60);
            breach(format!("{method} after the cancellation"), method, &[listen.sent, from, at])
        }));
    }
    seen
}

/// The keys of the items of every whole walk over a list, with the places of its first request and its
/// last response.
fn walks(index: &Index<'_>, list: &Listed) -> Vec<(BTreeSet<String>, usize, usize)> {
    let whole = pages_of(index, list.method)
        .into_iter()
        .filter(|walk| walk.last().is_some_and(|page| page.result.get("nextCursor").is_none()));
    whole
        .map(|walk| {
            let items = walk.iter().flat_map(|page| page.result.get(list.items).and_then(Value::as_array));
            let keys = items.flatten().filter_map(|item| item.get(list.key)?.as_str()).map(str::to_owned).collect();
            (keys, walk[0].positions[0], walk.last().map_or(0, |page| page.positions[1]))
        })
        .collect()
}

/// Whether a list that changed while the client listened for that was told of.
pub(super) fn lists_told(index: &Index<'_>, list: &Listed) -> Seen {
    let mut seen = Seen::default();
    if !index.record.terms.declares(list.capability) {
        return seen;
    }
    let walks = walks(index, list);
    for pair in walks.windows(2) {
        let ((before, first, end), (after, from, to)) = (&pair[0], &pair[1]);
        let listened = listens(index).any(|listen| {
            let asked = filter_of(listen).and_then(|filter| filter.get(list.member)) == Some(&Value::Bool(true));
            // The change may have come before the client listened: it began to right after the first walk,
            // and nothing else was asked in between.
            let quiet = !index.exchanges.iter().any(|e| e.sent > *end && e.sent < listen.sent && changes(e));
            asked && listen.sent > *end && quiet && open_over(index, listen, *from, *to)
        });
        if before != after && listened {
            let told = index.received().any(|(at, message)| at > *end && method_of(message) == list.notification);
            seen.look(
                (!told).then(|| breach("the list changed without a notification", list.method, &[*first, *from, *to])),
            );
        }
    }
    seen
}

/// Whether a request may change what the server offers.
fn changes(exchange: &Exchange<'_>) -> bool {
    method_of(exchange.request) == "tools/call"
}

pub(super) fn other_lists_told(index: &Index<'_>) -> Seen {
    let mut all = lists_told(index, &PROMPTS);
    let resources = lists_told(index, &RESOURCES);
    all.seen += resources.seen;
    all.breaches.extend(resources.breaches);
    all
}

/// Whether a resource that changed while the client listened for that was told of. One that is another
/// each time that it is read has no changes to tell of.
pub(super) fn updates_told(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    if !index.record.terms.declares("resources.subscribe") {
        return seen;
    }
    let reads: Vec<(&str, usize, usize, &Value)> = index
        .exchanges
        .iter()
        .filter(|exchange| method_of(exchange.request) == "resources/read")
        .filter_map(|exchange| {
            let uri = exchange.request.pointer("/params/uri")?.as_str()?;
            let (at, response) = exchange.responses.first()?;
            Some((uri, exchange.sent, *at, response.pointer("/result/contents")?))
        })
        .collect();
    for (number, (uri, sent, at, contents)) in reads.iter().enumerate() {
        let earlier: Vec<_> = reads[..number].iter().filter(|(other, ..)| other == uri).collect();
        let [.., (_, _, _, first), (_, _, known, second)] = earlier.as_slice() else { continue };
        if first != second || second == contents {
            continue;
        }
        let asked = |listen: &Exchange<'_>| filter_of(listen).is_some_and(|filter| uris(filter).any(|of| of == *uri));
        if listens(index).any(|listen| asked(listen) && open_over(index, listen, *known, *at)) {
            let told = index.received().any(|(told, message)| {
                told > *known
                    && method_of(message) == UPDATED
                    && message.pointer("/params/uri").and_then(Value::as_str).is_some_and(|of| of.starts_with(uri))
            });
            seen.look(
                (!told).then(|| breach("the resource changed without a notification", *uri, &[*known, *sent, *at])),
            );
        }
    }
    seen
}
