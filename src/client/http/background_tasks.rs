//! The background tasks of a connection, which end with it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::{AbortHandle, JoinHandle};

/// The tasks that read responses in the background.
#[derive(Debug, Default)]
pub(super) struct BackgroundTasks(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    ended: bool,
    tasks: Vec<AbortHandle>,
}

impl BackgroundTasks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a task until the connection ends.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let task = tokio::spawn(work);
        let mut state = self.state();
        state.tasks.retain(|task| !task.is_finished());
        state.tasks.push(task.abort_handle());
        if state.ended {
            task.abort();
        }
        task
    }

    /// Ends all tasks, and each one that is spawned later.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        for task in state.tasks.drain(..) {
            task.abort();
        }
    }
}
