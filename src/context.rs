//! The context of a run: what all of its parts share, each part of it in a type that owns its state.
//!
//! It knows the plan, grants permits for processes, keeps the process of an HTTP server running, closes connections,
//! and passes events to the sink. It opens no connection and sends no message.

mod activity;
mod answer_times;
mod command;
mod event_output;
mod executions;
mod free_memory;
mod http_host;
mod package_runner;
mod permits;
mod shutdown;
mod slow_server;
mod statistics;
mod transcript_output;

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

use tokio::sync::watch;
use tokio::task::JoinError;

use self::activity::Activity;
pub(crate) use self::activity::{ActiveRevision, FuzzedRevision};
use self::answer_times::RevisionAnswerTimes;
pub(crate) use self::answer_times::{AnswerTimes, RequestKind};
pub(crate) use self::command::command_of;
use self::event_output::EventOutput;
use self::executions::Executions;
pub(crate) use self::http_host::HostError;
use self::http_host::{HttpHost, is_listening};
use self::package_runner::PackageRunner;
pub(crate) use self::permits::{PermitRequest, ProcessPermit};
use self::permits::{Priority, ProcessPermits};
use self::shutdown::Shutdowns;
pub(crate) use self::shutdown::{ClosedConnection, shutdown_grace_for};
pub(crate) use self::slow_server::SessionPace;
use self::slow_server::SlowServer;
use self::statistics::Statistics;
use self::transcript_output::TranscriptOutput;
use crate::check::evidence;
use crate::client::{Connection, EntryObserver, HostState, MemoryBudget, RecordOptions};
use crate::event::{Event, Problem, RunSummary, Sink};
use crate::limits::{EXIT_STATUS_TIMEOUT, RECONNECT_TIMEOUT};
use crate::plan::{Launcher, Plan};
use crate::spec::{Revision, Transport};
use crate::transcript::{Entry, SessionParameters};

/// The signal to stop a run: after `true`, the run ends every process and reports the results so far.
pub type Stop = watch::Receiver<bool>;

/// The context that all parts of a run share: handles of what they share, each of which owns its state. A clone is the
/// same context.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) plan: Arc<Plan>,
    pub(crate) executions: Arc<Executions>,
    pub(crate) package_runner: Arc<PackageRunner>,
    pub(crate) slow_server: Arc<SlowServer>,
    /// What is known about the answers of the server, by revision.
    pub(crate) answer_times: Arc<RevisionAnswerTimes>,
    /// The priority of this part of the run for process permits.
    priority: Priority,
    /// The signal to stop the run. Fuzzing stops by itself on it.
    stop: Stop,
    permits: Arc<ProcessPermits>,
    activity: Arc<Activity>,
    memory_budget: Arc<MemoryBudget>,
    /// Whether the server serves one session at a time.
    pub(crate) has_one_session: bool,
    shared: Arc<SharedState>,
}

/// The parts that nothing outside of the context holds.
struct SharedState {
    events: EventOutput,
    statistics: Statistics,
    shutdowns: Shutdowns,
    /// The transcript, if the run saves one.
    transcript: Option<TranscriptOutput>,
    host: HttpHost,
}

impl Context {
    /// The context of a plan's run that reports to a sink until it is stopped.
    pub(crate) fn new(plan: Plan, sink: Arc<Mutex<dyn Sink>>, stop: Stop) -> Self {
        let permits = ProcessPermits::new(plan.jobs.max(1));
        let usual_processes = plan.adapts_jobs.then_some(plan.jobs);
        Self {
            executions: Arc::default(),
            package_runner: Arc::new(PackageRunner::of(&plan.launcher)),
            slow_server: Arc::new(SlowServer::new(&permits, plan.transport(), usual_processes)),
            answer_times: Arc::default(),
            permits,
            priority: Priority::Normal,
            stop,
            activity: Arc::default(),
            memory_budget: Arc::default(),
            has_one_session: false,
            shared: Arc::new(SharedState {
                events: EventOutput::new(sink),
                statistics: Statistics::default(),
                shutdowns: Shutdowns::default(),
                host: HttpHost::default(),
                transcript: plan.save_transcript.then(|| TranscriptOutput::new(&plan.launcher)),
            }),
            plan: Arc::new(plan),
        }
    }

    /// The same context with high or normal priority.
    pub(crate) fn with_priority(&self, urgent: bool) -> Self {
        Self { priority: if urgent { Priority::High } else { Priority::Normal }, ..self.clone() }
    }

    /// The same context with another plan for the same server.
    pub(crate) fn with_plan(&self, plan: Plan) -> Self {
        Self { plan: Arc::new(plan), ..self.clone() }
    }

    /// The same context for a server that serves one session at a time, so that nothing may run beside anything else.
    pub(crate) fn for_one_session(&self) -> Self {
        let plan = Plan { jobs: 1, adapts_jobs: false, ..Plan::clone(&self.plan) };
        let permits = ProcessPermits::new(1);
        let slow_server = Arc::new(SlowServer::new(&permits, plan.transport(), None));
        Self { plan: Arc::new(plan), permits, slow_server, has_one_session: true, ..self.clone() }
    }

    /// Requests a permit for the process of a queue of cases.
    pub(crate) fn request_queue_permit(&self) -> PermitRequest {
        self.permits.request(Priority::Queue)
    }

    /// Requests a permit for one more busy process.
    pub(crate) fn request_permit(&self) -> PermitRequest {
        self.permits.request(self.priority)
    }

    /// Whether cases may run on more sessions than one at a time: the server is slow to answer, so that they mostly wait.
    pub(crate) fn allows_more_sessions(&self) -> bool {
        self.slow_server.is_marked() && self.plan.jobs > 1
    }

    /// Releases the permit of a process that only waits from now on. With a single job, processes must not overlap,
    /// so the permit is returned instead.
    pub(crate) fn release_if_idle(&self, permit: ProcessPermit) -> Option<ProcessPermit> {
        (self.plan.jobs <= 1).then_some(permit)
    }
}

/// The process of an HTTP server.
impl Context {
    /// Makes sure that an HTTP server that the client starts is running, and that the session of one that serves one at a time
    /// has ended; does nothing for other servers.
    pub(crate) async fn ready(&self) -> Result<(), HostError> {
        self.wait_for_only_session().await;
        match &self.plan.launcher {
            Launcher::Http(server) => self.shared.host.ensure_running(server, self.plan.startup_timeout).await,
            Launcher::Command(_) | Launcher::Reference(_) | Launcher::InProcess(_) => Ok(()),
        }
    }

    /// Replaces the process of an HTTP server that the client starts; returns its id.
    pub(crate) async fn restart_host(&self) -> Result<Option<i32>, String> {
        let Launcher::Http(server) = &self.plan.launcher else { return Ok(None) };
        let restarted = self.shared.host.restart(server, self.plan.startup_timeout).await;
        restarted.map_err(|host_error| format!("the server could not be restarted: {}", host_error.describe()))
    }

    /// The state of an HTTP server that stopped answering.
    pub(crate) async fn host_state(&self) -> HostState {
        let Launcher::Http(server) = &self.plan.launcher else { return HostState::Listening };
        if server.command.is_some() {
            return match self.shared.host.wait_for_exit(server, EXIT_STATUS_TIMEOUT).await {
                Some((status, stderr)) => HostState::Ended { status, stderr },
                None => HostState::Listening,
            };
        }
        if is_listening(server, RECONNECT_TIMEOUT).await { HostState::Listening } else { HostState::Unreachable }
    }

    /// Whether all connections share a process that the client starts.
    pub(crate) fn shares_own_process(&self) -> bool {
        matches!(&self.plan.launcher, Launcher::Http(server) if server.command.is_some())
    }

    /// The end of the output of an HTTP server that the client started.
    pub(crate) async fn host_output(&self) -> String {
        match &self.plan.launcher {
            Launcher::Http(server) => self.shared.host.output(server).await,
            Launcher::Command(_) | Launcher::Reference(_) | Launcher::InProcess(_) => String::new(),
        }
    }

    /// Ends the process of an HTTP server that the client started.
    pub(crate) async fn stop_host(&self) {
        self.shared.host.end(self.plan.shutdown_grace).await;
    }
}

/// The progress of the run, and the signal to stop it.
impl Context {
    /// Whether the run was asked to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Waits until the run is asked to stop.
    pub(crate) async fn stopped(&self) {
        // Without a sender there is no stop signal.
        if self.stop.clone().wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Registers a revision whose cases start to run.
    pub(crate) fn begin_cases(&self) -> ActiveRevision {
        self.activity.begin_cases()
    }

    /// Whether any cases are running, which slows down everything else.
    pub(crate) fn is_judging_cases(&self) -> bool {
        self.activity.is_running_cases()
    }

    /// Waits until the cases of every revision have finished, or the run is asked to stop.
    pub(crate) async fn wait_for_cases(&self) {
        tokio::select! {
            () = self.activity.wait_for_cases() => {}
            () = self.stopped() => {}
        }
    }

    /// Registers a revision that is fuzzed from now on. If all revisions share one process, waits until no other one
    /// is.
    pub(crate) async fn begin_fuzzing(&self) -> FuzzedRevision {
        self.activity.begin_fuzzing(matches!(self.plan.launcher, Launcher::Http(_))).await
    }

    /// Whether any revision is being fuzzed.
    pub(crate) fn is_fuzzing(&self) -> bool {
        self.activity.is_fuzzing()
    }
}

/// Events and measurements.
impl Context {
    /// Sends an event to the sink. A failing sink is reported at the end; the run continues.
    pub(crate) fn emit(&self, event: &Event) {
        self.shared.events.emit(event);
    }

    /// Counts the process of one more connection; over HTTP, all connections share one.
    pub(crate) fn count_launch(&self) {
        if self.plan.transport() == Transport::Stdio {
            self.shared.statistics.count_launch();
        }
    }

    /// Measures the time that judging takes.
    pub(crate) fn judging<T>(&self, judge: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let judged = judge();
        self.add_judging_time(began.elapsed());
        judged
    }

    /// Adds to the time that judging took.
    pub(crate) fn add_judging_time(&self, duration: Duration) {
        self.shared.statistics.add_judging(duration);
    }

    /// Judges on a blocking thread, so that connections are not delayed, and one revision at a time, so that memory
    /// for a long transcript is needed only once.
    pub(crate) async fn judge_in_background<T: Send + 'static>(
        &self,
        judge: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let _turn = self.activity.judging_lock.lock().await;
        let context = self.clone();
        tokio::task::spawn_blocking(move || context.judging(judge)).await
    }

    /// Reports the end of a run that took this long, and returns its summary.
    ///
    /// # Errors
    /// When the sink failed to handle an event.
    pub(crate) fn finish(&self, wall: Duration, problem: Option<Problem>) -> io::Result<RunSummary> {
        let timing =
            self.shared.statistics.timing(wall, self.shared.host.launches(), self.answer_times.response_waits());
        let summary = RunSummary { totals: self.shared.events.totals(), timing, problem };
        self.emit(&Event::RunFinished(Box::new(summary.clone())));
        match self.shared.events.take_error() {
            Some(error) => Err(error),
            None => Ok(summary),
        }
    }
}

/// The recording and the closing of connections.
impl Context {
    /// How to record a new connection; with `show_wire`, every message is sent to the sink.
    pub(crate) fn record_options(&self, purpose: &str) -> RecordOptions {
        let (name, saver) = self.begin_transcript(purpose, true).unzip();
        let observer = match (self.plan.show_wire, saver) {
            (false, saver) => saver,
            (true, saver) => {
                let (context, connection) = (self.clone(), purpose.to_owned());
                Some(Arc::new(move |entry: &Entry| {
                    if let Some(saver) = &saver {
                        saver(entry);
                    }
                    context.emit(&Event::Wire { connection: connection.clone(), evidence: evidence(entry) });
                }) as EntryObserver)
            }
        };
        RecordOptions {
            memory_budget: Arc::clone(&self.memory_budget),
            messages_under_way: self.slow_server.messages_under_way.clone(),
            observer,
            name,
            ..RecordOptions::default()
        }
    }

    /// Sees what is sent and received on a connection that is not recorded, if the run saves a transcript.
    pub(crate) fn unrecorded_observer(&self, purpose: &str) -> Option<EntryObserver> {
        self.begin_transcript(purpose, false).map(|(_, saver)| saver)
    }

    /// Begins a connection in the transcript, if the run saves one; its name there, and the callback that adds entries.
    fn begin_transcript(&self, purpose: &str, watched: bool) -> Option<(Arc<str>, EntryObserver)> {
        let output = self.shared.transcript.as_ref()?;
        let context = self.clone();
        let emit = move |line| context.emit(&Event::TranscriptLine { line });
        let executions = Arc::clone(&self.executions);
        Some(output.begin(purpose, watched, emit, move |execution| executions.case_of(execution)))
    }

    /// Notes in the transcript, if the run saves one, that passive cases judge a connection in a revision.
    pub(crate) fn note_judged(&self, connection: &str, revision: Revision, parameters: &SessionParameters) {
        if let Some(transcript) = &self.shared.transcript {
            let line = transcript.judged_line(connection, revision.as_str(), parameters);
            self.emit(&Event::TranscriptLine { line });
        }
    }

    /// Closes a connection and returns its transcript.
    pub(crate) async fn close(&self, connection: Connection, purpose: String) -> ClosedConnection {
        let (startup, limited, costs) =
            (connection.first_line(), connection.rate_limited_requests(), connection.costs());
        let (without_package_runner, name) = (connection.is_without_package_runner(), connection.name());
        self.shared.statistics.add_startup(startup);
        let (timeouts, left_running) = self.shared.shutdowns.timeouts(self.plan.shutdown_grace, &connection);
        let began = Instant::now();
        let (step, entries) = connection.shut_down(timeouts, left_running).await;
        self.shared.statistics.add_ending(began.elapsed());
        self.shared.shutdowns.record(step);
        ClosedConnection { purpose, name, without_package_runner, startup, step, entries, limited, costs }
    }

    /// Closes a connection in the background; its transcript is not needed.
    pub(crate) fn close_in_background(&self, connection: Connection, purpose: &str) {
        let (context, purpose) = (self.clone(), purpose.to_owned());
        let task = tokio::spawn(async move {
            let _record = context.close(connection, purpose).await;
        });
        self.shared.shutdowns.add_background_task(task);
    }

    /// Waits until no session is closing any more, if the server serves one at a time.
    pub(crate) async fn wait_for_only_session(&self) {
        if self.has_one_session {
            self.finish_closing(false).await;
        }
    }

    /// Waits for the connections that are closing in the background, or aborts them.
    pub(crate) async fn finish_closing(&self, immediately: bool) {
        self.shared.shutdowns.finish(immediately).await;
    }
}
