//! Whether the server is slow to answer, and how many more of its processes or sessions are allowed for that.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};

use super::free_memory;
use super::permits::ProcessPermits;
use crate::limits::{
    EQUALLY_FAST_FACTOR, FILES_PER_PROCESS, FIRST_PROCESSES_OF_SLOW_SERVER, MAX_SESSIONS_OF_SLOW_SERVER, OTHER_FILES,
    SESSIONS_PER_FAST_OPENING,
};
use crate::spec::Transport;

/// What is known about the slowness of a server. It adds the permits for more of its processes, since they only wait.
#[derive(Debug)]
pub(crate) struct SlowServer {
    permits: Arc<ProcessPermits>,
    transport: Transport,
    /// The number of processes at once of any other server; `None` if the user set it, so that it applies to this one too.
    usual_processes: Option<usize>,
    is_slow: AtomicBool,
    /// How long it took to open its first session.
    first_opening: OnceLock<Duration>,
    /// How many further sessions it may get; over standard input and output, each has a process of its own.
    further_sessions: AtomicUsize,
}

impl SlowServer {
    /// A server of which nothing is known yet.
    pub(super) fn new(permits: &Arc<ProcessPermits>, transport: Transport, usual_processes: Option<usize>) -> Self {
        Self {
            permits: Arc::clone(permits),
            transport,
            usual_processes,
            is_slow: AtomicBool::new(false),
            first_opening: OnceLock::new(),
            further_sessions: AtomicUsize::new(0),
        }
    }

    /// Records that the server is slow to answer, and how long its first opening took.
    pub(crate) fn mark(&self, opening: Duration) {
        let was_slow = self.is_slow.swap(true, Ordering::Relaxed);
        let Some(usual) = self.usual_processes.filter(|_| !was_slow) else { return };
        // All sessions of an HTTP server share one process, which may be slow because it is busy.
        let is_http = self.transport == Transport::Http;
        let count = if is_http { usual } else { FIRST_PROCESSES_OF_SLOW_SERVER };
        self.first_opening.get_or_init(|| opening);
        self.further_sessions.store(max_sessions().saturating_sub(count), Ordering::Relaxed);
        self.permits.add(count.saturating_sub(usual));
    }

    /// Allows more sessions, up to a maximum, if one was opened as fast as the first, and if there is memory for it. Over
    /// HTTP, it shows something only if all other permits are in use: a server that serves one request at a time is as fast
    /// for one session as for the first.
    pub(crate) fn allow_further_session(&self, opening: Duration) {
        self.allow_further_session_if(opening, || match self.transport {
            Transport::Http => self.permits.free() == 0,
            Transport::Stdio | Transport::Any => free_memory::is_half_free() == Some(true),
        });
    }

    fn allow_further_session_if(&self, opening: Duration, has_room: impl FnOnce() -> bool) {
        let is_fast = |first: &Duration| opening <= first.mul_f32(EQUALLY_FAST_FACTOR);
        if !self.first_opening.get().is_some_and(is_fast) || !has_room() {
            return;
        }
        let most = if self.transport == Transport::Http { SESSIONS_PER_FAST_OPENING } else { 1 };
        let fewer = |left: usize| Some(left.saturating_sub(most));
        let left = self.further_sessions.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).unwrap_or_default();
        self.permits.add(left.min(most));
    }

    /// Whether the server is known to be slow to answer.
    pub(crate) fn is_marked(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }
}

/// How many sessions a slow server has at most, by the number of files that this process may open.
fn max_sessions() -> usize {
    let files = getrlimit(Resource::Nofile).current;
    sessions_with_files(files)
}

fn sessions_with_files(files: Option<u64>) -> usize {
    let affordable = files.map(|files| files.saturating_sub(OTHER_FILES) / FILES_PER_PROCESS);
    affordable.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX).min(MAX_SESSIONS_OF_SLOW_SERVER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::permits::Priority;

    const OPENING: Duration = Duration::from_secs(2);

    /// A server with four permits, and the permits.
    fn server(transport: Transport, usual_processes: Option<usize>) -> (SlowServer, Arc<ProcessPermits>) {
        let permits = ProcessPermits::new(4);
        (SlowServer::new(&permits, transport, usual_processes), permits)
    }

    #[test]
    fn a_slow_server_gets_more_processes_once() {
        let (server, permits) = server(Transport::Stdio, Some(4));
        assert!(!server.is_marked());
        server.mark(OPENING);
        server.mark(OPENING);
        assert!(server.is_marked());
        assert_eq!(permits.free(), FIRST_PROCESSES_OF_SLOW_SERVER);
    }

    #[test]
    fn it_gets_further_processes_while_there_is_memory() {
        let (server, permits) = server(Transport::Stdio, Some(4));
        server.mark(OPENING);
        server.allow_further_session_if(OPENING, || false);
        assert_eq!(permits.free(), FIRST_PROCESSES_OF_SLOW_SERVER);
        server.allow_further_session_if(OPENING * 2, || true);
        assert_eq!(permits.free(), FIRST_PROCESSES_OF_SLOW_SERVER, "the machine is busy");
        for _ in 0..=MAX_SESSIONS_OF_SLOW_SERVER {
            server.allow_further_session_if(OPENING, || true);
        }
        assert_eq!(permits.free(), MAX_SESSIONS_OF_SLOW_SERVER);
    }

    #[test]
    fn there_are_files_for_the_streams_of_all_processes() {
        let sessions = [None, Some(20_000), Some(1_024), Some(256), Some(100)].map(sessions_with_files);
        assert_eq!(sessions, [MAX_SESSIONS_OF_SLOW_SERVER, MAX_SESSIONS_OF_SLOW_SERVER, 206, 14, 0]);
    }

    #[test]
    fn the_number_that_the_user_set_is_kept() {
        for transport in [Transport::Stdio, Transport::Http] {
            let (server, permits) = server(transport, None);
            server.mark(OPENING);
            server.allow_further_session(OPENING);
            assert!(server.is_marked());
            assert_eq!(permits.free(), 4, "{transport:?}");
        }
    }

    #[test]
    fn a_slow_http_server_gets_further_sessions_while_it_opens_them_as_fast_as_the_first() {
        let (server, permits) = server(Transport::Http, Some(4));
        server.allow_further_session(OPENING);
        assert_eq!(permits.free(), 4, "it is not known to be slow");
        server.mark(OPENING);
        server.allow_further_session(OPENING);
        assert_eq!(permits.free(), 4, "no other session was at work");
        let mut working: Vec<_> = (0..4).map(|_| permits.request(Priority::Normal)).collect();
        server.allow_further_session(OPENING * 2);
        assert_eq!(permits.free(), 0, "the open sessions slow it down");
        for _ in 0..=MAX_SESSIONS_OF_SLOW_SERVER {
            server.allow_further_session(OPENING + OPENING / 2);
            working.extend((0..permits.free()).map(|_| permits.request(Priority::Normal)));
        }
        assert_eq!(working.len(), MAX_SESSIONS_OF_SLOW_SERVER);
    }
}
