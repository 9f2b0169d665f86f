//! One run of an active case on a session: its executions, and the judgement of these.

use std::sync::Arc;

use super::execution::{ExecutionShare, MissingValue, carry_out};
use super::needs::{declares_needed_capabilities, is_independent_of_discovery, missing_capabilities, uses_tools};
use crate::case::{Active, Case, Process};
use crate::check::{self, Execution, Judgement, SESSION_ENDED};
use crate::inventory::Inventory;
use crate::run::target_state::Target;
use crate::session::Session;

/// Why missing responses prove nothing.
pub(in crate::run) const RATE_LIMITED: &str =
    "the server limits the request rate (HTTP status 429 or 503, or an error that says so)";

/// The executions of a case, or its judgement if it did not run.
pub(super) type CaseRun = Result<Vec<Execution>, Judgement>;

/// Runs a case on a session.
pub(super) async fn run_case(
    target: &Target,
    case: &Case,
    body: &Active,
    session: &mut Session,
    inventory: &Inventory,
) -> Judgement {
    let carried = carry_out_share(target, case, body, session, inventory, &ExecutionShare::default()).await;
    judge(target, case, body, &carried)
}

/// Carries out the executions of a case that fall to this session.
pub(super) async fn carry_out_share(
    target: &Target,
    case: &Case,
    body: &Active,
    session: &mut Session,
    inventory: &Inventory,
    share: &ExecutionShare,
) -> CaseRun {
    // A case that opens the connection itself uses the capabilities of the main session.
    let session_parameters =
        if session.parameters.opening.is_some() { &session.parameters } else { &inventory.session_parameters };
    if session_parameters.opening.is_some() && !declares_needed_capabilities(case, session_parameters) {
        return Err(Judgement::inapplicable(missing_capabilities(case)));
    }
    let mut new_execution = || target.context.executions.begin(&case.id);
    let limited = session.connection.rate_limited_requests();
    let ended = session.connection.ended_sessions();
    let carried_out = carry_out(case, body, session, inventory, &target.context.plan, share, &mut new_execution).await;
    if session.connection.rate_limited_requests() > limited {
        // Missing responses prove nothing while the server limits the rate.
        return Err(Judgement::error(RATE_LIMITED));
    }
    let has_ended = session.connection.ended_sessions() > ended;
    match carried_out {
        Ok(executions) if !has_ended || executions.iter().any(Execution::has_ended_session) => Ok(executions),
        _ if has_ended => Err(Judgement::error(SESSION_ENDED)),
        Ok(executions) => Ok(executions),
        Err(MissingValue(reason)) => Err(Judgement::skip(reason)),
    }
}

/// Judges a case by its executions.
pub(in crate::run) fn judge(target: &Target, case: &Case, body: &Active, carried: &CaseRun) -> Judgement {
    let judged = match carried {
        Ok(executions) => target.context.judging(|| check::judge_active(case, body, target.revision, executions)),
        Err(judged) => judged.clone(),
    };
    let has_ended = judged.reason.as_deref() == Some(SESSION_ENDED);
    if has_ended && target.context.has_one_session && body.opens_another_session() {
        return Judgement::skip("the case opens a session next to its own, and the server serves one at a time");
    }
    judged
}

/// Carries out the steps of a case on a fresh process.
pub(super) async fn carry_out_fresh(
    target: &Target,
    case: &Case,
    body: &Active,
    session: &mut Session,
    inventory: &Inventory,
) -> CaseRun {
    allow_startup(target, session, inventory);
    carry_out_share(target, case, body, session, inventory, &ExecutionShare::default()).await
}

/// Lets the first request of a fresh process take as long as on the main session: it is sent while the process starts.
pub(super) fn allow_startup(target: &Target, session: &mut Session, inventory: &Inventory) {
    let limit = target.context.slow_server.opening_limit(target.context.plan.startup_timeout);
    session.startup_allowance = limit.min(inventory.startup * 3);
    session.startup_limit = limit;
}

/// What a case has to know of the server; waits for that part of discovery.
pub(super) async fn inventory_for(target: &Target, case: &Case, body: &Active) -> Arc<Inventory> {
    if is_independent_of_discovery(case, body) {
        target.first_inventory().await
    } else {
        // A tool that takes long may have been called while another one made requests of the client.
        let asks = case.needs.client_request.is_some() || case.needs_lasting_call();
        // On the main session, cases that use tools wait for the first calls together.
        let calls = body.process != Process::Shared && uses_tools(case, body);
        let lacks = |inventory: &Inventory| {
            (asks && inventory.awaits_client_requests) || (calls && inventory.awaits_first_calls)
        };
        target.inventory_when(|inventory| !lacks(inventory)).await
    }
}
