//! Judgements that wait for the end of a run: they rest on the silence of a method of which no request has been answered so
//! far, and no valid one has been waited for. If the server turns out to answer none, that is a finding of its own.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::case_run::{CaseRun, judge};
use crate::case::{Body, Case};
use crate::check::{Execution, Judgement};
use crate::context::AnswerTimes;
use crate::run::target_state::{DeferredJudgement, SessionHistory, Target};

/// Whether a judgement may be another one once more is known of what the server answers.
pub(super) fn rests_on_open_silence(judged: &Judgement, executions: &[Execution], times: &AnswerTimes) -> bool {
    let is_open =
        |request: &Value| request.get("method").and_then(Value::as_str).is_some_and(|method| times.is_open(method));
    !judged.findings.is_empty()
        && executions.iter().any(|execution| {
            let exchanges = execution.transcript.exchanges();
            exchanges.iter().any(|exchange| exchange.responses.is_empty() && is_open(exchange.request))
        })
}

/// Reports the result of a case on a process of its own, unless it has to wait for the end of the run.
pub(super) fn report_or_defer(target: &Target, case: &Arc<Case>, judged: Judgement, run: CaseRun, began: Instant) {
    match run {
        Ok(executions)
            if rests_on_open_silence(&judged, &executions, &target.context.answer_times.of(target.revision)) =>
        {
            let (duration, history) = (began.elapsed(), SessionHistory::default());
            target.defer(DeferredJudgement { case: Arc::clone(case), executions, duration, history });
        }
        Ok(_) | Err(_) => target.report(case, judged, Some(began)),
    }
}

/// Judges the cases that wait, by what is known of the server now, and reports them.
pub(in crate::run) fn report_deferred(target: &Target) {
    for DeferredJudgement { case, mut executions, duration, history } in target.take_deferred() {
        let Body::Active(body) = &case.body else { continue };
        let silent_methods = target.context.answer_times.of(target.revision).silent_methods();
        for execution in &mut executions {
            execution.silent_methods.clone_from(&silent_methods);
        }
        let judged = judge(target, &case, body, &Ok(executions));
        target.report_after(&case, judged, Some(duration), history);
    }
}
