//! The judgement of one fuzzed call: which oracles apply, and in which order.

use serde_json::Value;

use super::exchange::{Exchange, Fate, Subject};
use super::violation::OracleViolation;
use super::{argument_validity, leak, response};

/// The violations by the response to a call, the gravest first.
#[must_use]
pub(crate) fn judge(subject: &Subject, exchange: &Exchange) -> Vec<OracleViolation> {
    let mut violations = Vec::new();
    if let Fate::Ended { status, stderr } = &exchange.fate {
        violations.push(response::crash(exchange, status, stderr));
    }
    if let Fate::Silent { waited } = &exchange.fate {
        violations.push(response::hang(exchange, *waited));
    }
    violations.extend(exchange.noise.iter().map(|line| response::stdout_noise(line)).take(1));
    if exchange.call.is_unparsable() {
        return violations;
    }
    violations.extend(response::malformed(subject, exchange));
    let Some(answer) = exchange.answers.first() else { return violations };
    if answer.get("unread").is_some() {
        return violations;
    }
    if let Some(error) = answer.get("error") {
        violations.extend(argument_validity::error_class(exchange, error));
        violations.extend(leak::information_leak(subject, exchange, error));
    } else if let Some(result) = answer.get("result") {
        violations.extend(response::result_shape(subject, result));
        violations.extend(response::output_schema(subject, result));
        if result.get("isError") == Some(&Value::Bool(true)) {
            violations.extend(leak::information_leak(subject, exchange, result));
        }
    }
    violations.extend(argument_validity::invalid_arguments_accepted(exchange, answer));
    violations.extend(argument_validity::valid_arguments_rejected(exchange, answer));
    violations
}
