//! What a campaign needs from the run that it is part of: processes of the server, the other work of the run, and the
//! request to stop.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::client::headers::Mirrored;
use crate::client::{HostState, Responder, UnrecordedConnection};
use crate::spec::Revision;

/// A future of a trait object.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The run, as a campaign sees it.
pub(crate) trait Environment: Send + Sync {
    /// Whether the run was asked to stop.
    fn is_stopping(&self) -> bool;

    /// Whether cases are running, which slows down the calls.
    fn is_judging_cases(&self) -> bool;

    /// Waits until the cases of every revision have finished, or the run is asked to stop.
    fn wait_for_cases(&self) -> BoxFuture<'_, ()>;

    /// Adds to the time that judging took.
    fn add_judging_time(&self, duration: Duration);

    /// Starts a process of the server, or connects to the running one, and opens a session. `mirrored` says which tool
    /// parameters are mirrored into headers. The error says why there is no session.
    fn open_process(
        &self,
        revision: Revision,
        mirrored: Arc<Mirrored>,
    ) -> BoxFuture<'static, Result<OpenedProcess, String>>;

    /// The state of a server over HTTP that closed the connection.
    fn host_state(&self) -> BoxFuture<'_, HostState>;

    /// Answers the requests of a server in this revision.
    fn responder(&self, revision: Revision) -> Responder;
}

/// A process with an open session.
pub(crate) struct OpenedProcess {
    pub(crate) pipe: UnrecordedConnection,
    /// How long it took to open.
    pub(crate) startup: Duration,
    /// Requests that it sent meanwhile.
    pub(crate) requests: Vec<Value>,
    /// The id of its process, if known.
    pub(crate) process_id: Option<i32>,
}
