//! Runs active cases of a revision in sequence on a session that they share.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::additional_session::{hand_on_or_close, open_additional_session};
use super::attribution::attribute_side_by_side;
use super::case_run::{inventory_for, judge};
use super::case_session::{ClosedSessions, OpenError, close, is_unusable, open};
use super::deferred::rests_on_open_silence;
use super::needs::{may_damage, uses_tools, waits_for_unanswered_calls};
use super::own_process::run_on_own_process;
use super::parallel_executions::{SessionKind, carry_out_in_parallel};
use super::remaining_cases::{EarlyCases, QueuedCases, RemainingCases};
use crate::case::{Body, Case};
use crate::check::Judgement;
use crate::client::WaitOutcome;
use crate::context::{PermitRequest, ProcessPermit};
use crate::inventory::Inventory;
use crate::limits::{
    MAX_MORE_SESSIONS, MAX_MORE_SESSIONS_OF_SLOW_SERVER, MAX_RESTARTS_BY_CASES, MAX_SILENCES, MIN_CASES_FOR_PACE,
    MIN_CASES_PER_SESSION, SETTLE_CHECKED, SLOW_CASE, TIMEOUTS_OF_SILENT_SERVER,
};
use crate::run::control_request::send_control_request;
use crate::run::discovery::RemainingDiscovery;
use crate::run::discovery::further_requests::send_further_requests;
use crate::run::target_state::{AdditionalSession, DeferredJudgement, SessionHistory, Target};
use crate::session::{Session, full_capabilities};
use crate::spec::{Era, Revision, Transport};
use crate::transcript::Event;

/// The purpose of the sessions for cases that may harm the server.
const DISPOSABLE: &str = "disposable session";

/// Runs the cases that share the main session. `remaining_discovery` is done on it as well.
pub(in crate::run) async fn run_on_main_session(
    target: Target,
    main: Session,
    cases: Vec<Arc<Case>>,
    remaining_discovery: RemainingDiscovery,
    early: EarlyCases,
    permit: ProcessPermit,
) -> ClosedSessions {
    let capabilities = full_capabilities(target.revision);
    let queue = SessionQueue::new(target, main, capabilities, "main session");
    let mut queue = SessionQueue { remaining_discovery, shows_more: true, ..queue };
    queue.history.with_discovery = true;
    queue.made_first_calls = true;
    let has_calls_in_flight = queue.remaining_discovery.has_calls_in_flight();
    let cases = QueuedCases::new(early, cases, queue.target.revision, has_calls_in_flight);
    queue.run(cases, JoinSet::new(), Some(permit)).await
}

/// The cases of the disposable session.
pub(in crate::run) struct DisposableCases {
    harmless: Vec<Arc<Case>>,
    /// Those that may damage their session.
    damaging: RemainingCases,
}

impl DisposableCases {
    pub(in crate::run) fn new(cases: Vec<Arc<Case>>, revision: Revision) -> Self {
        let (damaging, harmless) = cases.into_iter().partition(|case| may_damage(case, revision));
        Self { harmless, damaging: RemainingCases::new(damaging) }
    }

    /// Those that may damage their session, for a second one.
    pub(in crate::run) fn damaging(&self) -> RemainingCases {
        self.damaging.clone()
    }

    /// Removes all of them.
    fn take_all(&mut self) -> Vec<Arc<Case>> {
        let mut cases = std::mem::take(&mut self.harmless);
        cases.extend(self.damaging.take_all());
        cases
    }
}

/// Runs the cases that may harm the server, on a session that declares no capabilities.
///
/// The permit is requested immediately.
pub(in crate::run) fn run_on_disposable_session(
    target: Target,
    cases: DisposableCases,
) -> impl Future<Output = ClosedSessions> + Send {
    let permit_request = target.context.request_queue_permit();
    run_disposable_queue(target, cases, permit_request)
}

/// Runs those of these cases that are left on one more such session, if it takes the server less time to open it than the first
/// one would wait in them. It begins when the main session has ended, but next to the processes of single cases.
pub(in crate::run) async fn run_on_second_disposable_session(
    target: Target,
    damaging: RemainingCases,
) -> ClosedSessions {
    let context = target.context.with_priority(true);
    let startup = target.inventory().await.startup;
    let is_worth_it = || damaging.len() as u128 * SETTLE_CHECKED.as_millis() > startup.as_millis();
    let is_possible = context.plan.transport() == Transport::Stdio && context.plan.jobs > 1;
    if !is_possible || context.allows_more_sessions() || !is_worth_it() {
        return ClosedSessions::new();
    }
    let permit = context.request_permit().granted().await;
    if target.stop_reason().is_some() || !is_worth_it() {
        return ClosedSessions::new();
    }
    match open(&target, json!({}), DISPOSABLE).await {
        Ok(session) => {
            let _permit = context.release_if_idle(permit);
            let mut queue = SessionQueue::new(target, session, json!({}), DISPOSABLE);
            queue.run_all(&damaging).await;
            queue.close_session().await;
            queue.closed_others.extend(finish(&queue.target, queue.beside).await);
            queue.closed.extend(queue.closed_others);
            queue.closed
        }
        // The first session runs them.
        Err(OpenError { sessions, .. }) => sessions,
    }
}

async fn run_disposable_queue(
    target: Target,
    mut cases: DisposableCases,
    permit_request: PermitRequest,
) -> ClosedSessions {
    let permit = permit_request.granted().await;
    match open(&target, json!({}), DISPOSABLE).await {
        Ok(session) => {
            // Its process is idle most of the time. Over HTTP, all sessions share one process.
            let is_http = session.connection.is_http();
            let permit = if is_http { Some(permit) } else { target.context.release_if_idle(permit) };
            let mut queue = SessionQueue::new(target, session, json!({}), DISPOSABLE);
            queue.target.first_inventory().await;
            let revision = queue.target.revision;
            let mut more = JoinSet::new();
            if queue.target.opening_inventory().is_none() {
                let others = QueuedCases::new(EarlyCases::default(), cases.harmless, revision, false);
                let cases = QueuedCases { damaging: cases.damaging, ..others };
                return queue.run(cases, more, permit).await;
            }
            let mut cases = cases.take_all();
            let early = EarlyCases::take_from(&mut cases, revision);
            run_early(&queue.target, &early, &queue.capabilities, DISPOSABLE, &mut more);
            let cases = QueuedCases::new(early, cases, revision, false);
            for remaining in [&cases.first, &cases.damaging] {
                remaining.put_long_first();
                more.spawn(run_after_discovery(
                    queue.target.clone(),
                    queue.capabilities.clone(),
                    DISPOSABLE,
                    remaining.clone(),
                ));
            }
            queue.run_all(&cases.early.harmless).await;
            queue.run(cases, more, permit).await
        }
        Err(OpenError { reason, sessions }) => {
            for case in cases.take_all() {
                target.report(&case, Judgement::error(reason.clone()), None);
            }
            sessions
        }
    }
}

/// Starts the cases of the main session of a slow server that need nothing of what discovery finds out, on sessions of their
/// own, and removes them from the others. Those that are left when the main session has run its own are for that.
pub(in crate::run) fn run_before_discovery(
    target: &Target,
    cases: &mut Vec<Arc<Case>>,
    sessions: &mut JoinSet<ClosedSessions>,
) -> EarlyCases {
    let early = EarlyCases::take_from(cases, target.revision);
    run_early(target, &early, &full_capabilities(target.revision), "main session", sessions);
    early
}

/// Runs early cases on further sessions.
fn run_early(
    target: &Target,
    early: &EarlyCases,
    capabilities: &Value,
    purpose: &'static str,
    sessions: &mut JoinSet<ClosedSessions>,
) {
    for remaining in [&early.harmless, &early.damaging] {
        for _ in 0..remaining.len().div_ceil(MIN_CASES_PER_SESSION).min(MAX_MORE_SESSIONS_OF_SLOW_SERVER) {
            let (target, capabilities) = (target.clone(), capabilities.clone());
            sessions.spawn(run_on_additional_session(target, capabilities, purpose, remaining.clone()));
        }
    }
}

/// Runs cases of a slow server on further sessions as soon as the outcomes of its first calls are known.
async fn run_after_discovery(
    target: Target,
    capabilities: Value,
    purpose: &'static str,
    remaining: RemainingCases,
) -> ClosedSessions {
    target.inventory_when(|inventory| !inventory.awaits_first_calls).await;
    let mut sessions = JoinSet::new();
    open_more_sessions(&target, &capabilities, purpose, &mut sessions, &remaining, MAX_MORE_SESSIONS_OF_SLOW_SERVER);
    finish(&target, sessions).await
}

/// Opens more sessions of a slow server, which run the remaining cases as well.
fn open_more_sessions(
    target: &Target,
    capabilities: &Value,
    purpose: &'static str,
    more: &mut JoinSet<ClosedSessions>,
    remaining: &RemainingCases,
    max: usize,
) {
    if !target.context.allows_more_sessions() {
        return;
    }
    for _ in 0..remaining.len().div_ceil(MIN_CASES_PER_SESSION).min(max) {
        let (target, capabilities) = (target.clone(), capabilities.clone());
        more.spawn(run_on_additional_session(target, capabilities, purpose, remaining.clone()));
    }
}

/// Waits for sessions.
pub(super) async fn finish(target: &Target, mut sessions: JoinSet<ClosedSessions>) -> ClosedSessions {
    let mut closed = ClosedSessions::new();
    while let Some(finished) = sessions.join_next().await {
        match finished {
            Ok(sessions) => closed.extend(sessions),
            Err(error) => target.give_up(&format!("an internal task failed: {error}")),
        }
    }
    closed
}

/// Runs cases that are left on one more session, until none is left.
async fn run_on_additional_session(
    target: Target,
    capabilities: Value,
    purpose: &'static str,
    remaining: RemainingCases,
) -> ClosedSessions {
    let opened = open_additional_session(&target, &capabilities, purpose, || remaining.begin_opening()).await;
    let AdditionalSession { session, history, permit } = match opened {
        Ok(opened) => opened,
        Err(sessions) => return sessions,
    };
    let queue = SessionQueue::new(target, session, capabilities, purpose);
    let mut queue = SessionQueue { history, ..queue };
    queue.run_all(&remaining).await;
    if let Some(session) = queue.session {
        let done = AdditionalSession { session, history: queue.history, permit };
        queue.closed.extend(hand_on_or_close(&queue.target, done).await);
    }
    queue.closed_others.extend(finish(&queue.target, queue.beside).await);
    queue.closed.extend(queue.closed_others);
    queue.closed
}

/// A queue of cases that share a session, which is replaced when it ends or stops answering.
struct SessionQueue {
    target: Target,
    /// What the client declares when it opens a session, and the purpose of the session for the report.
    capabilities: Value,
    purpose: &'static str,
    session: Option<Session>,
    /// What happened on the session so far.
    history: SessionHistory,
    /// What is left of discovery on the session.
    remaining_discovery: RemainingDiscovery,
    /// Whether the first calls of the tools were made by it, so that their outcomes are completed here and nowhere else.
    made_first_calls: bool,
    restarts: usize,
    silences: usize,
    /// Whether further requests follow the cases, so that passive cases see more.
    shows_more: bool,
    /// Its sessions that were closed, and those of the sessions next to it. Its own come first in the result: the
    /// definitions of the tools were listed on them, which passive cases compare results with.
    closed: ClosedSessions,
    closed_others: ClosedSessions,
    /// The cases that run next to it on processes of their own, because they take long.
    beside: JoinSet<ClosedSessions>,
}

impl SessionQueue {
    fn new(target: Target, session: Session, capabilities: Value, purpose: &'static str) -> Self {
        let history = SessionHistory { capabilities: capabilities.clone(), ..SessionHistory::default() };
        Self {
            target,
            capabilities,
            purpose,
            session: Some(session),
            history,
            remaining_discovery: RemainingDiscovery::default(),
            made_first_calls: false,
            restarts: 0,
            silences: 0,
            shows_more: false,
            closed: Vec::new(),
            closed_others: Vec::new(),
            beside: JoinSet::new(),
        }
    }

    /// Runs cases one after the other.
    async fn run_all(&mut self, remaining: &RemainingCases) {
        while let Some(case) = remaining.next() {
            self.run_case(&case).await;
        }
    }

    /// Runs cases, with those that are left of the early ones, and closes the session and `more`, which are next to it. While
    /// calls are in flight, those cases come first that use no tool. Those that may damage a session run last, so that no
    /// other case shares one with what they did; on a slow server, they begin at once on sessions of their own.
    async fn run(
        mut self,
        cases: QueuedCases,
        mut more: JoinSet<ClosedSessions>,
        permit: Option<ProcessPermit>,
    ) -> ClosedSessions {
        let QueuedCases { early, first, after_calls, damaging } = cases;
        if self.session.as_ref().is_some_and(Session::is_slow) {
            damaging.put_long_first();
            self.open_more_sessions(&mut more, &damaging, MAX_MORE_SESSIONS_OF_SLOW_SERVER);
        }
        self.run_side_by_side(first).await;
        self.finish_calls().await;
        self.run_side_by_side(after_calls).await;
        self.run_side_by_side(early.harmless).await;
        self.run_side_by_side(early.damaging).await;
        self.run_side_by_side(damaging).await;
        self.finish_sessions(more).await;
        let permit = permit.and_then(|permit| self.target.context.release_if_idle(permit));
        let shows_more = self.shows_more && self.target.stop_reason().is_none();
        if let Some(mut session) = self.session {
            if shows_more && !is_unusable(&self.target, &session) {
                let inventory = self.target.inventory().await;
                send_further_requests(&mut session, &inventory, self.target.context.plan.timeout).await;
            }
            self.closed.push(close(&self.target, session).await);
        }
        // They may have to wait for it.
        drop(permit);
        self.closed_others.extend(finish(&self.target, self.beside).await);
        self.closed.extend(self.closed_others);
        self.closed
    }

    /// Sends the requests that are left of discovery, and completes the inventory by what they show.
    async fn finish_discovery(&mut self) {
        let Some(session) = &mut self.session else { return };
        let timeout = self.target.context.plan.timeout;
        if let Some(attribution) = self.remaining_discovery.take_attribution() {
            let kind = SessionKind { capabilities: &self.capabilities, purpose: self.purpose };
            let remaining = &mut self.remaining_discovery;
            let closed = attribute_side_by_side(&self.target, session, &kind, &attribution, remaining).await;
            self.closed_others.extend(closed);
        }
        self.remaining_discovery.send_requests(session, timeout).await;
    }

    /// Waits for the calls in flight, and completes the inventory with their outcomes.
    async fn finish_calls(&mut self) {
        let inventory = self.target.inventory().await;
        if !inventory.awaits_first_calls || !self.made_first_calls {
            return;
        }
        let timeout = self.target.context.plan.timeout;
        let inventory = match &mut self.session {
            Some(session) => self.remaining_discovery.finish_calls(session, &inventory, timeout).await,
            None => Inventory { awaits_first_calls: false, ..Inventory::clone(&inventory) },
        };
        if inventory.has_slow_tools() {
            self.target.context.slow_server.mark(inventory.startup);
        }
        self.target.set_inventory(Arc::new(inventory));
    }

    /// Runs cases one after the other, and side by side on more sessions as soon as they take long.
    async fn run_side_by_side(&mut self, remaining: RemainingCases) {
        let will_be_slow = self.will_be_slow(&remaining).await;
        let mut more = JoinSet::new();
        if will_be_slow {
            remaining.put_long_first();
            self.open_more_sessions(&mut more, &remaining, MAX_MORE_SESSIONS_OF_SLOW_SERVER);
        }
        self.finish_discovery().await;
        let (began, mut done) = (Instant::now(), 0);
        while let Some(case) = remaining.next() {
            self.run_case(&case).await;
            done += 1;
            let is_slow = done >= MIN_CASES_FOR_PACE && began.elapsed() / done > SLOW_CASE;
            if is_slow && more.is_empty() {
                self.open_more_sessions(&mut more, &remaining, MAX_MORE_SESSIONS);
            }
        }
        self.finish_sessions(more).await;
    }

    /// Waits for the other sessions.
    async fn finish_sessions(&mut self, more: JoinSet<ClosedSessions>) {
        self.closed_others.extend(finish(&self.target, more).await);
    }

    /// Whether these cases will wait for slow answers most of the time.
    async fn will_be_slow(&self, cases: &RemainingCases) -> bool {
        let uses_tools = |case: &Arc<Case>| matches!(&case.body, Body::Active(body) if uses_tools(case, body));
        self.session.as_ref().is_some_and(Session::is_slow)
            || (cases.any(uses_tools)
                && self.target.inventory_when(|inventory| !inventory.awaits_first_calls).await.has_slow_tools())
    }

    /// Opens more sessions of a slow server, which run the remaining cases as well.
    fn open_more_sessions(&self, more: &mut JoinSet<ClosedSessions>, remaining: &RemainingCases, max: usize) {
        open_more_sessions(&self.target, &self.capabilities, self.purpose, more, remaining, max);
    }

    /// Runs a case, on another session if this one can no longer be used.
    async fn run_case(&mut self, case: &Arc<Case>) {
        let Body::Active(body) = &case.body else { return };
        self.close_unusable_session().await;
        if let Some(reason) = self.target.stop_reason() {
            self.target.report(case, Judgement::error(reason), None);
            return;
        }
        let inventory = inventory_for(&self.target, case, body).await;
        if waits_for_unanswered_calls(case, &inventory) {
            let (target, case) = (self.target.clone(), Arc::clone(case));
            self.beside.spawn(run_on_own_process(target, case));
            return;
        }
        if self.session.is_none() {
            self.reopen().await;
        }
        let Some(session) = self.session.as_mut() else {
            self.target.report(case, Judgement::error("the server could not be restarted"), None);
            return;
        };
        if self.target.context.has_one_session {
            // What ran before may have ended it by opening another one; then this opens it again.
            let _served = Box::pin(send_control_request(session, self.target.context.plan.timeout)).await;
        }
        let (began, from) = (Instant::now(), session.connection.len());
        let kind = SessionKind { capabilities: &self.capabilities, purpose: self.purpose };
        let (carried, closed) = carry_out_in_parallel(&self.target, case, body, session, &inventory, &kind).await;
        self.closed_others.extend(closed);
        let judged = judge(&self.target, case, body, &carried);
        let (duration, history) = (began.elapsed(), self.history.clone());
        match carried {
            Ok(executions) if rests_on_open_silence(&judged, &executions, session.answer_times()) => {
                self.target.defer(DeferredJudgement { case: Arc::clone(case), executions, duration, history });
            }
            Ok(_) | Err(_) => self.target.report_after(case, judged, Some(duration), history),
        }
        self.history.cases.push(Arc::clone(case));
        if may_damage(case, self.target.revision) {
            if !still_serves(session, from, self.target.context.plan.timeout).await {
                self.close_session().await;
            }
        } else if session.is_unresponsive() && !answers(session, self.target.context.plan.timeout).await {
            self.silences += 1;
            if self.silences >= MAX_SILENCES && is_abandoned(session, self.target.context.plan.timeout).await {
                self.target.give_up("the server stopped answering");
            }
        }
    }

    /// Closes the session if it can no longer be used.
    async fn close_unusable_session(&mut self) {
        if self.session.as_ref().is_some_and(|session| is_unusable(&self.target, session)) {
            self.close_session().await;
        }
    }

    /// Closes the session; the next case opens another one.
    async fn close_session(&mut self) {
        if let Some(session) = self.session.take() {
            // What is in flight belonged to the closed session.
            self.remaining_discovery = RemainingDiscovery::default();
            self.history = SessionHistory { capabilities: self.capabilities.clone(), ..SessionHistory::default() };
            self.closed.push(close(&self.target, session).await);
        }
    }

    /// Opens another session; abandons the server if that fails, or was needed too often.
    async fn reopen(&mut self) {
        self.restarts += 1;
        match open(&self.target, self.capabilities.clone(), self.purpose).await {
            Ok(opened) if self.restarts <= MAX_RESTARTS_BY_CASES => self.session = Some(opened),
            Ok(opened) => {
                self.target.give_up("the server ended too often");
                self.closed.push(close(&self.target, opened).await);
            }
            Err(OpenError { reason, sessions }) => {
                self.closed.extend(sessions);
                self.target.give_up(&reason);
            }
        }
    }
}

/// Whether a session serves requests as before, after a case that may have damaged it. `from` is the position where
/// the case began: if its last request was served, nothing more is sent.
pub(super) async fn still_serves(session: &mut Session, from: usize, timeout: Duration) -> bool {
    if session.connection.is_closed() || session.unanswered > 0 {
        return false;
    }
    let opening = session.parameters.opening.clone();
    let is_typed = opening.as_ref().is_some_and(|opening| opening.get("resultType").is_some());
    // In the stateless era, the result of an older revision has no type.
    let is_served =
        |response: &Value| response.get("result").is_some_and(|result| !is_typed || result.get("resultType").is_some());
    let record = session.transcript_from(from);
    if record.exchanges().last().and_then(|last| last.responses.first()).is_some_and(|(_, last)| is_served(last)) {
        return true;
    }
    match send_control_request(session, timeout).await {
        // A server may lack `ping`; its error is an answer all the same.
        WaitOutcome::Ready(response) => {
            session.revision.era() == Era::Handshake || opening.is_none() || is_served(&response)
        }
        WaitOutcome::TimedOut | WaitOutcome::Closed => false,
    }
}

/// Whether a session that left requests unanswered still answers others.
async fn answers(session: &mut Session, timeout: Duration) -> bool {
    !session.connection.is_closed() && matches!(send_control_request(session, timeout).await, WaitOutcome::Ready(_))
}

/// Whether a silent session leaves even a request unanswered that is waited for much longer: the server may be busy.
async fn is_abandoned(session: &mut Session, timeout: Duration) -> bool {
    session.unanswered = 0;
    let waited = send_control_request(session, timeout * TIMEOUTS_OF_SILENT_SERVER).await;
    if matches!(waited, WaitOutcome::TimedOut) {
        session.connection.record(Event::Abandoned);
    }
    !matches!(waited, WaitOutcome::Ready(_))
}
