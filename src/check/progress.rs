//! The checks of a connection that are about progress: whom it is told to, that it grows, and that it ends.

use std::collections::BTreeMap;

use serde_json::Value;

use super::seen::{Seen, breach, name_of};
use super::watch::{Index, method_of};

/// The progress notifications, each with its position, its token and its params.
fn told<'a>(index: &Index<'a>) -> Vec<(usize, &'a Value, &'a Value)> {
    index
        .received()
        .filter(|(_, message)| method_of(message) == "notifications/progress")
        .filter_map(|(position, message)| {
            let params = message.get("params")?;
            Some((position, params.get("progressToken")?, params))
        })
        .collect()
}

/// The request that asked for progress under a token, with the position of its answer.
fn asked<'a>(index: &Index<'a>, token: &Value) -> Option<(usize, Option<usize>, &'a Value)> {
    index.exchanges.iter().find_map(|exchange| {
        let own = exchange.request.pointer("/params/_meta/progressToken")?;
        (own == token).then(|| (exchange.sent, exchange.responses.first().map(|(at, _)| *at), exchange.request))
    })
}

/// Whether progress is told under tokens alone that a request carried before.
pub(super) fn tokens(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, token, _) in told(index) {
        let known = asked(index, token).is_some_and(|(sent, ..)| sent < position);
        seen.look(
            (!known).then(|| breach(format!("progress for token {token}, which no request carries"), "", &[position])),
        );
    }
    seen
}

/// Whether progress on a token grows each time.
pub(super) fn increases(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let mut last: BTreeMap<String, (usize, f64)> = BTreeMap::new();
    for (position, token, params) in told(index) {
        let Some(value) = params.get("progress").and_then(Value::as_f64) else { continue };
        let before = last.insert(token.to_string(), (position, value));
        let Some((earlier, before)) = before else { continue };
        let grows = value > before;
        seen.look((!grows).then(|| {
            breach(format!("progress {value} follows {before}"), format!("token {token}"), &[earlier, position])
        }));
    }
    seen
}

/// Whether no progress comes after the answer.
pub(super) fn stops(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, token, _) in told(index) {
        let Some((sent, Some(answered), request)) = asked(index, token) else { continue };
        // A request that became a task goes on after its answer.
        let is_task = index
            .exchanges
            .iter()
            .any(|e| e.sent == sent && e.responses.iter().any(|(_, r)| r.pointer("/result/task").is_some()));
        if !is_task {
            let late = position > answered;
            seen.look(late.then(|| breach("progress after the answer", name_of(request), &[sent, answered, position])));
        }
    }
    seen
}
