//! Lanes: sequences of acting cases that run beside one another, each on processes of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::{Value, json};

use super::bindings::Unfilled;
use super::common::{self, is_common};
use super::exchange::{GIVEN_UP, carry_out};
use super::launch::connect;
use super::offer::Offer;
use super::permits::{Asked, Permit};
use super::reply::Replies;
use super::session::{Refusal, Refused, Session, full_capabilities};
use super::survey::{Straggler, wait_for_stragglers};
use super::target::{Kept, Target, meets, unmet};
use crate::case::{Act, Body, Case, Process};
use crate::check::{self, Judged, Pass};
use crate::transcript::Terms;
use crate::wire::Kind;

/// The connections that a lane has ended.
pub(super) type Done = Vec<Kept>;

/// How often a lane starts the server anew after a case has ended it.
const RESTARTS: usize = 40;

/// How often a lane meets a server that does not answer before it is given up.
const SILENCES: usize = 2;

/// How many processes may stay silent at their start before no more are started for single cases.
const STUCK: usize = 2;

/// Why nothing follows from what was not answered.
pub(super) const LIMITED: &str = "the server limits how often it is asked (HTTP status 429)";

/// Why a server is given up that writes without end.
const CUT_OFF: &str = "the server wrote more than is kept and was cut off";

/// Runs the cases that share the main session.
pub(super) async fn shared(
    target: Target,
    main: Session,
    cases: Vec<Arc<Case>>,
    stragglers: Vec<Straggler>,
    permit: Permit,
) -> Done {
    let capabilities = full_capabilities(target.revision);
    in_sequence(target, main, cases, capabilities, "main session", stragglers, permit).await
}

/// Runs the cases that may harm the server, on a session that declares nothing.
///
/// Its place among those who wait for a permit is taken at once.
pub(super) fn expendable(target: Target, cases: Vec<Arc<Case>>) -> impl Future<Output = Done> + Send {
    let asked = target.context.ask();
    run_expendable(target, cases, asked)
}

async fn run_expendable(target: Target, cases: Vec<Arc<Case>>, asked: Asked) -> Done {
    let permit = asked.given().await;
    let first = open(&target, json!({}), "expendable session").await;
    match first {
        Ok(session) => in_sequence(target, session, cases, json!({}), "expendable session", Vec::new(), permit).await,
        Err(Unopened { reason, told }) => {
            for case in cases {
                target.tell(&case, Judged::error(reason.clone()), None);
            }
            told
        }
    }
}

/// A further connection that could not be opened.
pub(super) struct Unopened {
    pub(super) reason: String,
    /// The connection, where what the server answered on it is for watching cases to see.
    pub(super) told: Done,
}

impl From<String> for Unopened {
    fn from(reason: String) -> Self {
        Self { reason, told: Vec::new() }
    }
}

async fn open(target: &Target, capabilities: Value, purpose: &str) -> Result<Session, Unopened> {
    let context = &target.context;
    if target.stuck.load(Ordering::Relaxed) >= STUCK {
        return Err("other processes of the server did not answer, so no more were started".to_owned().into());
    }
    if context.ready().await.is_err() {
        target.give_up("the server could not be started again");
        return Err("the server could not be started again".to_owned().into());
    }
    let keeping = context.keeping(purpose);
    let declared = capabilities.clone();
    let opening = Session::open(context, target.revision, capabilities, purpose.to_owned(), true, keeping);
    let Refused { reason, connection } = match opening.await {
        Ok(session) => return Ok(session),
        Err(refused) => refused,
    };
    let mut told = Vec::new();
    match (connection, &reason) {
        (Some(connection), Refusal::Other(_) | Refusal::Error(_)) => {
            let terms = Terms { client_capabilities: declared, opening: None };
            told.push(Kept { ended: context.end(connection, purpose.to_owned()).await, terms, lent: false });
        }
        (Some(connection), _) => context.dismiss(connection, purpose),
        (None, _) => {}
    }
    match reason {
        Refusal::Silent | Refusal::Idle(_) => {
            target.stuck.fetch_add(1, Ordering::Relaxed);
        }
        Refusal::CutOff => target.give_up(CUT_OFF),
        _ => {}
    }
    Err(Unopened {
        reason: format!("another process of the server could not be opened: it {}", reason.describe()),
        told,
    })
}

async fn close(target: &Target, session: Session) -> Kept {
    let terms = session.terms;
    Kept { ended: target.context.end(session.connection, session.purpose).await, terms, lent: false }
}

/// Closes the process of a single case, which may have opened it itself.
pub(super) async fn close_own(target: &Target, mut session: Session) -> Kept {
    if session.terms.opening.is_none() {
        take_terms(&mut session);
    }
    close(target, session).await
}

/// What the process of a single case is for.
pub(super) fn purpose_of(case: &Case) -> String {
    format!("case {}", case.id)
}

/// Runs cases one after the other on a session, which is replaced when it has ended or fallen silent.
async fn in_sequence(
    mut target: Target,
    session: Session,
    cases: Vec<Arc<Case>>,
    capabilities: Value,
    purpose: &str,
    stragglers: Vec<Straggler>,
    permit: Permit,
) -> Done {
    let mut session = Some(session);
    let offer = target.offer().await;
    let mut done = Vec::new();
    let (mut restarts, mut silences) = (0, 0);
    let mut stragglers = Some(stragglers);
    for case in cases {
        let Body::Act(body) = &case.body else { continue };
        if let Some(spent) = session.take_if(|session| is_spent(&target, session)) {
            // They went with their session.
            stragglers = None;
            done.push(close(&target, spent).await);
        }
        if let Some(reason) = target.dead() {
            target.tell(&case, Judged::error(reason), None);
            continue;
        }
        if session.is_none() {
            restarts += 1;
            match open(&target, capabilities.clone(), purpose).await {
                Ok(opened) if restarts <= RESTARTS => session = Some(opened),
                Ok(opened) => {
                    target.give_up("the server ended too often");
                    done.push(close(&target, opened).await);
                }
                Err(Unopened { reason, told }) => {
                    done.extend(told);
                    target.give_up(&reason);
                }
            }
        }
        let Some(current) = session.as_mut() else {
            target.tell(&case, Judged::error("the server could not be started again"), None);
            continue;
        };
        let began = Instant::now();
        let judged = run_case(&target, &case, body, current, &offer).await;
        target.tell(&case, judged, Some(began));
        if current.unanswered >= GIVEN_UP {
            silences += 1;
            if silences >= SILENCES {
                target.give_up("the server stopped answering");
            }
        }
    }
    let _busy = target.context.idle(permit);
    if let Some(session) = session {
        wait_for_stragglers(&session, stragglers.unwrap_or_default()).await;
        done.push(close(&target, session).await);
    }
    done
}

/// Whether nothing more can be asked on a session; a server that was cut off is given up.
fn is_spent(target: &Target, session: &Session) -> bool {
    if session.connection.is_cut_off() {
        give_up_cut_off(target);
    }
    session.unanswered >= GIVEN_UP || session.connection.is_closed()
}

/// Gives up a server that writes without end.
pub(super) fn give_up_cut_off(target: &Target) {
    target.give_up(CUT_OFF);
}

/// The passes of a case that was carried out, or what is to be said of it as it was not.
pub(super) type Carried = Result<Vec<Pass>, Judged>;

async fn run_case(target: &Target, case: &Case, body: &Act, session: &mut Session, offer: &Offer) -> Judged {
    let carried = carry_out_in(target, case, body, session, offer).await;
    judge(target, case, body, carried)
}

async fn carry_out_in(target: &Target, case: &Case, body: &Act, session: &mut Session, offer: &Offer) -> Carried {
    // A case that opens the connection itself goes by what the main session was told.
    let terms = if session.terms.opening.is_some() { &session.terms } else { &offer.terms };
    if terms.opening.is_some() && !meets(case, terms) {
        return Err(Judged::inapplicable(unmet(case)));
    }
    let mut new_pass = || target.context.new_pass(&case.id);
    let limited = session.connection.limited();
    let carried_out = carry_out(case, body, session, offer, &target.context.plan, &mut new_pass).await;
    if session.connection.limited() > limited {
        // What was not answered for that reason says nothing of the rule.
        return Err(Judged::error(LIMITED));
    }
    carried_out.map_err(|Unfilled(reason)| Judged::skip(reason))
}

/// Judges a case by its passes.
pub(super) fn judge(target: &Target, case: &Case, body: &Act, carried: Carried) -> Judged {
    match carried {
        Ok(passes) => target.context.judging(|| check::act(case, body, target.revision, &passes)),
        Err(judged) => judged,
    }
}

/// Runs a case on a process of its own.
///
/// Its place among those who wait for a permit is taken at once, unless the survey says whether it runs at all.
pub(super) fn alone(target: Target, case: Arc<Case>) -> impl Future<Output = Done> + Send {
    let needs = &case.needs;
    let is_common = matches!(&case.body, Body::Act(body) if is_common(&target, &case, body));
    let at_once = needs.client_request.is_none() && needs.tool.is_none() && !is_common;
    let asked = at_once.then(|| target.context.ask());
    run_alone(target, case, asked, is_common)
}

async fn run_alone(mut target: Target, case: Arc<Case>, asked: Option<Asked>, is_common: bool) -> Done {
    let Body::Act(body) = &case.body else { return Vec::new() };
    if is_common {
        return common::run(target, &case, body).await;
    }
    if case.needs.client_request.is_some() {
        // What the server does not ask for needs no process to find out.
        let offer = target.offer().await;
        if let Some(reason) = nobody_asks(&case, &offer) {
            target.tell(&case, Judged::skip(reason), None);
            return Vec::new();
        }
    }
    if let (Process::Fresh, Some(needed)) = (body.process, &case.needs.tool) {
        // No process is started for tools that are not there.
        let offer = target.offer().await;
        if target.dead().is_none() && !offer.tools.iter().any(|tool| needed.fits(&tool.definition)) {
            target.tell(&case, Judged::skip("no tool is of the kind that the case needs"), None);
            return Vec::new();
        }
    }
    let context = target.context.clone();
    let permit = asked.unwrap_or_else(|| context.ask()).given().await;
    if let Some(reason) = target.dead() {
        target.tell(&case, Judged::error(reason), None);
        return Vec::new();
    }
    let mut session = match open_for(&target, body, purpose_of(&case)).await {
        Ok(session) => session,
        Err(Unopened { reason, told }) => {
            target.tell(&case, Judged::error(reason), None);
            return told;
        }
    };
    let offer = target.offer().await;
    let began = Instant::now();
    let judged = match target.dead() {
        Some(reason) => Judged::error(reason),
        None => run_fresh(&target, &case, body, &mut session, &offer).await,
    };
    target.tell(&case, judged, Some(began));
    is_spent(&target, &session);
    let _busy = context.idle(permit);
    vec![close_own(&target, session).await]
}

/// Why a case about what the server asks for does not apply, as far as the survey has seen.
fn nobody_asks(case: &Case, offer: &Offer) -> Option<String> {
    let asked = case.needs.client_request.as_ref()?;
    let asks = offer.tools.iter().any(|tool| tool.asked.iter().any(|request| asked.fits(request)));
    (!asks).then(|| "no call of a tool led the server to ask the client for such a thing".to_owned())
}

/// Opens a process for one case, as the case asks.
pub(super) async fn open_for(target: &Target, body: &Act, purpose: String) -> Result<Session, Unopened> {
    let context = &target.context;
    let capabilities = match (&body.client_capabilities, body.process) {
        (Some(declared), _) => declared.clone(),
        (None, Process::Disposable) => json!({}),
        (None, Process::Shared | Process::Fresh | Process::Uninitialized) => full_capabilities(target.revision),
    };
    if body.process != Process::Uninitialized {
        return open(target, capabilities, &purpose).await;
    }
    let (keeping, replies) = (context.keeping(&purpose), Replies::default());
    connect(context, target.revision, &capabilities, &replies, keeping)
        .map(|connection| Session::unopened(connection, target.revision, capabilities, replies, purpose))
        .map_err(|error| error.to_string().into())
}

/// Runs a case on a process that has run nothing else.
pub(super) async fn run_fresh(
    target: &Target,
    case: &Case,
    body: &Act,
    session: &mut Session,
    offer: &Offer,
) -> Judged {
    let carried = carry_out_fresh(target, case, body, session, offer).await;
    judge(target, case, body, carried)
}

/// Carries a case out on a process that has run nothing else.
pub(super) async fn carry_out_fresh(
    target: &Target,
    case: &Case,
    body: &Act,
    session: &mut Session,
    offer: &Offer,
) -> Carried {
    // The first request of an unopened process is sent while that starts, which took the main session as long.
    session.starting = target.context.plan.startup_timeout.min(offer.startup * 3);
    carry_out_in(target, case, body, session, offer).await
}

/// Reads the terms of a session that a case has opened itself off its record.
fn take_terms(session: &mut Session) {
    let record = session.transcript_from(0);
    let opened = record.exchanges().into_iter().find_map(|exchange| {
        let Kind::Request { method: "initialize" | "server/discover", .. } = Kind::of(exchange.request) else {
            return None;
        };
        let result = exchange.responses.first()?.1.get("result")?.clone();
        let declared = exchange.request.pointer("/params/capabilities").cloned();
        Some((result, declared))
    });
    if let Some((result, declared)) = opened {
        session.terms.opening = Some(result);
        if let Some(declared) = declared {
            session.terms.client_capabilities = declared;
        }
    }
}
