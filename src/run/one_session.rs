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

/// What is judged of such a server, one session after the other.
#[derive(Default)]
pub(super) struct JudgedInTurn {
    /// The session that is open, as the server opens no other one.
    pub(super) open: Option<Session>,
    /// Further revisions that the server supports, oldest first.
    pub(super) further: Vec<Revision>,
    /// Revisions that it may have refused because of the open session.
    pub(super) possible: Vec<Revision>,
}

/// Takes what has to be judged in turn from what was probed: nothing of a server that serves several sessions at a time.
pub(super) async fn take_judged_in_turn(context: &Context, probed: &mut ProbeResult) -> JudgedInTurn {
    let is_of_session = |session: &mut Session| session.connection.http_session().is_some();
    let mut sessions: Vec<Session> = probed.sessions.extract_if(.., is_of_session).collect();
    match others_of(context, &mut sessions).await {
        Others::Kept => {
            probed.sessions.extend(sessions);
            JudgedInTurn::default()
        }
        Others::Ended => {
            let mut further: Vec<Revision> = sessions.iter().map(|session| session.revision).collect();
            further.sort();
            for session in sessions {
                context.close(session.connection, PURPOSE.to_owned()).await;
            }
            JudgedInTurn { further, ..JudgedInTurn::default() }
        }
        Others::Refused => {
            let refused = probed.rejected.iter().filter(|rejected| is_refused_session(rejected));
            let possible = refused.map(|(revision, _)| *revision).collect();
            JudgedInTurn { open: sessions.pop(), possible, ..JudgedInTurn::default() }
        }
    }
}

/// What happens to other sessions where one is opened.
enum Others {
    Kept,
    Ended,
    Refused,
}

async fn open(context: &Context, revision: Revision) -> Result<Session, RejectedOpening> {
    let capabilities = full_capabilities(revision);
    Session::open(context, revision, capabilities, PURPOSE.to_owned(), true).await
}

/// Whether the server answered a handshake with an error or a status, as it may while another session is open.
fn is_refused_session((revision, rejected): &(Revision, RejectedOpening)) -> bool {
    revision.era() == Era::Handshake && rejected.reason.is_refusal()
}

/// What happens to other sessions, as the open ones and one more show.
async fn others_of(context: &Context, sessions: &mut [Session]) -> Others {
    let timeout = context.plan.timeout;
    let has_ended = match sessions {
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
                if refuses {
                    return Others::Refused;
                }
                false
            }
        },
        // Only the one that was opened last is still there.
        [first, second, ..] => {
            let (first, second) = tokio::join!(has_ended(first, timeout), has_ended(second, timeout));
            first || second
        }
    };
    if has_ended { Others::Ended } else { Others::Kept }
}

/// Whether a session has ended: the client had to open another one for a request.
async fn has_ended(session: &mut Session, timeout: Duration) -> bool {
    let answered = send_control_request(session, timeout).await;
    matches!(answered, WaitOutcome::Ready(_) | WaitOutcome::TimedOut) && session.connection.ended_sessions() > 0
}
