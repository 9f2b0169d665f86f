//! What the cases that run once for all revisions showed, shared by the revisions of a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use crate::case::Case;
use crate::check::{Execution, Judgement};
use crate::context::ClosedConnection;
use crate::transcript::SessionParameters;

/// The id of a case, and what it calls.
type RunKey = (String, String);

/// The runs of these cases.
#[derive(Debug, Default)]
pub(super) struct SharedRuns(Mutex<BTreeMap<RunKey, Arc<OnceCell<SharedRun>>>>);

/// One run.
#[derive(Debug)]
pub(super) struct SharedRun {
    pub(super) run: Result<Vec<Execution>, Judgement>,
    pub(super) ended: ClosedConnection,
    pub(super) session_parameters: SessionParameters,
    pub(super) cut_off: bool,
}

impl SharedRuns {
    /// The run of a case that calls this; the first revision to get here carries it out.
    pub(super) fn of(&self, case: &Case, called: String) -> Arc<OnceCell<SharedRun>> {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(runs.entry((case.id.clone(), called)).or_default())
    }
}
