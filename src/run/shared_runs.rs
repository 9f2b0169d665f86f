//! What the cases that run once for all revisions showed, shared by the revisions of a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OnceCell, watch};

use crate::case::Case;
use crate::check::{Execution, Judgement};
use crate::context::ClosedConnection;
use crate::spec::Revision;
use crate::transcript::SessionParameters;

/// The id of a case, and what it calls.
type RunKey = (String, String);

/// The runs of these cases.
#[derive(Debug, Default)]
pub(super) struct SharedRuns {
    runs: Mutex<BTreeMap<RunKey, Arc<OnceCell<SharedRun>>>>,
    /// The revision that runs those cases for all of them that may follow one another on a process, if one does.
    runner: Option<Revision>,
    progress: watch::Sender<Progress>,
}

/// How far the runner is.
#[derive(Debug, Default)]
struct Progress {
    runs: usize,
    is_over: bool,
}

/// One run.
#[derive(Debug)]
pub(super) struct SharedRun {
    pub(super) run: Result<Vec<Execution>, Judgement>,
    /// The process, if no other case ran on it.
    pub(super) process: Option<(ClosedConnection, SessionParameters)>,
    pub(super) cut_off: bool,
    /// Whether the server refused an `initialize` of the case, as it may refuse any other session.
    pub(super) was_refused: bool,
}

/// The work of the runner, until dropped.
#[derive(Debug)]
pub(super) struct RunnerWork(Arc<SharedRuns>);

impl SharedRuns {
    /// Runs of which one revision carries out what it can.
    pub(super) fn with_runner(runner: Option<Revision>) -> Self {
        Self { runner, ..Self::default() }
    }

    /// The run of a case that calls this; the first to get here carries it out.
    pub(super) fn of(&self, case: &Case, called: String) -> Arc<OnceCell<SharedRun>> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(runs.entry((case.id.clone(), called)).or_default())
    }

    /// The work of a revision, if it is the runner.
    pub(super) fn begin_work(self: &Arc<Self>, revision: Revision) -> Option<RunnerWork> {
        (self.runner == Some(revision)).then(|| RunnerWork(Arc::clone(self)))
    }

    /// Waits until the runner has carried out a run, or carries out no more; a revision does not wait for itself.
    pub(super) async fn wait_for_runner(&self, revision: Revision, run: &OnceCell<SharedRun>) {
        if self.runner.is_none_or(|runner| runner == revision) {
            return;
        }
        // The sender is a part of this value, so the channel stays open.
        let mut progress = self.progress.subscribe();
        let _progress = progress.wait_for(|progress| run.initialized() || progress.is_over).await;
    }
}

impl RunnerWork {
    /// Tells those that wait that there is one more run.
    pub(super) fn note_run(&self) {
        self.0.progress.send_modify(|progress| progress.runs += 1);
    }
}

impl Drop for RunnerWork {
    fn drop(&mut self) {
        self.0.progress.send_modify(|progress| progress.is_over = true);
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;

    fn skipped() -> SharedRun {
        SharedRun { run: Err(Judgement::skip("nothing to call")), process: None, cut_off: false, was_refused: false }
    }

    #[tokio::test]
    async fn the_others_wait_for_what_the_runner_carries_out_and_no_longer() {
        let newest = Revision::V2025_11_25;
        let runs = Arc::new(SharedRuns::with_runner(Some(newest)));
        let work = runs.begin_work(newest).expect("it is the runner");
        assert!(runs.begin_work(Revision::V2025_06_18).is_none());
        let waiting = |run: &Arc<OnceCell<SharedRun>>| {
            let (runs, run) = (Arc::clone(&runs), Arc::clone(run));
            tokio::spawn(async move { runs.wait_for_runner(Revision::V2025_06_18, &run).await })
        };
        let (done, left) = (Arc::default(), Arc::default());
        let (first, second) = (waiting(&done), waiting(&left));
        yield_now().await;
        assert!(!first.is_finished() && !second.is_finished());
        done.set(skipped()).expect("nobody has set it");
        work.note_run();
        yield_now().await;
        assert!(first.is_finished() && !second.is_finished());
        drop(work);
        yield_now().await;
        assert!(second.is_finished());
    }

    #[tokio::test]
    async fn nobody_waits_for_a_runner_that_does_not_exist_or_for_itself() {
        let run = OnceCell::new();
        SharedRuns::default().wait_for_runner(Revision::V2025_11_25, &run).await;
        SharedRuns::with_runner(Some(Revision::V2025_11_25)).wait_for_runner(Revision::V2025_11_25, &run).await;
    }
}
