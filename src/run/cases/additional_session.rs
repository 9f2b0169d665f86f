//! Opens additional sessions of a slow server, next to the one that a queue of cases has.

use std::pin::pin;

use serde_json::Value;

use super::case_session::{ClosedSessions, OpenError, open};
use crate::context::ProcessPermit;
use crate::limits::PERMIT_POLL_INTERVAL;
use crate::run::target_state::Target;
use crate::session::Session;

/// Opens an additional session. If it is no longer needed before it gets its permit, or cannot be opened, returns the
/// sessions that were closed: the others do the work.
pub(super) async fn open_additional_session(
    target: &Target,
    capabilities: &Value,
    purpose: &str,
    is_needed: impl Fn() -> bool + Send,
) -> Result<(Session, ProcessPermit), ClosedSessions> {
    let mut granted = pin!(target.context.request_permit().granted());
    let permit = loop {
        let waited = tokio::time::timeout(PERMIT_POLL_INTERVAL, &mut granted).await;
        // The first session waits for this one, which must not wait for a permit without need.
        if !is_needed() || target.stop_reason().is_some() {
            return Err(ClosedSessions::new());
        }
        if let Ok(permit) = waited {
            break permit;
        }
    };
    let session = open(target, capabilities.clone(), purpose).await.map_err(|OpenError { sessions, .. }| sessions)?;
    // It is not listed on this session which arguments the client has to repeat in headers.
    if let Some(inventory) = target.known_inventory() {
        let definitions: Vec<Value> = inventory.tools.iter().map(|tool| tool.definition.clone()).collect();
        session.connection.mirror_parameters_of(&definitions);
    }
    Ok((session, permit))
}
