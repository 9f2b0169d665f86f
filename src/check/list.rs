//! The checks of a connection that are about lists: their pages, what stands in them, and that a change is told.
//!
//! Owns how pages are joined to a walk over a list.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::act::shortened;
use super::seen::{Seen, breach};
use super::watch::{Index, method_of};

/// A list, and what its items are known by.
pub(super) struct List {
    method: &'static str,
    items: &'static str,
    key: &'static str,
}

pub(super) const TOOLS: List = List { method: "tools/list", items: "tools", key: "name" };
pub(super) const RESOURCES: List = List { method: "resources/list", items: "resources", key: "uri" };
pub(super) const PROMPTS: List = List { method: "prompts/list", items: "prompts", key: "name" };

impl List {
    /// The items of a page.
    fn items<'a>(&self, page: &'a Value) -> impl Iterator<Item = &'a Value> + use<'a> {
        page.get(self.items).and_then(Value::as_array).into_iter().flatten()
    }

    /// What the items of a page are known by.
    pub(super) fn keys<'a>(&self, page: &'a Value) -> impl Iterator<Item = &'a str> + use<'a> {
        let key = self.key;
        self.items(page).filter_map(move |item| item.get(key)?.as_str())
    }
}

/// A page of a list, with the cursor that it was asked by.
pub(super) struct Page<'a> {
    pub(super) cursor: Option<&'a Value>,
    pub(super) result: &'a Value,
    pub(super) positions: [usize; 2],
}

/// Walks over the pages of a list.
pub(super) fn pages_of<'a>(index: &Index<'a>, method: &str) -> Vec<Vec<Page<'a>>> {
    let mut walks: Vec<Vec<Page<'a>>> = Vec::new();
    for exchange in index.exchanges.iter().filter(|e| method_of(e.request) == method) {
        let Some((position, response)) = exchange.responses.first() else { continue };
        let Some(result) = response.get("result") else { continue };
        let cursor = exchange.request.pointer("/params/cursor");
        let page = Page { cursor, result, positions: [exchange.sent, *position] };
        match (cursor, walks.last_mut()) {
            (Some(cursor), Some(walk))
                if walk.last().is_some_and(|last| last.result.get("nextCursor") == Some(cursor)) =>
            {
                walk.push(page);
            }
            (Some(_), _) => {}
            (None, _) => walks.push(vec![page]),
        }
    }
    walks
}

/// Whether no cursor of a walk over the tools comes again.
pub(super) fn cursors_advance(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for walk in pages_of(index, TOOLS.method).iter().filter(|walk| walk.len() > 1) {
        let mut cursors = BTreeSet::new();
        for page in walk {
            let Some(cursor) = page.result.get("nextCursor").and_then(Value::as_str) else { continue };
            let repeated = !cursors.insert(cursor);
            let first = &walk[0].positions;
            seen.look(repeated.then(|| {
                breach(
                    format!("the cursor {} comes again", shortened(cursor, 60)),
                    "tools/list",
                    &[first[0], first[1], page.positions[0], page.positions[1]],
                )
            }));
        }
        if walk.last().is_some_and(|page| page.cursor.is_some() && page.result.get("nextCursor").is_none()) {
            seen.look(None);
        }
    }
    seen
}

/// The tools of a walk that come again under a name that was there: number of the pages, name, and
/// whether the two definitions are the same.
fn repeated<'a>(walk: &[Page<'a>]) -> (usize, Vec<(usize, usize, &'a str, bool)>) {
    let mut known: BTreeMap<&str, (usize, &Value)> = BTreeMap::new();
    let mut again = Vec::new();
    let mut count = 0;
    for (number, page) in walk.iter().enumerate() {
        for tool in TOOLS.items(page.result) {
            let Some(name) = tool.get(TOOLS.key).and_then(Value::as_str) else { continue };
            count += 1;
            match known.get(name) {
                Some((first, definition)) => again.push((*first, number, name, *definition == tool)),
                None => {
                    known.insert(name, (number, tool));
                }
            }
        }
    }
    (count, again)
}

/// Pages that overlap: a tool stands, as it is, at the end of one and at the beginning of the next.
fn is_overlap(walk: &[Page<'_>], first: usize, second: usize, name: &str, same: bool) -> bool {
    let at = |page: &Page<'_>, last: bool| -> Option<String> {
        let mut names = TOOLS.keys(page.result);
        if last { names.last() } else { names.next() }.map(str::to_owned)
    };
    same && second == first + 1
        && at(&walk[first], true).as_deref() == Some(name)
        && at(&walk[second], false).as_deref() == Some(name)
}

/// Whether no page of the tools begins with what ended the one before.
pub(super) fn pages_disjoint(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for walk in pages_of(index, TOOLS.method).iter().filter(|walk| walk.len() > 1) {
        let (_, again) = repeated(walk);
        let overlap = again.iter().find(|(first, second, name, same)| is_overlap(walk, *first, *second, name, *same));
        seen.look(overlap.map(|(first, second, name, _)| {
            let positions = [walk[*first].positions, walk[*second].positions].concat();
            breach(format!("`{}` ends one page and begins the next", shortened(name, 60)), "tools/list", &positions)
        }));
    }
    seen
}

/// Whether no two tools of a walk have the same name, overlapping pages apart.
pub(super) fn tool_names_unique(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for walk in pages_of(index, TOOLS.method) {
        let (count, again) = repeated(&walk);
        seen.seen += count.saturating_sub(again.len());
        for (first, second, name, same) in again {
            let overlap = is_overlap(&walk, first, second, name, same);
            let positions = [walk[first].positions, walk[second].positions].concat();
            seen.look(
                (!overlap).then(|| breach(format!("two tools are named `{}`", shortened(name, 60)), name, &positions)),
            );
        }
    }
    seen
}

/// Whether no two different items of a walk over a list go by the same key. The same item once more is
/// what a list yields that changes while its pages are read.
pub(super) fn unique(index: &Index<'_>, list: &List) -> Seen {
    let mut seen = Seen::default();
    for walk in pages_of(index, list.method) {
        let mut known: BTreeMap<&str, (usize, &Value)> = BTreeMap::new();
        for (number, page) in walk.iter().enumerate() {
            for item in list.items(page.result) {
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

/// Whether the pages of each walk over these lists say the same of their caching.
pub(super) fn cache_scope_same(index: &Index<'_>, methods: &[&str]) -> Seen {
    let mut seen = Seen::default();
    let walks = methods.iter().flat_map(|method| pages_of(index, method).into_iter().map(move |walk| (*method, walk)));
    for (method, walk) in walks.filter(|(_, walk)| walk.len() > 1) {
        let first = walk[0].result.get("cacheScope");
        for page in &walk[1..] {
            let scope = page.result.get("cacheScope");
            seen.look((scope != first).then(|| {
                let positions = [walk[0].positions, page.positions].concat();
                let word = |scope: Option<&Value>| scope.map_or_else(|| "none".to_owned(), Value::to_string);
                breach(format!("the first page says {}, a later one {}", word(first), word(scope)), method, &positions)
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
        walk.iter().flat_map(|page| list.keys(page.result)).map(str::to_owned).collect()
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
