//! Runs the cases of one revision: starts their queues, and discovers what the server has. It judges no passive case.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{JoinError, JoinSet};

use super::discovery::{RemainingDiscovery, discover};
use super::target_state::{Target, UnconfirmedResult};
use crate::case::{Active, Body, Case, Process};
use crate::check::Judgement;
use crate::context::PermitRequest;
use crate::inventory::Inventory;
use crate::limits::SLOW_ANSWER;
use crate::run::cases::case_queue::{
    DisposableCases, run_before_discovery, run_on_disposable_session, run_on_main_session,
    run_on_second_disposable_session,
};
use crate::run::cases::case_session::ClosedSessions;
use crate::run::cases::confirm::confirm_all;
use crate::run::cases::deferred::report_deferred;
use crate::run::cases::in_turn::{may_run_in_turn, run_in_turn};
use crate::run::cases::own_process::run_on_own_process;
use crate::run::cases::remaining_cases::{EarlyCases, RemainingCases};
use crate::session::Session;

/// What is known once the active cases have run.
pub(super) struct CompletedRun {
    /// The cases that apply to the server.
    pub(super) cases: Vec<Arc<Case>>,
    pub(super) discovered: Arc<Inventory>,
    pub(super) sessions: ClosedSessions,
}

/// The run of one target, whose queues have started.
pub(super) struct TargetRun {
    /// Reports failures immediately.
    target: Target,
    /// The same target, whose failures are confirmed before they are reported.
    confirmed: Target,
    cases: Vec<Arc<Case>>,
    /// The permit of the main session.
    permit: PermitRequest,
    /// The cases of the disposable session that may damage it and are left.
    damaging: RemainingCases,
    /// The cases that do not run on the main session.
    queues: JoinSet<ClosedSessions>,
    /// Confirms failures until nothing can report any more.
    confirmation: JoinSet<()>,
}

impl TargetRun {
    /// Selects the cases of a target, and starts those that do not run on its main session.
    pub(super) fn start(target: Target) -> Self {
        let plan = Arc::clone(&target.context.plan);
        let runs = |case: &&Arc<Case>| case.runs_in(target.revision);
        let (cases, inapplicable): (Vec<_>, Vec<_>) =
            plan.cases.iter().filter(runs).cloned().partition(|case| plan.reaches(case));
        for case in inapplicable {
            target.report(&case, Judgement::inapplicable("it is for another kind of server"), None);
        }
        let permit = target.context.request_queue_permit();
        let (confirmed, unconfirmed) = target.with_confirmation();
        let (queues, confirmation) = (JoinSet::new(), JoinSet::new());
        let damaging = RemainingCases::default();
        let mut run = Self { target, confirmed, cases, permit, damaging, queues, confirmation };
        run.start_confirmation(unconfirmed);
        let disposable = run.active_cases(Process::Disposable);
        if !disposable.is_empty() {
            let disposable = DisposableCases::new(disposable, run.target.revision);
            run.damaging = disposable.damaging();
            run.queues.spawn(run_on_disposable_session(run.confirmed.clone(), disposable));
        }
        let mut own = run.active_cases(Process::Fresh);
        own.extend(run.active_cases(Process::Uninitialized));
        if let Some(work) = run.target.shared_runs.begin_work(run.target.revision) {
            let (in_turn, others) = own.into_iter().partition(|case| may_run_in_turn(&run.target, case));
            run.queues.spawn(run_in_turn(run.confirmed.clone(), work, in_turn));
            own = others;
        }
        for case in own {
            run.queues.spawn(run_on_own_process(run.confirmed.clone(), case));
        }
        run
    }

    /// The target, whose failures are reported immediately.
    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    fn start_confirmation(&mut self, unconfirmed: UnboundedReceiver<UnconfirmedResult>) {
        // It ends when all tasks that may report to it have ended.
        self.confirmation.spawn(confirm_all(self.target.clone(), unconfirmed));
    }

    /// The active cases for a kind of process.
    fn active_cases(&self, process: Process) -> Vec<Arc<Case>> {
        let is_for =
            |case: &&Arc<Case>| matches!(&case.body, Body::Active(Active { process: own, .. }) if *own == process);
        self.cases.iter().filter(is_for).cloned().collect()
    }

    /// Discovers what the server has, and runs the other cases.
    pub(super) async fn run_cases(self, main: Session) -> CompletedRun {
        self.run_main_session(main).await.complete().await
    }

    /// Discovers what the server has, and runs the cases of the main session. Others may still be running then.
    pub(super) async fn run_main_session(self, mut main: Session) -> RunWithoutMain {
        let mut on_main_session = self.active_cases(Process::Shared);
        let Self { target, confirmed, cases, permit, damaging, mut queues, confirmation } = self;
        let permit = permit.granted().await;
        let mut early = EarlyCases::default();
        let begin_early = |session: &Session| {
            if cases_need_not_wait(&target, session) {
                early = run_before_discovery(&confirmed, &mut on_main_session, &mut queues);
            }
        };
        let remaining = discover_target(&target, &mut main, begin_early).await;
        if main.is_slow() || target.inventory().await.has_slow_tools() {
            target.context.slow_server.mark(main.connection.first_line().unwrap_or_default());
        }
        let sessions =
            Box::pin(run_on_main_session(confirmed.clone(), main, on_main_session, remaining, early, permit)).await;
        queues.spawn(run_on_second_disposable_session(confirmed.clone(), damaging));
        RunWithoutMain { target, confirmed, cases, sessions, queues, confirmation }
    }
}

/// The run of one target whose main session has ended.
pub(super) struct RunWithoutMain {
    target: Target,
    confirmed: Target,
    pub(super) cases: Vec<Arc<Case>>,
    /// The sessions that have ended.
    pub(super) sessions: ClosedSessions,
    queues: JoinSet<ClosedSessions>,
    confirmation: JoinSet<()>,
}

impl RunWithoutMain {
    /// Adds the sessions of the cases that have finished.
    pub(super) fn add_finished(&mut self) {
        while let Some(finished) = self.queues.try_join_next() {
            self.add(finished);
        }
    }

    fn add(&mut self, finished: Result<ClosedSessions, JoinError>) {
        match finished {
            Ok(more) => self.sessions.extend(more),
            Err(error) => self.target.give_up(&format!("an internal task failed: {error}")),
        }
    }

    /// Waits for the cases that have not finished.
    pub(super) async fn complete(mut self) -> CompletedRun {
        while let Some(finished) = self.queues.join_next().await {
            self.add(finished);
        }
        let Self { target, confirmed, cases, sessions, mut confirmation, .. } = self;
        report_deferred(&confirmed);
        drop(confirmed);
        while let Some(finished) = confirmation.join_next().await {
            if let Err(error) = finished {
                target.give_up(&format!("an internal task failed: {error}"));
            }
        }
        let discovered = target.complete_inventory().await;
        CompletedRun { cases, discovered, sessions }
    }
}

/// Whether cases need not wait for discovery, which takes long on a slow server; if so, they get to know what its opening
/// showed.
fn cases_need_not_wait(target: &Target, main: &Session) -> bool {
    let startup = main.connection.first_line().unwrap_or_default();
    if !main.is_slow() || startup < SLOW_ANSWER {
        return false;
    }
    target.context.slow_server.mark(main.connection.opening_time().unwrap_or(startup));
    // What a hint shows may serve any case.
    if !target.context.plan.hints.is_empty() || target.context.plan.jobs <= 1 {
        return false;
    }
    let session_parameters = main.parameters.clone();
    target.set_opening_inventory(Arc::new(Inventory { session_parameters, startup, ..Inventory::default() }));
    true
}

/// Discovers what the server has, and tells the queues that wait for it; returns what is left to do.
async fn discover_target(
    target: &Target,
    main: &mut Session,
    after_first_answers: impl FnOnce(&Session) + Send,
) -> RemainingDiscovery {
    let (discovered, remaining) = discover(main, &target.context.plan, after_first_answers).await;
    main.answer_times().record_exchanges(&main.transcript_from(0), |_| true);
    let startup = main.connection.first_line().unwrap_or_default();
    if let Some(reason) = &discovered.stop_reason {
        target.give_up(reason);
    }
    target.set_inventory(Arc::new(Inventory {
        session_parameters: main.parameters.clone(),
        startup,
        awaits_first_calls: remaining.has_calls_in_flight(),
        ..discovered
    }));
    remaining
}
