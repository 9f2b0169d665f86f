//! Finds out which revisions a server supports.
//!
//! Every revision is tried in its own process, because some servers fix their era at the first message; over HTTP, where
//! there is only one, they are tried one after the other if it ends. The process of a successful attempt becomes the
//! session in which the revision is judged. The stateless era counts as
//! unsupported if `server/discover` lists only older revisions, returns any error, is not answered, or makes the
//! server exit.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::client::{Connection, process_waits};
use crate::context::{Context, ProcessPermit};
use crate::limits::{
    HANDSHAKE_TIME_FACTOR, MAX_BUSY_TIME, MIN_HANDSHAKE_TIME, MIN_OPENING_TIME_AFTER_TIMEOUT,
    MIN_STATELESS_OPENING_TIME, OPENING_SHARE_AFTER_TIMEOUT, OTHER_ANSWER_WAIT, STATELESS_OPENING_TIME_FACTOR,
};
use crate::plan::Revisions;
use crate::session::{OpeningFailure, RejectedOpening, Session, StartConditions, full_capabilities};
use crate::spec::{Era, Revision, VersionName};

/// The result of trying the revisions.
#[derive(Debug, Default)]
pub(super) struct ProbeResult {
    /// A session for each revision to judge, oldest first.
    pub(super) sessions: Vec<Session>,
    /// The attempts that failed.
    pub(super) rejected: Vec<(Revision, RejectedOpening)>,
}

impl ProbeResult {
    /// Takes the connections on which `initialize` was never answered by a server that is known to run; with each, whether
    /// the server ended.
    ///
    /// That is a server that was opened by another handshake, lists the revision, or sends other messages. Without the
    /// first two, one that was opened in the stateless era has no handshake, unless the revision was selected by name.
    pub(super) fn take_unanswered(&mut self, selected: &Revisions) -> Vec<(Revision, Connection, bool)> {
        let sessions = &self.sessions;
        if *selected == Revisions::Latest && !sessions.is_empty() {
            return Vec::new();
        }
        let is_named = matches!(selected, Revisions::Named(_));
        let has_handshake = sessions.iter().any(|session| session.revision.era() == Era::Handshake);
        let is_supported = |revision| has_handshake || sessions.iter().any(|session| lists(session, revision));
        let sends_others = self.rejected.iter().any(|(_, other)| matches!(other.reason, OpeningFailure::Unanswered));
        let may_have_handshake = sends_others && (is_named || sessions.is_empty());
        let is_unanswered = |(revision, rejected): &mut (Revision, RejectedOpening)| {
            let is_silent = rejected.reason.is_silence() && (may_have_handshake || is_supported(*revision));
            revision.era() == Era::Handshake && (is_silent || rejected.reason.is_end() && is_supported(*revision))
        };
        let unanswered = self.rejected.extract_if(.., is_unanswered);
        let with_connection = unanswered.filter_map(|(revision, rejected)| {
            let has_ended = rejected.reason.is_end();
            Some((revision, rejected.connection?, has_ended))
        });
        with_connection.collect()
    }
}

/// Whether the result of `server/discover` that opened a session lists a revision.
fn lists(session: &Session, revision: Revision) -> bool {
    let opening = session.parameters.opening.as_ref();
    let listed = opening.and_then(|opening| opening.get("supportedVersions")?.as_array());
    listed.is_some_and(|listed| listed.iter().any(|version| VersionName::of(version).means(revision)))
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
    if context.shares_own_process() && result.rejected.iter().any(|(_, rejected)| rejected.reason.is_end()) {
        close_all(context, result);
        result = try_apart(context, &wanted, insist).await;
    }
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
    if !insist {
        result.sessions = without_repetitions(context, std::mem::take(&mut result.sessions));
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

/// The sessions without those that name no version, except the newest of them: the server answers each revision in the
/// same way, so which one it means is unknown.
fn without_repetitions(context: &Context, sessions: Vec<Session>) -> Vec<Session> {
    let newest = sessions.iter().filter(|session| session.has_unknown_revision).map(|session| session.revision).max();
    let is_kept = |session: &Session| !session.has_unknown_revision || Some(session.revision) == newest;
    let (kept, repetitions): (Vec<_>, Vec<_>) = sessions.into_iter().partition(is_kept);
    for session in repetitions {
        context.close_in_background(session.connection, "probe");
    }
    kept
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
        Ok((revision, Err(rejected))) => result.rejected.push((revision, rejected)),
        Err(_) => {}
    };
    // The first attempt resolves the package runner, which may have to download the server; the others skip the
    // runner.
    let mut first_attempt_limit = context.package_runner.is_unresolved().then_some(context.plan.startup_timeout / 2);
    for revision in first.chain(rest).copied() {
        attempts.spawn(attempt(context.clone(), Arc::clone(&timeouts), revision, insist));
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

/// Tries each revision when no other one is tried, as an opening that ends the process ends the others as well. Those that
/// do not end it are then tried again, on one that nothing ends.
async fn try_apart(context: &Context, revisions: &[Revision], insist: bool) -> ProbeResult {
    let (mut ended, mut others) = (Vec::new(), Vec::new());
    for revision in revisions {
        let ready = context.ready().await.is_ok();
        let tried = try_all(context, std::slice::from_ref(revision), insist).await;
        if ready && tried.rejected.iter().any(|(_, rejected)| rejected.reason.is_end()) {
            ended.extend(tried.rejected);
        } else {
            others.push(*revision);
            close_all(context, tried);
        }
    }
    // What the process that ended last wrote is shown if no other one is needed.
    let mut result = if !others.is_empty() && context.ready().await.is_ok() {
        try_all(context, &others, insist).await
    } else {
        ProbeResult::default()
    };
    result.rejected.extend(ended);
    result
}

/// Closes what was opened, in the background.
fn close_all(context: &Context, result: ProbeResult) {
    let sessions = result.sessions.into_iter().map(|session| session.connection);
    let rejected = result.rejected.into_iter().filter_map(|(_, rejected)| rejected.connection);
    for connection in sessions.chain(rejected) {
        context.close_in_background(connection, "probe");
    }
}

/// Tries to open the server in a revision.
async fn attempt(
    context: Context,
    timeouts: Arc<watch::Sender<AttemptTimeouts>>,
    revision: Revision,
    insist: bool,
) -> (Revision, Result<Session, RejectedOpening>) {
    let purpose = format!("main session, {revision}");
    let permit = context.request_permit().granted().await;
    let timed_out = attempt_timed_out(timeouts.subscribe(), revision.era());
    let on_silence = || {
        if revision.era() == Era::Handshake {
            timeouts.send_modify(|timeouts| timeouts.handshake_timed_out(context.plan.startup_timeout));
        }
    };
    let capabilities = full_capabilities(revision);
    let connected = Session::connect(&context, revision, capabilities, purpose, StartConditions::default());
    let opened = match connected {
        Ok(session) => {
            let process = session.connection.process_id();
            let opening = session.open_until(&context, insist, (timed_out, on_silence));
            while_busy(permit, process, Box::pin(opening)).await
        }
        Err(failure) => Err(failure.into()),
    };
    (revision, opened)
}

/// Opens a server, and gives the permit back once its process is silent and waits: it uses no resources then that others would have to
/// wait for.
async fn while_busy<T>(
    permit: ProcessPermit,
    process: Option<i32>,
    mut opening: Pin<Box<impl Future<Output = T>>>,
) -> T {
    let waits = async {
        match process {
            Some(process) => process_waits(process).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        opened = &mut opening => return opened,
        _either = tokio::time::timeout(MAX_BUSY_TIME, waits) => drop(permit),
    }
    opening.await
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
        self.handshake = Some(MIN_HANDSHAKE_TIME.max(duration * HANDSHAKE_TIME_FACTOR));
        self.stateless = Some(MIN_STATELESS_OPENING_TIME.max(duration * STATELESS_OPENING_TIME_FACTOR));
    }

    /// A handshake went unanswered for the whole startup timeout: others are unlikely to do better.
    fn handshake_timed_out(&mut self, startup: Duration) {
        let little = MIN_OPENING_TIME_AFTER_TIMEOUT.max(startup / OPENING_SHARE_AFTER_TIMEOUT);
        self.handshake.get_or_insert(little);
        // After this time, the server gets another request of that era.
        self.stateless.get_or_insert(little.saturating_sub(OTHER_ANSWER_WAIT));
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
