//! Runs a case on a process of its own.

use std::sync::Arc;

use tokio::time::Instant;

use super::case_run::{CaseRun, allow_startup, carry_out_fresh, inventory_for, judge};
use super::case_session::{
    ClosedSessions, OpenError, close_own, declared_capabilities, fails_as_usual, is_unusable, may_be_refused_anyway,
    open_for_case, purpose_of, refuses_any_session,
};
use super::deferred::report_or_defer;
use super::execution::NO_TOOL_SERVED;
use super::idle_permit::with_permit;
use super::needs::{compares_with_discovery, lacks_lasting_call};
use super::parallel_executions::{SessionKind, carry_out_in_parallel};
use super::shared_results::{is_shared, report_shared};
use crate::case::{Active, Body, Case, Process, Start};
use crate::check::{self, Execution, Judgement};
use crate::context::PermitRequest;
use crate::inventory::{Inventory, Tool};
use crate::plan::Launcher;
use crate::run::target_state::Target;
use crate::session::Session;

/// Runs a case on its own process.
///
/// The permit is requested immediately, unless discovery decides whether the case runs at all.
pub(in crate::run) fn run_on_own_process(
    target: Target,
    case: Arc<Case>,
) -> impl Future<Output = ClosedSessions> + Send {
    let needs = &case.needs;
    let is_shared = matches!(&case.body, Body::Active(body) if is_shared(&target, &case, body));
    let at_once = needs.client_request.is_none() && needs.tool.is_none() && !is_about_long_calls(&case) && !is_shared;
    let permit_request = at_once.then(|| target.context.request_permit());
    run_own_process(target, case, permit_request, is_shared)
}

async fn run_own_process(
    target: Target,
    case: Arc<Case>,
    permit_request: Option<PermitRequest>,
    is_shared: bool,
) -> ClosedSessions {
    let Body::Active(body) = &case.body else { return Vec::new() };
    if body.start != Start::default() && matches!(target.context.plan.launcher, Launcher::InProcess(_)) {
        let reason = "the case starts the server in a way of its own, and it runs in this process";
        target.report(&case, Judgement::skip(reason), None);
        return Vec::new();
    }
    if let Some(reason) = reason_without_process(&target, &case, body).await {
        target.report(&case, Judgement::skip(reason), None);
        return Vec::new();
    }
    if is_shared {
        return report_shared(target, &case, body).await;
    }
    // Those that had to wait for what discovery finds out would be the last of all.
    let waited = case.needs.client_request.is_some()
        || (body.process == Process::Fresh && case.needs.tool.is_some())
        || is_about_long_calls(&case);
    let context = target.context.with_priority(waited);
    let permit = permit_request.unwrap_or_else(|| context.request_permit()).granted().await;
    if let Some(reason) = target.stop_reason() {
        target.report(&case, Judgement::error(reason), None);
        return Vec::new();
    }
    let mut session = match open_for_case(&target, body, purpose_of(&case)).await {
        Ok(session) => session,
        Err(OpenError { reason, sessions }) => {
            target.report(&case, Judgement::error(reason), None);
            return sessions;
        }
    };
    let inventory = inventory_for(&target, &case, body).await;
    let began = Instant::now();
    let opening = session.connection.opening_time();
    let ((carried, others), permit) = if let Some(reason) = target.stop_reason() {
        ((Err(Judgement::error(reason)), ClosedSessions::new()), Some(permit))
    } else {
        let run = Box::pin(run_repeatably(&target, &case, body, &mut session, &inventory));
        with_permit(&context, permit, opening, run).await
    };
    let mut judged = judge(&target, &case, body, &carried);
    let was_refused = may_be_refused_anyway(&target, &mut session);
    if let Some(reason) = refuses_any_session(&target, &judged, was_refused, &inventory).await {
        judged = Judgement::error(reason);
    }
    if let Some(reason) = fails_as_usual(&target, body, &judged).await {
        judged = Judgement::error(reason);
    }
    report_or_defer(&target, &case, judged, carried, began);
    is_unusable(&target, &session);
    let _permit = permit.and_then(|permit| context.release_if_idle(permit));
    let mut closed = vec![close_own(&target, session).await];
    closed.extend(others);
    closed
}

/// Why a case needs no process: the server has no tool that it is for.
pub(super) async fn reason_without_process(target: &Target, case: &Case, body: &Active) -> Option<String> {
    if case.needs.client_request.is_some() {
        let inventory = target.complete_inventory().await;
        if let Some(reason) = reason_without_client_request(case, &inventory) {
            return Some(reason);
        }
    }
    let is_asked_for = case.needs.client_request.is_none() && !body.client_responses.is_empty();
    let needed = case.needs.tool.as_ref().filter(|_| body.process == Process::Fresh);
    if needed.is_none() && !case.needs_lasting_call() {
        return None;
    }
    let inventory = inventory_for(target, case, body).await;
    if target.stop_reason().is_some() {
        return None;
    }
    if needed.is_some_and(|needed| !inventory.tools.iter().any(|tool| needed.fits(&tool.definition))) {
        return Some("the server has no tool of the kind that the case needs".to_owned());
    }
    if is_asked_for && !target.complete_inventory().await.has_requested(body.client_responses.keys()) {
        return Some("the server made no such request of the client as the case responds to".to_owned());
    }
    lacks_lasting_call(case, body, &inventory, target.revision).then(|| {
        let is_served = inventory.tools.iter().any(Tool::is_served);
        let without =
            if is_served { "no tool has a call that takes as long as the case needs" } else { NO_TOOL_SERVED };
        without.to_owned()
    })
}

/// Whether a case is about calls that take long. It begins late, as the tools have to be known.
fn is_about_long_calls(case: &Case) -> bool {
    case.needs_lasting_call() || case.needs.unanswered_tool
}

/// Runs a case on a fresh process, and parts of it on further ones if the server is slow; one more process shows whether a list that differs from that of discovery changed.
async fn run_repeatably(
    target: &Target,
    case: &Arc<Case>,
    body: &Active,
    session: &mut Session,
    inventory: &Arc<Inventory>,
) -> (CaseRun, ClosedSessions) {
    allow_startup(target, session, inventory);
    let (capabilities, purpose) = (declared_capabilities(target, body), purpose_of(case));
    let kind = SessionKind { capabilities: &capabilities, purpose: &purpose };
    let (mut carried, closed) = carry_out_in_parallel(target, case, body, session, inventory, &kind).await;
    if let Ok(executions) = &mut carried
        && compares_with_discovery(body)
        && !check::judge_active(case, body, target.revision, executions).findings.is_empty()
    {
        executions.extend(repeated(target, case, body, inventory).await);
    }
    (carried, closed)
}

/// The executions of a case on one more process: they show whether a list differs between connections, or changed with
/// time.
async fn repeated(target: &Target, case: &Case, body: &Active, inventory: &Inventory) -> Vec<Execution> {
    let purpose = format!("{}, repetition", purpose_of(case));
    let Ok(mut session) = open_for_case(target, body, purpose.clone()).await else { return Vec::new() };
    let carried = carry_out_fresh(target, case, body, &mut session, inventory).await;
    target.context.close_in_background(session.connection, &purpose);
    carried.unwrap_or_default()
}

/// The reason why a case about client requests does not apply, according to discovery.
fn reason_without_client_request(case: &Case, inventory: &Inventory) -> Option<String> {
    let needed = case.needs.client_request.as_ref()?;
    let asks = inventory.tools.iter().any(|tool| tool.client_requests.iter().any(|request| needed.fits(request)));
    (!asks).then(|| "no tool call made the server send such a request to the client".to_owned())
}
