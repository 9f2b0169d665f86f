//! The checks of progress notifications: that the progress of a token increases, and that it ends.

use std::collections::BTreeMap;

use serde_json::Value;

use super::index::{ConnectionIndex, method_of, name_of};
use super::violation::{CheckResult, Violation};

/// The progress notifications, each with its position, its token and its params.
fn notifications<'a>(index: &ConnectionIndex<'a>) -> Vec<(usize, &'a Value, &'a Value)> {
    index
        .received()
        .filter(|(_, message)| method_of(message) == "notifications/progress")
        .filter_map(|(position, message)| {
            let params = message.get("params")?;
            Some((position, params.get("progressToken")?, params))
        })
        .collect()
}

/// The last request before a position that has a progress token, with the position of its response. A token can be
/// used again once its request has been answered.
fn request_of<'a>(
    index: &ConnectionIndex<'a>,
    token: &Value,
    before: usize,
) -> Option<(usize, Option<usize>, &'a Value)> {
    index.all_exchanges.iter().rev().filter(|exchange| exchange.sent < before).find_map(|exchange| {
        let own = exchange.request.pointer("/params/_meta/progressToken")?;
        (own == token).then(|| (exchange.sent, exchange.responses.first().map(|(at, _)| *at), exchange.request))
    })
}

/// Checks that the progress of a token increases with each notification. A token that no request has is left to the
/// check of tokens: nothing shows which of its notifications belong together.
pub(super) fn increases(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let mut last: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
    for (position, token, params) in notifications(index) {
        let Some((sent, ..)) = request_of(index, token, position) else { continue };
        let Some(value) = params.get("progress").and_then(Value::as_f64) else { continue };
        let previous = last.insert(sent, (position, value));
        let Some((earlier, previous)) = previous else { continue };
        let increases = value > previous;
        checked.record((!increases).then(|| {
            Violation::new(
                format!("progress {value} follows {previous}"),
                format!("token {token}"),
                &[earlier, position],
            )
        }));
    }
    checked
}

/// Checks that no progress is reported on a request that has been answered.
pub(super) fn ends_with_response(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for (position, token, _) in notifications(index) {
        let Some((sent, Some(answered), request)) = request_of(index, token, position) else { continue };
        // The progress of a request that created a task continues after its response.
        let is_task = index
            .exchanges
            .iter()
            .any(|e| e.sent == sent && e.responses.iter().any(|(_, r)| r.pointer("/result/task").is_some()));
        if !is_task {
            let is_late = position > answered;
            checked.record(
                is_late.then(|| {
                    Violation::new("progress after the response", name_of(request), &[sent, answered, position])
                }),
            );
        }
    }
    checked
}
