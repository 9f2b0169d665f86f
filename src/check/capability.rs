//! The rule that the server uses only capabilities that it declares.

use serde_json::Value;

use super::index::{ConnectionIndex, method_of, name_of};
use super::violation::{CheckResult, Violation};
use crate::case::{CapabilityUse, RequiresCapability};
use crate::transcript::SessionParameters;

/// Checks that the server sends messages of a kind only if it declares a capability.
pub(super) fn requires_capability(index: &ConnectionIndex<'_>, rule: &RequiresCapability) -> CheckResult {
    let mut checked = CheckResult::default();
    let session_parameters = &index.record.session_parameters;
    if session_parameters.opening.is_none() {
        return checked;
    }
    let is_declared = is_declared(session_parameters, &rule.capability);
    let missing = || format!("although the server does not declare `{}`", rule.capability);
    let counts = |method: &str, value: &Value| {
        rule.methods.iter().any(|of| of == method) && rule.matching.as_ref().is_none_or(|schema| schema.fits(value))
    };
    match rule.kind {
        CapabilityUse::Notification => {
            for (position, message) in index.received().filter(|(_, message)| counts(method_of(message), message)) {
                let method = method_of(message);
                checked.record(
                    (!is_declared).then(|| Violation::new(format!("`{method}` {}", missing()), method, &[position])),
                );
            }
        }
        CapabilityUse::Result => {
            for exchange in &index.exchanges {
                let method = method_of(exchange.request);
                let Some((position, response)) = exchange.responses.first() else { continue };
                if response.get("result").is_some_and(|result| counts(method, result)) {
                    checked.record((!is_declared).then(|| {
                        let actual = format!("a result of `{method}` {}", missing());
                        Violation::new(actual, name_of(exchange.request), &[exchange.sent, *position])
                    }));
                }
            }
        }
    }
    checked
}

/// Whether the server declares a capability. A flag of one, which has a dot in its path, can be present and off.
fn is_declared(session_parameters: &SessionParameters, capability: &str) -> bool {
    if capability.contains('.') {
        session_parameters.declares(capability)
    } else {
        session_parameters.capability(capability).is_some()
    }
}
