//! Finds out which revisions a server speaks.
//!
//! Every revision is tried in a process of its own, since some servers fix their era at the first
//! message. A process that opens is kept: it becomes the session that the revision is judged in.
//! That `server/discover` is answered with older revisions only counts as not speaking the stateless
//! era, and an error of any code, silence or an exit do as well.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use super::conduct::Context;
use super::plan::Revisions;
use super::session::{Refusal, Refused, Session, full_capabilities};
use crate::client::Connection;
use crate::spec::{Era, Revision, Transport};

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
        Revisions::Supported => Revision::ALL.into_iter().filter(|revision| !revision.is_draft()).collect(),
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
        if matches!(refused.reason, Refusal::Other(_))
            && let Some(connection) = refused.connection.take()
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
    let patience = Arc::new(watch::Sender::new(Patience::default()));
    // The newest with a handshake goes first: it opens most servers, and tells how long they take.
    let first = revisions.iter().filter(|revision| **revision == Revision::LATEST_HANDSHAKE);
    let others = revisions.iter().rev().filter(|revision| **revision != Revision::LATEST_HANDSHAKE);
    let mut probed = Probed::default();
    let mut take = |finished: Result<(Revision, Result<Session, Refused>), JoinError>| match finished {
        Ok((_, Ok(session))) => {
            let took = session.connection.first_line().unwrap_or_default();
            patience.send_modify(|patience| patience.opened(took));
            probed.sessions.push(session);
        }
        Ok((revision, Err(refused))) => {
            if matches!(refused.reason, Refusal::Silent | Refusal::Idle(_)) && revision.era() == Era::Handshake {
                patience.send_modify(|patience| patience.silent(context.plan.startup_timeout));
            }
            probed.refused.push((revision, refused));
        }
        Err(_) => {}
    };
    // What a package runner starts is found with the first, which may have to fetch it too; the others do without.
    let mut ahead = context.has_runner().then_some(context.plan.startup_timeout / 2);
    for revision in first.chain(others).copied() {
        attempts.spawn(attempt(context.clone(), patience.subscribe(), revision, insist));
        if let Some(limit) = ahead.take()
            && let Ok(Some(finished)) = tokio::time::timeout(limit, attempts.join_next()).await
        {
            take(finished);
        }
    }
    while let Some(finished) = attempts.join_next().await {
        take(finished);
    }
    probed
}

/// Tries to open the server in a revision.
async fn attempt(
    context: Context,
    patience: watch::Receiver<Patience>,
    revision: Revision,
    insist: bool,
) -> (Revision, Result<Session, Refused>) {
    let purpose = format!("main session, {revision}");
    let permit = context.ask().given().await;
    let keeping = context.keeping(&purpose);
    let opening = Session::open(&context, revision, full_capabilities(revision), purpose, insist, keeping);
    let opening = async {
        tokio::select! {
            opened = opening => opened,
            () = out_of(patience, revision.era()) => Err(Refused { reason: Refusal::Silent, connection: None }),
        }
    };
    tokio::pin!(opening);
    // A process that stays silent does nothing that others would have to wait for.
    let opened = if let Ok(opened) = tokio::time::timeout(BUSY, &mut opening).await {
        opened
    } else {
        drop(permit);
        opening.await
    };
    (revision, opened)
}

/// How long an attempt may take from its start, as far as others have shown.
#[derive(Debug, Clone, Copy, Default)]
struct Patience {
    handshake: Option<Duration>,
    stateless: Option<Duration>,
}

impl Patience {
    /// Another revision has opened after this time. Older servers meet the opening of the stateless era
    /// with silence; no server is known to be silent to a handshake, so that gets more time.
    fn opened(&mut self, took: Duration) {
        self.handshake = Some(Duration::from_secs(5).max(took * 4));
        self.stateless = Some(Duration::from_secs(1).max(took * 2));
    }

    /// A handshake stayed silent for the whole time that starting may take: others will hardly fare better.
    fn silent(&mut self, startup: Duration) {
        let little = Duration::from_secs(1).max(startup / 10);
        self.handshake.get_or_insert(little);
        self.stateless.get_or_insert(little);
    }
}

/// Returns when an attempt that begins now has taken too long.
async fn out_of(mut patience: watch::Receiver<Patience>, era: Era) {
    let began = Instant::now();
    loop {
        let limit = match era {
            Era::Handshake => patience.borrow_and_update().handshake,
            Era::Stateless => patience.borrow_and_update().stateless,
        };
        let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        let over = async {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = over => return,
            // The sender outlives every attempt.
            _ = patience.changed() => {}
        }
    }
}

/// What the attempts say of a server that opened nothing, in one sentence and a hint.
pub(super) fn explain(refused: &[(Revision, Refused)], startup: Duration, transport: Transport) -> (String, String) {
    let weight = |refused: &Refused| match &refused.reason {
        Refusal::NotStarted(_) => 10,
        Refusal::CutOff => 9,
        Refusal::Unreadable(_) => 8,
        Refusal::Echo => 7,
        Refusal::Http(astray) => astray.weight + 1,
        Refusal::Unusable(_) => 6,
        Refusal::Other(_) => 5,
        Refusal::Error(_) => 4,
        Refusal::Ended => 3,
        Refusal::Silent | Refusal::Idle(_) if wrote_noise(refused) => 2,
        Refusal::Idle(_) => 1,
        // It may have been given up because another attempt was.
        Refusal::Silent => 0,
    };
    let handshake = refused.iter().filter(|(revision, _)| revision.era() == Era::Handshake);
    let telling = handshake.max_by_key(|(_, refused)| weight(refused)).or(refused.first());
    let Some((revision, refused)) = telling else {
        return ("no revision was tried".to_owned(), "name a revision with --revision".to_owned());
    };
    let shown = |value: &serde_json::Value| value.to_string().chars().take(200).collect::<String>();
    let (message, hint) = match &refused.reason {
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
        Refusal::CutOff => (
            "the server wrote more than is kept before it answered the first message, and was cut off".to_owned(),
            "stdout carries nothing but messages, one line each; banners and logs go to stderr".to_owned(),
        ),
        Refusal::Unreadable(damage) => (
            format!("the server answers the first message with a line that {}", damage.describe()),
            "stdout carries nothing but messages, one line each, and the first one is small".to_owned(),
        ),
        Refusal::Silent | Refusal::Idle(_) if wrote_noise(refused) => (
            match &refused.reason {
                Refusal::Idle(idle) => {
                    format!("the server wrote something, but no JSON-RPC answer, and then did nothing for {idle:.0?}")
                }
                _ => format!("the server wrote something, but no JSON-RPC answer within {startup:.0?}"),
            },
            "stdout carries nothing but messages, one line each; banners and logs go to stderr".to_owned(),
        ),
        Refusal::Idle(idle) => (
            format!("the server did not answer the first message, and did nothing else for {idle:.0?} either"),
            format!(
                "is it a stdio server? one that listens on a port prints nothing here; one that waits for a \
                 network or a neighbour gets longer with --startup-timeout ({startup:.0?} now), a sixth of which it may be idle"
            ),
        ),
        Refusal::Silent => (
            format!("the server did not answer the first message within {startup:.0?}"),
            "is it a stdio server? one that listens on a port prints nothing here; give a slow one longer with --startup-timeout"
                .to_owned(),
        ),
        Refusal::Http(astray) if astray.locked => {
            (format!("the server asks for a token: {}", astray.words), astray.hint.to_owned())
        }
        Refusal::Http(astray) => {
            (format!("no MCP server answers at the address: {}", astray.words), astray.hint.to_owned())
        }
        Refusal::Echo => (
            "the program writes back what it is sent, so it is no MCP server".to_owned(),
            "name the command that starts the server, with its arguments".to_owned(),
        ),
        Refusal::Error(error) if revision.era() == Era::Stateless => (
            format!("the server does not speak {revision}: it answers server/discover with {}", shown(error)),
            "leave --revision out to judge the revisions that it speaks".to_owned(),
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
    };
    let hint = if transport == Transport::Http { over_http(&refused.reason).map_or(hint, str::to_owned) } else { hint };
    (message, hint)
}

/// The hint where the usual one is about standard streams.
fn over_http(reason: &Refusal) -> Option<&'static str> {
    match reason {
        Refusal::Ended => Some("see what the server prints, and the proxy in front of it if there is one"),
        Refusal::CutOff | Refusal::Unreadable(_) => {
            Some("is the address right? a request is answered by one JSON message, or by a stream of events that ends")
        }
        Refusal::Silent => {
            Some("is the address right, http:// or https:// included? give a slow server longer with --startup-timeout")
        }
        Refusal::Echo => Some("is the address right? a request is answered, not sent back"),
        _ => None,
    }
}

fn wrote_noise(refused: &Refused) -> bool {
    refused.connection.as_ref().is_some_and(|connection: &Connection| connection.first_line().is_some())
}
