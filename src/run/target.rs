//! Judges a server in one revision.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::SendError;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::campaign;
use super::case_runner::{self, ClosedSessions, RATE_LIMITED};
use super::conductor::{ActiveRevision, ClosedConnection, Context, milliseconds};
use super::confirm::{self, UnconfirmedResult};
use super::discovery::discover;
use super::hint_requests::HintResult;
use super::inventory::{FirstCallOutcome, Inventory};
use super::session::Session;
use crate::case::{Active, Body, Case, Process, Step};
use crate::check::{self, IndexedConnections, Judgement, RecordedConnection, stderr_of};
use crate::event::{CaseResult, Event, FuzzSummary, Launch, Problem, ProblemKind, SkipKind, TargetSummary, ToolNote};
use crate::spec::{Revision, Transport};
use crate::transcript::{self, SessionParameters, Transcript, without_rate_limited};
use crate::verdict::{Totals, Verdict};

/// What the tasks of one revision share.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) context: Context,
    pub(super) revision: Revision,
    /// The server's inventory, once discovery is done.
    pub(super) inventory: watch::Receiver<Option<Arc<Inventory>>>,
    /// Why no further requests are sent, once that is so.
    pub(super) stop_reason: Arc<watch::Sender<Option<String>>>,
    /// How many processes were silent at startup although the server is known to work.
    pub(super) silent_starts: Arc<AtomicUsize>,
    /// The number of cases per verdict.
    pub(super) totals: Arc<Mutex<Totals>>,
    /// Receives failures of active cases for confirmation; `None` if failures are reported immediately.
    pub(super) unconfirmed: Option<UnboundedSender<UnconfirmedResult>>,
}

impl Target {
    /// The server's inventory; waits for discovery.
    pub(super) async fn inventory(&mut self) -> Arc<Inventory> {
        let current = self.inventory.wait_for(Option::is_some).await.ok().and_then(|inventory| inventory.clone());
        current.unwrap_or_default()
    }

    /// Why no further requests are sent, if so.
    pub(super) fn stop_reason(&self) -> Option<String> {
        self.stop_reason.borrow().clone()
    }

    /// Abandons the server.
    pub(super) fn give_up(&self, reason: &str) {
        self.stop_reason.send_if_modified(|stop_reason| {
            let first = stop_reason.is_none();
            stop_reason.get_or_insert_with(|| reason.to_owned());
            first
        });
    }

    /// Reports the result of an active case; a failure is confirmed first.
    pub(super) fn report(&self, case: &Arc<Case>, judged: Judgement, began: Option<Instant>) {
        if !self.context.plan.reports(case) {
            return;
        }
        let duration = began.map(|began| began.elapsed());
        if let (Verdict::Fail, Some(duration), Some(unconfirmed)) = (judged.verdict, duration, &self.unconfirmed) {
            let unconfirmed_result = UnconfirmedResult { case: Arc::clone(case), judged, duration };
            // If confirmation has ended, report it unconfirmed.
            if let Err(SendError(unconfirmed_result)) = unconfirmed.send(unconfirmed_result) {
                self.report_now(&unconfirmed_result.case, unconfirmed_result.judged, Some(unconfirmed_result.duration));
            }
            return;
        }
        self.report_now(case, judged, duration);
    }

    /// Turns a judgement into a result and reports it.
    pub(super) fn report_now(&self, case: &Case, mut judged: Judgement, duration: Option<Duration>) {
        for finding in &mut judged.findings {
            let origin = finding.origin.and_then(|execution| self.context.case_of(execution));
            let cases: Vec<&str> = std::iter::once(case.id.as_str()).chain(origin.as_deref()).collect();
            finding.reproduce = match finding.counterexample.as_ref().and_then(|example| example.file.as_deref()) {
                Some(file) => self.context.plan.replay_command(file),
                None => self.context.plan.reproduce_command(&cases, self.revision),
            };
        }
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).add(judged.verdict);
        let requirements = case.requirements.iter().filter(|r| r.revisions().contains(self.revision));
        self.context.emit(&Event::CaseFinished(Box::new(CaseResult {
            case: case.id.clone(),
            title: case.title.clone(),
            revision: self.revision,
            requirements: requirements.map(|requirement| requirement.id.clone()).collect(),
            verdict: judged.verdict,
            reason: judged.reason,
            skipped: (judged.verdict == Verdict::Skip).then_some(if judged.applies {
                SkipKind::NotObserved
            } else {
                SkipKind::NotApplicable
            }),
            observed: judged.judged_count,
            notes: judged.notes,
            findings: judged.findings,
            duration_ms: duration.map(milliseconds).unwrap_or_default(),
        })));
    }
}

/// A closed session of this revision.
pub(super) struct ClosedSession {
    pub(super) ended: ClosedConnection,
    pub(super) session_parameters: SessionParameters,
    /// Whether it was opened, and is counted, by another revision.
    pub(super) borrowed: bool,
}

/// Judges the server in the revision of an opened session.
///
/// If `fuzzed`, fuzzing starts when the cases of this revision have finished. It overlaps with cases of other
/// revisions only as far as its tools are read-only, and not at all if one process serves all revisions. Permits are
/// requested immediately.
pub(super) fn judge(
    context: Context,
    mut main: Session,
    fuzzed: bool,
    under_way: ActiveRevision,
) -> impl Future<Output = Option<Problem>> + Send {
    let revision = main.revision;
    let runs = |case: &&Arc<Case>| case.runs_in(revision);
    let (cases, inapplicable): (Vec<_>, Vec<_>) =
        context.plan.cases.iter().filter(runs).cloned().partition(|case| context.plan.reaches(case));
    let (inventory_sender, inventory) = watch::channel(None);
    let (unconfirmed, to_confirm) = unbounded_channel();
    let mut target = Target {
        context: context.clone(),
        revision,
        inventory,
        stop_reason: Arc::new(watch::Sender::new(None)),
        silent_starts: Arc::default(),
        totals: Arc::default(),
        unconfirmed: (context.plan.retries > 0).then_some(unconfirmed),
    };
    for case in inapplicable {
        target.report(&case, Judgement::inapplicable("it is for another kind of server"), None);
    }
    let acting = |process: Process| -> Vec<Arc<Case>> {
        cases
            .iter()
            .filter(|case| matches!(&case.body, Body::Active(Active { process: own, .. }) if *own == process))
            .cloned()
            .collect()
    };
    let opening = main.parameters.opening.clone().unwrap_or_default();
    let permit_request = context.request_permit();
    let mut queues: JoinSet<ClosedSessions> = JoinSet::new();
    // It ends when all tasks that may send to it have ended.
    queues.spawn(confirm::confirm_all(Target { unconfirmed: None, ..target.clone() }, to_confirm));
    let disposable = acting(Process::Disposable);
    if !disposable.is_empty() {
        queues.spawn(case_runner::run_on_disposable_session(target.clone(), disposable));
    }
    for case in acting(Process::Fresh).into_iter().chain(acting(Process::Uninitialized)) {
        queues.spawn(case_runner::run_on_own_process(target.clone(), case));
    }
    let run_on_main_session = acting(Process::Shared);
    async move {
        let permit = permit_request.granted().await;
        let (discovered, unanswered_calls) = discover(&mut main, &context.plan).await;
        let startup = main.connection.first_line().unwrap_or_default();
        let discovered = Arc::new(Inventory { session_parameters: main.parameters.clone(), startup, ..discovered });
        if let Some(reason) = &discovered.stop_reason {
            target.give_up(reason);
        }
        inventory_sender.send_replace(Some(Arc::clone(&discovered)));
        let mut done =
            case_runner::run_on_main_session(target.clone(), main, run_on_main_session, unanswered_calls, permit).await;
        target.unconfirmed = None;
        while let Some(finished) = queues.join_next().await {
            match finished {
                Ok(more) => done.extend(more),
                Err(error) => target.give_up(&format!("an internal task failed: {error}")),
            }
        }
        report_passive_cases(&target, &cases, &done).await;
        drop(under_way);
        let fuzz = if fuzzed { fuzz_when_allowed(&target, &cases, &discovered).await } else { None };
        let totals = *target.totals.lock().unwrap_or_else(PoisonError::into_inner);
        let stop_reason = target.stop_reason();
        let stderr: String = done.iter().map(|session| stderr_of(&session.ended.entries, 4_000)).collect();
        context.emit(&Event::TargetFinished(Box::new(TargetSummary {
            revision,
            server_info: opening
                .get("serverInfo")
                .or_else(|| opening.pointer("/_meta/io.modelcontextprotocol~1serverInfo"))
                .cloned(),
            capabilities: opening.get("capabilities").cloned(),
            tools: tool_notes(&discovered),
            hints: discovered.hint_results.iter().map(HintResult::note).collect(),
            launches: done.iter().filter(|session| !session.borrowed).map(|session| launch(&session.ended)).collect(),
            stderr: tail(&stderr, 8_000),
            stopped_early: stop_reason.clone(),
            fuzz,
            totals,
        })));
        let limited = done.iter().any(|session| session.ended.limited > 0);
        stop_problem(revision, limited, stop_reason, tail(&stderr, 4_000))
    }
}

/// Why the judgement of a revision is incomplete, if so.
fn stop_problem(revision: Revision, limited: bool, stop_reason: Option<String>, stderr: String) -> Option<Problem> {
    let (reason, hint) = if limited {
        (
            format!("{RATE_LIMITED}, so the judgement is incomplete"),
            "lower the rate with --max-rate (requests per second), or raise the server's limit for the run",
        )
    } else {
        (stop_reason?, "run with -v to see every message up to that point; give a slow server more time with --timeout")
    };
    Some(Problem {
        kind: ProblemKind::Stopped,
        message: format!("in {revision}: {reason}"),
        hint: hint.to_owned(),
        stderr,
        evidence: Vec::new(),
    })
}

/// Fuzzes the revision when that does not disturb other work.
async fn fuzz_when_allowed(target: &Target, cases: &[Arc<Case>], discovered: &Inventory) -> Option<FuzzSummary> {
    let context = &target.context;
    if context.plan.transport() == Transport::Http {
        // The calls affect the one process that everyone uses.
        context.wait_for_cases().await;
    }
    let _turn = context.lock_fuzzing().await;
    context.fuzzing().fetch_add(1, Ordering::Relaxed);
    let summary = campaign::fuzz(target, cases, discovered).await;
    context.fuzzing().fetch_sub(1, Ordering::Relaxed);
    summary
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
    let (_offers, inventory) = watch::channel(Some(Arc::default()));
    let target = Target {
        context: context.clone(),
        revision,
        inventory,
        stop_reason: Arc::new(watch::Sender::new(None)),
        silent_starts: Arc::default(),
        totals: Arc::default(),
        unconfirmed: None,
    };
    let mut done = Vec::new();
    for case in cases {
        done.extend(case_runner::run_on_own_process(target.clone(), case).await);
    }
    let totals = *target.totals.lock().unwrap_or_else(PoisonError::into_inner);
    context.emit(&Event::TargetFinished(Box::new(TargetSummary {
        revision,
        server_info: None,
        capabilities: None,
        tools: Vec::new(),
        hints: Vec::new(),
        launches: done.iter().map(|session: &ClosedSession| launch(&session.ended)).collect(),
        stderr: String::new(),
        stopped_early: target.stop_reason(),
        fuzz: None,
        totals,
    })));
}

/// Judges the passive cases by every session of the revision.
async fn report_passive_cases(target: &Target, cases: &[Arc<Case>], done: &ClosedSessions) {
    let connected: Vec<RecordedConnection> = done
        .iter()
        .map(|session| RecordedConnection {
            label: session.ended.purpose.clone(),
            transcript: Transcript {
                entries: without_rate_limited(&session.ended.entries),
                session_parameters: session.session_parameters.clone(),
            },
        })
        .collect();
    let cases: Vec<Arc<Case>> =
        cases.iter().filter(|case| matches!(case.body, Body::Passive { .. })).cloned().collect();
    let revision = target.revision;
    let judging = target.context.judge_in_background(move || {
        let watched = IndexedConnections::new(&connected, revision);
        let judge = |case: Arc<Case>| {
            let Body::Passive(passive) = &case.body else { return None };
            let judged = if are_needs_met(&case, &connected) {
                check::judge_passive(&case, passive, revision, &watched)
            } else {
                Judgement::inapplicable(missing_capabilities(&case))
            };
            Some((case, judged))
        };
        cases.into_iter().filter_map(judge).collect::<Vec<_>>()
    });
    match judging.await {
        Ok(judged) => judged.into_iter().for_each(|(case, judged)| target.report(&case, judged, None)),
        Err(error) => target.give_up(&format!("an internal task failed: {error}")),
    }
}

fn are_needs_met(case: &Case, connected: &[RecordedConnection]) -> bool {
    case.needs.capabilities.is_empty()
        || connected.iter().any(|c| {
            c.transcript.session_parameters.opening.is_some()
                && declares_needed_capabilities(case, &c.transcript.session_parameters)
        })
}

/// Whether the capabilities that a case needs were declared (or, with `!`, were not).
pub(super) fn declares_needed_capabilities(case: &Case, session_parameters: &SessionParameters) -> bool {
    case.needs.capabilities.iter().all(|name| match name.strip_prefix('!') {
        Some(name) => !session_parameters.declares(name),
        None => session_parameters.declares(name),
    })
}

/// Why a case does not apply to a server with these capabilities.
pub(super) fn missing_capabilities(case: &Case) -> String {
    let words: Vec<String> = case
        .needs
        .capabilities
        .iter()
        .map(|name| match name.strip_prefix('!') {
            Some(name) => format!("no {name} capability"),
            None => format!("the {name} capability"),
        })
        .collect();
    format!("it is for servers with {}", words.join(" and "))
}

fn tool_notes(inventory: &Inventory) -> Vec<ToolNote> {
    let tools = inventory.tools.iter();
    tools
        .map(|tool| {
            let note = match (&tool.exclusion, tool.first_call) {
                (Some(reason), _) => Some(reason.clone()),
                (None, Some((FirstCallOutcome::Unanswered, _))) => {
                    Some("its call took longer than the discovery timeout, so the cases did not use it".to_owned())
                }
                (None, Some((FirstCallOutcome::Ended, _))) => {
                    Some("the server exited before it answered the call".to_owned())
                }
                (None, Some((FirstCallOutcome::Failed, _))) => Some("its plain call failed".to_owned()),
                (None, Some((FirstCallOutcome::MissingClientFeature, _))) => Some(
                    "it requires something that the client lacks: a capability, a visited page, or a call as a task"
                        .to_owned(),
                ),
                (None, Some((FirstCallOutcome::Served, _))) => None,
                (None, None) => Some("discovery ended before it was called".to_owned()),
            };
            ToolNote { name: tool.name.clone(), called: tool.first_call.is_some(), note }
        })
        .collect()
}

fn launch(ended: &ClosedConnection) -> Launch {
    let count =
        |wanted: fn(&transcript::Event) -> bool| ended.entries.iter().filter(|entry| wanted(&entry.event)).count();
    Launch {
        purpose: if ended.without_package_runner {
            format!("{}, without the package runner", ended.purpose)
        } else {
            ended.purpose.clone()
        },
        startup_ms: ended.startup.map(milliseconds),
        shutdown: Some(Launch::shutdown_name(ended.step).to_owned()),
        sent: count(|event| matches!(event, transcript::Event::Sent { .. })),
        received: count(|event| matches!(event, transcript::Event::Received(_))),
    }
}

fn tail(text: &str, longest: usize) -> String {
    let from = text.len().saturating_sub(longest);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text[from..].to_owned()
}
