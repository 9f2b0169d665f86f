//! Conducts a run, and holds the context that its parts share.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::process::Command;
use tokio::sync::{OwnedMutexGuard, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};

use super::http_host::{HostError, HostState, HttpHost, is_listening};
use super::permits::{PermitRequest, Priority, ProcessPermit, ProcessPermits};
use super::plan::{Launcher, Plan, Revisions};
use super::revision_probe::{explain, probe};
use super::session::{OpeningFailure, RejectedOpening, shutdown_grace_for};
use super::shared_results::SharedResults;
use super::target;
use crate::case::{Body, Case};
use crate::check::{evidence, stderr_of};
use crate::client::{Connection, MemoryBudget, PackagedProgram, RecordOptions, ShutdownTimeouts, is_package_runner};
use crate::event::{Event, Problem, ProblemKind, RunSummary, Sink, Timing};
use crate::spec::Revision;
use crate::transcript::{Entry, ShutdownStep};
use crate::verdict::Totals;

/// The signal to stop a run: after `true`, the run ends every process and reports the results so far.
pub type Stop = watch::Receiver<bool>;

/// How long fuzzing gets to stop and to report its findings.
const FUZZING_STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a server gets to exit on its own where no case judges that.
const UNJUDGED_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(400);

/// How long a process over HTTP that stopped answering gets to exit.
const EXIT_STATUS_TIMEOUT: Duration = Duration::from_millis(300);

/// How long an HTTP server that the client cannot restart gets to become reachable again.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The context that all parts of a run share.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) plan: Arc<Plan>,
    permits: Arc<ProcessPermits>,
    /// The priority of this part of the run for process permits.
    priority: Priority,
    sink: Arc<Mutex<dyn Sink>>,
    statistics: Arc<Mutex<RunStatistics>>,
    memory_budget: Arc<MemoryBudget>,
    host: Arc<HttpHost>,
    /// The signal to stop the run.
    stop: Stop,
    /// The number of revisions being fuzzed. Fuzzing stops by itself on the signal.
    fuzzing: Arc<AtomicUsize>,
    /// Held while judging in the background.
    judging_lock: Arc<tokio::sync::Mutex<()>>,
    /// Held while fuzzing a server whose revisions share one process.
    fuzzing_lock: Arc<tokio::sync::Mutex<()>>,
    /// The number of revisions whose cases are running.
    under_way: Arc<watch::Sender<usize>>,
    shared_results: Arc<SharedResults>,
    /// The command that the package runner has started, once it is known.
    resolved_command: Arc<OnceLock<PackagedProgram>>,
    /// The case of each pass, in any revision.
    executions: Arc<Mutex<Vec<String>>>,
}

/// A guard for a revision whose cases are running.
pub(super) struct ActiveRevision(Arc<watch::Sender<usize>>);

impl Drop for ActiveRevision {
    fn drop(&mut self) {
        self.0.send_modify(|revisions| *revisions -= 1);
    }
}

/// Statistics of the run.
#[derive(Debug, Default)]
struct RunStatistics {
    launches: usize,
    startups: Vec<Duration>,
    judging: Duration,
    totals: Totals,
    sink_error: Option<io::Error>,
    closing: Vec<JoinHandle<()>>,
    /// The furthest step that any shutdown needed.
    furthest_shutdown_step: Option<ShutdownStep>,
}

/// A closed connection with its transcript.
#[derive(Debug, Clone)]
pub(super) struct ClosedConnection {
    pub(super) purpose: String,
    /// Whether it was started without the package runner.
    pub(super) without_package_runner: bool,
    pub(super) startup: Option<Duration>,
    pub(super) step: ShutdownStep,
    pub(super) entries: Vec<Arc<Entry>>,
    /// How many requests the server rejected because of rate limiting.
    pub(super) limited: usize,
}

impl Context {
    /// The context of a plan's run that reports to a sink.
    pub(super) fn new(plan: Plan, sink: Arc<Mutex<dyn Sink>>) -> Self {
        Self {
            permits: ProcessPermits::new(plan.jobs.max(1)),
            priority: Priority::Normal,
            plan: Arc::new(plan),
            sink,
            statistics: Arc::default(),
            memory_budget: Arc::default(),
            host: Arc::default(),
            // Without a sender, the run is never stopped.
            stop: watch::channel(false).1,
            fuzzing: Arc::default(),
            judging_lock: Arc::default(),
            fuzzing_lock: Arc::default(),
            under_way: Arc::default(),
            shared_results: Arc::default(),
            resolved_command: Arc::default(),
            executions: Arc::default(),
        }
    }

    /// The results of cases that run once for all revisions.
    pub(super) fn shared_results(&self) -> &SharedResults {
        &self.shared_results
    }

    /// The command that starts the server without the package runner, if known.
    pub(super) fn without_package_runner(&self) -> Option<Command> {
        self.resolved_command.get().map(PackagedProgram::command)
    }

    /// Whether the server's command is a package runner that has not been resolved.
    pub(super) fn has_runner(&self) -> bool {
        matches!(&self.plan.launcher, Launcher::Command(server) if is_package_runner(&server.command))
            && self.resolved_command.get().is_none()
    }

    /// Determines what the package runner started, now that the process answers.
    pub(super) fn detect_runner(&self, connection: &Connection) {
        if !self.has_runner() {
            return;
        }
        if let Some(resolved_command) = connection.process_id().and_then(PackagedProgram::of) {
            // Another task may have set it meanwhile.
            let _packaged = self.resolved_command.get_or_init(|| resolved_command);
        }
    }

    /// The case of each pass.
    fn executions(&self) -> MutexGuard<'_, Vec<String>> {
        self.executions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a new pass of a case; returns its number.
    pub(super) fn new_execution(&self, case: &str) -> usize {
        let mut executions = self.executions();
        executions.push(case.to_owned());
        executions.len() - 1
    }

    /// The case of a pass.
    pub(super) fn case_of(&self, execution: usize) -> Option<String> {
        self.executions().get(execution).cloned()
    }

    /// The same context with high or normal priority.
    pub(super) fn with_priority(&self, urgent: bool) -> Self {
        Self { priority: if urgent { Priority::High } else { Priority::Normal }, ..self.clone() }
    }

    fn statistics(&self) -> MutexGuard<'_, RunStatistics> {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a permit for one more busy process.
    pub(super) fn request_permit(&self) -> PermitRequest {
        self.permits.request(self.priority)
    }

    /// Releases the permit of a process that only waits from now on. With a single job, processes must not overlap,
    /// so the permit is returned instead.
    pub(super) fn release_if_idle(&self, permit: ProcessPermit) -> Option<ProcessPermit> {
        (self.plan.jobs <= 1).then_some(permit)
    }

    /// Makes sure that an HTTP server that the client starts is running; does nothing for other servers.
    pub(super) async fn ready(&self) -> Result<(), HostError> {
        match &self.plan.launcher {
            Launcher::Http(server) => self.host.ensure_running(server, self.plan.startup_timeout).await,
            Launcher::Command(_) | Launcher::Reference(_) | Launcher::InProcess(_) => Ok(()),
        }
    }

    /// Replaces the process of an HTTP server that the client starts; returns its id.
    pub(super) async fn restart_host(&self) -> Result<Option<i32>, String> {
        let Launcher::Http(server) = &self.plan.launcher else { return Ok(None) };
        let restarted = self.host.restart(server, self.plan.startup_timeout).await;
        restarted.map_err(|host_error| format!("the server could not be restarted: {}", host_error.describe()))
    }

    /// The state of an HTTP server that stopped answering.
    pub(super) async fn host_state(&self) -> HostState {
        let Launcher::Http(server) = &self.plan.launcher else { return HostState::Listening };
        if server.command.is_some() {
            return match self.host.wait_for_exit(server, EXIT_STATUS_TIMEOUT).await {
                Some((status, stderr)) => HostState::Ended { status, stderr },
                None => HostState::Listening,
            };
        }
        if is_listening(server, RECONNECT_TIMEOUT).await { HostState::Listening } else { HostState::Unreachable }
    }

    /// Ends the process of an HTTP server that the client started.
    pub(super) async fn stop_host(&self) {
        self.host.end(self.plan.shutdown_grace).await;
    }

    /// Waits for the exclusive right to fuzz, if all revisions share one process.
    pub(super) async fn lock_fuzzing(&self) -> Option<OwnedMutexGuard<()>> {
        match &self.plan.launcher {
            Launcher::Http(_) => Some(Arc::clone(&self.fuzzing_lock).lock_owned().await),
            Launcher::Command(_) | Launcher::Reference(_) | Launcher::InProcess(_) => None,
        }
    }

    /// Sends an event to the sink. A failing sink is reported at the end; the run continues.
    pub(super) fn emit(&self, event: &Event) {
        if let Event::CaseFinished(result) = event {
            self.statistics().totals.add(result.verdict);
        }
        let outcome = self.sink.lock().unwrap_or_else(PoisonError::into_inner).on(event);
        if let Err(error) = outcome {
            self.statistics().sink_error.get_or_insert(error);
        }
    }

    /// Whether the run was asked to stop.
    pub(super) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// The number of revisions being fuzzed.
    pub(super) fn fuzzing(&self) -> &AtomicUsize {
        &self.fuzzing
    }

    /// Registers a revision whose cases start to run.
    pub(super) fn under_way(&self) -> ActiveRevision {
        self.under_way.send_modify(|revisions| *revisions += 1);
        ActiveRevision(Arc::clone(&self.under_way))
    }

    /// Whether any cases are running, which slows down everything else.
    pub(super) fn is_judging_cases(&self) -> bool {
        *self.under_way.borrow() > 0
    }

    /// Waits until the cases of every revision have finished, or the run is asked to stop.
    pub(super) async fn wait_for_cases(&self) {
        // The sender is part of this context, so the channel stays open.
        let mut under_way = self.under_way.subscribe();
        let mut stop = self.stop.clone();
        tokio::select! {
            _through = under_way.wait_for(|revisions| *revisions == 0) => {}
            Ok(_) = stop.wait_for(|stop| *stop) => {}
        }
    }

    /// Counts one more process.
    pub(super) fn count_launch(&self) {
        self.statistics().launches += 1;
    }

    /// How to record a new connection; with `show_wire`, every message is sent to the sink.
    pub(super) fn keeping(&self, purpose: &str) -> RecordOptions {
        if !matches!(self.plan.launcher, Launcher::Http(_)) {
            self.statistics().launches += 1;
        }
        let keeping = RecordOptions { memory_budget: Arc::clone(&self.memory_budget), ..RecordOptions::default() };
        if !self.plan.show_wire {
            return keeping;
        }
        let (context, connection) = (self.clone(), purpose.to_owned());
        let tap = move |entry: &Entry| {
            context.emit(&Event::Wire { connection: connection.clone(), evidence: evidence(entry) });
        };
        RecordOptions { observer: Some(Arc::new(tap)), ..keeping }
    }

    /// How long a server gets to exit where no case judges that: less at a step that it is known to ignore.
    ///
    /// Whether it handles SIGTERM is judged for every process, so it gets the full time until that has been seen
    /// once.
    fn shutdown_timeouts(&self, connection: &Connection) -> ShutdownTimeouts {
        const IGNORED_STEP_TIMEOUT: Duration = Duration::from_millis(50);
        let quick = self.plan.shutdown_grace.min(UNJUDGED_SHUTDOWN_TIMEOUT);
        let whole = shutdown_grace_for(self.plan.shutdown_grace, connection);
        match self.statistics().furthest_shutdown_step {
            Some(ShutdownStep::Sigkill) => {
                ShutdownTimeouts { input_closed: IGNORED_STEP_TIMEOUT, sigterm: IGNORED_STEP_TIMEOUT }
            }
            Some(ShutdownStep::Sigterm) => ShutdownTimeouts { input_closed: IGNORED_STEP_TIMEOUT, sigterm: whole },
            Some(ShutdownStep::AlreadyExited | ShutdownStep::StdinClosed | ShutdownStep::Disconnected) | None => {
                ShutdownTimeouts { input_closed: quick, sigterm: whole }
            }
        }
    }

    /// Measures the time that judging takes.
    pub(super) fn judging<T>(&self, judge: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let judged = judge();
        self.statistics().judging += began.elapsed();
        judged
    }

    /// Judges on a blocking thread, so that connections are not delayed, and one revision at a time, so that memory
    /// for a long transcript is needed only once.
    pub(super) async fn judge_in_background<T: Send + 'static>(
        &self,
        judge: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let _turn = self.judging_lock.lock().await;
        let context = self.clone();
        tokio::task::spawn_blocking(move || context.judging(judge)).await
    }

    /// Closes a connection and returns its transcript.
    pub(super) async fn close(&self, connection: Connection, purpose: String) -> ClosedConnection {
        let (startup, limited) = (connection.first_line(), connection.rate_limited_requests());
        let without_package_runner = connection.is_without_package_runner();
        self.statistics().startups.extend(startup);
        let shutdown_timeouts = self.shutdown_timeouts(&connection);
        let (step, entries) = connection.shut_down(shutdown_timeouts).await;
        let mut statistics = self.statistics();
        statistics.furthest_shutdown_step = match (statistics.furthest_shutdown_step, step) {
            (Some(ShutdownStep::Sigkill), _) | (_, ShutdownStep::Sigkill) => Some(ShutdownStep::Sigkill),
            (Some(ShutdownStep::Sigterm), _) | (_, ShutdownStep::Sigterm) => Some(ShutdownStep::Sigterm),
            (_, step) => Some(step),
        };
        drop(statistics);
        ClosedConnection { purpose, without_package_runner, startup, step, entries, limited }
    }

    /// Closes a connection in the background; its transcript is not needed.
    pub(super) fn close_in_background(&self, connection: Connection, purpose: &str) {
        let (context, purpose) = (self.clone(), purpose.to_owned());
        let task = tokio::spawn(async move {
            let _record = context.close(connection, purpose).await;
        });
        self.statistics().closing.push(task);
    }

    /// Waits for the connections that are closing in the background, or aborts them.
    pub(super) async fn finish_closing(&self, immediately: bool) {
        let closing = std::mem::take(&mut self.statistics().closing);
        for task in closing {
            if immediately {
                task.abort();
            } else {
                let _ended = task.await;
            }
        }
    }
}

/// Runs a plan and reports to a sink.
///
/// A misbehaving server is never an error here: it is a verdict, or a [`Problem`] in the summary.
///
/// # Errors
/// When the sink failed to handle an event; the run was completed nevertheless.
pub async fn run(plan: Plan, sink: Arc<Mutex<dyn Sink>>, mut stop: Stop) -> io::Result<RunSummary> {
    let began = Instant::now();
    let context = Context { stop: stop.clone(), ..Context::new(with_applicable_cases(plan), sink) };
    let stopped = async {
        // Without a sender there is no stop signal.
        if stop.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let mut judging = Box::pin(judge(&context));
    let problem = tokio::select! {
        problem = &mut judging => problem,
        () = stopped => {
            if context.fuzzing.load(Ordering::Relaxed) > 0 {
                // Fuzzing gets the signal itself, and reports its findings.
                let _told = tokio::time::timeout(FUZZING_STOP_TIMEOUT, &mut judging).await;
            }
            Some(Problem {
                kind: ProblemKind::Interrupted,
                message: "the run was interrupted".to_owned(),
                hint: "the results so far are reported; run it again for the rest".to_owned(),
                stderr: String::new(),
                evidence: Vec::new(),
            })
        }
    };
    drop(judging);
    let interrupted = problem.as_ref().is_some_and(|problem| problem.kind == ProblemKind::Interrupted);
    context.finish_closing(interrupted).await;
    context.stop_host().await;
    let (summary, sink_error) = {
        let mut statistics = context.statistics();
        statistics.launches += context.host.launches();
        let timing = Timing {
            wall_ms: milliseconds(began.elapsed()),
            launches: statistics.launches,
            startup_ms: milliseconds(median(&mut statistics.startups)),
            judging_ms: milliseconds(statistics.judging),
            own_cpu_ms: own_cpu_ms(),
        };
        (RunSummary { totals: statistics.totals, timing, problem }, statistics.sink_error.take())
    };
    context.emit(&Event::RunFinished(Box::new(summary.clone())));
    match sink_error {
        Some(error) => Err(error),
        None => Ok(summary),
    }
}

/// The plan without the cases that do not apply to the transport.
pub(super) fn with_applicable_cases(mut plan: Plan) -> Plan {
    let transport = plan.transport();
    plan.cases.retain(|case| case.runs_over(transport));
    plan
}

/// Probes the server and judges each revision that it supports.
async fn judge(context: &Context) -> Option<Problem> {
    context.emit(&Event::RunStarted { server: context.plan.server_name() });
    if let Err(host_error) = context.ready().await {
        return Some(host_problem(context, host_error).await);
    }
    let probe_result = probe(context).await;
    let revisions: Vec<Revision> = probe_result.sessions.iter().map(|session| session.revision).collect();
    let fuzz = context.plan.fuzz.as_ref();
    let fuzzed =
        |revision: &Revision| fuzz.is_some_and(|fuzz| fuzz.every_revision || revisions.last() == Some(revision));
    let counts = |case: &Case, revision: &Revision| {
        context.plan.reports(case)
            && case.runs_in(*revision)
            && (!matches!(case.body, Body::Fuzz(_)) || fuzzed(revision))
    };
    let runs = |revision: &Revision| context.plan.cases.iter().filter(|case| counts(case, revision)).count();
    if let Some(revision) =
        revision_requiring_token(&probe_result.rejected).filter(|_| probe_result.sessions.is_empty())
    {
        // The problem is reported, but cases that need no session are still judged.
        let cases = target::cases_without_session(context, revision);
        context.emit(&Event::Probed { revisions: vec![revision], cases: cases.len() });
        target::judge_cases_without_session(context, revision, cases).await;
        return Some(opening_problem(context, probe_result.rejected).await);
    }
    context.emit(&Event::Probed { revisions: revisions.clone(), cases: revisions.iter().map(runs).sum() });
    if probe_result.sessions.is_empty() {
        return Some(opening_problem(context, probe_result.rejected).await);
    }
    for (_, rejected) in probe_result.rejected {
        if let Some(connection) = rejected.connection {
            context.close_in_background(connection, "probe");
        }
    }
    let unsupported_revisions = unsupported_revisions(&context.plan.revisions, &revisions);
    let mut targets = JoinSet::new();
    let newest = revisions.iter().max().copied();
    let every = context.plan.fuzz.as_ref().is_some_and(|fuzz| fuzz.every_revision);
    // The revision to fuzz has priority, so that it is fuzzed while the cases of the others run.
    let mut sessions = probe_result.sessions;
    sessions.sort_by_key(|session| (Some(session.revision) != newest, session.revision));
    // All revisions are registered before any of them checks for others.
    let sessions: Vec<_> = sessions.into_iter().map(|session| (session, context.under_way())).collect();
    for (session, under_way) in sessions {
        let fuzzed = every || Some(session.revision) == newest;
        let context = context.with_priority(fuzzed);
        targets.spawn(target::judge(context, session, fuzzed, under_way));
    }
    let mut problem = None;
    while let Some(finished) = targets.join_next().await {
        problem = problem.or(finished.ok().flatten());
    }
    problem.or(unsupported_revisions)
}

/// The revision in which to judge a server that requires a token from everybody: the newest with a handshake, because
/// the supported revisions are unknown.
fn revision_requiring_token(rejected: &[(Revision, RejectedOpening)]) -> Option<Revision> {
    let token_required =
        rejected.iter().filter(|(_, r)| matches!(&r.reason, OpeningFailure::Http(failure) if failure.token_required));
    token_required
        .map(|(revision, _)| *revision)
        .max_by_key(|revision| (revision.era() == crate::spec::Era::Handshake, *revision))
}

/// Why an HTTP server that the client starts is not available.
pub(super) async fn host_problem(context: &Context, host_error: HostError) -> Problem {
    let (message, hint) = match host_error {
        HostError::NotStarted(error) => {
            (error.to_string(), "check that the path exists and is executable; a script needs its interpreter named")
        }
        HostError::Ended(status) => (
            format!("the server exited before it listened ({status})"),
            "run the command by hand and see what it prints; it may lack an argument, a variable or a folder",
        ),
        HostError::NotListening => (
            format!("the server does not listen at the address within {:.0?}", context.plan.startup_timeout),
            "does the command listen on the host and the port of --url? give a slow server more time with --startup-timeout",
        ),
        HostError::TooManyRestarts => {
            ("the server ended too often".to_owned(), "run it by hand and see what it prints")
        }
    };
    Problem {
        kind: ProblemKind::NotAServer,
        message,
        hint: hint.to_owned(),
        stderr: match &context.plan.launcher {
            Launcher::Http(server) => context.host.output(server).await,
            Launcher::Command(_) | Launcher::Reference(_) | Launcher::InProcess(_) => String::new(),
        },
        evidence: Vec::new(),
    }
}

/// The problem that revisions selected by name are not supported: a CI gate must not take them for judged.
fn unsupported_revisions(selected: &Revisions, supported: &[Revision]) -> Option<Problem> {
    let Revisions::Named(named) = selected else { return None };
    let host_problem: Vec<&str> =
        named.iter().filter(|revision| !supported.contains(revision)).map(|r| r.as_str()).collect();
    (!host_problem.is_empty()).then(|| Problem {
        kind: ProblemKind::NothingToJudge,
        message: format!("the server does not support {}, which was selected", host_problem.join(" and ")),
        hint: "omit that --revision, or omit them all to judge every revision that the server supports".to_owned(),
        stderr: String::new(),
        evidence: Vec::new(),
    })
}

/// Why no revision could be judged.
pub(super) async fn opening_problem(context: &Context, rejected: Vec<(Revision, RejectedOpening)>) -> Problem {
    let (message, hint) = explain(&rejected, context.plan.startup_timeout, context.plan.transport());
    // A handshake server answers unknown requests with an error, which proves nothing if handshake revisions were
    // tried as well.
    let only_stateless = rejected.iter().all(|(revision, _)| revision.era() == crate::spec::Era::Stateless);
    let understands_mcp = rejected.iter().any(|(_, rejected)| match rejected.reason {
        OpeningFailure::Other(_) => true,
        OpeningFailure::Error(_) => only_stateless,
        _ => false,
    });
    let mut problem = Problem {
        kind: if understands_mcp { ProblemKind::NothingToJudge } else { ProblemKind::NotAServer },
        message,
        hint,
        stderr: String::new(),
        evidence: Vec::new(),
    };
    // The attempts are alike; show the one of the newest handshake revision.
    let mut rejected: Vec<_> =
        rejected.into_iter().filter_map(|(revision, r)| Some((revision, r.connection?))).collect();
    rejected.sort_by_key(|(revision, _)| (revision.era() == crate::spec::Era::Stateless, std::cmp::Reverse(*revision)));
    let mut endings = JoinSet::new();
    for (at, (_, connection)) in rejected.into_iter().enumerate() {
        let context = context.clone();
        endings.spawn(async move { (at, context.close(connection, "probe".to_owned()).await) });
    }
    let mut ended = endings.join_all().await;
    ended.sort_by_key(|(at, _)| *at);
    if let Some((_, ended)) = ended.into_iter().next() {
        problem.stderr = stderr_of(&ended.entries, 4_000);
        problem.evidence = ended
            .entries
            .iter()
            .filter(|entry| !matches!(entry.event, crate::transcript::Event::Stderr(_)))
            .take(8)
            .map(|entry| evidence(entry))
            .collect();
    }
    problem
}

/// A duration in milliseconds, rounded to hundredths.
pub(super) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The CPU time of this process so far, if the operating system reports it.
fn own_cpu_ms() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    // Fields 14 and 15 of the file, in ticks of 10 ms.
    let ticks: u32 = fields.get(11)?.parse::<u32>().ok()? + fields.get(12)?.parse::<u32>().ok()?;
    Some(f64::from(ticks) * 10.0)
}
