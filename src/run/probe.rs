//! Finds out which revisions a server speaks.
//!
//! Every revision is tried in a process of its own, since some servers fix their era at the first
//! message. A process that opens is kept: it becomes the session that the revision is judged in.
//! That `server/discover` is answered with older revisions only counts as not speaking the stateless
//! era, and an error of any code, silence or an exit do as well.

use std::time::Duration;

use tokio::task::JoinSet;

use super::conduct::Context;
use super::plan::Revisions;
use super::session::{Refusal, Refused, Session, full_capabilities};
use crate::client::Connection;
use crate::spec::{Era, Revision};

/// How long a process that is starting counts as busy.
const BUSY: Duration = Duration::from_secs(2);

/// What trying the revisions came to.
#[derive(Debug, Default)]
pub(super) struct Probed {
    /// A session for each revision that is to be judged, oldest first.
    pub(super) sessions: Vec<Session>,
    /// The attempts that opened nothing.
    pub(super) refused: Vec<(Revision, Refused)>,
}

/// Opens a session for each revision that the plan asks for and the server speaks.
pub(super) async fn probe(context: &Context) -> Probed {
    let wanted: Vec<Revision> = match &context.plan.revisions {
        Revisions::Spoken => Revision::ALL.into_iter().filter(|revision| !revision.is_draft()).collect(),
        Revisions::All => Revision::ALL.to_vec(),
        Revisions::Named(named) => named.clone(),
        Revisions::Latest => vec![Revision::LATEST_HANDSHAKE, Revision::V2026_07_28],
    };
    let insist = matches!(context.plan.revisions, Revisions::Named(_));
    let mut probed = try_all(context, &wanted, insist).await;
    if context.plan.revisions == Revisions::Latest {
        if probed.sessions.is_empty()
            && let Some(other) = offered(&probed)
        {
            probed.sessions = try_all(context, &[other], false).await.sessions;
        }
        let newest = probed.sessions.iter().map(|session| session.revision).max();
        let (kept, spare): (Vec<_>, Vec<_>) =
            std::mem::take(&mut probed.sessions).into_iter().partition(|session| Some(session.revision) == newest);
        probed.sessions = kept;
        for session in spare {
            context.dismiss(session.connection, "probe");
        }
    }
    probed.sessions.sort_by_key(|session| session.revision);
    for (_, refused) in &mut probed.refused {
        // The connection that tells most is kept for the message; the rest is shut down.
        if !matches!(
            refused.reason,
            Refusal::NotStarted(_)
                | Refusal::Ended
                | Refusal::Silent
                | Refusal::Echo
                | Refusal::Unusable(_)
                | Refusal::Error(_)
        ) && let Some(connection) = refused.connection.take()
        {
            context.dismiss(connection, "probe");
        }
    }
    probed
}

/// The revision that a server offered in place of the newest.
fn offered(probed: &Probed) -> Option<Revision> {
    probed.refused.iter().find_map(|(_, refused)| match &refused.reason {
        Refusal::Other(version) => version.parse().ok().filter(|r: &Revision| r.era() == Era::Handshake),
        _ => None,
    })
}

async fn try_all(context: &Context, revisions: &[Revision], insist: bool) -> Probed {
    let mut attempts = JoinSet::new();
    for revision in revisions.iter().rev().copied() {
        let context = context.clone();
        attempts.spawn(async move {
            let purpose = format!("main session, {revision}");
            let permit = context.permit().await;
            let tap = context.tap(&purpose);
            let opening = Session::open(&context.plan, revision, full_capabilities(revision), purpose, insist, tap);
            tokio::pin!(opening);
            // A process that stays silent does nothing that others would have to wait for.
            let opened = if let Ok(opened) = tokio::time::timeout(BUSY, &mut opening).await {
                opened
            } else {
                drop(permit);
                opening.await
            };
            (revision, opened)
        });
    }
    let mut probed = Probed::default();
    let mut patience = None;
    while !attempts.is_empty() {
        let finished = match patience {
            // Once another revision has opened, a server that stays silent gets no more than a second and a bit.
            Some(patience) if attempts.len() == 1 => match tokio::time::timeout(patience, attempts.join_next()).await {
                Ok(finished) => finished,
                Err(_) => break,
            },
            _ => attempts.join_next().await,
        };
        match finished {
            Some(Ok((_, Ok(session)))) => {
                let took = session.connection.first_line().unwrap_or_default();
                patience = Some(Duration::from_secs(1).max(took * 2));
                probed.sessions.push(session);
            }
            Some(Ok((revision, Err(refused)))) => probed.refused.push((revision, refused)),
            Some(Err(_)) | None => break,
        }
    }
    probed
}

/// What the attempts say of a server that opened nothing, in one sentence and a hint.
pub(super) fn explain(refused: &[(Revision, Refused)], startup: Duration) -> (String, String) {
    let weight = |reason: &Refusal| match reason {
        Refusal::NotStarted(_) => 6,
        Refusal::Echo => 5,
        Refusal::Unusable(_) => 4,
        Refusal::Other(_) => 3,
        Refusal::Error(_) => 2,
        Refusal::Ended => 1,
        Refusal::Silent => 0,
    };
    let handshake = refused.iter().filter(|(revision, _)| revision.era() == Era::Handshake);
    let telling = handshake.max_by_key(|(_, refused)| weight(&refused.reason)).or(refused.first());
    let Some((revision, refused)) = telling else {
        return ("no revision was tried".to_owned(), "name a revision with --revision".to_owned());
    };
    let shown = |value: &serde_json::Value| value.to_string().chars().take(200).collect::<String>();
    match &refused.reason {
        Refusal::NotStarted(error) => (
            error.to_string(),
            "check that the path exists and is executable; a script needs its interpreter named, as in `node server.js`"
                .to_owned(),
        ),
        Refusal::Ended => (
            "the server ended before it answered the first message".to_owned(),
            "run the command by hand and see what it prints; it may lack an argument, a variable (--env K=V) or a folder (--cwd)"
                .to_owned(),
        ),
        Refusal::Silent if wrote_noise(refused) => (
            format!("the server wrote to its output, but no JSON-RPC answer within {startup:.0?}"),
            "stdout carries nothing but messages, one line each; banners and logs go to stderr".to_owned(),
        ),
        Refusal::Silent => (
            format!("the server did not answer the first message within {startup:.0?}"),
            "is it a stdio server? one that listens on a port prints nothing here; give a slow one longer with --startup-timeout"
                .to_owned(),
        ),
        Refusal::Echo => (
            "the program writes back what it is sent, so it is no MCP server".to_owned(),
            "name the command that starts the server, with its arguments".to_owned(),
        ),
        Refusal::Error(error) => (
            format!("the server refuses to open in {revision}: {}", shown(error)),
            "a server answers `initialize` with a revision that it speaks, also when another was asked for".to_owned(),
        ),
        Refusal::Unusable(result) => (
            format!("the server answers the opening request with a result that opens nothing: {}", shown(result)),
            "the result of `initialize` has protocolVersion, capabilities and serverInfo".to_owned(),
        ),
        Refusal::Other(version) => (
            format!("the server speaks {}, none of the revisions that were asked for", shown(&version.as_str().into())),
            "leave --revision out to judge the revisions that it speaks".to_owned(),
        ),
    }
}

fn wrote_noise(refused: &Refused) -> bool {
    refused.connection.as_ref().is_some_and(|connection: &Connection| connection.first_line().is_some())
}
