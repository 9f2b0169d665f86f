//! Judges a server in one revision: runs its cases, confirms what the passive ones find, and fuzzes it.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::fuzzing;
use super::shared_runs::SharedRuns;
use super::target_run::{CompletedRun, RunWithoutMain, TargetRun};
use super::target_state::Target;
use super::target_summary::{SessionSummary, stop_problem, summarize};
use crate::case::{Body, Case, Process, Step};
use crate::client::Connection;
use crate::context::{ActiveRevision, Context};
use crate::event::{Event, FuzzSummary, Problem};
use crate::inventory::Inventory;
use crate::run::cases::case_session::{ClosedSession, ClosedSessions};
use crate::run::cases::confirm_passive::{Repetition, confirm_passive_cases, repeat_early};
use crate::run::cases::own_process::run_on_own_process;
use crate::run::cases::passive_cases::judge_passive_cases;
use crate::session::{RejectedOpening, Session, full_capabilities};
use crate::spec::{Revision, Transport};
use crate::transcript::SessionParameters;

/// Judges the server in the revision of an opened session.
///
/// If `fuzzed`, fuzzing starts when the cases of this revision have finished. It overlaps with cases of other
/// revisions only as far as its tools are read-only, and not at all if one process serves all revisions. Permits are
/// requested immediately.
pub(super) fn judge(
    context: Context,
    main: Session,
    fuzzed: bool,
    under_way: ActiveRevision,
    shared_runs: &Arc<SharedRuns>,
) -> impl Future<Output = Option<Problem>> + Send + use<> {
    let run = TargetRun::start(Target::with_shared_runs(context, main.revision, shared_runs));
    finish(run, main, fuzzed, under_way)
}

/// Runs the cases of a target, judges the passive ones, fuzzes, and reports the summary.
async fn finish(run: TargetRun, main: Session, fuzzed: bool, under_way: ActiveRevision) -> Option<Problem> {
    let target = run.target().clone();
    let opening = main.parameters.opening.clone();
    let mut run = Box::pin(run.run_main_session(main)).await;
    let early = begin_repetition(&target, &mut run).await;
    let CompletedRun { cases, discovered, mut sessions } = Box::pin(run.complete()).await;
    if target.known_session_refusal().is_some() {
        // The others were refused because the main session was open.
        sessions.retain(|session| session.session_parameters.opening.is_some());
    }
    note_judged(&target, &sessions);
    let mut judged = judge_passive_cases(&target, &cases, &sessions).await;
    confirm_passive_cases(&target, &mut judged, early).await;
    let mut cases = cases;
    let is_broken =
        |case: &Arc<Case>| judged.iter().any(|(known, judged)| known.id == case.id && !judged.findings.is_empty());
    cases.retain(|case| !is_broken(case));
    for (case, judgement) in judged {
        target.report(&case, judgement, None);
    }
    drop(under_way);
    let ended = SessionSummary::of(&sessions);
    // They take much memory, and fuzzing may wait for the cases of all other revisions.
    drop(sessions);
    let fuzz = if fuzzed { fuzz_when_allowed(&target, &cases, &discovered).await } else { None };
    let summary = summarize(&target, opening.as_ref(), &discovered, &ended, fuzz);
    target.context.emit(&Event::TargetFinished(Box::new(summary)));
    stop_problem(&target, &ended)
}

/// Begins to repeat what has failed as soon as no other process waits for its start, while cases go on that mostly wait. Over HTTP
/// they use the same process, and may have damaged it.
async fn begin_repetition(target: &Target, run: &mut RunWithoutMain) -> JoinSet<Option<Repetition>> {
    let (plan, mut repetition) = (&target.context.plan, JoinSet::new());
    if plan.transport() == Transport::Http || plan.jobs <= 1 || plan.retries == 0 || target.stop_reason().is_some() {
        return repetition;
    }
    drop(target.context.with_priority(false).request_permit().granted().await);
    run.add_finished();
    let judged = judge_passive_cases(target, &run.cases, &run.sessions).await;
    let target = target.clone();
    repetition.spawn(async move { repeat_early(&target, &judged).await });
    repetition
}

/// Notes in the transcript, if the run saves one, by which connections the passive cases of a revision are judged.
fn note_judged(target: &Target, sessions: &[ClosedSession]) {
    for session in sessions {
        if let Some(connection) = &session.ended.name {
            target.context.note_judged(connection, target.revision, &session.session_parameters);
        }
    }
}

/// Fuzzes the revision when that does not disturb other work.
async fn fuzz_when_allowed(target: &Target, cases: &[Arc<Case>], discovered: &Inventory) -> Option<FuzzSummary> {
    let context = &target.context;
    if context.plan.transport() == Transport::Http {
        // The calls affect the one process that everyone uses.
        context.wait_for_cases().await;
    }
    let _fuzzed = context.begin_fuzzing().await;
    let result = fuzzing::fuzz(context, target.revision, cases, discovered, target.stop_reason()).await?;
    for (case, judged) in result.judgements {
        target.report(&case, judged, result.began);
    }
    result.summary
}

/// An `initialize` that the server never answered.
pub(super) struct UnansweredOpening {
    pub(super) revision: Revision,
    /// Whether the server ended instead of answering.
    pub(super) has_ended: bool,
    /// The connection on which it was sent.
    pub(super) connection: Connection,
    /// The passive cases that judge it.
    pub(super) cases: Vec<Arc<Case>>,
}

/// Opens the server again in a revision in which it did not answer, with the whole startup timeout. Judges it in full if
/// it answers now, and by its silence if it does not.
pub(super) async fn judge_unanswered_opening(
    context: Context,
    opening: UnansweredOpening,
    under_way: ActiveRevision,
    shared_runs: Arc<SharedRuns>,
) -> Option<Problem> {
    let UnansweredOpening { revision, connection, cases, .. } = opening;
    let purpose = format!("main session, {revision}");
    let closed = |ended, ended_alone| {
        let session_parameters = SessionParameters {
            client_capabilities: full_capabilities(revision),
            ended_alone,
            ..SessionParameters::default()
        };
        ClosedSession { ended, session_parameters, borrowed: false }
    };
    let permit = context.request_permit().granted().await;
    let mut sessions = vec![closed(context.close(connection, purpose.clone()).await, false)];
    let capabilities = full_capabilities(revision);
    // If it is not ready, the attempt shows that.
    let _restarted = context.ready().await;
    let RejectedOpening { reason, connection } =
        match Session::open(&context, revision, capabilities, purpose.clone(), true).await {
            Ok(session) => {
                drop(permit);
                return Box::pin(judge(context, session, false, under_way, &shared_runs)).await;
            }
            Err(rejected) => rejected,
        };
    if let Some(connection) = connection {
        sessions.push(closed(context.close(connection, purpose).await, reason.is_end()));
    }
    drop(permit);
    if !reason.is_silence() && !reason.is_end() {
        // It answers in some way, so there is nothing to judge.
        sessions.clear();
    }
    let target = Target::new(context, revision);
    target.set_inventory(Arc::default());
    note_judged(&target, &sessions);
    // It was opened twice, so that is confirmed.
    for (case, judged) in judge_passive_cases(&target, &cases, &sessions).await {
        target.report(&case, judged, None);
    }
    let summary = summarize(&target, None, &Inventory::default(), &SessionSummary::of(&sessions), None);
    target.context.emit(&Event::TargetFinished(Box::new(summary)));
    None
}

/// The cases that send only requests outside a session.
pub(super) fn cases_without_session(context: &Context, revision: Revision) -> Vec<Arc<Case>> {
    let is_seen = |case: &&Arc<Case>| {
        let Body::Active(act) = &case.body else { return false };
        act.process == Process::Uninitialized && act.steps.iter().all(Step::is_http)
    };
    let runs = |case: &&Arc<Case>| case.runs_in(revision) && context.plan.reaches(case);
    context.plan.cases.iter().filter(runs).filter(is_seen).cloned().collect()
}

/// Judges a server that cannot be opened by such cases.
pub(super) async fn judge_cases_without_session(context: &Context, revision: Revision, cases: Vec<Arc<Case>>) {
    let target = Target::new(context.clone(), revision);
    target.set_inventory(Arc::default());
    let mut sessions = ClosedSessions::new();
    for case in cases {
        sessions.extend(run_on_own_process(target.clone(), case).await);
    }
    let summary = summarize(&target, None, &Inventory::default(), &SessionSummary::of(&sessions), None);
    context.emit(&Event::TargetFinished(Box::new(summary)));
}
