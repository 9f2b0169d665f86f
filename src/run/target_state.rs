//! One revision of one server, judged in a run: what the tasks that judge it share, and the reports of their results.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

use serde_json::Value;
use tokio::sync::mpsc::error::SendError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OnceCell, watch};

use super::idle_sessions::IdleSessions;
use super::shared_runs::SharedRuns;
use crate::case::Case;
use crate::check::{Execution, Judgement, SESSION_ENDED, milliseconds};
use crate::context::{Context, ProcessPermit};
use crate::event::{CaseResult, Event, SkipKind};
use crate::inventory::Inventory;
use crate::limits::MAX_SELECTED_CASES;
use crate::session::Session;
use crate::spec::Revision;
use crate::verdict::{Totals, Verdict};

/// What the tasks of one revision share. A clone is the same target.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) context: Context,
    pub(super) revision: Revision,
    /// What the cases that run once for all revisions showed.
    pub(super) shared_runs: Arc<SharedRuns>,
    state: Arc<TargetState>,
    /// Receives failures of active cases for confirmation; `None` if failures are reported immediately.
    unconfirmed: Option<UnboundedSender<UnconfirmedResult>>,
}

/// What changes while a target is judged.
#[derive(Default)]
struct TargetState {
    /// The server's inventory, once discovery is done.
    inventory: watch::Sender<Option<Arc<Inventory>>>,
    /// What the opening of a slow server showed, for cases that need not wait for discovery.
    opening_inventory: watch::Sender<Option<Arc<Inventory>>>,
    /// Why no further requests are sent, once that is so.
    stop_reason: OnceLock<String>,
    /// How many processes were silent at startup although the server is known to work.
    silent_starts: AtomicUsize,
    /// How the server refuses one more session while another is open, if it does; set once it was tried.
    session_refusal: OnceCell<Option<String>>,
    /// The cases that are judged at the end of the run.
    deferred: Mutex<Vec<DeferredJudgement>>,
    /// The sessions of a slow server that wait for further work.
    idle_sessions: IdleSessions<AdditionalSession>,
    /// The number of cases per verdict.
    totals: Mutex<Totals>,
}

/// A failure that is not yet confirmed, or an error that another case may have caused.
pub(super) struct UnconfirmedResult {
    pub(super) case: Arc<Case>,
    pub(super) judged: Judgement,
    pub(super) duration: Duration,
    pub(super) history: SessionHistory,
}

/// A case that was carried out, and is judged at the end of the run.
pub(super) struct DeferredJudgement {
    pub(super) case: Arc<Case>,
    pub(super) executions: Vec<Execution>,
    pub(super) duration: Duration,
    pub(super) history: SessionHistory,
}

/// What happened on the session of a case before the case.
#[derive(Debug, Clone, Default)]
pub(super) struct SessionHistory {
    /// The capabilities that the client declared when it opened the session.
    pub(super) capabilities: Value,
    /// Whether the server was discovered on it.
    pub(super) with_discovery: bool,
    /// The cases that ran on it, in order.
    pub(super) cases: Vec<Arc<Case>>,
}

/// A session of a slow server, next to the one that a queue of cases has.
pub(super) struct AdditionalSession {
    pub(super) session: Session,
    pub(super) history: SessionHistory,
    pub(super) permit: ProcessPermit,
}

impl SessionHistory {
    /// Whether nothing but the opening happened.
    pub(super) fn is_empty(&self) -> bool {
        !self.with_discovery && self.cases.is_empty()
    }
}

impl Target {
    /// A revision whose failures are reported immediately.
    pub(super) fn new(context: Context, revision: Revision) -> Self {
        Self { context, revision, shared_runs: Arc::default(), state: Arc::default(), unconfirmed: None }
    }

    /// The same for a revision that carries out no case again that another one ran for all of them.
    pub(super) fn with_shared_runs(context: Context, revision: Revision, shared_runs: &Arc<SharedRuns>) -> Self {
        Self { shared_runs: Arc::clone(shared_runs), ..Self::new(context, revision) }
    }

    /// The same target, whose failures are confirmed before they are reported if the plan allows retries; the receiver
    /// gets them. It ends when every clone of this target is gone.
    pub(super) fn with_confirmation(&self) -> (Self, UnboundedReceiver<UnconfirmedResult>) {
        let (sender, receiver) = unbounded_channel();
        let unconfirmed = (self.context.plan.retries > 0).then_some(sender);
        (Self { unconfirmed, ..self.clone() }, receiver)
    }

    /// Sets the server's inventory.
    pub(super) fn set_inventory(&self, inventory: Arc<Inventory>) {
        self.state.inventory.send_replace(Some(inventory));
    }

    /// Sets what the opening of a slow server showed.
    pub(super) fn set_opening_inventory(&self, inventory: Arc<Inventory>) {
        self.state.opening_inventory.send_replace(Some(inventory));
    }

    /// What the opening of a slow server showed.
    pub(super) fn opening_inventory(&self) -> Option<Arc<Inventory>> {
        self.state.opening_inventory.borrow().clone()
    }

    /// What the opening showed, as soon as the server is known to be slow; otherwise its inventory, once discovery is done.
    pub(super) async fn first_inventory(&self) -> Arc<Inventory> {
        let mut opening_inventory = self.state.opening_inventory.subscribe();
        // The sender is a part of this value, so the channel stays open.
        tokio::select! {
            biased;
            Ok(opening) = opening_inventory.wait_for(Option::is_some) => opening.clone().unwrap_or_default(),
            inventory = self.inventory() => inventory,
        }
    }

    /// The server's inventory, if discovery is done.
    pub(super) fn known_inventory(&self) -> Option<Arc<Inventory>> {
        self.state.inventory.borrow().clone()
    }

    /// The server's inventory; waits for discovery.
    pub(super) async fn inventory(&self) -> Arc<Inventory> {
        self.inventory_when(|_| true).await
    }

    /// The server's inventory with the outcomes of all first calls, and what the server asks of the client during them;
    /// waits for these.
    pub(super) async fn complete_inventory(&self) -> Arc<Inventory> {
        self.inventory_when(|inventory| !inventory.awaits_first_calls && !inventory.awaits_client_requests).await
    }

    /// The server's inventory as soon as it has something.
    pub(super) async fn inventory_when(&self, has: impl Fn(&Inventory) -> bool) -> Arc<Inventory> {
        let mut inventory = self.state.inventory.subscribe();
        // The sender is a part of this value, so the channel stays open.
        let current = inventory.wait_for(|current| current.as_ref().is_some_and(|current| has(current))).await;
        current.ok().and_then(|inventory| inventory.clone()).unwrap_or_default()
    }

    /// Why no further requests are sent, if so.
    pub(super) fn stop_reason(&self) -> Option<String> {
        self.state.stop_reason.get().cloned()
    }

    /// Abandons the server.
    pub(super) fn give_up(&self, reason: &str) {
        // The first reason explains the others.
        let _first = self.state.stop_reason.get_or_init(|| reason.to_owned());
    }

    /// How the server refuses one more session while another is open, if it does. `attempt` tries it, once.
    pub(super) async fn session_refusal(&self, attempt: impl Future<Output = Option<String>>) -> Option<&str> {
        self.state.session_refusal.get_or_init(|| attempt).await.as_deref()
    }

    /// The same, if it was tried.
    pub(super) fn known_session_refusal(&self) -> Option<&str> {
        self.state.session_refusal.get()?.as_deref()
    }

    /// The sessions of a slow server that wait for further work.
    pub(super) fn idle_sessions(&self) -> &IdleSessions<AdditionalSession> {
        &self.state.idle_sessions
    }

    /// Counts a process that was silent at startup.
    pub(super) fn count_silent_start(&self) {
        self.state.silent_starts.fetch_add(1, Ordering::Relaxed);
    }

    /// How many processes were silent at startup although the server is known to work.
    pub(super) fn silent_starts(&self) -> usize {
        self.state.silent_starts.load(Ordering::Relaxed)
    }

    /// The number of cases per verdict so far.
    pub(super) fn totals(&self) -> Totals {
        *self.state.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the result of an active case; a failure is confirmed first.
    pub(super) fn report(&self, case: &Arc<Case>, judged: Judgement, began: Option<Instant>) {
        self.report_after(case, judged, began.map(|began| began.elapsed()), SessionHistory::default());
    }

    /// Keeps a case that is judged at the end of the run.
    pub(super) fn defer(&self, deferred: DeferredJudgement) {
        self.state.deferred.lock().unwrap_or_else(PoisonError::into_inner).push(deferred);
    }

    /// The cases that are judged at the end of the run, each once.
    pub(super) fn take_deferred(&self) -> Vec<DeferredJudgement> {
        std::mem::take(&mut self.state.deferred.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reports the result of an active case on a session with this history. A failure is confirmed first, and an error
    /// on a session that was used before, or that the server ended, is not final: the case is run again.
    pub(super) fn report_after(
        &self,
        case: &Arc<Case>,
        judged: Judgement,
        duration: Option<Duration>,
        history: SessionHistory,
    ) {
        if !self.context.plan.reports(case) {
            return;
        }
        let is_final = match judged.verdict {
            Verdict::Fail => false,
            Verdict::Error => history.is_empty() && judged.reason.as_deref() != Some(SESSION_ENDED),
            Verdict::Pass | Verdict::Warn | Verdict::Skip => true,
        };
        if let (false, Some(duration), Some(unconfirmed)) = (is_final, duration, &self.unconfirmed) {
            let unconfirmed_result = UnconfirmedResult { case: Arc::clone(case), judged, duration, history };
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
            let origin = finding.origin.and_then(|execution| self.context.executions.case_of(execution));
            let preceding = finding.preceding.iter().map(String::as_str);
            let mut cases: Vec<&str> = Vec::new();
            for id in std::iter::once(case.id.as_str()).chain(preceding).chain(origin.as_deref()) {
                if !cases.contains(&id) {
                    cases.push(id);
                }
            }
            // A run of all cases is as good, and its command can be read.
            if cases.len() > MAX_SELECTED_CASES {
                cases.clear();
            }
            finding.reproduce = match finding.counterexample.as_ref().and_then(|example| example.file.as_deref()) {
                Some(file) => self.context.plan.replay_command(file),
                None => self.context.plan.reproduce_command(&cases, self.revision),
            };
        }
        self.state.totals.lock().unwrap_or_else(PoisonError::into_inner).add(judged.verdict);
        self.context.emit(&Event::CaseFinished(Box::new(case_result(case, self.revision, judged, duration))));
    }
}

/// A judgement as the result of a case in one revision.
pub(super) fn case_result(
    case: &Case,
    revision: Revision,
    judged: Judgement,
    duration: Option<Duration>,
) -> CaseResult {
    let requirements = case.requirements.iter().filter(|requirement| requirement.revisions().contains(revision));
    CaseResult {
        case: case.id.clone(),
        title: case.title.clone(),
        revision,
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
    }
}
