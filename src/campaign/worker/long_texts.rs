//! Sends texts of a million and of eight million characters, at the end, to tools that only read: the process must not die of
//! them.
//!
//! How long the answer takes is not judged: nobody promises to be quick with so much. A server that cannot read a line of that
//! length is not judged here either, as `jsonrpc/long-message` does that.

use std::sync::Arc;

use super::super::tool_run::{QueuedTool, ToolRun};
use super::Worker;
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::check::fuzz::{Arguments, Call, ExchangeOutcome, FuzzExchange, Validity};
use crate::fuzz::long_arguments;
use crate::plan::CallBudget;
use crate::verdict::CallKind;

/// Sends the texts to those of the tools that get them, which were fuzzed before: nothing is called on the process afterwards
/// whose memory is measured. Ends with the first text that is not answered soon, as each further one may take as long.
pub(in crate::campaign) async fn send_long_texts(worker: &mut Worker<'_>, queue: &mut [QueuedTool]) {
    if worker.settings.plan.calls != CallBudget::ByNeed {
        return;
    }
    for queued in queue {
        let gets_them = worker.caller.tools().gets_long_texts(queued.tool());
        let Some(run) = queued.run_mut().filter(|_| gets_them) else { continue };
        match send_texts(worker, run).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(problem) => return worker.budget.stop(problem),
        }
    }
}

/// Sends the texts to a tool; whether others may get them, too.
async fn send_texts(worker: &mut Worker<'_>, run: &mut ToolRun) -> Result<bool, String> {
    let tool = worker.caller.tools().get(run.tool());
    worker.caller.begin_tool(tool.first_call.unwrap_or_default(), worker.budget.last_deadline());
    for long in long_arguments(run.call_plan().schema(), tool.working_arguments.as_ref()) {
        if worker.is_over() {
            return Ok(false);
        }
        let size = long.arguments.len();
        let exchange = call_with(worker, run.tool(), Arguments::Raw(long.arguments)).await?;
        let is_answered = exchange.outcome == ExchangeOutcome::Answered;
        let has_ended = matches!(exchange.outcome, ExchangeOutcome::Exited { .. });
        if has_ended && worker.caller.answers_long_request(size).await? {
            report_end(worker, &exchange, run).await?;
        }
        if !is_answered {
            return Ok(has_ended);
        }
    }
    Ok(true)
}

async fn call_with(worker: &mut Worker<'_>, tool: usize, arguments: Arguments) -> Result<FuzzExchange, String> {
    let call = Call { kind: CallKind::Handler, validity: Validity::Valid, arguments, choices: None };
    worker.caller.call_briefly(&FuzzCall::new(tool, Arc::new(call))).await
}

/// Reports that a text ends the process, if it does so again.
async fn report_end(worker: &mut Worker<'_>, exchange: &FuzzExchange, run: &mut ToolRun) -> Result<(), String> {
    // As a value the text can be made shorter.
    let arguments = exchange.call.arguments.value().into_owned();
    let again = call_with(worker, run.tool(), Arguments::Json(arguments)).await?;
    worker.shrinking_calls += 1;
    let violations = match again.outcome {
        ExchangeOutcome::Exited { .. } => worker.caller.judge(run.tool(), &again),
        _ => Vec::new(),
    };
    worker.handle_violations(&again, violations, &[], run).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::campaign::calls::tools::{FuzzTools, SelectedTool};
    use crate::campaign::failures::failure::{Failure, Failures};
    use crate::campaign::failures::shared_failures::SharedFailures;
    use crate::campaign::process::environment::Environment;
    use crate::campaign::process::scripted::{
        Answer, ReceivedCall, ScriptedEnvironment, plan, selected_tool, settings,
    };
    use crate::case::Oracle;
    use crate::plan::FuzzPlan;
    use crate::spec::Revision;

    fn length(call: &ReceivedCall<'_>) -> usize {
        call.arguments["text"].as_str().map_or(0, str::len)
    }

    /// What is found of a tool, apart from what it does with other texts.
    async fn found(
        is_read_only: bool,
        script: impl Fn(&ReceivedCall<'_>) -> Answer + Send + Sync + 'static,
    ) -> Vec<Failure> {
        let plan = FuzzPlan { calls: CallBudget::ByNeed, ..plan(0) };
        let settings = settings(&plan);
        let environment: Arc<dyn Environment> = Arc::new(ScriptedEnvironment::new(script, Duration::ZERO));
        let tool = SelectedTool {
            working_arguments: Some(json!({"text": "a"})),
            is_read_only,
            ..selected_tool("measure", &json!({"text": {"type": "string"}}))
        };
        let tools = FuzzTools::new(vec![tool], Revision::V2025_11_25, &[], None);
        let mut worker = Worker::new(&environment, &settings, &tools, &SharedFailures::default(), Instant::now());
        let mut queued = QueuedTool::new(0);
        worker.fuzz_alone(&mut queued, 1).await;
        send_long_texts(&mut worker, std::slice::from_mut(&mut queued)).await;
        let mut failures = Failures::merge([worker.finish().await.failures]);
        failures.retain(|failure| failure.violation.oracle != Oracle::InvalidAccepted);
        failures
    }

    #[tokio::test(start_paused = true)]
    async fn a_text_that_ends_the_process_is_a_failure_and_is_made_short() {
        let ends = |call: &ReceivedCall<'_>| if length(call) > 1_000_000 { Answer::Exit } else { Answer::text("") };
        let failures = found(true, ends).await;
        let [failure] = &failures[..] else { panic!("{} failures", failures.len()) };
        assert_eq!(failure.violation.oracle, Oracle::Crash);
        let shortest = failure.exchanges[0].call.arguments.value().into_owned();
        assert_eq!(shortest["text"].as_str().map(str::len), Some(1_000_001));
        assert!(found(false, ends).await.is_empty(), "a tool that may keep what it gets");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_answers_and_refusals_are_none() {
        for answer in [|| Answer::late(3), || Answer::Silence, || Answer::tool_error("too long")] {
            let server =
                move |call: &ReceivedCall<'_>| if length(call) > 1_000_000 { answer() } else { Answer::text("") };
            let failures = found(true, server).await;
            assert!(failures.is_empty(), "{} failures", failures.len());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_cannot_read_such_a_line_is_judged_elsewhere() {
        let ends = |call: &ReceivedCall<'_>| {
            let is_long_list = call.tool == "tools/list" && call.process > 0;
            if length(call) > 1_000_000 || is_long_list { Answer::Exit } else { Answer::text("") }
        };
        assert!(found(true, ends).await.is_empty());
    }
}
