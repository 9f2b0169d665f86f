//! Runs cases that ask for a fresh process one after the other on the same one, as long as each passes and the process then serves as before.
//!
//! Starting a process may take more time than all the messages of such a case. Nothing is said of a case that did not pass on
//! a process on which others ran: it runs again on a fresh one, and only that counts. A slow server gets a process for each case,
//! so that waiting overlaps.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::case_queue::{finish, still_serves};
use super::case_run::{CaseRun, carry_out_fresh, judge};
use super::case_session::{ClosedSessions, OpenError, close, is_unusable, open_for_case};
use super::needs::{may_damage, uses_tools};
use super::own_process::{reason_without_process, run_on_own_process};
use super::remaining_cases::RemainingCases;
use super::shared_results::{is_shared, may_follow_others, report_run, shared_run_of};
use crate::case::{Action, Active, Body, Case};
use crate::check::Judgement;
use crate::context::{PermitRequest, ProcessPermit};
use crate::inventory::Inventory;
use crate::limits::MAX_PROCESSES_IN_TURN;
use crate::run::shared_runs::{RunnerWork, SharedRun};
use crate::run::target_state::Target;
use crate::session::Session;
use crate::spec::Revision;
use crate::verdict::Verdict;

/// The purpose of these processes.
const PURPOSE: &str = "cases in turn";

/// Whether a case of the runner may follow others on a process.
pub(in crate::run) fn may_run_in_turn(target: &Target, case: &Case) -> bool {
    let Body::Active(body) = &case.body else { return false };
    may_follow_others(body) && is_shared(target, case, body)
}

/// Runs such cases.
///
/// The permits are requested immediately.
pub(in crate::run) fn run_in_turn(
    target: Target,
    work: RunnerWork,
    cases: Vec<Arc<Case>>,
) -> impl Future<Output = ClosedSessions> + Send {
    let count = MAX_PROCESSES_IN_TURN.min(target.context.plan.jobs).min(cases.len());
    let permits = (0..count).map(|_| target.context.request_queue_permit()).collect();
    run_all(target, work, cases, permits)
}

/// Whether a case leaves the process in a state in which only cases follow that leave it so too.
fn leaves_traces(case: &Case, revision: Revision) -> bool {
    may_damage(case, revision) || case.needs.client_request.is_some()
}

/// The order of cases: those last that end the process, and first those that wait long.
fn order(case: &Case) -> (bool, bool) {
    let Body::Active(body) = &case.body else { return (false, false) };
    let ends = body.steps.iter().any(|step| matches!(step.action, Action::Shutdown { .. } | Action::Close { .. }));
    (ends, !body.takes_long())
}

/// Whether a case calls tools, so that it has to wait for their first calls.
fn waits_for_tools(case: &Case) -> bool {
    matches!(&case.body, Body::Active(body) if uses_tools(case, body))
}

async fn run_all(
    target: Target,
    work: RunnerWork,
    mut cases: Vec<Arc<Case>>,
    permits: Vec<PermitRequest>,
) -> ClosedSessions {
    let work = Arc::new(work);
    let mut workers = JoinSet::new();
    // A slow server is known to be one by then.
    target.first_inventory().await;
    cases.sort_by_key(|case| order(case));
    let (with_traces, harmless): (Vec<_>, _) = cases.into_iter().partition(|case| leaves_traces(case, target.revision));
    let (late, early) = with_traces.into_iter().partition(|case| waits_for_tools(case));
    // Each begins with a list of its own, and then does what is left of the others.
    let mut lists = [harmless, early, late].map(RemainingCases::new);
    for permit in permits {
        let worker = Worker::new(target.clone(), Arc::clone(&work));
        workers.spawn(worker.run(lists.clone(), permit));
        lists.rotate_left(1);
    }
    drop(work);
    finish(&target, workers).await
}

/// Runs one case after the other on a process, which is replaced when it can no longer be used.
struct Worker {
    target: Target,
    work: Arc<RunnerWork>,
    session: Option<Session>,
    /// Whether a case ran on the session that leaves traces.
    has_traces: bool,
    closed: ClosedSessions,
    /// The cases that run on processes of their own, and the sessions that are being closed.
    beside: JoinSet<ClosedSessions>,
}

impl Worker {
    fn new(target: Target, work: Arc<RunnerWork>) -> Self {
        Self { target, work, session: None, has_traces: false, closed: ClosedSessions::new(), beside: JoinSet::new() }
    }

    async fn run(mut self, lists: [RemainingCases; MAX_PROCESSES_IN_TURN], permit: PermitRequest) -> ClosedSessions {
        let permit = permit.granted().await;
        // What it does takes little work.
        let _permit: Option<ProcessPermit> = self.target.context.release_if_idle(permit);
        while let Some(case) = lists.iter().find_map(RemainingCases::next) {
            if self.target.context.allows_more_sessions() {
                let (target, work) = (self.target.clone(), Arc::clone(&self.work));
                self.beside.spawn(async move {
                    let closed = run_on_own_process(target, case).await;
                    work.note_run();
                    closed
                });
            } else {
                self.run_case(&case).await;
                self.work.note_run();
            }
        }
        self.close_session();
        let Self { target, work, mut closed, beside, .. } = self;
        // What is left is none of its cases.
        drop(work);
        closed.extend(finish(&target, beside).await);
        closed
    }

    async fn run_case(&mut self, case: &Arc<Case>) {
        let Body::Active(body) = &case.body else { return };
        if let Some(reason) = reason_without_process(&self.target, case, body).await {
            self.target.report(case, Judgement::skip(reason), None);
            return;
        }
        let target = self.target.clone();
        let Some((cell, inventory)) = shared_run_of(&target, case, body).await else { return };
        let began = Instant::now();
        match cell.get_or_try_init(|| self.carry_out(case, body, &inventory)).await {
            Ok(outcome) => self.closed.extend(report_run(&target, case, body, outcome, true, began).await),
            Err(OpenError { reason, sessions }) => {
                self.closed.extend(sessions);
                target.report(case, Judgement::error(reason), None);
            }
        }
    }

    /// Carries out a case on the process that others left as they found it, if there is one and the case passes there; otherwise on a
    /// fresh one.
    async fn carry_out(&mut self, case: &Case, body: &Active, inventory: &Inventory) -> Result<SharedRun, OpenError> {
        let (mut cut_off, leaves_traces) = (false, leaves_traces(case, self.target.revision));
        if self.has_traces && !leaves_traces {
            self.close_session();
        }
        loop {
            if let Some(reason) = self.target.stop_reason() {
                return Err(reason.into());
            }
            let is_used = self.session.is_some();
            let mut session = match self.session.take() {
                Some(session) => session,
                None => open_for_case(&self.target, body, PURPOSE.to_owned()).await?,
            };
            let from = session.connection.len();
            let run = carry_out_fresh(&self.target, case, body, &mut session, inventory).await;
            let passed = self.passes(case, body, &run);
            cut_off |= session.connection.has_overflowed();
            let timeout = self.target.context.plan.timeout;
            let serves =
                passed && !is_unusable(&self.target, &session) && still_serves(&mut session, from, timeout).await;
            self.session = Some(session);
            self.has_traces |= leaves_traces;
            if !serves {
                self.close_session();
            }
            if passed || !is_used {
                return Ok(SharedRun { run, process: None, cut_off, was_refused: false });
            }
        }
    }

    fn passes(&self, case: &Case, body: &Active, run: &CaseRun) -> bool {
        let judged = judge(&self.target, case, body, run);
        judged.verdict == Verdict::Pass && judged.findings.is_empty()
    }

    /// Closes the session while others go on: its process may take its time to end.
    fn close_session(&mut self) {
        self.has_traces = false;
        if let Some(session) = self.session.take() {
            let target = self.target.clone();
            self.beside.spawn(async move { vec![close(&target, session).await] });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::load;

    #[test]
    fn cases_that_wait_long_come_first_and_those_that_end_the_process_last() {
        let mut cases = load(None, &[]).expect("they are sound");
        let may_follow = |case: &Case| matches!(&case.body, Body::Active(body) if may_follow_others(body));
        cases.retain(may_follow);
        cases.sort_by_key(order);
        let place = |id: &str| cases.iter().position(|case| case.id == id).expect("it asks for a fresh process");
        assert!(place("lifecycle/quiet-while-idle") < place("tools/list/announced-unchanged"));
        assert!(place("tools/list/announced-unchanged") < place("stdio/exit-on-sigterm-first"));
        assert!(place("cancellation/running-twice") < place("cancellation/running"));
        assert!(place("cancellation/running-twice") < place("stdio/exit-on-sigterm-first"));
    }

    #[test]
    fn what_may_do_harm_leaves_traces() {
        let cases = load(None, &[]).expect("they are sound");
        let leaves = |id: &str| {
            let case = cases.iter().find(|case| case.id == id).expect("it exists");
            leaves_traces(case, Revision::V2025_11_25)
        };
        assert!(
            ["jsonrpc/params-array", "cancellation/running", "lifecycle/unanswered-request"]
                .iter()
                .all(|id| leaves(id))
        );
        assert!(!["tools/list/announced-unchanged", "stdio/exit-on-eof"].iter().any(|id| leaves(id)));
    }

    #[test]
    fn cases_that_start_or_open_the_server_in_a_way_of_their_own_follow_no_others() {
        let cases = load(None, &[]).expect("they are sound");
        for id in ["stdio/without-locale", "elicitation/form-undeclared", "lifecycle/version-unknown", "lifecycle/ping"]
        {
            let case = cases.iter().find(|case| case.id == id).expect("it exists");
            assert!(matches!(&case.body, Body::Active(body) if !may_follow_others(body)), "{id}");
        }
    }
}
