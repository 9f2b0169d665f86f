//! One recorded connection to a server: to a process over its standard streams, to a server in this process over a
//! pipe in memory, or to a server over HTTP.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::http::header::mirrored;
use super::http::{DirectRequest, DirectRequestError, DirectResponse, HttpConnection, HttpEndpoint};
use super::process::{Process, ShutdownTimeouts, Watchdog};
use super::record::{ConnectionCosts, Record, RecordOptions};
use super::responder::Responder;
use super::streams::{Line, read_errors, read_lines, write_lines};
use super::wait_budget::{WaitBudget, wait_at_most};
use crate::limits::{CLOSED_OUTPUT_EXIT_TIMEOUT, LAST_OUTPUT_TIMEOUT, QUIET_POLLS_AFTER_EXIT};
use crate::transcript::{Entry, Event, ShutdownStep, StepId, stderr_text};
use crate::wire::Frame;

/// Why a server process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The command line is empty.
    #[error("the command of the server is empty")]
    NoCommand,
    /// The operating system could not start it.
    #[error("failed to start `{program}`: {source}")]
    Start {
        /// The program.
        program: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// The outcome of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitOutcome<T> {
    /// The awaited event happened.
    Ready(T),
    /// The time limit passed.
    TimedOut,
    /// The server closed its output, exited or was disconnected.
    Closed,
}

/// What is to end a server first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstSignal {
    /// The end of its input.
    EndOfInput,
    /// SIGTERM, while its input is open.
    Sigterm,
}

/// What a server in this process would do on SIGTERM if it had a process of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SigtermHandling {
    /// It exits.
    Exits,
    /// It keeps running until its input ends.
    WaitsForEndOfInput,
    /// It keeps running.
    Ignores,
}

/// How a server in this process would end if it had a process of its own.
#[derive(Debug, Clone)]
pub(crate) struct InProcessEnd {
    /// What it would do on SIGTERM.
    pub(crate) sigterm: SigtermHandling,
    /// What it would leave running; `None` if that is not known.
    pub(crate) left_running: Option<Vec<String>>,
}

/// The server side of a connection.
enum Peer {
    Process(Box<Process>),
    Task { server: JoinHandle<()>, end: InProcessEnd },
    Http(Arc<HttpConnection>),
}

/// A connection to a server.
pub(crate) struct Connection {
    record: Arc<Record>,
    input: Option<mpsc::Sender<Line>>,
    peer: Peer,
    tasks: Vec<JoinHandle<()>>,
    ended: Option<ShutdownStep>,
    without_package_runner: bool,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("entries", &self.len()).finish_non_exhaustive()
    }
}

impl Connection {
    /// Starts a command and connects to its standard streams. With `ignores_errors`, the reading end of its standard
    /// error is closed.
    ///
    /// # Errors
    /// When the command cannot be started.
    pub(crate) fn start(
        program: &str,
        command: Command,
        responder: Responder,
        keeping: RecordOptions,
        ignores_errors: bool,
    ) -> Result<Self, LaunchError> {
        let record = Arc::new(Record::new(keeping));
        let (process, streams) =
            Process::start(command).map_err(|source| LaunchError::Start { program: program.to_owned(), source })?;
        let errors = (!ignores_errors).then_some(streams.errors);
        let errors = errors.map(|errors| tokio::spawn(read_errors(errors, Arc::clone(&record))));
        let mut connection =
            Self::over(streams.output, streams.input, Peer::Process(Box::new(process)), record, responder);
        connection.tasks.extend(errors);
        Ok(connection)
    }

    /// Connects to a server in this process; `server` runs at the other end of the pipe.
    #[must_use]
    pub(crate) fn in_process(
        pipe: DuplexStream,
        server: JoinHandle<()>,
        end: InProcessEnd,
        responder: Responder,
        keeping: RecordOptions,
    ) -> Self {
        let (output, input) = tokio::io::split(pipe);
        Self::over(output, input, Peer::Task { server, end }, Arc::new(Record::new(keeping)), responder)
    }

    /// Connects to a server over HTTP; nothing is sent before the first message. `stateless` selects the era without
    /// a handshake, in which every request is self-contained.
    #[must_use]
    pub(crate) fn over_http(
        endpoint: Arc<HttpEndpoint>,
        stateless: bool,
        responder: Responder,
        keeping: RecordOptions,
    ) -> Self {
        let record = Arc::new(Record::new(keeping));
        let http = Arc::new(HttpConnection::new(endpoint, Arc::clone(&record), responder, stateless));
        Self {
            record,
            input: None,
            peer: Peer::Http(http),
            tasks: Vec::new(),
            ended: None,
            without_package_runner: false,
        }
    }

    /// Whether the connection uses HTTP.
    #[must_use]
    pub(crate) fn is_http(&self) -> bool {
        matches!(self.peer, Peer::Http(_))
    }

    /// Whether the response to a message arrives in the HTTP response to the request that carries it.
    #[must_use]
    pub(crate) fn responds_inline(&self) -> bool {
        matches!(&self.peer, Peer::Http(http) if http.responds_inline())
    }

    /// The name of the connection in the transcript that the run saves, if it saves one.
    #[must_use]
    pub(crate) fn name(&self) -> Option<Arc<str>> {
        self.record.name.clone()
    }

    /// Marks the connection as one whose server was started without the package runner in its command.
    #[must_use]
    pub(crate) fn without_package_runner(mut self) -> Self {
        self.without_package_runner = true;
        self
    }

    /// Whether the server was started without the package runner in its command.
    #[must_use]
    pub(crate) fn is_without_package_runner(&self) -> bool {
        self.without_package_runner
    }

    /// Records what a server in this process would write to standard error when it starts.
    #[must_use]
    pub(crate) fn with_errors(self, bytes: &[u8]) -> Self {
        self.record.stderr(stderr_text(bytes));
        self
    }

    /// The id of the server's process, if the connection started one.
    #[must_use]
    pub(crate) fn process_id(&self) -> Option<i32> {
        match &self.peer {
            Peer::Process(process) => Some(process.id()),
            Peer::Task { .. } | Peer::Http(_) => None,
        }
    }

    /// The HTTP session that the server opened, if there is one.
    #[must_use]
    pub(crate) fn http_session(&self) -> Option<String> {
        match &self.peer {
            Peer::Http(http) => http.session(),
            Peer::Process(_) | Peer::Task { .. } => None,
        }
    }

    /// Whether the user gave the token that a placeholder of a header names, for a server over HTTP.
    #[must_use]
    pub(crate) fn has_further_authorization(&self, placeholder: &str) -> bool {
        match &self.peer {
            Peer::Http(http) => http.has_further_authorization(placeholder),
            Peer::Process(_) | Peer::Task { .. } => false,
        }
    }

    /// Repeats the arguments of calls in headers as these definitions of tools ask for, over HTTP in the stateless era.
    pub(crate) fn mirror_parameters_of(&self, tools: &[Value]) {
        if let Peer::Http(http) = &self.peer {
            http.set_mirrored(mirrored(&json!({ "tools": tools })));
        }
    }

    /// Makes an HTTP request for the caller, separate from the requests that carry the connection's messages.
    ///
    /// # Errors
    /// When the connection is not over HTTP, or the request cannot be made.
    pub(crate) fn send_directly(&self, request: &DirectRequest) -> Result<DirectResponse, DirectRequestError> {
        match &self.peer {
            Peer::Http(http) => http.send_directly(request),
            Peer::Process(_) | Peer::Task { .. } => Err(DirectRequestError::NoHttp),
        }
    }

    fn over<R, W>(output: R, input: W, peer: Peer, record: Arc<Record>, responder: Responder) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(256);
        let writer = tokio::spawn(write_lines(input, receiver));
        let reader = tokio::spawn(read_lines(output, Arc::clone(&record), responder, sender.downgrade()));
        Self {
            record,
            input: Some(sender),
            peer,
            tasks: vec![reader, writer],
            ended: None,
            without_package_runner: false,
        }
    }

    /// Sends a line (a newline is added) and records it. Waits at most `limit` for a server that does not read; if
    /// the server has closed its input, this shows when it closes its output.
    pub(crate) async fn send(&self, frame: Frame, step_id: Option<StepId>, limit: Duration) {
        if let Peer::Http(http) = &self.peer {
            http.send(frame, step_id, limit).await;
            return;
        }
        self.send_line(frame, step_id, limit, None).await;
    }

    /// Sends a line byte by byte over standard streams, and waits until it is written, for at most `limit`.
    pub(crate) async fn send_in_pieces(&self, frame: Frame, step_id: Option<StepId>, limit: Duration) {
        let (sender, written) = oneshot::channel();
        self.send_line(frame, step_id, limit, Some(sender)).await;
        // A server that does not read is silent, and that is judged.
        let _unread = tokio::time::timeout(limit, written).await;
    }

    async fn send_line(
        &self,
        mut frame: Frame,
        step_id: Option<StepId>,
        limit: Duration,
        in_pieces: Option<oneshot::Sender<()>>,
    ) {
        let mut bytes = frame.take_text().into_bytes();
        bytes.reserve_exact(1);
        bytes.push(b'\n');
        self.record.add(Event::Sent { frame, step_id });
        if let Some(input) = &self.input {
            // A failure here shows as silence or as a closed connection, and that is judged.
            let _unread = tokio::time::timeout(limit, input.send(Line { bytes, in_pieces })).await;
        }
    }

    /// The number of entries so far.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.record.state().entries.len()
    }

    /// The entries from a position on.
    #[must_use]
    pub(crate) fn entries_from(&self, position: usize) -> Vec<Arc<Entry>> {
        self.record.state().entries.get(position..).map(<[_]>::to_vec).unwrap_or_default()
    }

    /// Whether the server closed its output, exited or was disconnected.
    #[must_use]
    pub(crate) fn is_closed(&self) -> bool {
        self.record.state().closed
    }

    /// The time from the start to the server's first line.
    #[must_use]
    pub(crate) fn first_line(&self) -> Option<Duration> {
        self.record.state().first_line
    }

    /// How long the server took until it first answered, without what the client itself waited for.
    #[must_use]
    pub(crate) fn opening_time(&self) -> Option<Duration> {
        self.record.opening_time()
    }

    /// The time since the start.
    #[must_use]
    pub(crate) fn age(&self) -> Duration {
        self.record.age()
    }

    /// Records an event for the caller.
    pub(crate) fn record(&self, event: Event) {
        self.record.add(event);
    }

    /// The number of requests that the server rejected over HTTP because of its rate limit.
    #[must_use]
    pub(crate) fn rate_limited_requests(&self) -> usize {
        self.record.limited()
    }

    /// What the client had to put up with so far.
    pub(crate) fn costs(&self) -> ConnectionCosts {
        self.record.costs()
    }

    /// The number of HTTP sessions that the server ended, each of which the client replaced by a new one.
    #[must_use]
    pub(crate) fn ended_sessions(&self) -> usize {
        self.record.renewals()
    }

    /// Whether the server was disconnected because it wrote more than is kept.
    #[must_use]
    pub(crate) fn has_overflowed(&self) -> bool {
        self.record.state().entries.iter().rev().any(|entry| entry.event == Event::Overflow)
    }

    /// Waits until `find` returns a value for the entries from `position` on.
    ///
    /// A process that has exited counts as closed even if a child process holds its output open, unless the child
    /// keeps writing.
    pub(crate) async fn wait<T>(
        &self,
        position: usize,
        limit: Duration,
        find: impl FnMut(&[Arc<Entry>]) -> Option<T>,
    ) -> WaitOutcome<T> {
        self.watch(position, limit, None, find).await
    }

    /// As [`Connection::wait`], for the first response of a starting process: gives up early once `patience` is over
    /// and the process has neither written anything nor used a processor or a disk for `idle`, as far as the system
    /// shows this.
    pub(crate) async fn wait_for_start<T>(
        &self,
        position: usize,
        limit: Duration,
        patience: Duration,
        idle: Duration,
        find: impl FnMut(&[Arc<Entry>]) -> Option<T>,
    ) -> WaitOutcome<T> {
        self.watch(position, limit, Some(Watchdog::new(idle, patience)), find).await
    }

    async fn watch<T>(
        &self,
        position: usize,
        limit: Duration,
        mut watchdog: Option<Watchdog>,
        mut find: impl FnMut(&[Arc<Entry>]) -> Option<T>,
    ) -> WaitOutcome<T> {
        let mut changed = self.record.changed.subscribe();
        let mut budget = WaitBudget::new(limit);
        let mut quiet_polls = 0;
        loop {
            {
                let state = self.record.state();
                if let Some(found) = find(state.entries.get(position..).unwrap_or_default()) {
                    return WaitOutcome::Ready(found);
                }
                if state.closed {
                    return WaitOutcome::Closed;
                }
            }
            if budget.is_exhausted() {
                return WaitOutcome::TimedOut;
            }
            let paused_requests = self.record.is_paused();
            let is_notified = budget.poll(changed.changed()).await.is_some();
            if paused_requests {
                // The server asked the client to wait, so this time does not count against it.
                budget.refund();
            }
            if is_notified {
                quiet_polls = 0;
                if let Some(watchdog) = &mut watchdog {
                    watchdog.note_activity();
                }
                continue;
            }
            quiet_polls += 1;
            let Peer::Process(process) = &self.peer else { continue };
            if quiet_polls >= QUIET_POLLS_AFTER_EXIT
                && let Some(status) = process.status()
            {
                self.record.add(Event::Exited { status });
            } else if watchdog.as_mut().is_some_and(|watchdog| watchdog.is_expired(process)) {
                return WaitOutcome::TimedOut;
            }
        }
    }

    /// Shuts the server down: closes its input, waits, sends SIGTERM, waits, kills its process group, in which processes may
    /// run for `left_running` after it has exited. Returns the step at which it ended, with the whole record.
    pub(crate) async fn shut_down(
        mut self,
        timeouts: ShutdownTimeouts,
        left_running: Duration,
    ) -> (ShutdownStep, Vec<Arc<Entry>>) {
        self.shut_down_stepwise(timeouts, left_running).await
    }

    /// As [`Connection::shut_down`], for a case that judges the shutdown.
    pub(crate) async fn end(&mut self, grace: Duration, first: FirstSignal) -> (ShutdownStep, Vec<Arc<Entry>>) {
        let began = Instant::now();
        if first == FirstSignal::Sigterm && self.ends_on_sigterm(grace).await {
            self.input = None;
            return self.finish(ShutdownStep::Sigterm, began, grace).await;
        }
        self.shut_down_stepwise(ShutdownTimeouts { input_closed: grace, sigterm: grace }, grace).await
    }

    /// Sends SIGTERM while the input is open; whether the running server ends within `limit`.
    async fn ends_on_sigterm(&mut self, limit: Duration) -> bool {
        if self.ended.is_some() || self.record.state().closed {
            return false;
        }
        match &mut self.peer {
            Peer::Process(process) => process.ends_on_sigterm(limit).await,
            Peer::Task { server, end } => {
                let ends = end.sigterm == SigtermHandling::Exits;
                if ends {
                    server.abort();
                }
                ends
            }
            Peer::Http(_) => false,
        }
    }

    async fn shut_down_stepwise(
        &mut self,
        timeouts: ShutdownTimeouts,
        left_running: Duration,
    ) -> (ShutdownStep, Vec<Arc<Entry>>) {
        if let Some(step) = self.ended {
            return (step, self.record.state().entries.clone());
        }
        let began = Instant::now();
        let mut before = None;
        if let Peer::Process(process) = &mut self.peer
            && self.record.state().closed
        {
            // Its output is closed: it has exited or is about to.
            before = process.wait_for_exit(CLOSED_OUTPUT_EXIT_TIMEOUT).await;
        }
        self.input = None;
        let step = match &mut self.peer {
            Peer::Process(process) => {
                let step = process.exit(timeouts).await;
                if before.is_some() { ShutdownStep::AlreadyExited } else { step }
            }
            Peer::Task { server, end } => {
                let already = server.is_finished();
                let ended = already || wait_at_most(timeouts.input_closed, &mut *server).await.is_some();
                let step = match (already, ended, end.sigterm) {
                    (true, _, _) => ShutdownStep::AlreadyExited,
                    (false, true, _) => ShutdownStep::StdinClosed,
                    (false, false, SigtermHandling::Ignores) => ShutdownStep::Sigkill,
                    (false, false, SigtermHandling::Exits | SigtermHandling::WaitsForEndOfInput) => {
                        ShutdownStep::Sigterm
                    }
                };
                server.abort();
                step
            }
            Peer::Http(http) => {
                http.end().await;
                let step =
                    if self.record.state().closed { ShutdownStep::AlreadyExited } else { ShutdownStep::Disconnected };
                self.record.add(Event::Shutdown { step, duration: began.elapsed(), left_running: None });
                self.ended = Some(step);
                return (step, self.record.state().entries.clone());
            }
        };
        self.finish(step, began, left_running).await
    }

    /// Ends what a server that runs no more has left, and records its end; its output is not read any longer.
    async fn finish(
        &mut self,
        step: ShutdownStep,
        began: Instant,
        left_running: Duration,
    ) -> (ShutdownStep, Vec<Arc<Entry>>) {
        let duration = began.elapsed();
        // One that ended before it was stopped, or was killed, did not clean up.
        let has_exited = matches!(step, ShutdownStep::StdinClosed | ShutdownStep::Sigterm);
        let limit = if has_exited { left_running } else { Duration::ZERO };
        let (status, left) = match &mut self.peer {
            Peer::Process(process) => {
                let left = process.end_group(limit).await;
                (process.wait_for_exit(Duration::ZERO).await, left)
            }
            Peer::Task { end, .. } => (None, end.left_running.clone()),
            Peer::Http(_) => (None, None),
        };
        // Read what is still in the pipe; drop a stream that stays open regardless.
        let drained = self.record.state().closed;
        if !drained {
            let _open = self.wait(usize::MAX, LAST_OUTPUT_TIMEOUT, |_| None::<()>).await;
        }
        for task in self.tasks.drain(..) {
            task.abort();
        }
        if let Some(status) = status
            && !self.record.state().exited
        {
            self.record.add(Event::Exited { status });
        }
        self.record.add(Event::Shutdown { step, duration, left_running: left.filter(|_| has_exited) });
        self.ended = Some(step);
        (step, self.record.state().entries.clone())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        match &self.peer {
            Peer::Task { server, .. } => server.abort(),
            Peer::Http(http) => http.abandon(),
            Peer::Process(_) => {}
        }
    }
}
