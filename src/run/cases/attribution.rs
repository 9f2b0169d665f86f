//! Calls tools again to see during the calls of which the server makes requests of the client: on the session of a queue, and on
//! further sessions of a slow server as well.
//!
//! The session of the queue makes all calls that no other session took, so nothing depends on whether others can be opened.

use std::sync::Arc;

use serde_json::Value;
use tokio::task::JoinSet;

use super::additional_session::{Opening, Openings, hand_on_or_close, open_additional_session};
use super::case_session::ClosedSessions;
use super::parallel_executions::SessionKind;
use crate::inventory::Inventory;
use crate::limits::MIN_CASES_PER_SESSION;
use crate::run::discovery::{Attribution, RequestsByTool};
use crate::run::target_state::Target;
use crate::session::Session;

/// Calls the tools, and completes the inventory by the requests that the server makes meanwhile.
pub(super) async fn attribute_side_by_side(
    target: &Target,
    session: &mut Session,
    kind: &SessionKind<'_>,
    attribution: &Attribution,
) -> ClosedSessions {
    let inventory = target.inventory().await;
    let mut others = JoinSet::new();
    if target.context.allows_more_sessions() {
        let openings = Openings::default();
        for _ in 0..attribution.len().div_ceil(MIN_CASES_PER_SESSION) {
            let own = attribution.clone();
            let openings = openings.clone();
            let begin = move || openings.begin(own.len());
            let (target, capabilities, inventory) = (target.clone(), kind.capabilities.clone(), Arc::clone(&inventory));
            others.spawn(attribute_elsewhere(
                target,
                capabilities,
                kind.purpose.to_owned(),
                attribution.clone(),
                inventory,
                begin,
            ));
        }
    }
    let timeout = target.context.plan.timeout;
    let mut requests = attribution.make_calls(session, &inventory, timeout, |_| true).await;
    let mut closed = ClosedSessions::new();
    while let Some(finished) = others.join_next().await {
        match finished {
            Ok((found, sessions)) => {
                requests.extend(found);
                closed.extend(sessions);
            }
            Err(error) => target.give_up(&format!("an internal task failed: {error}")),
        }
    }
    let mut inventory = Inventory::clone(&inventory);
    inventory.set_client_requests(requests);
    target.set_inventory(Arc::new(inventory));
    closed
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
