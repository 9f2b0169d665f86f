//! Makes the calls of a sequence one by one on one process, each with values of the results before it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::process::caller::Caller;
use crate::check::fuzz::{Arguments, Call, ExchangeOutcome, FuzzExchange, OracleViolation, Validity, outcome};
use crate::sequence::{SequenceStep, StepAnswer, StepRecord, members, words};
use crate::verdict::{CallKind, CallOutcome};

/// The maximum number of pages of a list that are read.
const MAX_PAGES: usize = 20;

/// A call that was made.
#[derive(Debug, Clone)]
pub(super) struct StepExchange {
    pub(super) call: FuzzCall,
    pub(super) exchange: FuzzExchange,
    pub(super) record: StepRecord,
    pub(super) violations: Vec<OracleViolation>,
}

/// How many calls may still be made, and until when.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallAllowance {
    pub(super) calls: usize,
    pub(super) deadline: Instant,
}

impl CallAllowance {
    pub(super) fn is_spent(&self) -> bool {
        self.calls == 0 || Instant::now() >= self.deadline
    }
}

/// Makes one call with these arguments; follows the pages of a list.
pub(super) async fn call(
    caller: &mut Caller<'_>,
    allowance: &mut CallAllowance,
    tool: usize,
    arguments: Value,
) -> Result<StepExchange, String> {
    let mut made = call_once(caller, allowance, tool, arguments.clone()).await?;
    let schema = &caller.tools().get(tool).definition;
    let cursor = schema.pointer("/inputSchema/properties").and_then(Value::as_object).into_iter().flatten();
    let cursor = cursor.map(|(name, _)| name).find(|name| words(name).last().is_some_and(|word| word == "cursor"));
    let Some(cursor) = cursor.cloned() else { return Ok(made) };
    for _ in 1..MAX_PAGES {
        let Some(next) = made.record.results().last().and_then(next_cursor) else { break };
        let mut arguments = arguments.clone();
        arguments[&cursor] = next;
        let StepAnswer::Served(page) = call_once(caller, allowance, tool, arguments).await?.record.answer else {
            break;
        };
        if let StepAnswer::Served(pages) = &mut made.record.answer {
            pages.extend(page);
        }
    }
    Ok(made)
}

/// The cursor of the next page of a list.
fn next_cursor(page: &Value) -> Option<Value> {
    let is_cursor = |name: &str| words(name).contains(&"cursor".to_owned()) || words(name) == ["next"];
    let mut found = members(page).into_iter().filter(|(_, name, _)| is_cursor(name)).map(|(_, _, value)| value);
    found.find(|value| value.as_str().is_some_and(|text| !text.is_empty()))
}

async fn call_once(
    caller: &mut Caller<'_>,
    allowance: &mut CallAllowance,
    tool: usize,
    arguments: Value,
) -> Result<StepExchange, String> {
    allowance.calls = allowance.calls.saturating_sub(1);
    let kind = CallKind::Stateful;
    let validity = Validity::Unknown;
    let call = Call { kind, validity, arguments: Arguments::Json(arguments.clone()), choices: None };
    let call = FuzzCall::new(tool, Arc::new(call));
    let exchange = caller.call(&call).await?;
    let response = exchange.responses.first().and_then(|response| response.get("result"));
    let answer = match outcome(&exchange) {
        CallOutcome::Success => StepAnswer::Served(response.cloned().into_iter().collect()),
        CallOutcome::ToolError | CallOutcome::InvalidParams | CallOutcome::OtherError => StepAnswer::Refused,
        _ => StepAnswer::Missing,
    };
    let violations = caller.judge(tool, &exchange);
    let violated = violations.iter().map(|violation| violation.oracle.as_str().to_owned()).collect();
    if exchange.outcome != ExchangeOutcome::Answered {
        caller.drop_process();
    }
    Ok(StepExchange { call, exchange, record: StepRecord { arguments, answer, violated }, violations })
}

/// Makes the calls of a sequence, with a pause before each but the first; those whose values are missing, and those after a lost process, are not made and have no
/// answer.
pub(super) async fn execute(
    caller: &mut Caller<'_>,
    allowance: &mut CallAllowance,
    steps: &[SequenceStep],
    pause: Duration,
) -> Result<Vec<StepExchange>, String> {
    let mut made: Vec<StepExchange> = Vec::new();
    for step in steps {
        let records = records(&made);
        let is_lost = made.last().is_some_and(|made| made.exchange.outcome != ExchangeOutcome::Answered);
        let tool = caller.tools().position(&step.tool);
        let (false, Some(tool), Some(arguments)) = (is_lost, tool, step.arguments_after(&records)) else { break };
        if allowance.is_spent() {
            break;
        }
        if !made.is_empty() && !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        made.push(call(caller, allowance, tool, arguments).await?);
    }
    Ok(made)
}

/// What was recorded of calls.
pub(super) fn records(made: &[StepExchange]) -> Vec<StepRecord> {
    made.iter().map(|made| made.record.clone()).collect()
}
