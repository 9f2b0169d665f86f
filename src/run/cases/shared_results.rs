//! Runs cases once for all revisions: those that send the same messages in every handshake revision to an unopened
//! process, and those that say so themselves. Each revision judges the transcript itself.
//!
//! It decides which cases these are and which revision runs them. A case that calls a tool runs once for the revisions in
//! which it is the same call. A failure is confirmed in each revision separately.

use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::case_run::{CaseRun, carry_out_fresh, inventory_for, judge};
use super::case_session::{
    ClosedSession, ClosedSessions, OpenError, close_own, fails_as_usual, give_up_cut_off, may_be_refused_anyway,
    open_for_case, purpose_of, refuses_any_session,
};
use super::deferred::report_or_defer;
use super::execution::called_first;
use super::idle_permit::with_permit;
use super::needs::{compares_with_discovery, declares_needed_capabilities, missing_capabilities, uses_tools};
use crate::case::{Action, Active, Case, Delivery, Process, Start, Step};
use crate::check::{Execution, Judgement};
use crate::context::ClosedConnection;
use crate::inventory::Inventory;
use crate::run::shared_runs::SharedRun;
use crate::run::target_state::Target;
use crate::session::full_capabilities;
use crate::spec::{Era, Transport};
use crate::transcript::{Event, SessionParameters};

/// Whether a case runs once for all revisions.
pub(super) fn is_shared(target: &Target, case: &Case, body: &Active) -> bool {
    target.revision.era() == Era::Handshake
        && (body.once || target.context.plan.transport() == Transport::Stdio && is_independent_of_revision(case, body))
}

/// Whether a case may run on a process on which other cases have passed: it asks for a fresh one, started and opened as usual, and
/// compares it with no other.
pub(super) fn may_follow_others(body: &Active) -> bool {
    body.process == Process::Fresh
        && body.start == Start::default()
        && body.client_capabilities.is_none()
        && !compares_with_discovery(body)
}

/// Whether neither the messages of a case nor their receiver depend on the revision or on the server's inventory.
fn is_independent_of_revision(case: &Case, body: &Active) -> bool {
    let is_plain = |step: &Step| match &step.action {
        Action::Request { delivery, .. } => step.revisions.is_none() && !matches!(delivery, Delivery::Polled(_)),
        Action::Raw { .. } => step.revisions.is_none(),
        _ => false,
    };
    let needs = &case.needs;
    body.process == Process::Uninitialized
        && body.for_each.is_none()
        && body.client_responses.is_empty()
        && needs.capabilities.is_empty()
        && needs.tool.is_none()
        && needs.client_request.is_none()
        && body.steps.iter().all(is_plain)
        && case.placeholders().is_empty()
}

/// Judges the transcript of such a case; the first revision to get here runs it, unless another one is to do so.
pub(super) async fn report_shared(target: Target, case: &Arc<Case>, body: &Active) -> ClosedSessions {
    let Some((cell, inventory)) = shared_run_of(&target, case, body).await else { return Vec::new() };
    if may_follow_others(body) {
        target.shared_runs.wait_for_runner(target.revision, &cell).await;
    }
    // The waiting revisions hold no permit, and the first to know enough runs the case.
    let (began, run_target) = (Instant::now(), target.clone());
    let mut ran_here = false;
    let outcome = cell
        .get_or_try_init(|| {
            ran_here = true;
            run_once(run_target, case, body, &inventory)
        })
        .await;
    match outcome {
        Ok(outcome) => report_run(&target, case, body, outcome, ran_here, began).await,
        Err(OpenError { reason, sessions }) => {
            target.report(case, Judgement::error(reason), None);
            sessions
        }
    }
}

/// The run of such a case, and what it has to know of the server; reports that the case is skipped if the server does not declare
/// what it needs.
pub(super) async fn shared_run_of(
    target: &Target,
    case: &Arc<Case>,
    body: &Active,
) -> Option<(Arc<OnceCell<SharedRun>>, Arc<Inventory>)> {
    let inventory = inventory_for(target, case, body).await;
    let session_parameters = &inventory.session_parameters;
    if session_parameters.opening.is_some() && !declares_needed_capabilities(case, session_parameters) {
        target.report(case, Judgement::skip(missing_capabilities(case)), Some(Instant::now()));
        return None;
    }
    let called =
        if uses_tools(case, body) { called_first(case, body, &inventory, target.revision) } else { String::new() };
    Some((target.shared_runs.of(case, called), inventory))
}

/// Judges a run in one revision, and reports that. Returns the process that the passive cases of the revision judge.
pub(super) async fn report_run(
    target: &Target,
    case: &Arc<Case>,
    body: &Active,
    outcome: &SharedRun,
    ran_here: bool,
    began: Instant,
) -> ClosedSessions {
    // Messages are compared with what the revision listed, also if the case ran before; and what goes unanswered in general, it
    // may have found out since.
    let inventory = target.inventory().await;
    let silent = target.context.answer_times.of(target.revision).silent_methods();
    let own = |execution: &Execution| Execution {
        discovered_lists: inventory.listed_names(),
        silent_methods: &execution.silent_methods | &silent,
        ..execution.clone()
    };
    let run: CaseRun = outcome.run.as_deref().map(|run| run.iter().map(own).collect()).map_err(Clone::clone);
    let mut judged = match target.stop_reason() {
        Some(reason) => Judgement::error(reason),
        None => judge(target, case, body, &run),
    };
    if let Some(reason) = refuses_any_session(target, &judged, outcome.was_refused, &inventory).await {
        judged = Judgement::error(reason);
    }
    if let Some(reason) = fails_as_usual(target, body, &judged).await {
        judged = Judgement::error(reason);
    }
    report_or_defer(target, case, judged, run, began);
    if outcome.cut_off {
        give_up_cut_off(target);
    }
    let Some((mut ended, mut session_parameters)) = outcome.process.clone() else { return Vec::new() };
    if body.once && !ran_here {
        session_parameters = SessionParameters::default();
        ended = end_only(ended);
    }
    if session_parameters.opening.is_none() {
        session_parameters.client_capabilities = full_capabilities(target.revision);
    }
    vec![ClosedSession { ended, session_parameters, borrowed: !ran_here }]
}

/// How a process ended, which holds in every revision, without the messages, which only the revision that sent them may judge.
fn end_only(mut ended: ClosedConnection) -> ClosedConnection {
    ended.entries.retain(|entry| matches!(entry.event, Event::Exited { .. } | Event::Shutdown { .. }));
    // A saved transcript would name all of its messages.
    ended.name = None;
    ended
}

/// Runs a case on its own process, and closes that.
async fn run_once(target: Target, case: &Case, body: &Active, inventory: &Inventory) -> Result<SharedRun, OpenError> {
    // Every revision waits for it; one that says of itself that it runs once has time, unless it would be left at the end, as it
    // takes long or had to wait for what discovery finds out.
    let context = target.context.with_priority(!body.once || body.takes_long() || uses_tools(case, body));
    let permit = context.request_permit().granted().await;
    if let Some(reason) = target.stop_reason() {
        return Err(reason.into());
    }
    let mut session = open_for_case(&target, body, purpose_of(case)).await?;
    let opening = session.connection.opening_time();
    let run = Box::pin(carry_out_fresh(&target, case, body, &mut session, inventory));
    let (run, permit) = with_permit(&context, permit, opening, run).await;
    let cut_off = session.connection.has_overflowed();
    let was_refused = may_be_refused_anyway(&target, &mut session);
    let _permit = permit.and_then(|permit| context.release_if_idle(permit));
    let ClosedSession { ended, session_parameters, .. } = close_own(&target, session).await;
    Ok(SharedRun { run, process: Some((ended, session_parameters)), cut_off, was_refused })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Body, load};

    #[test]
    fn only_independent_cases_run_once_for_all_revisions() {
        let cases = load(None, &[]).expect("they are sound");
        let shared_cases: Vec<&str> = cases
            .iter()
            .filter(|case| matches!(&case.body, Body::Active(act) if is_independent_of_revision(case, act)))
            .map(|case| case.id.as_str())
            .collect();
        assert!(shared_cases.contains(&"lifecycle/version-unknown"));
        for id in ["stdio/exit-on-eof", "lifecycle/ping", "stateless/prior-context"] {
            assert!(!shared_cases.contains(&id), "{id}");
        }
    }

    #[test]
    fn a_case_that_runs_once_has_the_same_steps_in_every_revision_with_a_handshake() {
        let cases = load(None, &[]).expect("they are sound");
        let mut seen = 0;
        for case in &cases {
            let Body::Active(body @ Active { once: true, steps, .. }) = &case.body else { continue };
            // Which tools are called may depend on the revision, but only one call decides whether a run is shared.
            assert!(body.for_each.is_none() && !case.needs.unanswered_tool, "{}", case.id);
            let with_handshake: Vec<_> = case.revisions.iter().filter(|one| one.era() == Era::Handshake).collect();
            for step in steps {
                let carried_out = |one: &&_| step.revisions.is_none_or(|revisions| revisions.contains(**one));
                let count = with_handshake.iter().filter(carried_out).count();
                assert!(count == 0 || count == with_handshake.len(), "{}", case.id);
            }
            seen += 1;
        }
        assert!(seen > 0);
    }
}
