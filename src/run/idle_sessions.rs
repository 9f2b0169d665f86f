//! Sessions of a slow server that have nothing left to do, kept for work that waits for one of the same kind: to open
//! another takes such a server as long as a further answer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// The idle sessions of a revision, and how many are waited for. Only what is waited for is kept.
pub(super) struct IdleSessions<T>(Mutex<Vec<Kind<T>>>);

/// The sessions that were opened for the same purpose, with the same capabilities of the client.
struct Kind<T> {
    capabilities: Value,
    purpose: String,
    waiting: usize,
    idle: Vec<T>,
}

impl<T> Default for IdleSessions<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> IdleSessions<T> {
    fn kinds(&self) -> MutexGuard<'_, Vec<Kind<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait for a session of a kind, until [`Self::take`] returns one or [`Self::stop_waiting`].
    pub(super) fn begin_waiting(&self, capabilities: &Value, purpose: &str) {
        let mut kinds = self.kinds();
        if let Some(kind) = find(&mut kinds, capabilities, purpose) {
            kind.waiting += 1;
        } else {
            let (capabilities, purpose) = (capabilities.clone(), purpose.to_owned());
            kinds.push(Kind { capabilities, purpose, waiting: 1, idle: Vec::new() });
        }
    }

    /// Takes a session that is kept, if there is one, which ends the wait.
    pub(super) fn take(&self, capabilities: &Value, purpose: &str) -> Option<T> {
        let mut kinds = self.kinds();
        let kind = find(&mut kinds, capabilities, purpose)?;
        let taken = kind.idle.pop()?;
        kind.waiting = kind.waiting.saturating_sub(1);
        Some(taken)
    }

    /// Ends a wait. Returns a session that was kept for it, which the caller has to use or to close.
    pub(super) fn stop_waiting(&self, capabilities: &Value, purpose: &str) -> Option<T> {
        let mut kinds = self.kinds();
        let kind = find(&mut kinds, capabilities, purpose)?;
        kind.waiting = kind.waiting.saturating_sub(1);
        if kind.idle.len() > kind.waiting { kind.idle.pop() } else { None }
    }

    /// Keeps a session for those that wait for one of its kind; returns it if nobody does.
    pub(super) fn offer(&self, capabilities: &Value, purpose: &str, idle: T) -> Option<T> {
        match find(&mut self.kinds(), capabilities, purpose) {
            Some(kind) if kind.waiting > kind.idle.len() => {
                kind.idle.push(idle);
                None
            }
            _ => Some(idle),
        }
    }
}

/// The sessions of a kind.
fn find<'a, T>(kinds: &'a mut [Kind<T>], capabilities: &Value, purpose: &str) -> Option<&'a mut Kind<T>> {
    kinds.iter_mut().find(|kind| kind.purpose == purpose && kind.capabilities == *capabilities)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_is_kept_for_who_waits_for_its_kind() {
        let sessions = IdleSessions::default();
        assert_eq!(sessions.offer(&json!({}), "main session", 1), Some(1));
        sessions.begin_waiting(&json!({}), "main session");
        assert_eq!(sessions.offer(&json!({}), "disposable session", 2), Some(2));
        assert_eq!(sessions.offer(&json!({"roots": {}}), "main session", 3), Some(3));
        assert_eq!(sessions.offer(&json!({}), "main session", 4), None);
        assert_eq!(sessions.offer(&json!({}), "main session", 5), Some(5));
        assert_eq!(sessions.take(&json!({}), "main session"), Some(4));
        assert_eq!(sessions.take(&json!({}), "main session"), None);
        assert_eq!(sessions.offer(&json!({}), "main session", 6), Some(6));
    }

    #[test]
    fn none_is_kept_for_who_has_left() {
        let sessions = IdleSessions::default();
        sessions.begin_waiting(&json!({}), "main session");
        sessions.begin_waiting(&json!({}), "main session");
        assert_eq!(sessions.offer(&json!({}), "main session", 1), None);
        assert_eq!(sessions.stop_waiting(&json!({}), "main session"), None);
        assert_eq!(sessions.stop_waiting(&json!({}), "main session"), Some(1));
        assert_eq!(sessions.offer(&json!({}), "main session", 2), Some(2));
    }
}
