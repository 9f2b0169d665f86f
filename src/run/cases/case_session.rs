//! The additional sessions that active cases run on: how they are opened, when they are unusable, and how they are closed.

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::case::{Active, Case, Locale, Process, StandardError, Start};
use crate::check::Judgement;
use crate::context::ClosedConnection;
use crate::inventory::Inventory;
use crate::limits::MAX_SILENT_STARTS;
use crate::run::target_state::Target;
use crate::session::{OpeningFailure, RejectedOpening, Session, StartConditions, full_capabilities};
use crate::spec::{Era, Transport};
use crate::transcript::SessionParameters;
use crate::wire::MessageKind;

/// Why a server that writes without end is abandoned.
const OUTPUT_LIMIT_EXCEEDED: &str = "the server exceeded the output limit and was stopped";

/// A closed session of a revision.
pub(in crate::run) struct ClosedSession {
    pub(in crate::run) ended: ClosedConnection,
    pub(in crate::run) session_parameters: SessionParameters,
    /// Whether it was opened, and is counted, by another revision.
    pub(in crate::run) borrowed: bool,
}

/// The sessions that were closed.
pub(in crate::run) type ClosedSessions = Vec<ClosedSession>;

/// An additional connection could not be opened.
pub(in crate::run) struct OpenError {
    pub(in crate::run) reason: String,
    /// The closed session, if passive cases are to judge the server's response on it.
    pub(in crate::run) sessions: ClosedSessions,
}

impl From<String> for OpenError {
    fn from(reason: String) -> Self {
        Self { reason, sessions: Vec::new() }
    }
}

pub(in crate::run) async fn open(target: &Target, capabilities: Value, purpose: &str) -> Result<Session, OpenError> {
    open_started(target, capabilities, purpose, StartConditions::default()).await
}

/// Opens a session on a process that may be started in another way.
async fn open_started(
    target: &Target,
    capabilities: Value,
    purpose: &str,
    start: StartConditions,
) -> Result<Session, OpenError> {
    let context = &target.context;
    if target.silent_starts() >= MAX_SILENT_STARTS {
        return Err("other processes of the server did not answer at startup, so no more were started"
            .to_owned()
            .into());
    }
    let declared = capabilities.clone();
    let began = Instant::now();
    let mut opened = open_on_running(target, capabilities.clone(), purpose, start).await?;
    if context.shares_own_process() && opened.as_ref().is_err_and(|rejected| rejected.reason.is_end()) {
        // What ended the process may have come from a case of another revision.
        opened = open_on_running(target, capabilities, purpose, start).await?;
    }
    let RejectedOpening { reason, connection } = match opened {
        Ok(session) => {
            context.slow_server.allow_further_process(session.connection.opening_time().unwrap_or(began.elapsed()));
            return Ok(session);
        }
        Err(rejected) => rejected,
    };
    if reason.is_refusal()
        && let Some(refusal) = Box::pin(refusal_of_any_session(target)).await
    {
        // What the server answers to one more session says nothing about the session that was requested.
        if let Some(connection) = connection {
            context.close_in_background(connection, purpose);
        }
        return Err(OpenError::from(refusal.to_owned()));
    }
    let mut sessions = Vec::new();
    match (connection, &reason) {
        (Some(connection), OpeningFailure::Other(_) | OpeningFailure::Error(_) | OpeningFailure::Unanswered) => {
            let session_parameters =
                SessionParameters { client_capabilities: declared, ..SessionParameters::default() };
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
        OpeningFailure::Silent | OpeningFailure::Idle(_) | OpeningFailure::Unanswered => {
            target.count_silent_start();
        }
        OpeningFailure::CutOff => target.give_up(OUTPUT_LIMIT_EXCEEDED),
        _ => {}
    }
    Err(OpenError {
        reason: format!("another process of the server could not be opened: it {}", reason.describe()),
        sessions,
    })
}

/// Opens a session, on a process that is started if the one that all sessions share has ended.
async fn open_on_running(
    target: &Target,
    capabilities: Value,
    purpose: &str,
    start: StartConditions,
) -> Result<Result<Session, RejectedOpening>, OpenError> {
    if target.context.ready().await.is_err() {
        target.give_up("the server could not be restarted");
        return Err("the server could not be restarted".to_owned().into());
    }
    Ok(Session::open_started(&target.context, target.revision, capabilities, purpose.to_owned(), start).await)
}

/// How an HTTP server refuses one more ordinary session: while one is open or, if it serves one at a time, when none is.
async fn refusal_of_any_session(target: &Target) -> Option<&str> {
    let context = &target.context;
    if !context.has_one_session {
        return session_refusal(target).await;
    }
    let attempt = async {
        let opened =
            open_on_running(target, full_capabilities(target.revision), "control session", StartConditions::default());
        let rejected = match opened.await {
            Ok(Ok(session)) => {
                context.close_in_background(session.connection, "control session");
                return None;
            }
            Ok(Err(rejected)) => rejected,
            Err(_) => return None,
        };
        if let Some(connection) = rejected.connection {
            context.close_in_background(connection, "control session");
        }
        let is_refusal = rejected.reason.is_refusal();
        is_refusal.then(|| {
            format!(
                "the server refuses another session, while one is open and after it has ended: it {}",
                rejected.reason.describe()
            )
        })
    };
    target.session_refusal(attempt).await
}

/// How an HTTP server refuses one more ordinary session while the main session is open, if it does. This is the control
/// request without which the refusal of any other opening proves nothing.
pub(in crate::run) async fn session_refusal(target: &Target) -> Option<&str> {
    const PURPOSE: &str = "control session";
    let (context, revision) = (&target.context, target.revision);
    if context.plan.transport() != Transport::Http || revision.era() != Era::Handshake || context.has_one_session {
        return None;
    }
    let attempt = async {
        let opening = Session::open(context, revision, full_capabilities(revision), PURPOSE.to_owned(), true);
        let (connection, refusal) = match opening.await {
            Ok(session) => (Some(session.connection), None),
            Err(RejectedOpening { reason, connection }) => {
                let refusal = reason
                    .is_refusal()
                    .then(|| format!("the server refuses another session while one is open: it {}", reason.describe()));
                (connection, refusal)
            }
        };
        if let Some(connection) = connection {
            context.close_in_background(connection, PURPOSE);
        }
        refusal
    };
    target.session_refusal(attempt).await
}

/// Whether the server refused an `initialize` of a case, and that may be because of no more than another session.
pub(super) fn may_be_refused_anyway(target: &Target, session: &mut Session) -> bool {
    was_refused(session) && (!target.context.has_one_session || session.connection.http_session().is_none())
}

/// For findings of a case whose `initialize` was refused: how the server refuses any other session too, if it does. Then they
/// prove nothing.
pub(super) async fn refuses_any_session(
    target: &Target,
    judged: &Judgement,
    was_refused: bool,
    inventory: &Inventory,
) -> Option<String> {
    if judged.findings.is_empty() || !was_refused || inventory.session_parameters.opening.is_none() {
        return None;
    }
    Box::pin(refusal_of_any_session(target)).await.map(str::to_owned)
}

/// Whether the server refused an `initialize` that a case sent on this session.
fn was_refused(session: &mut Session) -> bool {
    let record = session.transcript_from(0);
    record.exchanges().into_iter().any(|exchange| {
        matches!(MessageKind::of(exchange.request), MessageKind::Request { method: "initialize", .. })
            && exchange.responses.first().is_none_or(|(_, response)| response.get("error").is_some())
    })
}

pub(in crate::run) async fn close(target: &Target, session: Session) -> ClosedSession {
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
        read_session_parameters(&mut session);
    }
    close(target, session).await
}

/// The purpose of a single case's process.
pub(super) fn purpose_of(case: &Case) -> String {
    format!("case {}", case.id)
}

/// What the client declares on the process of a single case.
pub(super) fn declared_capabilities(target: &Target, body: &Active) -> Value {
    match (&body.client_capabilities, body.process) {
        (Some(declared), _) => declared.clone(),
        (None, Process::Disposable) => json!({}),
        (None, Process::Shared | Process::Fresh | Process::Uninitialized) => full_capabilities(target.revision),
    }
}

/// Opens a process for one case, in the way the case requires.
pub(super) async fn open_for_case(target: &Target, body: &Active, purpose: String) -> Result<Session, OpenError> {
    let context = &target.context;
    let capabilities = declared_capabilities(target, body);
    let start = StartConditions {
        without_locale: body.start.locale == Locale::None,
        without_standard_error: body.start.standard_error == StandardError::Closed,
    };
    if body.process != Process::Uninitialized {
        return open_started(target, capabilities, &purpose, start).await;
    }
    context.wait_for_only_session().await;
    Session::connect(context, target.revision, capabilities, purpose, start).map_err(|error| error.to_string().into())
}

/// For findings of a case that starts the server in a way of its own: why one more process, started as usual, cannot be
/// opened, if it cannot. Then they prove nothing.
pub(super) async fn fails_as_usual(target: &Target, body: &Active, judged: &Judgement) -> Option<String> {
    const PURPOSE: &str = "control process";
    if judged.findings.is_empty() || body.start == Start::default() {
        return None;
    }
    match open(target, full_capabilities(target.revision), PURPOSE).await {
        Ok(session) => {
            target.context.close_in_background(session.connection, PURPOSE);
            None
        }
        Err(OpenError { reason, .. }) => Some(reason),
    }
}

/// Whether the session can no longer be used. A server that exceeded the output limit is abandoned.
pub(super) fn is_unusable(target: &Target, session: &Session) -> bool {
    if session.connection.has_overflowed() {
        give_up_cut_off(target);
    }
    session.is_unresponsive() || session.connection.is_closed()
}

/// Abandons a server that writes without end.
pub(super) fn give_up_cut_off(target: &Target) {
    target.give_up(OUTPUT_LIMIT_EXCEEDED);
}

/// Reads the session parameters from the transcript of a session that a case has opened.
fn read_session_parameters(session: &mut Session) {
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
