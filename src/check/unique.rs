//! The rule that values are unique among the items of a list, the results of a connection, or the events of its
//! streams.

use std::collections::BTreeMap;

use serde_json::Value;

use super::http_stream::{events_of, streams};
use super::index::{ConnectionIndex, method_of};
use super::list::{Page, paginations_of};
use super::text::shortened;
use super::violation::{CheckResult, Violation};
use crate::case::{PathPattern, RepeatedItem, Unique};

/// The greatest length of a value in a finding, in characters.
const MAX_VALUE_CHARS: usize = 80;

/// Checks that no two strings at a path are the same.
pub(super) fn unique(index: &ConnectionIndex<'_>, rule: &Unique) -> CheckResult {
    match rule {
        Unique::List { methods, path, except } => unique_in_lists(index, methods, path, *except),
        Unique::Connection { methods, path } => unique_in_results(index, methods, path),
        Unique::Streams { path } => unique_in_streams(index, path),
    }
}

/// The last token of a path, which names the value.
fn value_name(path: &PathPattern) -> &str {
    path.as_str().rsplit('/').next().unwrap_or_default()
}

/// The token before `*` in a path, which names the items.
fn items_name(path: &PathPattern) -> &str {
    path.as_str().split_once("/*").and_then(|(items, _)| items.rsplit('/').next()).unwrap_or("items")
}

/// The strings at a path in a page, each with the item that it belongs to.
fn items_of<'a>(page: &Page<'a>, path: &PathPattern) -> Vec<(&'a str, Option<&'a Value>)> {
    let values = path.find(page.result).into_iter();
    values
        .filter_map(|(pointer, value)| {
            let item = pointer.rsplit_once('/').and_then(|(item, _)| page.result.pointer(item));
            Some((value.as_str()?, item))
        })
        .collect()
}

fn unique_in_lists(
    index: &ConnectionIndex<'_>,
    methods: &[String],
    path: &PathPattern,
    except: RepeatedItem,
) -> CheckResult {
    let mut checked = CheckResult::default();
    let (items, name) = (items_name(path), value_name(path));
    for method in methods {
        for pages in paginations_of(index, method) {
            let pages: Vec<_> = pages.iter().map(|page| (page.positions, items_of(page, path))).collect();
            let mut known: BTreeMap<&str, (usize, Option<&Value>)> = BTreeMap::new();
            for (number, (positions, values)) in pages.iter().enumerate() {
                for (value, item) in values {
                    let Some((first, same)) = known.get(value).map(|(first, other)| (*first, other == item)) else {
                        known.insert(value, (number, *item));
                        checked.record(None);
                        continue;
                    };
                    let (first_positions, first_values) = &pages[first];
                    let is_excepted = same
                        && match except {
                            RepeatedItem::Identical => true,
                            RepeatedItem::PageOverlap => {
                                number == first + 1
                                    && first_values.last().is_some_and(|(last, _)| last == value)
                                    && values.first().is_some_and(|(first, _)| first == value)
                            }
                        };
                    checked.record((!is_excepted).then(|| {
                        let actual = format!("two {items} have the {name} `{}`", shortened(value, MAX_VALUE_CHARS));
                        let subject = if items == "tools" { *value } else { method };
                        Violation::new(actual, subject, &[*first_positions, *positions].concat())
                    }));
                }
            }
        }
    }
    checked
}

fn unique_in_results(index: &ConnectionIndex<'_>, methods: &[String], path: &PathPattern) -> CheckResult {
    let mut checked = CheckResult::default();
    let mut known: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for exchange in &index.exchanges {
        let method = method_of(exchange.request);
        if !methods.iter().any(|of| of == method) {
            continue;
        }
        let Some((position, response)) = exchange.responses.first() else { continue };
        let values = response.get("result").map(|result| path.find(result)).unwrap_or_default();
        for value in values.into_iter().filter_map(|(_, value)| value.as_str()) {
            let here = [exchange.sent, *position];
            match known.insert(value, here) {
                Some(first) => {
                    let value = shortened(value, MAX_VALUE_CHARS);
                    let actual = format!("two results of {method} have the {} `{value}`", value_name(path));
                    checked.record(Some(Violation::new(actual, "", &[first, here].concat())));
                }
                None if known.len() > 1 => checked.record(None),
                // A single value proves nothing.
                None => {}
            }
        }
    }
    checked
}

fn unique_in_streams(index: &ConnectionIndex<'_>, path: &PathPattern) -> CheckResult {
    let mut checked = CheckResult::default();
    let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for exchange in streams(index) {
        let values =
            events_of(&exchange).iter().flat_map(|event| path.find(event)).filter_map(|(_, value)| value.as_str());
        for value in values.filter(|value| !value.is_empty()) {
            let other = known.insert(value.to_owned(), exchange.positions.clone());
            checked.record(other.map(|other| {
                let positions: Vec<usize> = other.iter().chain(&exchange.positions).copied().collect();
                Violation::new(format!("two events have the {} {value:?}", value_name(path)), "", &positions)
            }));
        }
    }
    checked
}
