//! The judgement of one fuzzed call: which oracles apply, and in which order.

use serde_json::Value;

use super::exchange::{ExchangeOutcome, FuzzExchange, FuzzedTool};
use super::violation::OracleViolation;
use super::{argument_validity, leak, response};
use crate::wire::member;

/// The violations by the response to a call, the gravest first.
#[must_use]
pub(crate) fn judge(fuzzed_tool: &FuzzedTool, exchange: &FuzzExchange) -> Vec<OracleViolation> {
    let mut violations = Vec::new();
    if let ExchangeOutcome::Exited { status, stderr } = &exchange.outcome {
        violations.push(response::crash(exchange, status, stderr));
    }
    if let ExchangeOutcome::TimedOut { waited } = &exchange.outcome {
        violations.extend(response::hang(fuzzed_tool, exchange, *waited));
    }
    violations.extend(exchange.other.noise.iter().map(|line| response::stdout_noise(line)).take(1));
    if exchange.call.is_unparsable() {
        return violations;
    }
    violations.extend(response::malformed(fuzzed_tool, exchange));
    let Some(answer) = exchange.responses.first() else { return violations };
    if member(answer, "unread").is_some() {
        return violations;
    }
    if let Some(error) = member(answer, "error") {
        violations.extend(argument_validity::error_class(exchange, error));
        violations.extend(leak::information_leak(fuzzed_tool, exchange, error));
    } else if let Some(result) = member(answer, "result") {
        violations.extend(response::result_shape(fuzzed_tool, result));
        violations.extend(response::output_schema(fuzzed_tool, result));
        if member(result, "isError") == Some(&Value::Bool(true)) {
            violations.extend(leak::information_leak(fuzzed_tool, exchange, result));
        }
    }
    violations.extend(argument_validity::invalid_arguments_accepted(exchange, answer));
    violations.extend(argument_validity::valid_arguments_rejected(exchange, answer));
    violations
}
