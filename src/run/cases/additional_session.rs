//! Opens additional sessions of a slow server, next to the one that a queue of cases has.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::case_session::{ClosedSession, ClosedSessions, OpenError, close, is_unusable, open};
use super::needs::may_damage;
use crate::limits::PERMIT_POLL_INTERVAL;
use crate::run::target_state::{AdditionalSession, SessionHistory, Target};

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

/// Takes over a session of the same kind that has become idle, or opens one. If `begin` says that it is not needed by the
/// time that there is one or a permit for one, or it cannot be opened, returns the sessions that were closed: the others do
/// the work.
pub(super) async fn open_additional_session(
    target: &Target,
    capabilities: &Value,
    purpose: &str,
    begin: impl Fn() -> Option<Opening> + Send,
) -> Result<AdditionalSession, ClosedSessions> {
    let idle_sessions = target.idle_sessions();
    let mut granted = pin!(target.context.request_permit().granted());
    idle_sessions.begin_waiting(capabilities, purpose);
    let (permit, _opening) = loop {
        let waited = tokio::time::timeout(PERMIT_POLL_INTERVAL, &mut granted).await;
        // The first session waits for this one, which must not wait for a permit without need.
        let Some(opening) = begin().filter(|_| target.stop_reason().is_none()) else {
            let mut closed = ClosedSessions::new();
            if let Some(unwanted) = idle_sessions.stop_waiting(capabilities, purpose) {
                closed.push(close_additional(target, unwanted).await);
            }
            return Err(closed);
        };
        if let Some(idle) = idle_sessions.take(capabilities, purpose) {
            return Ok(with_known_parameters(target, idle));
        }
        if let Ok(permit) = waited {
            match idle_sessions.stop_waiting(capabilities, purpose) {
                Some(idle) => return Ok(with_known_parameters(target, idle)),
                None => break (permit, opening),
            }
        }
    };
    let session = open(target, capabilities.clone(), purpose).await.map_err(|OpenError { sessions, .. }| sessions)?;
    let history = SessionHistory { capabilities: capabilities.clone(), ..SessionHistory::default() };
    Ok(with_known_parameters(target, AdditionalSession { session, history, permit }))
}

/// The session, which repeats in headers what the tools ask for; they were not listed on it.
fn with_known_parameters(target: &Target, additional: AdditionalSession) -> AdditionalSession {
    if let Some(inventory) = target.known_inventory() {
        let definitions: Vec<Value> = inventory.tools.iter().map(|tool| tool.definition.clone()).collect();
        additional.session.connection.mirror_parameters_of(&definitions);
    }
    additional
}

/// Hands a session on to work that waits for one of its kind, unless a case may have damaged it; otherwise closes it.
pub(super) async fn hand_on_or_close(target: &Target, additional: AdditionalSession) -> ClosedSessions {
    let AdditionalSession { session, history, .. } = &additional;
    let is_sound = session.unanswered == 0
        && !is_unusable(target, session)
        && !history.cases.iter().any(|case| may_damage(case, target.revision));
    if !is_sound {
        return vec![close_additional(target, additional).await];
    }
    let (capabilities, purpose) = (history.capabilities.clone(), session.purpose.clone());
    match target.idle_sessions().offer(&capabilities, &purpose, additional) {
        Some(unwanted) => vec![close_additional(target, unwanted).await],
        None => ClosedSessions::new(),
    }
}

/// Closes an additional session. Its permit is free from then on, as its process only ends.
async fn close_additional(target: &Target, additional: AdditionalSession) -> ClosedSession {
    let _permit = target.context.release_if_idle(additional.permit);
    close(target, additional.session).await
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
