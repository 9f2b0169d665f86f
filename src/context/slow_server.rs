//! Whether the server is slow to answer, and how many more of its processes or sessions are allowed for that.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};

use super::free_memory;
use super::permits::ProcessPermits;
use crate::limits::{
    EQUALLY_FAST_FACTOR, FILES_PER_HTTP_SESSION, FILES_PER_PROCESS, FIRST_PROCESSES_OF_SLOW_SERVER,
    MAX_PROCESSES_OF_SLOW_SERVER, MAX_SESSIONS_OF_SLOW_SERVER, OTHER_FILES, SESSIONS_PER_FAST_OPENING,
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
    /// How long each session took that was opened beside others before the server was known to be slow.
    early_openings: Mutex<Vec<Duration>>,
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
            early_openings: Mutex::default(),
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
        self.further_sessions.store(max_sessions(self.transport).saturating_sub(count), Ordering::Relaxed);
        self.permits.add(count.saturating_sub(usual));
        let early = std::mem::take(&mut *self.early_openings());
        // Of a server that serves one request at a time, the first of them is fast.
        if early.iter().all(|early| self.is_fast(*early)) {
            for opening in early {
                self.allow_further_session_if(opening, || true);
            }
        }
    }

    /// Records that the server is slow in a main session, which took this long to open. Over HTTP, those of several revisions
    /// are opened side by side, so that they show whether others slow down an opening.
    pub(crate) fn mark_main(&self, opening: Duration) {
        let is_first = !self.is_marked();
        self.mark(opening);
        if self.transport == Transport::Http && !is_first {
            self.allow_further_session(opening);
        }
    }

    fn early_openings(&self) -> MutexGuard<'_, Vec<Duration>> {
        self.early_openings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows more sessions, up to a maximum, if one was opened as fast as the first, and if there is memory for it. Over
    /// HTTP, it shows something only if all other permits are in use: a server that serves one request at a time is as fast
    /// for one session as for the first.
    pub(crate) fn allow_further_session(&self, opening: Duration) {
        if self.transport == Transport::Http && self.first_opening.get().is_none() {
            if self.usual_processes.is_some() && self.permits.free() == 0 {
                self.early_openings().push(opening);
            }
            return;
        }
        self.allow_further_session_if(opening, || match self.transport {
            Transport::Http => self.permits.free() == 0,
            Transport::Stdio | Transport::Any => free_memory::is_half_free() == Some(true),
        });
    }

    fn allow_further_session_if(&self, opening: Duration, has_room: impl FnOnce() -> bool) {
        if !self.is_fast(opening) || !has_room() {
            return;
        }
        let most = if self.transport == Transport::Http { SESSIONS_PER_FAST_OPENING } else { 1 };
        let fewer = |left: usize| Some(left.saturating_sub(most));
        let left = self.further_sessions.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).unwrap_or_default();
        self.permits.add(left.min(most));
    }

    /// Whether a session was opened as fast as the first.
    fn is_fast(&self, opening: Duration) -> bool {
        self.first_opening.get().is_some_and(|first| opening <= first.mul_f32(EQUALLY_FAST_FACTOR))
    }

    /// Whether the server is known to be slow to answer.
    pub(crate) fn is_marked(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }
}

/// How many sessions a slow server has at most, by the number of files that this process may open.
fn max_sessions(transport: Transport) -> usize {
    sessions_with_files(transport, getrlimit(Resource::Nofile).current)
}

fn sessions_with_files(transport: Transport, files: Option<u64>) -> usize {
    let (most, per_session) = match transport {
        Transport::Http => (MAX_SESSIONS_OF_SLOW_SERVER, FILES_PER_HTTP_SESSION),
        Transport::Stdio | Transport::Any => (MAX_PROCESSES_OF_SLOW_SERVER, FILES_PER_PROCESS),
    };
    let affordable = files.map(|files| files.saturating_sub(OTHER_FILES) / per_session);
    affordable.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX).min(most)
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
        for _ in 0..=MAX_PROCESSES_OF_SLOW_SERVER {
            server.allow_further_session_if(OPENING, || true);
        }
        assert_eq!(permits.free(), MAX_PROCESSES_OF_SLOW_SERVER);
    }

    #[test]
    fn there_are_files_for_the_streams_of_all_processes() {
        let limits = [None, Some(20_000), Some(1_024), Some(256), Some(100)];
        let processes = limits.map(|files| sessions_with_files(Transport::Stdio, files));
        assert_eq!(processes, [MAX_PROCESSES_OF_SLOW_SERVER, MAX_PROCESSES_OF_SLOW_SERVER, 206, 14, 0]);
        let sessions = limits.map(|files| sessions_with_files(Transport::Http, files));
        assert_eq!(sessions, [MAX_SESSIONS_OF_SLOW_SERVER, MAX_SESSIONS_OF_SLOW_SERVER, 400, 28, 0]);
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
    fn sessions_that_were_opened_before_it_was_known_to_be_slow_count_over_http() {
        for (slowest, further) in [(OPENING, 2 * SESSIONS_PER_FAST_OPENING), (OPENING * 2, 0)] {
            let (server, permits) = server(Transport::Http, Some(4));
            let _working: Vec<_> = (0..4).map(|_| permits.request(Priority::Normal)).collect();
            server.allow_further_session(OPENING);
            server.allow_further_session(slowest);
            assert_eq!(permits.free(), 0, "it is not known to be slow");
            server.mark_main(OPENING);
            assert_eq!(permits.free(), further, "{slowest:?}");
        }
    }

    #[test]
    fn the_main_sessions_of_several_revisions_count_over_http() {
        let (server, permits) = server(Transport::Http, Some(4));
        let mut working: Vec<_> = (0..4).map(|_| permits.request(Priority::Normal)).collect();
        for (opening, further) in [(OPENING, 0), (OPENING, SESSIONS_PER_FAST_OPENING), (OPENING * 2, 0)] {
            server.mark_main(opening);
            assert_eq!(permits.free(), further);
            working.extend((0..further).map(|_| permits.request(Priority::Normal)));
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
