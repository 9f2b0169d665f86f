//! Finds out whether an HTTP server serves one session at a time: it ends a session because another one opens, or opens none
//! while there is one. The specification requires neither that it serves more, nor that it keeps a session.

use std::time::Duration;

use super::control_request::send_control_request;
use super::revision_probe::ProbeResult;
use crate::client::WaitOutcome;
use crate::context::Context;
use crate::session::{RejectedOpening, Session, full_capabilities};
use crate::spec::{Era, Revision};

/// The purpose of the sessions that show it.
const PURPOSE: &str = "control session";

/// The revisions of a server that serves one session at a time, oldest first, which have to be judged one after the other. They
/// are taken from what was probed, and their sessions are closed.
pub(super) async fn take_revisions_in_turn(context: &Context, probed: &mut ProbeResult) -> Vec<Revision> {
    let is_of_session = |session: &mut Session| session.connection.http_session().is_some();
    let mut sessions: Vec<Session> = probed.sessions.extract_if(.., is_of_session).collect();
    if !ends_others(context, &mut sessions).await {
        probed.sessions.extend(sessions);
        return Vec::new();
    }
    let mut in_turn: Vec<Revision> = sessions.iter().map(|session| session.revision).collect();
    for session in sessions {
        context.close(session.connection, PURPOSE.to_owned()).await;
    }
    // A revision was refused for that, or for another reason.
    let mut refused = Vec::new();
    let may_be_served = |rejected: &mut (Revision, RejectedOpening)| is_refused_session(rejected);
    let again: Vec<_> = probed.rejected.extract_if(.., may_be_served).collect();
    for (revision, rejected) in again {
        match open(context, revision).await {
            Ok(session) => {
                in_turn.push(revision);
                context.close(session.connection, PURPOSE.to_owned()).await;
            }
            Err(_) => refused.push((revision, rejected)),
        }
    }
    probed.rejected.extend(refused);
    in_turn.sort();
    in_turn
}

async fn open(context: &Context, revision: Revision) -> Result<Session, RejectedOpening> {
    let capabilities = full_capabilities(revision);
    Session::open(context, revision, capabilities, PURPOSE.to_owned(), true).await
}

/// Whether the server answered a handshake with an error or a status, as it may while another session is open.
fn is_refused_session((revision, rejected): &(Revision, RejectedOpening)) -> bool {
    revision.era() == Era::Handshake && rejected.reason.is_refusal()
}

/// Whether one of the sessions has ended because another one was opened, or whether no other one can be.
async fn ends_others(context: &Context, sessions: &mut [Session]) -> bool {
    let timeout = context.plan.timeout;
    match sessions {
        [] => false,
        [only] => match open(context, only.revision).await {
            Ok(other) => {
                let has_ended = has_ended(only, timeout).await;
                context.close_in_background(other.connection, PURPOSE);
                has_ended
            }
            Err(rejected) => {
                let refuses = rejected.reason.is_refusal();
                if let Some(connection) = rejected.connection {
                    context.close_in_background(connection, PURPOSE);
                }
                refuses
            }
        },
        // Only the one that was opened last is still there.
        [first, second, ..] => {
            let (first, second) = tokio::join!(has_ended(first, timeout), has_ended(second, timeout));
            first || second
        }
    }
}

/// Whether a session has ended: the client had to open another one for a request.
async fn has_ended(session: &mut Session, timeout: Duration) -> bool {
    let answered = send_control_request(session, timeout).await;
    matches!(answered, WaitOutcome::Ready(_) | WaitOutcome::TimedOut) && session.connection.ended_sessions() > 0
}
