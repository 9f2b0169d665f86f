//! The request that every server answers, if only with an error: its response shows that the server is at work.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::WaitOutcome;
use crate::session::Session;
use crate::spec::Era;

/// The method of the control request: another one where the server is known to leave the usual one unanswered.
pub(super) fn control_method(session: &Session) -> &'static str {
    let method = if session.revision.era() == Era::Stateless { "server/discover" } else { "ping" };
    if session.answer_times().silent_methods().contains(method) { "tools/list" } else { method }
}

/// Sends the control request, and waits for its response where `timeout` is usual.
pub(super) async fn send_control_request(session: &mut Session, timeout: Duration) -> WaitOutcome<Value> {
    let limit = session.response_timeout(timeout);
    let method = control_method(session);
    session.request(method, json!({}), limit).await
}
