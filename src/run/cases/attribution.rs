//! Calls tools of a slow server on further sessions, to see during the calls of which the server makes requests of the client.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::additional_session::open_additional_session;
use super::case_session::{ClosedSessions, close};
use crate::inventory::Inventory;
use crate::run::discovery::{Attribution, RequestsByTool};
use crate::run::target_state::Target;

/// Calls the tools of each part on a session of its own, side by side, and completes the inventory by the requests that the
/// server makes meanwhile, and by those that are found on the session of the caller.
pub(super) async fn attribute_elsewhere(
    target: Target,
    capabilities: Value,
    purpose: &'static str,
    parts: Vec<Attribution>,
    found_by_caller: oneshot::Receiver<RequestsByTool>,
) -> ClosedSessions {
    let inventory = target.inventory().await;
    let (mut closed, mut requests) = (ClosedSessions::new(), RequestsByTool::new());
    let mut sessions = JoinSet::new();
    for part in parts {
        let (target, capabilities, inventory) = (target.clone(), capabilities.clone(), Arc::clone(&inventory));
        sessions.spawn(async move { make_calls(target, capabilities, purpose, part, inventory).await });
    }
    while let Some(finished) = sessions.join_next().await {
        match finished {
            Ok((found, of_part)) => {
                requests.extend(found);
                closed.extend(of_part);
            }
            Err(error) => target.give_up(&format!("an internal task failed: {error}")),
        }
    }
    // The caller is gone only if the run is ending.
    requests.extend(found_by_caller.await.unwrap_or_default());
    let mut inventory = Inventory::clone(&inventory);
    inventory.set_client_requests(requests);
    target.set_inventory(Arc::new(inventory));
    closed
}

/// Calls the tools of one part on a session of its own, which is closed then.
async fn make_calls(
    target: Target,
    capabilities: Value,
    purpose: &'static str,
    part: Attribution,
    inventory: Arc<Inventory>,
) -> (RequestsByTool, ClosedSessions) {
    let (mut session, permit) = match open_additional_session(&target, &capabilities, purpose, || true).await {
        Ok(opened) => opened,
        Err(closed) => return (RequestsByTool::new(), closed),
    };
    let requests = part.make_calls(&mut session, &inventory, target.context.plan.timeout).await;
    let _permit = target.context.release_if_idle(permit);
    (requests, vec![close(&target, session).await])
}
