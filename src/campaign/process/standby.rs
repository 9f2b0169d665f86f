//! Opens processes of the server ahead of need: shrinking restarts the server repeatedly, and starting is what most
//! servers are slowest at.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::environment::{Environment, OpenedProcess};
use crate::campaign::limits::{STANDBY_QUIET_TIME, STARTS_BEFORE_STANDBY};
use crate::client::WaitOutcome;
use crate::client::headers::Mirrored;
use crate::spec::Revision;
use crate::transcript::messages;
use crate::wire::MessageKind;

/// The maximum number of standby processes.
const MAX_WAITING: usize = 1;

/// Opens processes, some of them ahead of need.
pub(super) struct StandbyProcesses {
    environment: Arc<dyn Environment>,
    revision: Revision,
    /// The tool parameters that are mirrored into headers.
    mirrored: Arc<Mirrored>,
    /// Whether there may be only one process at a time.
    is_single: bool,
    waiting: VecDeque<JoinHandle<Result<OpenedProcess, String>>>,
    /// How many processes were taken. Standby processes start only once shrinking has clearly begun.
    taken: usize,
}

impl StandbyProcesses {
    pub(in crate::campaign) fn new(
        environment: &Arc<dyn Environment>,
        revision: Revision,
        mirrored: Mirrored,
        is_single: bool,
    ) -> Self {
        Self {
            environment: Arc::clone(environment),
            revision,
            mirrored: Arc::new(mirrored),
            is_single,
            waiting: VecDeque::new(),
            taken: 0,
        }
    }

    /// Takes a process that has not been called.
    pub(in crate::campaign) async fn take(&mut self) -> Result<OpenedProcess, String> {
        let opened = match self.taken().await {
            Some(opened) => opened,
            None => self.open().await?,
        };
        self.taken += 1;
        let wanted = if self.is_single || self.taken < STARTS_BEFORE_STANDBY { 0 } else { MAX_WAITING };
        while self.waiting.len() < wanted {
            self.waiting.push_back(tokio::spawn(self.open()));
        }
        Ok(opened)
    }

    fn open(&self) -> impl Future<Output = Result<OpenedProcess, String>> + Send + 'static + use<> {
        self.environment.open_process(self.revision, Arc::clone(&self.mirrored))
    }

    /// The first usable standby process. One that failed to start or has ended is skipped.
    async fn taken(&mut self) -> Option<OpenedProcess> {
        loop {
            let waiting = self.waiting.pop_front()?;
            if let Ok(Ok(mut opened)) = waiting.await
                && is_still_running(&mut opened).await
            {
                return Some(opened);
            }
        }
    }

    /// Ends the standby processes.
    pub(in crate::campaign) fn end(&mut self) {
        for waiting in self.waiting.drain(..) {
            waiting.abort();
        }
        self.taken = 0;
    }
}

impl Drop for StandbyProcesses {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads pending messages; returns whether the process still runs.
async fn is_still_running(opened: &mut OpenedProcess) -> bool {
    loop {
        match opened.pipe.next(STANDBY_QUIET_TIME).await {
            WaitOutcome::Ready(frame) => {
                for message in frame.json().into_iter().flat_map(messages) {
                    if matches!(MessageKind::of(message), MessageKind::Request { .. }) {
                        opened.requests.push(message.clone());
                    }
                }
            }
            WaitOutcome::TimedOut => return true,
            WaitOutcome::Closed => return false,
        }
    }
}
