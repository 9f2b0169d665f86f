//! Whether the server is slow to answer, and how many more of its processes or sessions are allowed for that.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};

use super::free_memory;
use super::permits::ProcessPermits;
use crate::client::MessagesUnderWay;
use crate::limits::{
    EQUALLY_FAST_FACTOR, FILES_PER_HTTP_SESSION, FILES_PER_PROCESS, FIRST_PROCESSES_OF_SLOW_SERVER,
    FURTHER_OPENING_FACTOR, MAX_PROCESSES_OF_SLOW_SERVER, MAX_SESSIONS_OF_SLOW_SERVER, MIN_FAST_ANSWERS, OTHER_FILES,
    SESSIONS_PER_FAST_ANSWER, SLOW_ANSWER,
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
    /// How long its first process took to open over standard input and output.
    first_opening: OnceLock<Duration>,
    /// How long its fastest opening took.
    fastest_opening: Mutex<Option<Duration>>,
    /// What its slow answers show over HTTP.
    answers: Mutex<SlowAnswers>,
    /// The messages that it has not answered yet over HTTP, on all sessions.
    pub(super) messages_under_way: MessagesUnderWay,
    /// How many further sessions it may get; over standard input and output, each has a process of its own.
    further_sessions: AtomicUsize,
}

/// What the slow answers on the sessions of a server show over HTTP.
#[derive(Debug, Default)]
struct SlowAnswers {
    fastest_opening: Option<Duration>,
    fastest_other: Option<Duration>,
    /// How many sessions got their first slow answer after the opening as fast as any while all others were at work.
    as_fast: usize,
    /// How many got it later.
    slower: usize,
    /// How many sessions showed that they may have further ones beside them, which were not allowed yet.
    pending: usize,
}

impl SlowAnswers {
    /// Whether sessions do not slow each other down. A server may open them side by side and serve everything else in turn,
    /// so that openings alone do not show it; and of one that serves in turn, some answers come early.
    fn overlap(&self) -> bool {
        self.as_fast >= MIN_FAST_ANSWERS && self.as_fast > 2 * self.slower
    }
}

/// Which answer on a session it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Opening,
    /// Any other one; `counts` if the opening was fast, so that it shows nothing.
    Other {
        counts: bool,
    },
}

/// Shows whether other sessions slow a server down, by the first slow answers on one of them.
#[derive(Debug)]
pub(crate) struct SessionPace {
    server: Arc<SlowServer>,
    opened_slowly: bool,
    is_known: bool,
}

impl SessionPace {
    pub(crate) fn new(server: &Arc<SlowServer>) -> Self {
        Self { server: Arc::clone(server), opened_slowly: false, is_known: false }
    }

    /// How long a process may take to open where `limit` is usual.
    pub(crate) fn opening_limit(&self, limit: Duration) -> Duration {
        self.server.opening_limit(limit)
    }

    /// Records how long the opening took.
    pub(crate) fn record_opening(&mut self, duration: Duration) {
        self.server.record_opening(duration);
        if duration >= SLOW_ANSWER {
            self.opened_slowly = true;
            self.server.record_slow_answer(Answer::Opening, duration);
        }
    }

    /// How many messages of all sessions the server may have to serve before it comes to one that is sent now; none if it is
    /// known to serve them side by side.
    pub(crate) fn messages_ahead(&self) -> usize {
        if self.server.answers().overlap() { 0 } else { self.server.messages_under_way.count() }
    }

    /// Records how long an answer after the opening took.
    pub(crate) fn record_answer(&mut self, duration: Duration) {
        if duration >= SLOW_ANSWER && !std::mem::replace(&mut self.is_known, true) {
            self.server.record_slow_answer(Answer::Other { counts: !self.opened_slowly }, duration);
        }
    }
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
            fastest_opening: Mutex::default(),
            answers: Mutex::default(),
            messages_under_way: MessagesUnderWay::default(),
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
        self.allow_pending(&mut self.answers());
    }

    fn record_opening(&self, duration: Duration) {
        let mut fastest = self.fastest_opening.lock().unwrap_or_else(PoisonError::into_inner);
        *fastest = Some(fastest.map_or(duration, |fastest| fastest.min(duration)));
    }

    /// How long a process may take to open where `limit` is usual: a multiple of the fastest opening, as others start
    /// beside it and may have to wait for a processor, or for the same as the first one.
    pub(crate) fn opening_limit(&self, limit: Duration) -> Duration {
        let fastest = *self.fastest_opening.lock().unwrap_or_else(PoisonError::into_inner);
        limit.max(fastest.unwrap_or_default() * FURTHER_OPENING_FACTOR)
    }

    fn answers(&self) -> MutexGuard<'_, SlowAnswers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows one more process, up to a maximum, if one was opened as fast as the first, and if there is memory for it.
    pub(crate) fn allow_further_process(&self, opening: Duration) {
        if self.transport != Transport::Http {
            self.allow_further_process_if(opening, || free_memory::is_half_free() == Some(true));
        }
    }

    fn allow_further_process_if(&self, opening: Duration, has_memory: impl FnOnce() -> bool) {
        if is_as_fast(opening, self.first_opening.get().copied()) && has_memory() {
            self.allow_further(1);
        }
    }

    /// Allows more sessions over HTTP, up to a maximum, as long as slow answers are as fast on all of them. They show
    /// something only if all other permits are in use: a server that serves one request at a time is as fast for one
    /// session as for the first.
    fn record_slow_answer(&self, kind: Answer, duration: Duration) {
        if self.transport != Transport::Http {
            return;
        }
        let is_at_work = self.permits.free() == 0;
        let mut answers = self.answers();
        let fastest = match kind {
            Answer::Opening => &mut answers.fastest_opening,
            Answer::Other { .. } => &mut answers.fastest_other,
        };
        let known = fastest.replace(fastest.map_or(duration, |fastest| fastest.min(duration)));
        if known.is_none() || !is_at_work {
            return;
        }
        let is_as_fast = is_as_fast(duration, known);
        match kind {
            Answer::Opening => {}
            Answer::Other { .. } if is_as_fast => answers.as_fast += 1,
            Answer::Other { .. } => answers.slower += 1,
        }
        if is_as_fast && kind != (Answer::Other { counts: false }) {
            answers.pending += 1;
        }
        self.allow_pending(&mut answers);
    }

    /// Allows the sessions that are pending, once it is known that they do not slow each other down.
    fn allow_pending(&self, answers: &mut SlowAnswers) {
        if answers.overlap() && self.is_marked() {
            self.allow_further(std::mem::take(&mut answers.pending).saturating_mul(SESSIONS_PER_FAST_ANSWER));
        } else if answers.slower > 0 && !answers.overlap() {
            answers.pending = 0;
        }
    }

    fn allow_further(&self, most: usize) {
        let fewer = |left: usize| Some(left.saturating_sub(most));
        let left = self.further_sessions.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).unwrap_or_default();
        self.permits.add(left.min(most));
    }

    /// Whether the server is known to be slow to answer.
    pub(crate) fn is_marked(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }
}

/// Whether something took about as long as the fastest of its kind; false if there was none.
fn is_as_fast(duration: Duration, fastest: Option<Duration>) -> bool {
    fastest.is_some_and(|fastest| duration <= fastest.mul_f32(EQUALLY_FAST_FACTOR))
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
    use crate::context::permits::{PermitRequest, Priority};

    const ANSWER: Duration = Duration::from_secs(2);

    /// A server with four permits, and the permits.
    fn server(transport: Transport, usual_processes: Option<usize>) -> (SlowServer, Arc<ProcessPermits>) {
        let permits = ProcessPermits::new(4);
        (SlowServer::new(&permits, transport, usual_processes), permits)
    }

    #[test]
    fn a_slow_server_gets_more_processes_once() {
        let (server, permits) = server(Transport::Stdio, Some(4));
        assert!(!server.is_marked());
        server.mark(ANSWER);
        server.mark(ANSWER);
        assert!(server.is_marked());
        assert_eq!(permits.free(), FIRST_PROCESSES_OF_SLOW_SERVER);
    }

    #[test]
    fn it_gets_further_processes_while_there_is_memory() {
        let (server, permits) = server(Transport::Stdio, Some(4));
        server.mark(ANSWER);
        server.allow_further_process_if(ANSWER, || false);
        assert_eq!(permits.free(), FIRST_PROCESSES_OF_SLOW_SERVER);
        server.allow_further_process_if(ANSWER * 2, || true);
        assert_eq!(permits.free(), FIRST_PROCESSES_OF_SLOW_SERVER, "the machine is busy");
        for _ in 0..=MAX_PROCESSES_OF_SLOW_SERVER {
            server.allow_further_process_if(ANSWER, || true);
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
    fn a_further_process_may_take_a_multiple_of_the_fastest_opening() {
        let (server, _) = server(Transport::Stdio, Some(4));
        assert_eq!(server.opening_limit(ANSWER), ANSWER);
        server.record_opening(ANSWER * 10);
        server.record_opening(ANSWER);
        assert_eq!(server.opening_limit(ANSWER), ANSWER * FURTHER_OPENING_FACTOR);
        assert_eq!(server.opening_limit(ANSWER * 20), ANSWER * 20);
    }

    #[test]
    fn the_number_that_the_user_set_is_kept() {
        for transport in [Transport::Stdio, Transport::Http] {
            let (server, permits) = server(transport, None);
            server.mark(ANSWER);
            server.allow_further_process_if(ANSWER, || true);
            let _working = take(&permits);
            for _ in 0..10 {
                server.record_slow_answer(Answer::Opening, ANSWER);
                server.record_slow_answer(OTHER, ANSWER);
            }
            assert!(server.is_marked());
            assert_eq!(permits.free(), 0, "{transport:?}");
        }
    }

    /// An answer on a session of which the opening was slow.
    const OTHER: Answer = Answer::Other { counts: false };

    /// Takes all free permits.
    fn take(permits: &Arc<ProcessPermits>) -> Vec<PermitRequest> {
        (0..permits.free()).map(|_| permits.request(Priority::Normal)).collect()
    }

    #[test]
    fn openings_count_over_http_once_other_answers_overlap() {
        let (server, permits) = server(Transport::Http, Some(4));
        let _working = take(&permits);
        for _ in 0..4 {
            server.record_slow_answer(Answer::Opening, ANSWER);
        }
        server.mark(ANSWER);
        server.record_slow_answer(OTHER, ANSWER);
        assert_eq!(permits.free(), 0, "other answers may be served in turn");
        for _ in 0..MIN_FAST_ANSWERS {
            assert_eq!(permits.free(), 0);
            server.record_slow_answer(OTHER, ANSWER);
        }
        assert_eq!(permits.free(), 3 * SESSIONS_PER_FAST_ANSWER, "as the first opening shows nothing");
    }

    #[test]
    fn openings_side_by_side_do_not_count_over_http_where_other_answers_come_in_turn() {
        let (server, permits) = server(Transport::Http, Some(4));
        let _working = take(&permits);
        for _ in 0..4 {
            server.record_slow_answer(Answer::Opening, ANSWER);
        }
        server.mark(ANSWER);
        for turn in [1, 2, 3, 4, 1, 4, 4, 1, 4, 4] {
            server.record_slow_answer(OTHER, ANSWER * turn);
            server.record_slow_answer(Answer::Opening, ANSWER);
        }
        assert_eq!(permits.free(), 0);
    }

    #[test]
    fn answers_before_it_was_known_to_be_slow_count_over_http() {
        for (slowest, further) in [(ANSWER, 3 * SESSIONS_PER_FAST_ANSWER), (ANSWER * 2, 0)] {
            let (server, permits) = server(Transport::Http, Some(4));
            let _working = take(&permits);
            for answer in [ANSWER, ANSWER, ANSWER, slowest] {
                server.record_slow_answer(Answer::Other { counts: true }, answer);
            }
            assert_eq!(permits.free(), 0, "it is not known to be slow");
            server.mark(Duration::ZERO);
            assert_eq!(permits.free(), further, "{slowest:?}");
        }
    }

    #[test]
    fn a_slow_http_server_gets_further_sessions_while_it_answers_them_as_fast_as_the_first() {
        let (server, permits) = server(Transport::Http, Some(4));
        let counts = Answer::Other { counts: true };
        server.mark(ANSWER);
        for _ in 0..10 {
            server.record_slow_answer(counts, ANSWER);
        }
        assert_eq!(permits.free(), 4, "no other session was at work");
        let mut working = take(&permits);
        for _ in 0..=MAX_SESSIONS_OF_SLOW_SERVER {
            server.record_slow_answer(counts, ANSWER + ANSWER / 2);
            working.extend(take(&permits));
        }
        assert_eq!(working.len(), MAX_SESSIONS_OF_SLOW_SERVER);
    }

    #[test]
    fn a_session_counts_once_by_its_opening_or_by_its_first_slow_answer() {
        let (server, permits) = server(Transport::Http, Some(4));
        let server = Arc::new(server);
        let counts = Answer::Other { counts: true };
        server.record_slow_answer(Answer::Opening, ANSWER);
        server.record_slow_answer(counts, ANSWER);
        server.mark(ANSWER);
        let mut working = take(&permits);
        for _ in 0..MIN_FAST_ANSWERS {
            server.record_slow_answer(OTHER, ANSWER);
        }
        assert_eq!(permits.free(), 0);
        for (opening, answers) in [(ANSWER, [ANSWER, ANSWER]), (Duration::ZERO, [Duration::ZERO, ANSWER])] {
            let mut pace = SessionPace::new(&server);
            pace.record_opening(opening);
            for answer in answers {
                pace.record_answer(answer);
            }
            assert_eq!(permits.free(), SESSIONS_PER_FAST_ANSWER, "{opening:?}");
            working.extend(take(&permits));
        }
    }
}
