//! The checks of lists: their pages, and whether changes are announced to every client.
//!
//! Also joins the pages of a list, for other checks.

use std::collections::BTreeSet;

use serde_json::Value;

use super::index::{ConnectionIndex, method_of};
use super::text::shortened;
use super::violation::{CheckResult, Violation};
use crate::case::{ListKind, SameAcrossPages};

/// A list, and everything that belongs to it in the protocol.
pub(super) struct List {
    pub(super) method: &'static str,
    /// The member of the result that holds the items.
    items: &'static str,
    /// The member of an item that identifies it.
    key: &'static str,
    /// The capability whose declaration promises that changes are announced.
    pub(super) capability: &'static str,
    /// The member of a subscription filter that requests its changes.
    pub(super) filter_member: &'static str,
    /// The notification that announces a change.
    pub(super) notification: &'static str,
}

pub(super) const TOOLS: List = List {
    method: "tools/list",
    items: "tools",
    key: "name",
    capability: "tools.listChanged",
    filter_member: "toolsListChanged",
    notification: "notifications/tools/list_changed",
};

pub(super) const PROMPTS: List = List {
    method: "prompts/list",
    items: "prompts",
    key: "name",
    capability: "prompts.listChanged",
    filter_member: "promptsListChanged",
    notification: "notifications/prompts/list_changed",
};

pub(super) const RESOURCES: List = List {
    method: "resources/list",
    items: "resources",
    key: "uri",
    capability: "resources.listChanged",
    filter_member: "resourcesListChanged",
    notification: "notifications/resources/list_changed",
};

impl List {
    /// The list of a kind.
    pub(super) fn of(kind: ListKind) -> &'static Self {
        match kind {
            ListKind::Tools => &TOOLS,
            ListKind::Prompts => &PROMPTS,
            ListKind::Resources => &RESOURCES,
        }
    }

    /// The items of a page.
    fn items<'a>(&self, page: &'a Value) -> impl Iterator<Item = &'a Value> + use<'a> {
        page.get(self.items).and_then(Value::as_array).into_iter().flatten()
    }

    /// The names or URIs of the items of a page.
    fn keys<'a>(&self, page: &'a Value) -> impl Iterator<Item = &'a str> + use<'a> {
        let key = self.key;
        self.items(page).filter_map(move |item| item.get(key)?.as_str())
    }

    /// Every time that the client read the whole list, in order.
    pub(super) fn complete_readings(&self, index: &ConnectionIndex<'_>) -> Vec<Reading> {
        let paginations = paginations_of(index, self.method).into_iter();
        paginations
            .filter(|pages| pages.last().is_some_and(|page| page.result.get("nextCursor").is_none()))
            .map(|pages| Reading {
                keys: pages.iter().flat_map(|page| self.keys(page.result)).map(str::to_owned).collect(),
                first_request: pages[0].positions[0],
                last_response: pages.last().map_or(0, |page| page.positions[1]),
            })
            .collect()
    }
}

/// A list as a client read it from its first page to its last.
pub(super) struct Reading {
    /// The names or URIs of its items.
    pub(super) keys: BTreeSet<String>,
    pub(super) first_request: usize,
    pub(super) last_response: usize,
}

/// A page of a list, with the cursor of its request.
pub(super) struct Page<'a> {
    pub(super) cursor: Option<&'a Value>,
    pub(super) result: &'a Value,
    /// The positions of its request and its response.
    pub(super) positions: [usize; 2],
}

/// Every time that the client paginated through a list, as far as it got.
pub(super) fn paginations_of<'a>(index: &ConnectionIndex<'a>, method: &str) -> Vec<Vec<Page<'a>>> {
    let mut paginations: Vec<Vec<Page<'a>>> = Vec::new();
    for exchange in index.exchanges.iter().filter(|exchange| method_of(exchange.request) == method) {
        let Some((position, response)) = exchange.responses.first() else { continue };
        let Some(result) = response.get("result") else { continue };
        let cursor = exchange.request.pointer("/params/cursor");
        let page = Page { cursor, result, positions: [exchange.sent, *position] };
        match (cursor, paginations.last_mut()) {
            (Some(cursor), Some(pages))
                if pages.last().is_some_and(|last| last.result.get("nextCursor") == Some(cursor)) =>
            {
                pages.push(page);
            }
            (Some(_), _) => {}
            (None, _) => paginations.push(vec![page]),
        }
    }
    paginations
}

/// Checks that no cursor of the tool list repeats while a client paginates.
pub(super) fn cursors_advance(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for pages in paginations_of(index, TOOLS.method).iter().filter(|pages| pages.len() > 1) {
        let mut cursors = BTreeSet::new();
        for page in pages {
            let Some(cursor) = page.result.get("nextCursor").and_then(Value::as_str) else { continue };
            let is_repeated = !cursors.insert(cursor);
            checked.record(is_repeated.then(|| {
                let actual = format!("the cursor {} is repeated", shortened(cursor, 60));
                Violation::new(actual, TOOLS.method, &[pages[0].positions, page.positions].concat())
            }));
        }
        if pages.last().is_some_and(|page| page.cursor.is_some() && page.result.get("nextCursor").is_none()) {
            checked.record(None);
        }
    }
    checked
}

/// Checks that no page of the tool list starts with the tool that ended the previous page.
pub(super) fn pages_do_not_overlap(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for pages in paginations_of(index, TOOLS.method).iter().filter(|pages| pages.len() > 1) {
        checked.record(overlap(pages).map(|(number, name)| {
            let positions = [pages[number].positions, pages[number + 1].positions].concat();
            let actual = format!("`{}` ends one page and starts the next", shortened(name, 60));
            Violation::new(actual, TOOLS.method, &positions)
        }));
    }
    checked
}

/// The first page whose last tool starts the next page, with the name of the tool. A tool that is on an earlier page
/// too, or with another definition, is a duplicate and no overlap.
fn overlap<'a>(pages: &[Page<'a>]) -> Option<(usize, &'a str)> {
    let named = |page: &Page<'a>| {
        let named = TOOLS.items(page.result).filter_map(|tool| Some((tool.get(TOOLS.key)?.as_str()?, tool)));
        named.collect::<Vec<_>>()
    };
    let pages: Vec<Vec<(&str, &Value)>> = pages.iter().map(named).collect();
    pages.windows(2).enumerate().find_map(|(number, pair)| {
        let (name, _) = *pair[0].last()?;
        let (first, tool) = *pair[1].first()?;
        let is_earlier = pages[..number].iter().flatten().any(|(earlier, _)| *earlier == name);
        // The definition that counts is the first one under the name.
        let (_, definition) = pair[0].iter().find(|(known, _)| *known == name)?;
        (name == first && !is_earlier && *definition == tool).then_some((number, name))
    })
}

/// Checks that the pages of each list have the same value at a path.
pub(super) fn same_across_pages(index: &ConnectionIndex<'_>, rule: &SameAcrossPages) -> CheckResult {
    let mut checked = CheckResult::default();
    let name = rule.path.as_str().rsplit('/').next().unwrap_or_default();
    for method in &rule.methods {
        for pages in paginations_of(index, method).iter().filter(|pages| pages.len() > 1) {
            let value = |page: &Page<'_>| rule.path.find(page.result).first().map(|(_, value)| (*value).clone());
            let first = value(&pages[0]);
            for page in &pages[1..] {
                let other = value(page);
                checked.record((other != first).then(|| {
                    let positions = [pages[0].positions, page.positions].concat();
                    let shown =
                        |value: &Option<Value>| value.as_ref().map_or_else(|| "none".to_owned(), Value::to_string);
                    let actual =
                        format!("{name} of the first page is {}, of a later page {}", shown(&first), shown(&other));
                    Violation::new(actual, method, &positions)
                }));
            }
        }
    }
    checked
}

/// Checks that a list which changed between two readings was announced, if the server declares that it announces
/// changes.
pub(super) fn change_announced(index: &ConnectionIndex<'_>, list: &List) -> CheckResult {
    let mut checked = CheckResult::default();
    if !index.record.session_parameters.declares(list.capability) {
        return checked;
    }
    for pair in list.complete_readings(index).windows(2) {
        if pair[0].keys == pair[1].keys {
            continue;
        }
        let (from, to) = (pair[0].first_request, pair[1].last_response);
        let is_announced = index.received().any(|(at, message)| at > from && method_of(message) == list.notification);
        checked.record(
            (!is_announced)
                .then(|| Violation::new("the list changed without a notification", list.method, &[from, to])),
        );
    }
    checked
}
