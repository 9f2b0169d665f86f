//! Finds out which revisions a server supports.
//!
//! Every revision is tried in its own process, because some servers fix their era at the first message. The process
//! of a successful attempt becomes the session in which the revision is judged. The stateless era counts as
//! unsupported if `server/discover` lists only older revisions, returns any error, is not answered, or makes the
//! server exit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use super::conductor::Context;
use super::plan::Revisions;
use super::session::{OpeningFailure, RejectedOpening, Session, full_capabilities};
use crate::client::Connection;
use crate::spec::{Era, Revision, Transport};

/// How long a starting process counts as busy.
const MAX_BUSY_TIME: Duration = Duration::from_secs(2);

/// The result of trying the revisions.
#[derive(Debug, Default)]
pub(super) struct ProbeResult {
    /// A session for each revision to judge, oldest first.
    pub(super) sessions: Vec<Session>,
    /// The attempts that failed.
    pub(super) rejected: Vec<(Revision, RejectedOpening)>,
}

/// Opens a session for each selected revision that the server supports.
pub(super) async fn probe(context: &Context) -> ProbeResult {
    let wanted: Vec<Revision> = match &context.plan.revisions {
        Revisions::Supported => Revision::ALL.into_iter().filter(|revision| !revision.is_draft()).collect(),
        Revisions::All => Revision::ALL.to_vec(),
        Revisions::Named(named) => named.clone(),
        Revisions::Latest => vec![Revision::LATEST_HANDSHAKE, Revision::V2026_07_28],
    };
    let insist = matches!(context.plan.revisions, Revisions::Named(_));
    let mut result = try_all(context, &wanted, insist).await;
    if context.plan.revisions == Revisions::Latest {
        if result.sessions.is_empty()
            && let Some(other) = counter_offer(&result)
        {
            result.sessions = try_all(context, &[other], false).await.sessions;
        }
        let newest = result.sessions.iter().map(|session| session.revision).max();
        let (newest_sessions, unused): (Vec<_>, Vec<_>) =
            std::mem::take(&mut result.sessions).into_iter().partition(|session| Some(session.revision) == newest);
        result.sessions = newest_sessions;
        for session in unused {
            context.close_in_background(session.connection, "probe");
        }
    }
    result.sessions.sort_by_key(|session| session.revision);
    for (_, rejected) in &mut result.rejected {
        // The most informative connection is kept for the message; the others are closed.
        if matches!(rejected.reason, OpeningFailure::Other(_))
            && let Some(connection) = rejected.connection.take()
        {
            context.close_in_background(connection, "probe");
        }
    }
    result
}

/// The revision that a server offered instead of the newest.
fn counter_offer(result: &ProbeResult) -> Option<Revision> {
    result.rejected.iter().find_map(|(_, rejected)| match &rejected.reason {
        OpeningFailure::Other(version) => version.parse().ok().filter(|r: &Revision| r.era() == Era::Handshake),
        _ => None,
    })
}

async fn try_all(context: &Context, revisions: &[Revision], insist: bool) -> ProbeResult {
    let mut attempts = JoinSet::new();
    let timeouts = Arc::new(watch::Sender::new(AttemptTimeouts::default()));
    // The newest handshake revision goes first: it opens most servers, and shows how long they take.
    let first = revisions.iter().filter(|revision| **revision == Revision::LATEST_HANDSHAKE);
    let rest = revisions.iter().rev().filter(|revision| **revision != Revision::LATEST_HANDSHAKE);
    let mut result = ProbeResult::default();
    let mut take = |finished: Result<(Revision, Result<Session, RejectedOpening>), JoinError>| match finished {
        Ok((_, Ok(session))) => {
            let duration = session.connection.first_line().unwrap_or_default();
            timeouts.send_modify(|timeouts| timeouts.opened(duration));
            result.sessions.push(session);
        }
        Ok((revision, Err(rejected))) => {
            if matches!(rejected.reason, OpeningFailure::Silent | OpeningFailure::Idle(_))
                && revision.era() == Era::Handshake
            {
                timeouts.send_modify(|timeouts| timeouts.handshake_timed_out(context.plan.startup_timeout));
            }
            result.rejected.push((revision, rejected));
        }
        Err(_) => {}
    };
    // The first attempt resolves the package runner, which may have to download the server; the others skip the
    // runner.
    let mut first_attempt_limit = context.has_runner().then_some(context.plan.startup_timeout / 2);
    for revision in first.chain(rest).copied() {
        attempts.spawn(attempt(context.clone(), timeouts.subscribe(), revision, insist));
        if let Some(limit) = first_attempt_limit.take()
            && let Ok(Some(finished)) = tokio::time::timeout(limit, attempts.join_next()).await
        {
            take(finished);
        }
    }
    while let Some(finished) = attempts.join_next().await {
        take(finished);
    }
    result
}

/// Tries to open the server in a revision.
async fn attempt(
    context: Context,
    timeouts: watch::Receiver<AttemptTimeouts>,
    revision: Revision,
    insist: bool,
) -> (Revision, Result<Session, RejectedOpening>) {
    let purpose = format!("main session, {revision}");
    let permit = context.request_permit().granted().await;
    let keeping = context.keeping(&purpose);
    let opening = Session::open(&context, revision, full_capabilities(revision), purpose, insist, keeping);
    let opening = async {
        tokio::select! {
            opened = opening => opened,
            () = attempt_timed_out(timeouts, revision.era()) => Err(RejectedOpening { reason: OpeningFailure::Silent, connection: None }),
        }
    };
    tokio::pin!(opening);
    // A silent process uses no resources that others would have to wait for.
    let opened = if let Ok(opened) = tokio::time::timeout(MAX_BUSY_TIME, &mut opening).await {
        opened
    } else {
        drop(permit);
        opening.await
    };
    (revision, opened)
}

/// Timeouts of attempts from their start, derived from the other attempts.
#[derive(Debug, Clone, Copy, Default)]
struct AttemptTimeouts {
    handshake: Option<Duration>,
    stateless: Option<Duration>,
}

impl AttemptTimeouts {
    /// Another revision was opened after this time. Older servers may not answer the opening request of the stateless
    /// era; no server is known to ignore a handshake, so that gets more time.
    fn opened(&mut self, duration: Duration) {
        self.handshake = Some(Duration::from_secs(5).max(duration * 4));
        self.stateless = Some(Duration::from_secs(1).max(duration * 2));
    }

    /// A handshake went unanswered for the whole startup timeout: others are unlikely to do better.
    fn handshake_timed_out(&mut self, startup: Duration) {
        let little = Duration::from_secs(1).max(startup / 10);
        self.handshake.get_or_insert(little);
        self.stateless.get_or_insert(little);
    }
}

/// Completes when an attempt that begins now has timed out.
async fn attempt_timed_out(mut timeouts: watch::Receiver<AttemptTimeouts>, era: Era) {
    let began = Instant::now();
    loop {
        let limit = match era {
            Era::Handshake => timeouts.borrow_and_update().handshake,
            Era::Stateless => timeouts.borrow_and_update().stateless,
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
            _ = timeouts.changed() => {}
        }
    }
}

/// Explains why a server could not be opened in any revision: one sentence and a hint.
pub(super) fn explain(
    rejected: &[(Revision, RejectedOpening)],
    startup: Duration,
    transport: Transport,
) -> (String, String) {
    let weight = |rejected: &RejectedOpening| match &rejected.reason {
        OpeningFailure::NotStarted(_) => 10,
        OpeningFailure::CutOff => 9,
        OpeningFailure::Unreadable(_) => 8,
        OpeningFailure::Echo => 7,
        OpeningFailure::Http(failure) => failure.weight + 1,
        OpeningFailure::Unusable(_) => 6,
        OpeningFailure::Other(_) => 5,
        OpeningFailure::Error(_) => 4,
        OpeningFailure::Ended => 3,
        OpeningFailure::Silent | OpeningFailure::Idle(_) if wrote_noise(rejected) => 2,
        OpeningFailure::Idle(_) => 1,
        // It may have been aborted because another attempt timed out.
        OpeningFailure::Silent => 0,
    };
    let handshake = rejected.iter().filter(|(revision, _)| revision.era() == Era::Handshake);
    let most_informative = handshake.max_by_key(|(_, rejected)| weight(rejected)).or(rejected.first());
    let Some((revision, rejected)) = most_informative else {
        return ("no revision was tried".to_owned(), "select a revision with --revision".to_owned());
    };
    let shown = |value: &serde_json::Value| value.to_string().chars().take(200).collect::<String>();
    let (message, hint) = match &rejected.reason {
        OpeningFailure::NotStarted(error) => (
            error.to_string(),
            "check that the path exists and is executable; a script needs its interpreter named, as in `node server.js`"
                .to_owned(),
        ),
        OpeningFailure::Ended => (
            "the server exited before it answered the first message".to_owned(),
            "run the command by hand and see what it prints; it may lack an argument, a variable (--env K=V) or a folder (--cwd)"
                .to_owned(),
        ),
        OpeningFailure::CutOff => (
            "the server exceeded the output limit before it answered the first message, and was stopped".to_owned(),
            "write only messages to stdout, one per line; banners and logs belong on stderr".to_owned(),
        ),
        OpeningFailure::Unreadable(damage) => (
            format!("the server answers the first message with a line that {}", damage.describe()),
            "write only messages to stdout, one per line, and keep the first response small".to_owned(),
        ),
        OpeningFailure::Silent | OpeningFailure::Idle(_) if wrote_noise(rejected) => (
            match &rejected.reason {
                OpeningFailure::Idle(idle) => {
                    format!("the server wrote something, but no JSON-RPC response, and was then idle for {idle:.0?}")
                }
                _ => format!("the server wrote something, but no JSON-RPC response within {startup:.0?}"),
            },
            "write only messages to stdout, one per line; banners and logs belong on stderr".to_owned(),
        ),
        OpeningFailure::Idle(idle) => (
            format!("the server did not answer the first message, and was idle for {idle:.0?}"),
            format!(
                "is it a stdio server? one that listens on a port prints nothing here; if it waits for a \
                 network or another service, raise --startup-timeout ({startup:.0?} now), a sixth of which it may be idle"
            ),
        ),
        OpeningFailure::Silent => (
            format!("the server did not answer the first message within {startup:.0?}"),
            "is it a stdio server? one that listens on a port prints nothing here; give a slow server more time with --startup-timeout"
                .to_owned(),
        ),
        OpeningFailure::Http(failure) if failure.token_required => {
            (format!("the server requires a token: {}", failure.description), failure.hint.to_owned())
        }
        OpeningFailure::Http(failure) => {
            (format!("no MCP server answers at the address: {}", failure.description), failure.hint.to_owned())
        }
        OpeningFailure::Echo => (
            "the program echoes its input, so it is not an MCP server".to_owned(),
            "pass the command that starts the server, with its arguments".to_owned(),
        ),
        OpeningFailure::Error(error) if revision.era() == Era::Stateless => (
            format!("the server does not support {revision}: it answers server/discover with {}", shown(error)),
            "omit --revision to judge the revisions that it supports".to_owned(),
        ),
        OpeningFailure::Error(error) => (
            format!("the server rejects `initialize` in {revision}: {}", shown(error)),
            "answer `initialize` with a supported revision, even if the client requested another one".to_owned(),
        ),
        OpeningFailure::Unusable(result) => (
            format!("the server answers the opening request with an unusable result: {}", shown(result)),
            "the result of `initialize` has protocolVersion, capabilities and serverInfo".to_owned(),
        ),
        OpeningFailure::Other(version) => (
            format!("the server supports {}, none of the selected revisions", shown(&version.as_str().into())),
            "omit --revision to judge the revisions that it supports".to_owned(),
        ),
    };
    let hint =
        if transport == Transport::Http { over_http(&rejected.reason).map_or(hint, str::to_owned) } else { hint };
    (message, hint)
}

/// The hint to use instead of one about standard streams.
fn over_http(reason: &OpeningFailure) -> Option<&'static str> {
    match reason {
        OpeningFailure::Ended => Some("see what the server prints, and the proxy in front of it if there is one"),
        OpeningFailure::CutOff | OpeningFailure::Unreadable(_) => {
            Some("is the address right? the response to a request is one JSON message, or an event stream that ends")
        }
        OpeningFailure::Silent => Some(
            "is the address right, http:// or https:// included? give a slow server more time with --startup-timeout",
        ),
        OpeningFailure::Echo => Some("is the address right? it returns requests instead of answering them"),
        _ => None,
    }
}

fn wrote_noise(rejected: &RejectedOpening) -> bool {
    rejected.connection.as_ref().is_some_and(|connection: &Connection| connection.first_line().is_some())
}
