//! The cases that are left for several sessions, each of which takes the next.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::additional_session::{Opening, Openings};
use super::needs::{is_independent_of_discovery, may_damage, uses_tools};
use crate::case::{Body, Case};
use crate::spec::Revision;

/// The cases that are left for several sessions. A clone is the same list.
#[derive(Clone, Default)]
pub(in crate::run) struct RemainingCases {
    cases: Arc<Mutex<VecDeque<Arc<Case>>>>,
    openings: Openings,
}

impl RemainingCases {
    pub(in crate::run) fn new(cases: Vec<Arc<Case>>) -> Self {
        Self { cases: Arc::new(Mutex::new(cases.into())), openings: Openings::default() }
    }

    pub(super) fn next(&self) -> Option<Arc<Case>> {
        self.cases.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Removes all of them.
    pub(super) fn take_all(&self) -> Vec<Arc<Case>> {
        std::mem::take(&mut *self.cases.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }

    /// Puts those first that take many requests one after the other, so that none of them is left at the end, and those last
    /// that have to know what the server asks of the client, which is found out late. The items of a case are carried out
    /// side by side, so that their number matters less.
    pub(super) fn put_long_first(&self) {
        let length = |case: &Arc<Case>| {
            let Body::Active(body) = &case.body else { return (0, false) };
            (body.usual_requests(), body.for_each.is_some())
        };
        let order = |case: &Arc<Case>| (case.needs.client_request.is_some(), Reverse(length(case)));
        self.cases.lock().unwrap_or_else(PoisonError::into_inner).make_contiguous().sort_by_key(order);
    }

    pub(super) fn any(&self, is_wanted: impl Fn(&Arc<Case>) -> bool) -> bool {
        self.cases.lock().unwrap_or_else(PoisonError::into_inner).iter().any(is_wanted)
    }

    pub(super) fn len(&self) -> usize {
        self.cases.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Begins to open a session for one of them, unless those that are being opened suffice.
    pub(super) fn begin_opening(&self) -> Option<Opening> {
        self.openings.begin(self.len())
    }
}

/// Cases of a slow server that need nothing of what discovery finds out, and so run while it goes on.
#[derive(Default)]
pub(in crate::run) struct EarlyCases {
    pub(super) harmless: RemainingCases,
    /// Those that may damage their session.
    pub(super) damaging: RemainingCases,
}

impl EarlyCases {
    /// Removes such cases from others.
    pub(super) fn take_from(cases: &mut Vec<Arc<Case>>, revision: Revision) -> Self {
        let (early, rest): (Vec<_>, Vec<_>) = std::mem::take(cases)
            .into_iter()
            .partition(|case| matches!(&case.body, Body::Active(body) if is_independent_of_discovery(case, body)));
        *cases = rest;
        let (damaging, harmless) = early.into_iter().partition(|case| may_damage(case, revision));
        let early = Self { harmless: RemainingCases::new(harmless), damaging: RemainingCases::new(damaging) };
        for remaining in [&early.harmless, &early.damaging] {
            remaining.put_long_first();
        }
        early
    }
}

/// The cases of a queue.
pub(super) struct QueuedCases {
    pub(super) early: EarlyCases,
    /// Those that do no harm and use no tool while calls are in flight.
    pub(super) first: RemainingCases,
    /// Those that do no harm and wait until the calls in flight have ended.
    pub(super) after_calls: RemainingCases,
    /// Those that may damage their session.
    pub(super) damaging: RemainingCases,
}

impl QueuedCases {
    /// With the early cases, which were removed from the others. While calls are in flight, those wait that use a tool.
    pub(super) fn new(
        early: EarlyCases,
        others: Vec<Arc<Case>>,
        revision: Revision,
        has_calls_in_flight: bool,
    ) -> Self {
        let waits = |case: &Arc<Case>| {
            has_calls_in_flight && matches!(&case.body, Body::Active(body) if uses_tools(case, body))
        };
        let (damaging, harmless): (Vec<_>, Vec<_>) = others.into_iter().partition(|case| may_damage(case, revision));
        let (after_calls, first): (Vec<_>, Vec<_>) = harmless.into_iter().partition(waits);
        let [first, after_calls, damaging] = [first, after_calls, damaging].map(RemainingCases::new);
        Self { early, first, after_calls, damaging }
    }
}
