//! Conducts a run: finds out which revisions the server supports, and judges it in each of them.

use std::cmp::Reverse;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

use tokio::task::JoinSet;

use super::one_session::{JudgedInTurn, take_judged_in_turn};
use super::problem::{host_problem, opening_problem, unsupported_revisions};
use super::revision_probe::{ProbeResult, probe};
use super::shared_runs::SharedRuns;
use super::target::{self, UnansweredOpening};
use crate::case::{Body, Case, ConnectionAssertion, ConnectionCheck, Watch};
use crate::context::{Context, Stop};
use crate::event::{Event, Problem, ProblemKind, RunSummary, Sink};
use crate::limits::FUZZING_STOP_TIMEOUT;
use crate::plan::Plan;
use crate::session::{OpeningFailure, RejectedOpening, Session, full_capabilities};
use crate::spec::{Era, Revision, Transport};

/// Runs a plan and reports to a sink.
///
/// A misbehaving server is never an error here: it is a verdict, or a [`Problem`] in the summary.
///
/// # Errors
/// When the sink failed to handle an event; the run was completed nevertheless.
pub async fn run(plan: Plan, sink: Arc<Mutex<dyn Sink>>, stop: Stop) -> io::Result<RunSummary> {
    let began = Instant::now();
    let context = Context::new(plan.with_applicable_cases(), sink, stop);
    let mut judging = Box::pin(judge(&context));
    let problem = tokio::select! {
        problem = &mut judging => problem,
        () = context.stopped() => {
            if context.is_fuzzing() {
                // Fuzzing gets the signal itself, and reports its findings.
                let _stopped = tokio::time::timeout(FUZZING_STOP_TIMEOUT, &mut judging).await;
            }
            Some(Problem {
                kind: ProblemKind::Interrupted,
                message: "the run was interrupted".to_owned(),
                hint: "the results so far are reported; run it again for the rest".to_owned(),
                stderr: String::new(),
                evidence: Vec::new(),
            })
        }
    };
    drop(judging);
    let interrupted = problem.as_ref().is_some_and(|problem| problem.kind == ProblemKind::Interrupted);
    context.finish_closing(interrupted).await;
    context.stop_host().await;
    context.finish(began.elapsed(), problem)
}

/// Probes the server and judges each revision that it supports.
async fn judge(context: &Context) -> Option<Problem> {
    context.emit(&Event::RunStarted { server: context.plan.server_name() });
    if let Err(host_error) = context.ready().await {
        return Some(host_problem(context, host_error).await);
    }
    let mut probe_result = probe(context).await;
    let unanswered = unanswered_openings(context, &mut probe_result);
    let in_turn = take_judged_in_turn(context, &mut probe_result).await;
    let opened = probe_result.sessions.iter().chain(&in_turn.open).map(|session| session.revision);
    let mut revisions: Vec<Revision> = opened.chain(in_turn.further.iter().copied()).collect();
    revisions.sort();
    let fuzz = context.plan.fuzz.as_ref();
    let fuzzed =
        |revision: &Revision| fuzz.is_some_and(|fuzz| fuzz.every_revision || revisions.last() == Some(revision));
    let counts = |case: &Case, revision: &Revision| {
        context.plan.reports(case)
            && case.runs_in(*revision)
            && (!matches!(case.body, Body::Fuzz(_)) || fuzzed(revision))
    };
    let runs = |revision: &Revision| context.plan.cases.iter().filter(|case| counts(case, revision)).count();
    if let Some(revision) = protected_revision(&probe_result.rejected).filter(|_| revisions.is_empty()) {
        // The problem is reported, but cases that need no session are still judged.
        let cases = target::cases_without_session(context, revision);
        context.emit(&Event::Probed { revisions: vec![revision], cases: cases.len() });
        target::judge_cases_without_session(context, revision, cases).await;
        return Some(opening_problem(context, probe_result.rejected).await);
    }
    let of_openings: usize = unanswered.iter().map(|opening| opening.cases.len()).sum();
    let mut judged: Vec<Revision> =
        unanswered.iter().map(|opening| opening.revision).chain(revisions.iter().copied()).collect();
    let cases = revisions.iter().map(runs).sum::<usize>() + of_openings;
    context.emit(&Event::Probed { revisions: judged.clone(), cases });
    if judged.is_empty() {
        return Some(opening_problem(context, probe_result.rejected).await);
    }
    for (_, rejected) in probe_result.rejected {
        if let Some(connection) = rejected.connection {
            context.close_in_background(connection, "probe");
        }
    }
    let mut targets = JoinSet::new();
    // Over HTTP, all processes are the same one.
    let with_handshake = revisions.iter().copied().filter(|revision| revision.era() == Era::Handshake);
    let runner = with_handshake.max().filter(|_| context.plan.transport() == Transport::Stdio);
    let shared_runs = Arc::new(SharedRuns::with_runner(runner));
    let (ended, silent): (Vec<_>, Vec<_>) = unanswered.into_iter().partition(|opening| opening.has_ended);
    for opening in silent {
        let (context, under_way) = (context.clone(), context.begin_cases());
        targets.spawn(target::judge_unanswered_opening(context, opening, under_way, Arc::clone(&shared_runs)));
    }
    let newest = revisions.iter().max().copied();
    let every = context.plan.fuzz.as_ref().is_some_and(|fuzz| fuzz.every_revision);
    // The newest has priority, so that it is fuzzed while the cases of the others run; newer ones have more cases.
    let mut sessions = probe_result.sessions;
    sessions.sort_by_key(|session| Reverse(session.revision));
    // All revisions are registered before any of them checks for others.
    let is_fuzzed = |revision| every || Some(revision) == newest;
    // A server that serves one session at a time is judged in one revision at a time.
    let is_only = in_turn.open.is_some() || !in_turn.further.is_empty();
    let context = if is_only { &context.for_one_session() } else { context };
    let (mut problem, others) = judge_in_turn(context, in_turn, is_fuzzed, &shared_runs).await;
    judged.extend(others);
    let sessions: Vec<_> = sessions.into_iter().map(|session| (session, context.begin_cases())).collect();
    for (mut session, under_way) in sessions {
        session.is_only = context.has_one_session;
        let fuzzed = is_fuzzed(session.revision);
        let context = context.with_priority(fuzzed);
        targets.spawn(target::judge(context, session, fuzzed, under_way, &shared_runs));
    }
    while let Some(finished) = targets.join_next().await {
        problem = problem.or(finished.ok().flatten());
    }
    // A server that runs only once ends while its other processes run, so it is tried again when there are none.
    for opening in ended {
        let (context, under_way) = (context.clone(), context.begin_cases());
        let other = target::judge_unanswered_opening(context, opening, under_way, Arc::clone(&shared_runs)).await;
        problem = problem.or(other);
    }
    problem.or(unsupported_revisions(&context.plan.revisions, &judged))
}

/// Judges revisions one after the other, each on sessions that are opened when no other one is; returns those that were only
/// possible and are supported.
async fn judge_in_turn(
    context: &Context,
    in_turn: JudgedInTurn,
    is_fuzzed: impl Fn(Revision) -> bool,
    shared_runs: &Arc<SharedRuns>,
) -> (Option<Problem>, Vec<Revision>) {
    let JudgedInTurn { open, further, possible } = in_turn;
    let judge = async |mut session: Session| {
        session.is_only = true;
        let fuzzed = is_fuzzed(session.revision);
        Box::pin(target::judge(context.clone(), session, fuzzed, context.begin_cases(), shared_runs)).await
    };
    let open_next = async |revision| {
        // If it is not ready, the attempt shows that.
        let _restarted = context.ready().await;
        let purpose = format!("main session, {revision}");
        Session::open(context, revision, full_capabilities(revision), purpose, true).await
    };
    let mut problem = None;
    if let Some(session) = open {
        problem = judge(session).await;
    }
    for revision in further {
        let found = match open_next(revision).await {
            Ok(session) => judge(session).await,
            Err(rejected) => Some(opening_problem(context, vec![(revision, rejected)]).await),
        };
        problem = problem.or(found);
    }
    let mut supported = Vec::new();
    for revision in possible {
        match open_next(revision).await {
            Ok(session) => {
                supported.push(revision);
                problem = problem.or(judge(session).await);
            }
            Err(rejected) => {
                if let Some(connection) = rejected.connection {
                    context.close_in_background(connection, "probe");
                }
            }
        }
    }
    (problem, supported)
}

/// The openings that were never answered, each with the cases of the plan that judge this.
fn unanswered_openings(context: &Context, probe_result: &mut ProbeResult) -> Vec<UnansweredOpening> {
    if !context.plan.cases.iter().any(|case| judges_unanswered_openings(case)) {
        return Vec::new();
    }
    let openings = probe_result.take_unanswered(&context.plan.revisions).into_iter();
    let with_cases = openings.map(|(revision, connection, has_ended)| {
        let judges = |case: &&Arc<Case>| case.runs_in(revision) && judges_unanswered_openings(case);
        let cases = context.plan.cases.iter().filter(judges).cloned().collect();
        UnansweredOpening { revision, has_ended, connection, cases }
    });
    with_cases.collect()
}

/// Whether a case judges an `initialize` that is never answered.
fn judges_unanswered_openings(case: &Case) -> bool {
    let Body::Passive(passive) = &case.body else { return false };
    let Watch::Connections(rules) = &passive.watch else { return false };
    let is_about = |assertion: &ConnectionAssertion| {
        matches!(assertion, ConnectionAssertion::Check(ConnectionCheck::InitializeAnswered))
    };
    rules.iter().any(|rule| is_about(&rule.check))
}

/// The revision in which to judge a server that requires a token from everybody: the newest with a handshake, because
/// the supported revisions are unknown.
fn protected_revision(rejected: &[(Revision, RejectedOpening)]) -> Option<Revision> {
    let protected =
        rejected.iter().filter(|(_, r)| matches!(&r.reason, OpeningFailure::Http(failure) if failure.protected));
    protected.map(|(revision, _)| *revision).max_by_key(|revision| (revision.era() == Era::Handshake, *revision))
}
