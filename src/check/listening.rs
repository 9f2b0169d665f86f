//! The checks of what subscriptions of the stateless era deliver.
//!
//! What a server tells after a subscription was cancelled, and before it answers a later request, may have
//! been on its way and is left alone.

use std::collections::BTreeSet;

use serde_json::Value;

use super::act::shortened;
use super::list::pages_of;
use super::seen::{Seen, breach};
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

fn uris(filter: &Value) -> impl Iterator<Item = &str> {
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
        // Over HTTP each request has its own way there and back, so that the answers to others tell nothing.
        let had_time = match index.http.iter().find(|exchange| exchange.sent == listen.sent) {
            Some(own) => {
                let body = own.value.get("body");
                let events = body.and_then(|body| body["events"].as_array());
                body.is_some_and(|body| body["complete"] == true) || events.is_some_and(|events| !events.is_empty())
            }
            None => index.exchanges.iter().any(|other| other.sent > listen.sent && !other.responses.is_empty()),
        };
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
            let items = walk.iter().filter_map(|page| page.result.get(list.items).and_then(Value::as_array));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::check::{Connected, Watched};
    use crate::spec::Revision;
    use crate::transcript::{Entry, Event, Terms, Transcript};
    use crate::wire::Frame;

    fn record(messages: &[(bool, Value)]) -> Vec<Connected> {
        let entries = messages.iter().map(|(ours, message)| {
            let frame = Frame::of(message);
            let event = if *ours { Event::Sent { frame, mark: None } } else { Event::Received(frame) };
            Arc::new(Entry { at: Duration::ZERO, event })
        });
        let lists = json!({"listChanged": true});
        let capabilities = json!({"tools": lists, "prompts": lists, "resources": {"subscribe": true}});
        let terms = Terms { client_capabilities: json!({}), opening: Some(json!({"capabilities": capabilities})) };
        vec![Connected { label: String::new(), transcript: Transcript { entries: entries.collect(), terms } }]
    }

    fn ask(id: i64, method: &str, mut params: Value) -> (bool, Value) {
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        (true, json!({"id": id, "method": method, "params": params}))
    }

    fn listen(id: i64, filter: &Value) -> (bool, Value) {
        ask(id, "subscriptions/listen", json!({"notifications": filter}))
    }

    fn told(id: i64, method: &str) -> (bool, Value) {
        let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
        (false, json!({"method": method, "params": {"_meta": meta, "uri": "a:///b/c"}}))
    }

    fn listed(id: i64, names: &[&str]) -> [(bool, Value); 2] {
        let tools: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        [ask(id, "tools/list", json!({})), (false, json!({"id": id, "result": {"tools": tools}}))]
    }

    /// How much a check saw, and how much of it is a breach.
    fn seen(check: impl Fn(&Index<'_>) -> Seen, messages: &[(bool, Value)]) -> (usize, usize) {
        let connected = record(messages);
        let seen = check(&Watched::new(&connected, Revision::V2026_07_28).connections[0]);
        (seen.seen, seen.breaches.len())
    }

    #[test]
    fn what_is_told_carries_the_id_and_was_asked_for() {
        let tools = json!({"toolsListChanged": true, "resourceSubscriptions": ["a:///b"]});
        let with = |message| [listen(1, &tools), told(1, ACKNOWLEDGED), message];
        assert_eq!(seen(tagged, &with(told(1, TOOLS.notification))), (1, 0));
        assert_eq!(seen(tagged, &with(told(2, TOOLS.notification))), (1, 1));
        assert_eq!(seen(only_asked, &with(told(1, TOOLS.notification))), (1, 0));
        assert_eq!(seen(only_asked, &with(told(1, PROMPTS.notification))), (1, 1));
        assert_eq!(seen(only_asked, &with(told(1, UPDATED))), (1, 0), "it is a part of what was asked for");
        assert_eq!(seen(tagged, &[told(1, UPDATED)]), (0, 0), "nobody listens, which is another rule");
    }

    #[test]
    fn a_subscription_is_served_or_refused_once_it_had_its_time() {
        let asked = listen(1, &json!({"toolsListChanged": true}));
        let other = [ask(2, "ping", json!({})), (false, json!({"id": 2, "result": {}}))];
        let refusal = (false, json!({"id": 1, "error": {"code": -32601, "message": ""}}));
        assert_eq!(seen(served, &[asked.clone(), told(1, ACKNOWLEDGED)]), (1, 0));
        assert_eq!(seen(served, &[asked.clone(), refusal]), (1, 1));
        assert_eq!(seen(served, std::slice::from_ref(&asked)), (0, 0));
        assert_eq!(seen(served, &[&[asked], other.as_slice()].concat()), (1, 1));
        assert_eq!(seen(served, &[listen(1, &json!({"resourcesListChanged": true}))]), (0, 0), "it was not declared");
    }

    #[test]
    fn what_comes_after_a_cancellation_may_have_been_on_its_way() {
        let cancel = (true, json!({"method": "notifications/cancelled", "params": {"requestId": 1}}));
        let begin = [listen(1, &json!({"toolsListChanged": true})), cancel];
        let late = told(1, TOOLS.notification);
        let mut messages = begin.to_vec();
        messages.push(late.clone());
        assert_eq!(seen(cancelled, &messages), (0, 0));
        messages.extend(listed(2, &["a"]));
        assert_eq!(seen(cancelled, &messages), (1, 0));
        messages.push(late);
        assert_eq!(seen(cancelled, &messages), (1, 1));
    }

    #[test]
    fn a_list_that_changed_while_somebody_listened_is_told_of() {
        let open = [listen(1, &json!({"toolsListChanged": true})), told(1, ACKNOWLEDGED)];
        let with = |between: &[(bool, Value)]| {
            [listed(2, &["a"]).as_slice(), &open, between, &listed(3, &["a", "b"])].concat()
        };
        let tools = |index: &Index<'_>| lists_told(index, &TOOLS);
        assert_eq!(seen(tools, &with(&[])), (1, 1));
        assert_eq!(seen(tools, &with(&[told(1, TOOLS.notification)])), (1, 0));
        let unheard = [listed(2, &["a"]), listed(3, &["b"])].concat();
        assert_eq!(seen(tools, &unheard), (0, 0));
    }

    #[test]
    fn a_resource_that_is_another_each_time_has_no_changes() {
        let read = |id: i64, text: &str| {
            let asked = ask(id, "resources/read", json!({"uri": "a:///b"}));
            [asked, (false, json!({"id": id, "result": {"contents": [{"text": text}]}}))]
        };
        let open = [listen(1, &json!({"resourceSubscriptions": ["a:///b"]})), told(1, ACKNOWLEDGED)];
        let with = |texts: [&str; 3], between: &[(bool, Value)]| {
            let [first, second, third] = [read(2, texts[0]), read(3, texts[1]), read(4, texts[2])];
            [first.as_slice(), &open, &second, between, &third].concat()
        };
        assert_eq!(seen(updates_told, &with(["x", "x", "y"], &[])), (1, 1));
        assert_eq!(seen(updates_told, &with(["x", "x", "y"], &[told(1, UPDATED)])), (1, 0));
        assert_eq!(seen(updates_told, &with(["x", "y", "z"], &[])), (0, 0));
        assert_eq!(seen(updates_told, &with(["x", "x", "x"], &[])), (0, 0));
    }
}
