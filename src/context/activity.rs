//! What the revisions of a run do at the moment, so that they do not disturb each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedMutexGuard, watch};

/// Which revisions run cases, and which are fuzzed.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// The number of revisions whose cases are running.
    running: watch::Sender<usize>,
    /// The number of revisions being fuzzed.
    fuzzed: AtomicUsize,
    /// Held while fuzzing a server whose revisions share one process.
    fuzzing_lock: Arc<tokio::sync::Mutex<()>>,
    /// Held while judging in the background.
    pub(super) judging_lock: tokio::sync::Mutex<()>,
}

/// A guard for a revision whose cases are running.
#[derive(Debug)]
pub(crate) struct ActiveRevision(Arc<Activity>);

impl Drop for ActiveRevision {
    fn drop(&mut self) {
        self.0.running.send_modify(|revisions| *revisions -= 1);
    }
}

/// A guard for a revision that is being fuzzed.
#[derive(Debug)]
pub(crate) struct FuzzedRevision {
    activity: Arc<Activity>,
    /// Held if all revisions share one process.
    _exclusive: Option<OwnedMutexGuard<()>>,
}

impl Drop for FuzzedRevision {
    fn drop(&mut self) {
        self.activity.fuzzed.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Activity {
    /// Registers a revision whose cases start to run.
    pub(super) fn begin_cases(self: &Arc<Self>) -> ActiveRevision {
        self.running.send_modify(|revisions| *revisions += 1);
        ActiveRevision(Arc::clone(self))
    }

    /// Whether any cases are running.
    pub(super) fn is_running_cases(&self) -> bool {
        *self.running.borrow() > 0
    }

    /// Waits until the cases of every revision have finished.
    pub(super) async fn wait_for_cases(&self) {
        let mut running = self.running.subscribe();
        // The sender is a part of this value, so the channel stays open.
        let _finished = running.wait_for(|revisions| *revisions == 0).await;
    }

    /// Registers a revision that is fuzzed from now on; with `exclusive`, waits until no other one is.
    pub(super) async fn begin_fuzzing(self: &Arc<Self>, exclusive: bool) -> FuzzedRevision {
        let exclusive = if exclusive { Some(Arc::clone(&self.fuzzing_lock).lock_owned().await) } else { None };
        self.fuzzed.fetch_add(1, Ordering::Relaxed);
        FuzzedRevision { activity: Arc::clone(self), _exclusive: exclusive }
    }

    /// Whether any revision is being fuzzed.
    pub(super) fn is_fuzzing(&self) -> bool {
        self.fuzzed.load(Ordering::Relaxed) > 0
    }
}
