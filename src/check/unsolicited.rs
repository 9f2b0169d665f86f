//! The checks of notifications that the server may send only after the client requested them.

use serde_json::Value;

use super::index::{ConnectionIndex, is_served, method_of};
use super::violation::{CheckResult, Violation};
use crate::case::{Absence, OnlyAfterRequest};
use crate::spec::{Era, Revision};

/// Checks that the server sends notifications of a kind only after a certain request.
pub(super) fn only_after_request(index: &ConnectionIndex<'_>, rule: &OnlyAfterRequest) -> CheckResult {
    let mut checked = CheckResult::default();
    let requests: Vec<(usize, &Value)> = index
        .exchanges
        .iter()
        .map(|exchange| (exchange.sent, exchange.request))
        .filter(|(_, request)| rule.request.as_ref().is_none_or(|method| method_of(request) == method))
        .collect();
    for (position, message) in index.received() {
        let method = method_of(message);
        if !rule.notifications.iter().any(|of| of == method) {
            continue;
        }
        let before = requests.iter().filter(|(sent, _)| *sent < position).map(|(_, request)| *request);
        let of_request = rule.request.as_ref().map(|of| format!(" of `{of}`")).unwrap_or_default();
        let problem = match &rule.equal {
            Some(equal) => {
                let values = equal.notification.find(message);
                let Some((_, value)) = values.first() else { continue };
                let is_requested =
                    |request: &Value| equal.request.find(request).iter().any(|(_, requested)| requested == value);
                let name = equal.notification.as_str().rsplit('/').next().unwrap_or_default();
                (!before.clone().any(is_requested))
                    .then(|| format!("`{method}` with the {name} {value}, which is in no earlier request{of_request}"))
            }
            None => {
                before.clone().next().is_none().then(|| format!("`{method}` without an earlier request{of_request}"))
            }
        };
        checked.record(problem.map(|actual| Violation::new(actual, method, &[position])));
    }
    if rule.absence == Absence::Pass && checked.count == 0 && requests.is_empty() {
        checked.count += index.exchanges.iter().filter(|exchange| is_served(exchange)).count();
    }
    checked
}

/// Checks that log messages are sent only while a request is open that asks for them, in the stateless era.
pub(super) fn logs_only_if_requested(index: &ConnectionIndex<'_>, revision: Revision) -> CheckResult {
    let mut checked = CheckResult::default();
    if revision.era() != Era::Stateless {
        return checked;
    }
    let requests_logs = |request: &Value| {
        request.pointer("/params/_meta").is_some_and(|meta| meta.get("io.modelcontextprotocol/logLevel").is_some())
    };
    for (position, _) in index.received().filter(|(_, message)| method_of(message) == "notifications/message") {
        // A message belongs to one of the requests that are open when it arrives.
        let is_requested = index.exchanges.iter().any(|exchange| {
            let answered = exchange.responses.first().map(|(at, _)| *at);
            exchange.sent < position && answered.is_none_or(|at| at > position) && requests_logs(exchange.request)
        });
        checked.record(
            (!is_requested)
                .then(|| Violation::new("a log message while no open request asks for logs", "", &[position])),
        );
    }
    // Calls that requested no logs and caused none show that the server follows the rule.
    let served = index.exchanges_of("tools/call").filter(|exchange| is_served(exchange));
    checked.count += served.filter(|exchange| !requests_logs(exchange.request)).count();
    checked
}

/// Checks that resource updates are sent only while the client has a subscription. The resource is not compared, as
/// an update may be about a part of a subscribed one.
pub(super) fn resource_updates_only_if_subscribed(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let uri = |request: &Value| request.pointer("/params/uri").map(Value::to_string);
    for (position, message) in index.received() {
        let method = method_of(message);
        if method != "notifications/resources/updated" {
            continue;
        }
        let is_subscribed = index.exchanges_of("resources/subscribe").any(|subscribe| {
            subscribe.sent < position
                && !index.exchanges_of("resources/unsubscribe").any(|unsubscribe| {
                    unsubscribe.sent > subscribe.sent
                        && uri(unsubscribe.request) == uri(subscribe.request)
                        && unsubscribe.responses.first().is_some_and(|(answered, _)| *answered < position)
                })
        });
        checked
            .record((!is_subscribed).then(|| Violation::new("an update without a subscription", method, &[position])));
    }
    checked
}
