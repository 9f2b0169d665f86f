//! Runs active cases: in sequence on a shared session, or each on its own process.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::{Value, json};

use super::bindings::MissingValue;
use super::discovery::{UnansweredCall, wait_for_unanswered};
use super::exchange::{GIVEN_UP, carry_out};
use super::inventory::Inventory;
use super::launch::connect;
use super::permits::{PermitRequest, ProcessPermit};
use super::reply::ClientResponder;
use super::session::{OpeningFailure, RejectedOpening, Session, full_capabilities};
use super::shared_results::{self, is_shared};
use super::target::{ClosedSession, Target, declares_needed_capabilities, missing_capabilities};
use crate::case::{Active, Body, Case, Process};
use crate::check::{self, Execution, Judgement};
use crate::transcript::SessionParameters;
use crate::wire::MessageKind;

/// The sessions that were closed.
pub(super) type ClosedSessions = Vec<ClosedSession>;

/// How often to restart the server after a case has ended it.
const MAX_RESTARTS: usize = 40;

/// How often the server may stop answering before it is abandoned.
const MAX_SILENCES: usize = 2;

/// How many processes may stay silent at startup before no more are started for single cases.
const MAX_SILENT_STARTS: usize = 2;

/// Why missing responses prove nothing.
pub(super) const RATE_LIMITED: &str = "the server limits the request rate (HTTP status 429)";

/// Why a server that writes without end is abandoned.
const OUTPUT_LIMIT_EXCEEDED: &str = "the server exceeded the output limit and was stopped";

/// Runs the cases that share the main session.
pub(super) async fn run_on_main_session(
    target: Target,
    main: Session,
    cases: Vec<Arc<Case>>,
    unanswered_calls: Vec<UnansweredCall>,
    permit: ProcessPermit,
) -> ClosedSessions {
    let capabilities = full_capabilities(target.revision);
    in_sequence(target, main, cases, capabilities, "main session", unanswered_calls, permit).await
}

/// Runs the cases that may harm the server, on a session that declares no capabilities.
///
/// The permit is requested immediately.
pub(super) fn run_on_disposable_session(
    target: Target,
    cases: Vec<Arc<Case>>,
) -> impl Future<Output = ClosedSessions> + Send {
    let permit_request = target.context.request_permit();
    run_disposable_queue(target, cases, permit_request)
}

async fn run_disposable_queue(target: Target, cases: Vec<Arc<Case>>, permit_request: PermitRequest) -> ClosedSessions {
    let permit = permit_request.granted().await;
    let first = open(&target, json!({}), "disposable session").await;
    match first {
        Ok(session) => in_sequence(target, session, cases, json!({}), "disposable session", Vec::new(), permit).await,
        Err(OpenError { reason, sessions }) => {
            for case in cases {
                target.report(&case, Judgement::error(reason.clone()), None);
            }
            sessions
        }
    }
}

/// An additional connection could not be opened.
pub(super) struct OpenError {
    pub(super) reason: String,
    /// The closed session, if passive cases are to judge the server's response on it.
    pub(super) sessions: ClosedSessions,
}

impl From<String> for OpenError {
    fn from(reason: String) -> Self {
        Self { reason, sessions: Vec::new() }
    }
}

async fn open(target: &Target, capabilities: Value, purpose: &str) -> Result<Session, OpenError> {
    let context = &target.context;
    if target.silent_starts.load(Ordering::Relaxed) >= MAX_SILENT_STARTS {
        return Err("other processes of the server did not answer at startup, so no more were started"
            .to_owned()
            .into());
    }
    if context.ready().await.is_err() {
        target.give_up("the server could not be restarted");
        return Err("the server could not be restarted".to_owned().into());
    }
    let keeping = context.keeping(purpose);
    let declared = capabilities.clone();
    let opening = Session::open(context, target.revision, capabilities, purpose.to_owned(), true, keeping);
    let RejectedOpening { reason, connection } = match opening.await {
        Ok(session) => return Ok(session),
        Err(judgement) => judgement,
    };
    let mut sessions = Vec::new();
    match (connection, &reason) {
        (Some(connection), OpeningFailure::Other(_) | OpeningFailure::Error(_)) => {
            let session_parameters = SessionParameters { client_capabilities: declared, opening: None };
            sessions.push(ClosedSession {
                ended: context.close(connection, purpose.to_owned()).await,
                session_parameters,
                borrowed: false,
            });
        }
        (Some(connection), _) => context.close_in_background(connection, purpose),
        (None, _) => {}
    }
    match reason {
        OpeningFailure::Silent | OpeningFailure::Idle(_) => {
            target.silent_starts.fetch_add(1, Ordering::Relaxed);
        }
        OpeningFailure::CutOff => target.give_up(OUTPUT_LIMIT_EXCEEDED),
        _ => {}
    }
    Err(OpenError {
        reason: format!("another process of the server could not be opened: it {}", reason.describe()),
        sessions,
    })
}

async fn close(target: &Target, session: Session) -> ClosedSession {
    let session_parameters = session.parameters;
    ClosedSession {
        ended: target.context.close(session.connection, session.purpose).await,
        session_parameters,
        borrowed: false,
    }
}

/// Closes the session of a single case, which may have been opened by the case itself.
pub(super) async fn close_own(target: &Target, mut session: Session) -> ClosedSession {
    if session.parameters.opening.is_none() {
        read_terms(&mut session);
    }
    close(target, session).await
}

/// The purpose of a single case's process.
pub(super) fn purpose_of(case: &Case) -> String {
    format!("case {}", case.id)
}

/// Runs cases one after the other on a session, which is replaced when it ends or stops answering.
async fn in_sequence(
    mut target: Target,
    session: Session,
    cases: Vec<Arc<Case>>,
    capabilities: Value,
    purpose: &str,
    unanswered_calls: Vec<UnansweredCall>,
    permit: ProcessPermit,
) -> ClosedSessions {
    let mut session = Some(session);
    let inventory = target.inventory().await;
    let mut done = Vec::new();
    let (mut restarts, mut silences) = (0, 0);
    let mut unanswered_calls = Some(unanswered_calls);
    for case in cases {
        let Body::Active(body) = &case.body else { continue };
        if let Some(unusable) = session.take_if(|session| is_unusable(&target, session)) {
            // They belonged to the replaced session.
            unanswered_calls = None;
            done.push(close(&target, unusable).await);
        }
        if let Some(reason) = target.stop_reason() {
            target.report(&case, Judgement::error(reason), None);
            continue;
        }
        if session.is_none() {
            restarts += 1;
            match open(&target, capabilities.clone(), purpose).await {
                Ok(opened) if restarts <= MAX_RESTARTS => session = Some(opened),
                Ok(opened) => {
                    target.give_up("the server ended too often");
                    done.push(close(&target, opened).await);
                }
                Err(OpenError { reason, sessions }) => {
                    done.extend(sessions);
                    target.give_up(&reason);
                }
            }
        }
        let Some(current) = session.as_mut() else {
            target.report(&case, Judgement::error("the server could not be restarted"), None);
            continue;
        };
        let began = Instant::now();
        let judged = run_case(&target, &case, body, current, &inventory).await;
        target.report(&case, judged, Some(began));
        if current.unanswered >= GIVEN_UP {
            silences += 1;
            if silences >= MAX_SILENCES {
                target.give_up("the server stopped answering");
            }
        }
    }
    let _permit = target.context.release_if_idle(permit);
    if let Some(session) = session {
        wait_for_unanswered(&session, unanswered_calls.unwrap_or_default()).await;
        done.push(close(&target, session).await);
    }
    done
}

/// Whether the session can no longer be used. A server that exceeded the output limit is abandoned.
fn is_unusable(target: &Target, session: &Session) -> bool {
    if session.connection.has_overflowed() {
        give_up_cut_off(target);
    }
    session.unanswered >= GIVEN_UP || session.connection.is_closed()
}

/// Abandons a server that writes without end.
pub(super) fn give_up_cut_off(target: &Target) {
    target.give_up(OUTPUT_LIMIT_EXCEEDED);
}

/// The executions of a case, or its judgement if it did not run.
pub(super) type CaseRun = Result<Vec<Execution>, Judgement>;

async fn run_case(
    target: &Target,
    case: &Case,
    body: &Active,
    session: &mut Session,
    inventory: &Inventory,
) -> Judgement {
    let carried = carry_out_in(target, case, body, session, inventory).await;
    judge(target, case, body, carried)
}

async fn carry_out_in(
    target: &Target,
    case: &Case,
    body: &Active,
    session: &mut Session,
    inventory: &Inventory,
) -> CaseRun {
    // A case that opens the connection itself uses the capabilities of the main session.
    let session_parameters =
        if session.parameters.opening.is_some() { &session.parameters } else { &inventory.session_parameters };
    if session_parameters.opening.is_some() && !declares_needed_capabilities(case, session_parameters) {
        return Err(Judgement::inapplicable(missing_capabilities(case)));
    }
    let mut new_execution = || target.context.new_execution(&case.id);
    let limited = session.connection.rate_limited_requests();
    let carried_out = carry_out(case, body, session, inventory, &target.context.plan, &mut new_execution).await;
    if session.connection.rate_limited_requests() > limited {
        // Missing responses prove nothing while the server limits the rate.
        return Err(Judgement::error(RATE_LIMITED));
    }
    carried_out.map_err(|MissingValue(reason)| Judgement::skip(reason))
}

/// Judges a case by its executions.
pub(super) fn judge(target: &Target, case: &Case, body: &Active, carried: CaseRun) -> Judgement {
    match carried {
        Ok(executions) => target.context.judging(|| check::judge_active(case, body, target.revision, &executions)),
        Err(judged) => judged,
    }
}

/// Runs a case on its own process.
///
/// The permit is requested immediately, unless discovery decides whether the case runs at all.
pub(super) fn run_on_own_process(target: Target, case: Arc<Case>) -> impl Future<Output = ClosedSessions> + Send {
    let needs = &case.needs;
    let is_shared = matches!(&case.body, Body::Active(body) if is_shared(&target, &case, body));
    let at_once = needs.client_request.is_none() && needs.tool.is_none() && !is_shared;
    let permit_request = at_once.then(|| target.context.request_permit());
    run_own_process(target, case, permit_request, is_shared)
}

async fn run_own_process(
    mut target: Target,
    case: Arc<Case>,
    permit_request: Option<PermitRequest>,
    is_shared: bool,
) -> ClosedSessions {
    let Body::Active(body) = &case.body else { return Vec::new() };
    if is_shared {
        return shared_results::report_shared(target, &case, body).await;
    }
    if case.needs.client_request.is_some() {
        // No process is needed if the server does not send such requests.
        let inventory = target.inventory().await;
        if let Some(reason) = reason_without_client_request(&case, &inventory) {
            target.report(&case, Judgement::skip(reason), None);
            return Vec::new();
        }
    }
    if let (Process::Fresh, Some(needed)) = (body.process, &case.needs.tool) {
        // No process is needed if there is no such tool.
        let inventory = target.inventory().await;
        if target.stop_reason().is_none() && !inventory.tools.iter().any(|tool| needed.fits(&tool.definition)) {
            target.report(&case, Judgement::skip("the server has no tool of the kind that the case needs"), None);
            return Vec::new();
        }
    }
    let context = target.context.clone();
    let permit = permit_request.unwrap_or_else(|| context.request_permit()).granted().await;
    if let Some(reason) = target.stop_reason() {
        target.report(&case, Judgement::error(reason), None);
        return Vec::new();
    }
    let mut session = match open_for_case(&target, body, purpose_of(&case)).await {
        Ok(session) => session,
        Err(OpenError { reason, sessions }) => {
            target.report(&case, Judgement::error(reason), None);
            return sessions;
        }
    };
    let inventory = target.inventory().await;
    let began = Instant::now();
    let judged = match target.stop_reason() {
        Some(reason) => Judgement::error(reason),
        None => run_fresh(&target, &case, body, &mut session, &inventory).await,
    };
    target.report(&case, judged, Some(began));
    is_unusable(&target, &session);
    let _permit = context.release_if_idle(permit);
    vec![close_own(&target, session).await]
}

/// The reason why a case about client requests does not apply, according to discovery.
fn reason_without_client_request(case: &Case, inventory: &Inventory) -> Option<String> {
    let permit_request = case.needs.client_request.as_ref()?;
    let asks =
        inventory.tools.iter().any(|tool| tool.client_requests.iter().any(|request| permit_request.fits(request)));
    (!asks).then(|| "no tool call made the server send such a request to the client".to_owned())
}

/// Opens a process for one case, in the way the case requires.
pub(super) async fn open_for_case(target: &Target, body: &Active, purpose: String) -> Result<Session, OpenError> {
    let context = &target.context;
    let capabilities = match (&body.client_capabilities, body.process) {
        (Some(declared), _) => declared.clone(),
        (None, Process::Disposable) => json!({}),
        (None, Process::Shared | Process::Fresh | Process::Uninitialized) => full_capabilities(target.revision),
    };
    if body.process != Process::Uninitialized {
        return open(target, capabilities, &purpose).await;
    }
    let (keeping, replies) = (context.keeping(&purpose), ClientResponder::default());
    connect(context, target.revision, &capabilities, &replies, keeping)
        .map(|connection| Session::unopened(connection, target.revision, capabilities, replies, purpose))
        .map_err(|error| error.to_string().into())
}

/// Runs a case on a fresh process.
pub(super) async fn run_fresh(
    target: &Target,
    case: &Case,
    body: &Active,
    session: &mut Session,
    inventory: &Inventory,
) -> Judgement {
    let carried = carry_out_fresh(target, case, body, session, inventory).await;
    judge(target, case, body, carried)
}

/// Carries out the steps of a case on a fresh process.
pub(super) async fn carry_out_fresh(
    target: &Target,
    case: &Case,
    body: &Active,
    session: &mut Session,
    inventory: &Inventory,
) -> CaseRun {
    // The first request is sent while the process starts, which may take as long as for the main session.
    session.startup_allowance = target.context.plan.startup_timeout.min(inventory.startup * 3);
    carry_out_in(target, case, body, session, inventory).await
}

/// Reads the session parameters from the transcript of a session that a case has opened.
fn read_terms(session: &mut Session) {
    let record = session.transcript_from(0);
    let opened = record.exchanges().into_iter().find_map(|exchange| {
        let MessageKind::Request { method: "initialize" | "server/discover", .. } = MessageKind::of(exchange.request)
        else {
            return None;
        };
        let result = exchange.responses.first()?.1.get("result")?.clone();
        let declared = exchange.request.pointer("/params/capabilities").cloned();
        Some((result, declared))
    });
    if let Some((result, declared)) = opened {
        session.parameters.opening = Some(result);
        if let Some(declared) = declared {
            session.parameters.client_capabilities = declared;
        }
    }
}
