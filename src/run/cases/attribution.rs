//! Calls tools again to see during the calls of which the server makes requests of the client: on further sessions of a slow
//! server, while the session of a queue does what else is left of discovery.
//!
//! The session of the queue then makes all calls that no other session took, so nothing depends on whether others can be
//! opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tokio::task::JoinSet;

use super::additional_session::{Opening, Openings, hand_on_or_close, open_additional_session};
use super::case_session::ClosedSessions;
use super::parallel_executions::SessionKind;
use crate::inventory::Inventory;
use crate::run::discovery::{Attribution, RemainingDiscovery, RequestsByTool};
use crate::run::target_state::Target;
use crate::session::Session;

/// Calls the tools, and completes the inventory by the requests that the server makes meanwhile. While other sessions call
/// them, the rest of discovery is done on this one.
pub(super) async fn attribute_side_by_side(
    target: &Target,
    session: &mut Session,
    kind: &SessionKind<'_>,
    attribution: &Attribution,
    remaining_discovery: &mut RemainingDiscovery,
) -> ClosedSessions {
    let inventory = target.inventory().await;
    let timeout = target.context.plan.timeout;
    let complete = |requests| {
        let mut inventory = Inventory::clone(&inventory);
        inventory.set_client_requests(requests);
        target.set_inventory(Arc::new(inventory));
    };
    if !target.context.allows_more_sessions() {
        complete(attribution.make_calls(session, &inventory, timeout, |_| true).await);
        return ClosedSessions::new();
    }
    let others = start_others(target, kind, attribution, &inventory);
    let calls_itself = AtomicBool::new(false);
    let elsewhere = async {
        let (requests, closed) = finish_others(target, others).await;
        if attribution.len() > 0 || calls_itself.load(Ordering::Relaxed) {
            return (Some(requests), closed);
        }
        complete(requests);
        (None, closed)
    };
    let here = async {
        remaining_discovery.send_requests(session, timeout).await;
        // The others may wait for a permit that somebody keeps who waits for these calls.
        calls_itself.store(attribution.len() > 0, Ordering::Relaxed);
        let requests = attribution.make_calls(session, &inventory, timeout, |_| true).await;
        attribution.give_up();
        requests
    };
    let ((incomplete, closed), own) = tokio::join!(elsewhere, here);
    if let Some(mut requests) = incomplete {
        requests.extend(own);
        complete(requests);
    }
    closed
}

/// Starts a session for each tool. Several cases wait for what they find out.
fn start_others(
    target: &Target,
    kind: &SessionKind<'_>,
    attribution: &Attribution,
    inventory: &Arc<Inventory>,
) -> JoinSet<(RequestsByTool, ClosedSessions)> {
    let mut others = JoinSet::new();
    let mut target = target.clone();
    target.context = target.context.with_priority(true);
    let openings = Openings::default();
    for _ in 0..attribution.len() {
        let (openings, own) = (openings.clone(), attribution.clone());
        let begin = move || openings.begin(own.len());
        let (purpose, attribution) = (kind.purpose.to_owned(), attribution.clone());
        let (capabilities, inventory) = (kind.capabilities.clone(), Arc::clone(inventory));
        others.spawn(attribute_elsewhere(target.clone(), capabilities, purpose, attribution, inventory, begin));
    }
    others
}

/// Waits for the other sessions.
async fn finish_others(
    target: &Target,
    mut others: JoinSet<(RequestsByTool, ClosedSessions)>,
) -> (RequestsByTool, ClosedSessions) {
    let (mut requests, mut closed) = (RequestsByTool::new(), ClosedSessions::new());
    while let Some(finished) = others.join_next().await {
        match finished {
            Ok((found, sessions)) => {
                requests.extend(found);
                closed.extend(sessions);
            }
            Err(error) => target.give_up(&format!("an internal task failed: {error}")),
        }
    }
    (requests, closed)
}

/// Calls tools on another session, which may not know the values of earlier results.
async fn attribute_elsewhere(
    target: Target,
    capabilities: Value,
    purpose: String,
    attribution: Attribution,
    inventory: Arc<Inventory>,
    begin: impl Fn() -> Option<Opening> + Send,
) -> (RequestsByTool, ClosedSessions) {
    let opened = open_additional_session(&target, &capabilities, &purpose, begin).await;
    let mut additional = match opened {
        Ok(opened) => opened,
        Err(closed) => return (RequestsByTool::new(), closed),
    };
    let (timeout, session) = (target.context.plan.timeout, &mut additional.session);
    let requests = attribution.make_calls(session, &inventory, timeout, |tool| !tool.depends_on_results).await;
    additional.history.with_discovery = true;
    (requests, hand_on_or_close(&target, additional).await)
}
