//! The transcript that a run saves: names its connections, masks secrets, and turns entries into lines.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::client::{EntryObserver, Secrets};
use crate::plan::{Launcher, ServerCommand};
use crate::transcript::{ConnectionWriter, Entry, Mask, SessionParameters, judged_line, opened_line};

/// The transcript of a run.
pub(super) struct TranscriptOutput {
    /// The number of connections so far.
    connections: AtomicUsize,
    mask: Mask,
}

impl TranscriptOutput {
    /// A transcript in which the secrets of the server's environment and headers are masked.
    pub(super) fn new(launcher: &Launcher) -> Self {
        let own = |server: &ServerCommand| server.environment.clone();
        let variables = match launcher {
            Launcher::Command(server) => own(server),
            Launcher::Http(server) => server.command.as_ref().map(own).unwrap_or_default(),
            Launcher::Reference(_) | Launcher::InProcess(_) => Vec::new(),
        };
        let secrets = Secrets::of_variables(std::env::vars_os().chain(variables));
        let mask: Mask = match launcher {
            Launcher::Http(server) => {
                let endpoint = Arc::clone(&server.endpoint);
                Arc::new(move |text| secrets.masked(&endpoint.masked(text)))
            }
            Launcher::Command(_) | Launcher::Reference(_) | Launcher::InProcess(_) => {
                Arc::new(move |text| secrets.masked(text))
            }
        };
        Self { connections: AtomicUsize::new(0), mask }
    }

    /// Begins a connection; its name, and the callback that adds its entries. `emit` takes the lines, and `case_of`
    /// names the case of an execution.
    pub(super) fn begin(
        &self,
        purpose: &str,
        watched: bool,
        emit: impl Fn(String) + Send + Sync + 'static,
        case_of: impl Fn(usize) -> Option<String> + Send + Sync + 'static,
    ) -> (Arc<str>, EntryObserver) {
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let name: Arc<str> = number.to_string().into();
        emit(opened_line(&name, purpose, watched));
        let writer = Mutex::new(ConnectionWriter::new(name.to_string(), Arc::clone(&self.mask)));
        let save = move |entry: &Entry| {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            // The lines of a connection keep their order.
            emit(writer.line(entry, &case_of));
        };
        (name, Arc::new(save))
    }

    /// The line that says in which revision the run judges a connection.
    pub(super) fn judged_line(&self, connection: &str, revision: &str, parameters: &SessionParameters) -> String {
        judged_line(connection, revision, parameters, &self.mask)
    }
}
