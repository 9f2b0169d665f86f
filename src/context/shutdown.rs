//! How the connections of a run are closed: how long a server gets to exit, and what closes in the background.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::client::{Connection, ConnectionCosts, ShutdownTimeouts};
use crate::limits::{IGNORED_STEP_TIMEOUT, MAX_SHUTDOWN_GRACE, UNJUDGED_SHUTDOWN_TIMEOUT};
use crate::transcript::{Entry, ShutdownStep};

/// A closed connection with its transcript.
#[derive(Debug, Clone)]
pub(crate) struct ClosedConnection {
    pub(crate) purpose: String,
    /// The name in the transcript that the run saves, if it saves one.
    pub(crate) name: Option<Arc<str>>,
    /// Whether it was started without the package runner.
    pub(crate) without_package_runner: bool,
    pub(crate) startup: Option<Duration>,
    pub(crate) step: ShutdownStep,
    pub(crate) entries: Vec<Arc<Entry>>,
    /// How many requests the server rejected because of rate limiting.
    pub(crate) limited: usize,
    pub(crate) costs: ConnectionCosts,
}

/// How long a server gets to exit, at least `grace`: a server that starts slowly, or runs on a busy machine, exits
/// slowly as well.
pub(crate) fn shutdown_grace_for(grace: Duration, connection: &Connection) -> Duration {
    let startup = connection.first_line().unwrap_or_default();
    grace.max((startup * 3).min(MAX_SHUTDOWN_GRACE))
}

/// What is known about the shutdowns of a run.
#[derive(Debug, Default)]
pub(super) struct Shutdowns {
    /// The furthest step that any shutdown needed.
    furthest: Mutex<Option<ShutdownStep>>,
    /// The connections that are closing while nothing waits for them.
    background: Mutex<Vec<JoinHandle<()>>>,
}

impl Shutdowns {
    /// How long a server gets to exit where no case judges that: less at a step that it is known to ignore. Then, how long
    /// processes that it has started may run on.
    ///
    /// Whether it handles SIGTERM is judged for every process, so it gets the full time until that has been seen
    /// once.
    pub(super) fn timeouts(&self, grace: Duration, connection: &Connection) -> (ShutdownTimeouts, Duration) {
        let quick = grace.min(UNJUDGED_SHUTDOWN_TIMEOUT);
        let whole = shutdown_grace_for(grace, connection);
        let furthest = *self.furthest.lock().unwrap_or_else(PoisonError::into_inner);
        let timeouts = match furthest {
            Some(ShutdownStep::Sigkill) => {
                ShutdownTimeouts { input_closed: IGNORED_STEP_TIMEOUT, sigterm: IGNORED_STEP_TIMEOUT }
            }
            Some(ShutdownStep::Sigterm) => ShutdownTimeouts { input_closed: IGNORED_STEP_TIMEOUT, sigterm: whole },
            Some(ShutdownStep::AlreadyExited | ShutdownStep::StdinClosed | ShutdownStep::Disconnected) | None => {
                ShutdownTimeouts { input_closed: quick, sigterm: whole }
            }
        };
        // Never less: whether something is left running is seen again by a confirmation.
        (timeouts, whole)
    }

    /// Records the last step that a shutdown needed.
    pub(super) fn record(&self, step: ShutdownStep) {
        let mut furthest = self.furthest.lock().unwrap_or_else(PoisonError::into_inner);
        *furthest = match (*furthest, step) {
            (Some(ShutdownStep::Sigkill), _) | (_, ShutdownStep::Sigkill) => Some(ShutdownStep::Sigkill),
            (Some(ShutdownStep::Sigterm), _) | (_, ShutdownStep::Sigterm) => Some(ShutdownStep::Sigterm),
            (_, step) => Some(step),
        };
    }

    /// Adds a task that closes a connection.
    pub(super) fn add_background_task(&self, task: JoinHandle<()>) {
        self.background.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    /// Waits for the tasks that close connections, or aborts them.
    pub(super) async fn finish(&self, immediately: bool) {
        let tasks = std::mem::take(&mut *self.background.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            if immediately {
                task.abort();
            } else {
                let _ended = task.await;
            }
        }
    }
}
