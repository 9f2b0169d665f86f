//! Pagination of lists, and its cursors.
//!
//! A cursor encodes a list, a position and a checksum. It works on every connection and more than once, and
//! an altered one is invalid.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::fault::{Fault, FaultSet};
use super::message::{INTERNAL_ERROR, INVALID_PARAMS, Object, RpcError};
use super::revision::Revision;
use crate::fnv;

/// The number of items on a page.
pub(super) const PAGE_SIZE: usize = 4;

/// The state of pagination on a connection, which only faults use.
#[derive(Debug)]
pub(super) struct PaginationState {
    /// A value that is different on each connection.
    pub(super) salt: u64,
    /// The number of listings of tools that the client has started.
    listings_started: u64,
    used_cursors: BTreeSet<String>,
}

impl PaginationState {
    pub(super) fn new(salt: u64) -> Self {
        Self { salt, listings_started: 0, used_cursors: BTreeSet::new() }
    }

    /// Whether the client has started a listing of tools.
    pub(super) fn has_listed(&self) -> bool {
        self.listings_started > 0
    }
}

/// One page and its `nextCursor`.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    pub(super) items: Vec<Value>,
    pub(super) next: Option<Value>,
}

/// Why there is no page.
#[derive(Debug, PartialEq)]
pub(super) enum PageError {
    Rejected(RpcError),
    /// A fault closes the connection.
    Closed,
}

/// The cursor for a position in a list.
pub(super) fn cursor(list: &str, position: usize, salt: u64) -> String {
    let place = format!("{list}:{position}");
    // This hash is enough to detect an altered cursor.
    let check = fnv::hash(place.bytes().chain(salt.to_le_bytes()).chain(*b"mock"));
    URL_SAFE_NO_PAD.encode(format!("{place}:{check:016x}"))
}

/// The position that a cursor encodes, if it is valid for a list of this length.
fn position(list: &str, requested: &str, length: usize, salt: u64) -> Option<usize> {
    (PAGE_SIZE..length).step_by(PAGE_SIZE).find(|position| cursor(list, *position, salt) == requested)
}

fn invalid_cursor() -> RpcError {
    RpcError::new(INVALID_PARAMS, "Invalid cursor")
}

/// The page of a list that a request selects.
pub(super) fn page(list: &str, items: &[Value], params: &Object) -> Result<Page, RpcError> {
    let start = match params.get("cursor") {
        None => 0,
        Some(Value::String(requested)) => position(list, requested, items.len(), 0).ok_or_else(invalid_cursor)?,
        Some(_) => return Err(invalid_cursor()),
    };
    let end = items.len().min(start + PAGE_SIZE);
    Ok(Page { items: items[start..end].to_vec(), next: (end < items.len()).then(|| json!(cursor(list, end, 0))) })
}

fn listed(tool: &Object) -> Value {
    Value::Object(tool.clone())
}

/// The page of the tool list that a request selects, with all faults of pagination.
pub(super) fn tool_page(
    tools: &[Object],
    params: Option<&Object>,
    revision: Revision,
    faults: &FaultSet,
    state: &mut PaginationState,
) -> Result<Page, PageError> {
    const LIST: &str = "tools";
    let is_active = |fault| faults.is_active(fault, revision);
    let salt = if is_active(Fault::CursorPerConnection) { state.salt } else { 0 };
    let requested = params.and_then(|params| params.get("cursor"));
    let start = match requested {
        None => {
            state.listings_started += 1;
            0
        }
        Some(Value::String(requested)) if requested.len() > 4000 && is_active(Fault::LongCursorCrash) => {
            return Err(PageError::Closed);
        }
        Some(Value::String(requested)) if requested.is_empty() && is_active(Fault::EmptyCursorRestarts) => 0,
        Some(Value::String(requested)) if requested.is_empty() && is_active(Fault::EmptyCursor) => PAGE_SIZE,
        Some(Value::String(requested)) => match position(LIST, requested, tools.len(), salt) {
            Some(_) if is_active(Fault::OwnCursorRejected) => {
                return Err(PageError::Rejected(invalid_cursor()));
            }
            Some(_) if is_active(Fault::CursorSingleUse) && !state.used_cursors.insert(requested.clone()) => {
                return Err(PageError::Rejected(invalid_cursor()));
            }
            Some(_) if is_active(Fault::CursorRepeats) => 0,
            Some(position) => position,
            None => position_of_unissued_cursor(LIST, requested, tools.len(), revision, faults)
                .map_err(PageError::Rejected)?,
        },
        Some(Value::Number(_)) if is_active(Fault::CursorNumberServed) => 0,
        Some(_) => return Err(PageError::Rejected(invalid_cursor())),
    };
    let is_even_listing = state.listings_started.is_multiple_of(2);
    let overlap = usize::from(start > 0 && is_active(Fault::PageOverlap));
    let page_size = if is_active(Fault::ManyTools) { tools.len() } else { PAGE_SIZE };
    let end = tools.len().min(start + page_size);
    let places = start - overlap..end;
    let mut page = Page {
        items: if is_active(Fault::ListOrderRandom) && is_even_listing {
            tools.iter().rev().skip(places.start).take(places.len()).map(listed).collect()
        } else {
            tools[places].iter().map(listed).collect()
        },
        next: (end < tools.len()).then(|| json!(cursor(LIST, end, salt))),
    };
    if is_active(Fault::ListDependsOnParams) && params.is_none() {
        page.items.retain(|tool| tool["name"] != "weather");
    }
    if is_active(Fault::SecondListingDiffers) && is_even_listing {
        page.items.retain(|tool| tool["name"] != "embed_blob");
    }
    if (is_active(Fault::EmptyCursorRestarts) || is_active(Fault::EmptyCursor)) && requested.is_none() {
        page.next = page.next.map(|_| json!(""));
    }
    if is_active(Fault::NextCursorNumber) {
        page.next = page.next.map(|_| json!(start + PAGE_SIZE));
    }
    if is_active(Fault::NullNextCursor) && page.next.is_none() {
        page.next = Some(Value::Null);
    }
    Ok(page)
}

/// The position for an invalid cursor if a fault accepts it, or the error.
fn position_of_unissued_cursor(
    list: &str,
    requested: &str,
    length: usize,
    revision: Revision,
    faults: &FaultSet,
) -> Result<usize, RpcError> {
    // An altered cursor is at most two edits away from an issued one.
    let original = (PAGE_SIZE..length).step_by(PAGE_SIZE).find(|position| {
        let own = cursor(list, *position, 0);
        requested.len() < own.len() + 3 && strsim::levenshtein(&own, requested) <= 2
    });
    match original {
        Some(_) if faults.is_active(Fault::AlteredCursorServed, revision) => Ok(0),
        None if faults.is_active(Fault::InvalidCursorServed, revision) => Ok(0),
        None if faults.is_active(Fault::InvalidCursorInternal, revision) => {
            Err(RpcError::new(INTERNAL_ERROR, "Internal error"))
        }
        _ => Err(invalid_cursor()),
    }
}

/// Adds caching hints, if the revision has them.
pub(super) fn add_caching(result: &mut Object, revision: Revision, scope: &str) {
    if revision.is_modern() {
        result.insert("ttlMs".to_owned(), json!(60_000));
        result.insert("cacheScope".to_owned(), json!(scope));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::message::object;

    fn items() -> Vec<Value> {
        (0..10).map(|number| json!({"name": number})).collect()
    }

    fn with_cursor(cursor: &Value) -> Object {
        object(json!({"cursor": cursor}))
    }

    #[test]
    fn pagination_returns_every_item_once() {
        let items = items();
        let mut seen = Vec::new();
        let mut params = Object::new();
        loop {
            let page = page("list", &items, &params).expect("the cursor was issued");
            seen.extend(page.items);
            let Some(next) = page.next else { break };
            params = with_cursor(&next);
        }
        assert_eq!(seen, items);
    }

    #[test]
    fn a_cursor_with_any_character_changed_is_rejected() {
        let own = cursor("list", PAGE_SIZE, 0);
        assert!(page("list", &items(), &with_cursor(&json!(own))).is_ok());
        for place in 0..own.len() {
            let letter = if &own[place..=place] == "A" { "B" } else { "A" };
            let altered = format!("{}{letter}{}", &own[..place], &own[place + 1..]);
            let rejected = page("list", &items(), &with_cursor(&json!(altered)));
            assert_eq!(rejected, Err(invalid_cursor()), "{altered}");
        }
    }

    #[test]
    fn cursors_of_another_list_or_type_are_rejected() {
        for other in [json!(cursor("other", PAGE_SIZE, 0)), json!(""), json!(4), json!(null), json!({})] {
            assert_eq!(page("list", &items(), &with_cursor(&other)), Err(invalid_cursor()), "{other}");
        }
    }
}
