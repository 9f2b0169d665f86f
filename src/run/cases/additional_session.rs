//! Opens additional sessions of a slow server, next to the one that a queue of cases has.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::case_session::{ClosedSessions, OpenError, open};
use crate::context::ProcessPermit;
use crate::limits::PERMIT_POLL_INTERVAL;
use crate::run::target_state::Target;
use crate::session::Session;

/// How many sessions are being opened for the same work. A clone is the same count.
#[derive(Debug, Clone, Default)]
pub(super) struct Openings(Arc<Mutex<usize>>);

/// A session that is being opened, until dropped.
#[derive(Debug)]
pub(super) struct Opening(Openings);

impl Openings {
    /// Begins to open a session, if there is more to do than what those will take that are being opened.
    pub(super) fn begin(&self, left: usize) -> Option<Opening> {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (left > *count).then(|| {
            *count += 1;
            Opening(self.clone())
        })
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        let mut count = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_sub(1);
    }
}

/// Opens an additional session. If `begin` says that it is not needed by the time that it gets its permit, or it cannot be
/// opened, returns the sessions that were closed: the others do the work.
pub(super) async fn open_additional_session(
    target: &Target,
    capabilities: &Value,
    purpose: &str,
    begin: impl Fn() -> Option<Opening> + Send,
) -> Result<(Session, ProcessPermit), ClosedSessions> {
    let mut granted = pin!(target.context.request_permit().granted());
    let (permit, _opening) = loop {
        let waited = tokio::time::timeout(PERMIT_POLL_INTERVAL, &mut granted).await;
        // The first session waits for this one, which must not wait for a permit without need.
        let Some(opening) = begin().filter(|_| target.stop_reason().is_none()) else {
            return Err(ClosedSessions::new());
        };
        if let Ok(permit) = waited {
            break (permit, opening);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_sessions_are_opened_than_there_is_work_left() {
        let openings = Openings::default();
        let first = openings.begin(2).expect("nothing is being opened");
        let second = openings.clone().begin(2).expect("there is work for two");
        assert!(openings.begin(2).is_none());
        drop(first);
        let third = openings.begin(2);
        assert!(third.is_some() && openings.begin(2).is_none());
        drop((second, third));
        assert!(openings.begin(0).is_none());
    }
}
