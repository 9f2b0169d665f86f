//! Carries out the executions of a case side by side on several sessions of a slow server, so that waiting overlaps.
//!
//! The session of the queue, or of the case, carries out all executions that no other session took, so nothing depends on whether others can
//! be opened.

use std::sync::Arc;

use serde_json::Value;
use tokio::task::JoinSet;

use super::additional_session::{hand_on_or_close, open_additional_session};
use super::case_run::{CaseRun, carry_out_share};
use super::case_session::ClosedSessions;
use super::execution::ExecutionShare;
use crate::case::{Active, Body, Case, ForEach, Start};
use crate::check::Judgement;
use crate::inventory::{Inventory, Tool};
use crate::limits::{MAX_SESSIONS_PER_CASE, MIN_REQUESTS_PER_SESSION};
use crate::run::target_state::Target;
use crate::session::Session;
use crate::verdict::Verdict;

/// The sessions that are opened for a case, besides the one of its queue.
pub(super) struct SessionKind<'a> {
    /// What the client declares when it opens one.
    pub(in crate::run) capabilities: &'a Value,
    /// Their purpose, for the report.
    pub(in crate::run) purpose: &'a str,
}

/// Carries out a case on the session of its queue, or its own; if it has several executions and the server is slow, on further sessions
/// as well, which are closed then.
pub(super) async fn carry_out_in_parallel(
    target: &Target,
    case: &Arc<Case>,
    body: &Active,
    session: &mut Session,
    inventory: &Arc<Inventory>,
    kind: &SessionKind<'_>,
) -> (CaseRun, ClosedSessions) {
    let count = executions_side_by_side(target, case, body, session, inventory);
    let share = ExecutionShare::of(count);
    let worth = (count * body.steps.len() / MIN_REQUESTS_PER_SESSION).min(count.saturating_sub(1));
    let mut others = JoinSet::new();
    for _ in 0..worth.min(MAX_SESSIONS_PER_CASE) {
        let (target, case, inventory) = (target.clone(), Arc::clone(case), Arc::clone(inventory));
        let (capabilities, purpose) = (kind.capabilities.clone(), kind.purpose.to_owned());
        let share = share.for_another_session();
        others.spawn(async move { carry_out_elsewhere(target, case, inventory, capabilities, purpose, share).await });
    }
    let mut carried = carry_out_share(target, case, body, session, inventory, &share).await;
    share.end();
    let mut closed = ClosedSessions::new();
    while let Some(finished) = others.join_next().await {
        match finished {
            Ok((other, sessions)) => {
                closed.extend(sessions);
                carried = merge(carried, other);
            }
            Err(error) => carried = Err(Judgement::error(format!("an internal task failed: {error}"))),
        }
    }
    if let Ok(executions) = &mut carried {
        executions.sort_by_key(|execution| execution.number);
    }
    (carried, closed)
}

/// How many executions a case has, if further sessions may take some of them.
fn executions_side_by_side(
    target: &Target,
    case: &Case,
    body: &Active,
    session: &Session,
    inventory: &Inventory,
) -> usize {
    let fits =
        |tool: &&Tool| tool.is_usable() && case.needs.tool.as_ref().is_none_or(|needed| needed.fits(&tool.definition));
    let executions = match &body.for_each {
        Some(ForEach::Tool) => inventory.tools.iter().filter(fits).count(),
        Some(ForEach::Resource) => inventory.primitives.resources.len(),
        Some(ForEach::Prompt) => inventory.primitives.prompts().len(),
        Some(ForEach::Page(_)) | None => 1,
    };
    // A session of the same kind can be opened by anybody.
    let is_usual = session.parameters.opening.is_some() && body.start == Start::default();
    let is_slow = session.is_slow() || (body.for_each == Some(ForEach::Tool) && inventory.has_slow_tools());
    if !is_usual || !is_slow || !target.context.allows_more_sessions() {
        return 0;
    }
    executions
}

/// Takes executions of a case on another session, which is closed then.
async fn carry_out_elsewhere(
    target: Target,
    case: Arc<Case>,
    inventory: Arc<Inventory>,
    capabilities: Value,
    purpose: String,
    share: ExecutionShare,
) -> (Option<CaseRun>, ClosedSessions) {
    let Body::Active(body) = &case.body else { return (None, ClosedSessions::new()) };
    let opened = open_additional_session(&target, &capabilities, &purpose, || share.begin_opening()).await;
    let mut additional = match opened {
        Ok(opened) => opened,
        Err(sessions) => return (None, sessions),
    };
    let carried = carry_out_share(&target, &case, body, &mut additional.session, &inventory, &share).await;
    additional.history.cases.push(case);
    (Some(carried), hand_on_or_close(&target, additional).await)
}

/// The executions of two sessions together. One that took no execution has no judgement of its own, but what kept one from
/// judging concerns the case.
fn merge(one: CaseRun, other: Option<CaseRun>) -> CaseRun {
    match (one, other) {
        (Ok(mut executions), Some(Ok(others))) => {
            executions.extend(others);
            Ok(executions)
        }
        (Ok(_) | Err(_), Some(Err(judged))) if judged.verdict == Verdict::Error => Err(judged),
        (Err(judged), Some(Ok(others))) => {
            if judged.verdict == Verdict::Error {
                Err(judged)
            } else {
                Ok(others)
            }
        }
        (one, Some(Err(_)) | None) => one,
    }
}
