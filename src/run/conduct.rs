//! A run from its first process to its last.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::process::Command;
use tokio::sync::{OwnedMutexGuard, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};

use super::common::Common;
use super::host::{Absent, Host, HostFate, listens};
use super::permits::{Asked, Haste, Permit, Permits};
use super::plan::{Launcher, Plan, Revisions};
use super::probe::{explain, probe};
use super::session::{Refusal, Refused, unhurried};
use super::target;
use crate::case::{Body, Case};
use crate::check::{evidence, stderr_of};
use crate::client::{Allowance, Connection, Keeping, Packaged, Patience, is_package_runner};
use crate::event::{Event, Problem, ProblemKind, RunSummary, Sink, Timing};
use crate::spec::Revision;
use crate::transcript::{Entry, ShutdownStep};
use crate::verdict::Totals;

/// Tells a run to stop: send `true`, and it ends every process and sums up what it has.
pub type Stop = watch::Receiver<bool>;

/// How long fuzzing is given to end and to tell what it found.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// How long a server is given to end by itself where nobody judges whether it does.
const QUICK_END: Duration = Duration::from_millis(400);

/// How long a process over HTTP that answers no more is given to say how it ended.
const EPITAPH: Duration = Duration::from_millis(300);

/// How long a server over HTTP that is not ours to start is given to be there again.
const BACK: Duration = Duration::from_secs(2);

/// What every part of a run shares.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) plan: Arc<Plan>,
    permits: Arc<Permits>,
    /// Whether more waits for what is done here than for what others do.
    haste: Haste,
    sink: Arc<Mutex<dyn Sink>>,
    book: Arc<Mutex<Book>>,
    allowance: Arc<Allowance>,
    host: Arc<Host>,
    /// What asks the run to end.
    stop: Stop,
    /// Whether it is fuzzing, which ends by itself when it is asked to.
    fuzzing: Arc<AtomicUsize>,
    /// Held by whoever judges beside the connections.
    bench: Arc<tokio::sync::Mutex<()>>,
    /// Held by whoever fuzzes a server that is one process for all.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// How many revisions are on their way through their cases.
    under_way: Arc<watch::Sender<usize>>,
    common: Arc<Common>,
    /// What the package runner that the server's command names has started, once that was seen.
    packaged: Arc<OnceLock<Packaged>>,
    /// The case of each pass over the steps of a case so far, in any revision.
    passes: Arc<Mutex<Vec<String>>>,
}

/// A revision on its way through its cases, until it is dropped.
pub(super) struct UnderWay(Arc<watch::Sender<usize>>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|revisions| *revisions -= 1);
    }
}

/// What is counted along the way.
#[derive(Debug, Default)]
struct Book {
    launches: usize,
    startups: Vec<Duration>,
    judging: Duration,
    totals: Totals,
    sink_error: Option<io::Error>,
    dismissed: Vec<JoinHandle<()>>,
    /// The furthest that shutting the server down ever had to go.
    stubborn: Option<ShutdownStep>,
}

/// A connection that was shut down, with its record.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) purpose: String,
    /// Whether it was started without the package runner that the server's command names.
    pub(super) without_runner: bool,
    pub(super) startup: Option<Duration>,
    pub(super) step: ShutdownStep,
    pub(super) entries: Vec<Arc<Entry>>,
    /// How many requests the server would not answer, since it is asked too much.
    pub(super) limited: usize,
}

impl Context {
    /// What a run of a plan shares, told to a sink.
    pub(super) fn new(plan: Plan, sink: Arc<Mutex<dyn Sink>>) -> Self {
        Self {
            permits: Permits::new(plan.jobs.max(1)),
            haste: Haste::Usual,
            plan: Arc::new(plan),
            sink,
            book: Arc::default(),
            allowance: Arc::default(),
            host: Arc::default(),
            // Nobody asks unless a sender is given.
            stop: watch::channel(false).1,
            fuzzing: Arc::default(),
            bench: Arc::default(),
            turn: Arc::default(),
            under_way: Arc::default(),
            common: Arc::default(),
            packaged: Arc::default(),
            passes: Arc::default(),
        }
    }

    /// What came of the cases that are carried out for all revisions.
    pub(super) fn common(&self) -> &Common {
        &self.common
    }

    /// What starts the server without the package runner that its command names, once that is known.
    pub(super) fn without_runner(&self) -> Option<Command> {
        self.packaged.get().map(Packaged::command)
    }

    /// Whether the server's command names a package runner, and it is not known what that starts.
    pub(super) fn has_runner(&self) -> bool {
        matches!(&self.plan.launcher, Launcher::Command(server) if is_package_runner(&server.command))
            && self.packaged.get().is_none()
    }

    /// Looks what a package runner has started, now that this speaks.
    pub(super) fn see_runner(&self, connection: &Connection) {
        if !self.has_runner() {
            return;
        }
        if let Some(packaged) = connection.process_id().and_then(Packaged::of) {
            // Another may have seen the same meanwhile.
            let _packaged = self.packaged.get_or_init(|| packaged);
        }
    }

    /// The case of each pass so far.
    fn passes(&self) -> MutexGuard<'_, Vec<String>> {
        self.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a new pass over the steps of a case.
    pub(super) fn new_pass(&self, case: &str) -> usize {
        let mut passes = self.passes();
        passes.push(case.to_owned());
        passes.len() - 1
    }

    /// The case that a pass was over.
    pub(super) fn case_of(&self, pass: usize) -> Option<String> {
        self.passes().get(pass).cloned()
    }

    /// The same for somebody who is in a hurry, or is not.
    pub(super) fn in_haste(&self, urgent: bool) -> Self {
        Self { haste: if urgent { Haste::Urgent } else { Haste::Usual }, ..self.clone() }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for leave to keep one more process busy.
    pub(super) fn ask(&self) -> Asked {
        self.permits.ask(self.haste)
    }

    /// The permit of a process that is only waited for from now on: others get it meanwhile, unless it is the only
    /// one there is, as that says that one process is to follow another.
    pub(super) fn idle(&self, permit: Permit) -> Option<Permit> {
        (self.plan.jobs <= 1).then_some(permit)
    }

    /// Sees to it that a server that is ours to start over HTTP is there; for the others there is nothing to do.
    pub(super) async fn ready(&self) -> Result<(), Absent> {
        match &self.plan.launcher {
            Launcher::Http(server) => self.host.ready(server, self.plan.startup_timeout).await,
            Launcher::Command(_) | Launcher::BuiltIn(_) | Launcher::Within(_) => Ok(()),
        }
    }

    /// Puts a new process in the place of the one that runs, where the server is reached over HTTP and ours to
    /// start; returns its id.
    pub(super) async fn renew_host(&self) -> Result<Option<i32>, String> {
        let Launcher::Http(server) = &self.plan.launcher else { return Ok(None) };
        let renewed = self.host.renew(server, self.plan.startup_timeout).await;
        renewed.map_err(|absent| format!("the server could not be started again: {}", absent.describe()))
    }

    /// What became of a server over HTTP that answers no more.
    pub(super) async fn fate_of_host(&self) -> HostFate {
        let Launcher::Http(server) = &self.plan.launcher else { return HostFate::Listens };
        if server.command.is_some() {
            return match self.host.ended_within(server, EPITAPH).await {
                Some((status, stderr)) => HostFate::Ended { status, stderr },
                None => HostFate::Listens,
            };
        }
        if listens(server, BACK).await { HostFate::Listens } else { HostFate::Gone }
    }

    /// Ends the process of a server over HTTP, where it is ours.
    pub(super) async fn end_host(&self) {
        self.host.end(self.plan.shutdown_grace).await;
    }

    /// The right to be the only one that fuzzes, where all revisions are served by one process.
    pub(super) async fn fuzzing_turn(&self) -> Option<OwnedMutexGuard<()>> {
        match &self.plan.launcher {
            Launcher::Http(_) => Some(Arc::clone(&self.turn).lock_owned().await),
            Launcher::Command(_) | Launcher::BuiltIn(_) | Launcher::Within(_) => None,
        }
    }

    /// Tells the sink. A sink that fails is told of at the end; the run goes on.
    pub(super) fn emit(&self, event: &Event) {
        if let Event::CaseFinished(result) = event {
            self.book().totals.add(result.verdict);
        }
        let outcome = self.sink.lock().unwrap_or_else(PoisonError::into_inner).on(event);
        if let Err(error) = outcome {
            self.book().sink_error.get_or_insert(error);
        }
    }

    /// Whether the run was asked to end.
    pub(super) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Counts the revisions that are being fuzzed.
    pub(super) fn fuzzing(&self) -> &AtomicUsize {
        &self.fuzzing
    }

    /// Takes note that a revision begins with its cases.
    pub(super) fn under_way(&self) -> UnderWay {
        self.under_way.send_modify(|revisions| *revisions += 1);
        UnderWay(Arc::clone(&self.under_way))
    }

    /// Whether cases are judged just now, which takes time from whatever else is done.
    pub(super) fn is_judging_cases(&self) -> bool {
        *self.under_way.borrow() > 0
    }

    /// Waits until every revision is through its cases, or the run was asked to end.
    pub(super) async fn cases_through(&self) {
        // The sender is ours, so that somebody is always left to say so.
        let mut under_way = self.under_way.subscribe();
        let mut stop = self.stop.clone();
        tokio::select! {
            _through = under_way.wait_for(|revisions| *revisions == 0) => {}
            Ok(_) = stop.wait_for(|stop| *stop) => {}
        }
    }

    /// Counts one more process.
    pub(super) fn count_launch(&self) {
        self.book().launches += 1;
    }

    /// How a new connection is recorded; every message is shown to the sink where that was asked for.
    pub(super) fn keeping(&self, purpose: &str) -> Keeping {
        if !matches!(self.plan.launcher, Launcher::Http(_)) {
            self.book().launches += 1;
        }
        let keeping = Keeping { allowance: Arc::clone(&self.allowance), ..Keeping::default() };
        if !self.plan.show_wire {
            return keeping;
        }
        let (context, connection) = (self.clone(), purpose.to_owned());
        let tap = move |entry: &Entry| {
            context.emit(&Event::Wire { connection: connection.clone(), evidence: evidence(entry) });
        };
        Keeping { tap: Some(Arc::new(tap)), ..keeping }
    }

    /// How long a server is given where nobody judges how it ends: less at a step that it is known to ignore.
    ///
    /// Whether it survives SIGTERM is judged everywhere, so there it is given its time until it has been seen once.
    fn patience(&self, connection: &Connection) -> Patience {
        const KNOWN_BETTER: Duration = Duration::from_millis(50);
        let quick = self.plan.shutdown_grace.min(QUICK_END);
        let whole = unhurried(self.plan.shutdown_grace, connection);
        match self.book().stubborn {
            Some(ShutdownStep::Sigkill) => Patience { input_closed: KNOWN_BETTER, sigterm: KNOWN_BETTER },
            Some(ShutdownStep::Sigterm) => Patience { input_closed: KNOWN_BETTER, sigterm: whole },
            Some(ShutdownStep::AlreadyExited | ShutdownStep::StdinClosed | ShutdownStep::Disconnected) | None => {
                Patience { input_closed: quick, sigterm: whole }
            }
        }
    }

    /// Counts the time that judging takes.
    pub(super) fn judging<T>(&self, judge: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let judged = judge();
        self.book().judging += began.elapsed();
        judged
    }

    /// Judges beside the connections, whose answers would have to wait for it, and one revision at a time, so
    /// that what it takes to judge a long record is taken once.
    pub(super) async fn judging_beside<T: Send + 'static>(
        &self,
        judge: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let _turn = self.bench.lock().await;
        let context = self.clone();
        tokio::task::spawn_blocking(move || context.judging(judge)).await
    }

    /// Shuts a connection down and returns its record.
    pub(super) async fn end(&self, connection: Connection, purpose: String) -> Ended {
        let (startup, limited) = (connection.first_line(), connection.limited());
        let without_runner = connection.is_without_runner();
        self.book().startups.extend(startup);
        let patience = self.patience(&connection);
        let (step, entries) = connection.shut_down(patience).await;
        let mut book = self.book();
        book.stubborn = match (book.stubborn, step) {
            (Some(ShutdownStep::Sigkill), _) | (_, ShutdownStep::Sigkill) => Some(ShutdownStep::Sigkill),
            (Some(ShutdownStep::Sigterm), _) | (_, ShutdownStep::Sigterm) => Some(ShutdownStep::Sigterm),
            (_, step) => Some(step),
        };
        drop(book);
        Ended { purpose, without_runner, startup, step, entries, limited }
    }

    /// Shuts a connection down aside; nobody needs its record.
    pub(super) fn dismiss(&self, connection: Connection, purpose: &str) {
        let (context, purpose) = (self.clone(), purpose.to_owned());
        let task = tokio::spawn(async move {
            let _record = context.end(connection, purpose).await;
        });
        self.book().dismissed.push(task);
    }

    /// Waits for the connections that are shut down aside, or, in a hurry, leaves them to their end.
    pub(super) async fn take_leave(&self, hurried: bool) {
        let dismissed = std::mem::take(&mut self.book().dismissed);
        for task in dismissed {
            if hurried {
                task.abort();
            } else {
                let _ended = task.await;
            }
        }
    }
}

/// Runs a plan and tells a sink what comes of it.
///
/// A misbehaving server is never an error here: it is a verdict, or a [`Problem`] in the summary.
///
/// # Errors
/// When the sink failed to take an event; the run was carried out all the same.
pub async fn run(plan: Plan, sink: Arc<Mutex<dyn Sink>>, mut stop: Stop) -> io::Result<RunSummary> {
    let began = Instant::now();
    let context = Context { stop: stop.clone(), ..Context::new(fitting(plan), sink) };
    let stopped = async {
        // A sender that is gone will never ask us to stop.
        if stop.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let mut judging = Box::pin(judge(&context));
    let problem = tokio::select! {
        problem = &mut judging => problem,
        () = stopped => {
            if context.fuzzing.load(Ordering::Relaxed) > 0 {
                // Fuzzing hears of it by itself, and has something to tell.
                let _told = tokio::time::timeout(LAST_WORDS, &mut judging).await;
            }
            Some(Problem {
                kind: ProblemKind::Interrupted,
                message: "the run was interrupted".to_owned(),
                hint: "what had been judged by then is reported; run it again for the rest".to_owned(),
                stderr: String::new(),
                evidence: Vec::new(),
            })
        }
    };
    drop(judging);
    let interrupted = problem.as_ref().is_some_and(|problem| problem.kind == ProblemKind::Interrupted);
    context.take_leave(interrupted).await;
    context.end_host().await;
    let (summary, sink_error) = {
        let mut book = context.book();
        book.launches += context.host.launches();
        let timing = Timing {
            wall_ms: milliseconds(began.elapsed()),
            launches: book.launches,
            startup_ms: milliseconds(median(&mut book.startups)),
            judging_ms: milliseconds(book.judging),
            own_cpu_ms: own_cpu_ms(),
        };
        (RunSummary { totals: book.totals, timing, problem }, book.sink_error.take())
    };
    context.emit(&Event::RunFinished(Box::new(summary.clone())));
    match sink_error {
        Some(error) => Err(error),
        None => Ok(summary),
    }
}

/// The plan without the cases that the server's transport does not show.
pub(super) fn fitting(mut plan: Plan) -> Plan {
    let transport = plan.transport();
    plan.cases.retain(|case| case.runs_over(transport));
    plan
}

/// Probes the server and judges each revision that it speaks.
async fn judge(context: &Context) -> Option<Problem> {
    context.emit(&Event::RunStarted { server: context.plan.server_name() });
    if let Err(absent) = context.ready().await {
        return Some(missing(context, absent).await);
    }
    let probed = probe(context).await;
    let revisions: Vec<Revision> = probed.sessions.iter().map(|session| session.revision).collect();
    let fuzz = context.plan.fuzz.as_ref();
    let fuzzed =
        |revision: &Revision| fuzz.is_some_and(|fuzz| fuzz.every_revision || revisions.last() == Some(revision));
    let counts = |case: &Case, revision: &Revision| {
        context.plan.reports(case)
            && case.runs_in(*revision)
            && (!matches!(case.body, Body::Fuzz(_)) || fuzzed(revision))
    };
    let runs = |revision: &Revision| context.plan.cases.iter().filter(|case| counts(case, revision)).count();
    if let Some(revision) = locked_in(&probed.refused).filter(|_| probed.sessions.is_empty()) {
        // Nobody gets in, which is to be told; what is seen from outside is judged all the same.
        let cases = target::seen_from_outside(context, revision);
        context.emit(&Event::Probed { revisions: vec![revision], cases: cases.len() });
        target::judge_from_outside(context, revision, cases).await;
        return Some(unjudged(context, probed.refused).await);
    }
    context.emit(&Event::Probed { revisions: revisions.clone(), cases: revisions.iter().map(runs).sum() });
    if probed.sessions.is_empty() {
        return Some(unjudged(context, probed.refused).await);
    }
    for (_, refused) in probed.refused {
        if let Some(connection) = refused.connection {
            context.dismiss(connection, "probe");
        }
    }
    let unspoken = unspoken(&context.plan.revisions, &revisions);
    let mut targets = JoinSet::new();
    let newest = revisions.iter().max().copied();
    let every = context.plan.fuzz.as_ref().is_some_and(|fuzz| fuzz.every_revision);
    // The one that is fuzzed goes first in everything, so that this is done while the others go through their cases.
    let mut sessions = probed.sessions;
    sessions.sort_by_key(|session| (Some(session.revision) != newest, session.revision));
    // Every revision is on its way before the first may look whether another is.
    let sessions: Vec<_> = sessions.into_iter().map(|session| (session, context.under_way())).collect();
    for (session, under_way) in sessions {
        let fuzzed = every || Some(session.revision) == newest;
        let context = context.in_haste(fuzzed);
        targets.spawn(target::judge(context, session, fuzzed, under_way));
    }
    let mut problem = None;
    while let Some(finished) = targets.join_next().await {
        problem = problem.or(finished.ok().flatten());
    }
    problem.or(unspoken)
}

/// The revision in which a server is judged that asks everybody for a token, if that is why it did not open: the
/// newest with a handshake, as nothing tells which it speaks.
fn locked_in(refused: &[(Revision, Refused)]) -> Option<Revision> {
    let locked = refused.iter().filter(|(_, r)| matches!(&r.reason, Refusal::Http(astray) if astray.locked));
    locked
        .map(|(revision, _)| *revision)
        .max_by_key(|revision| (revision.era() == crate::spec::Era::Handshake, *revision))
}

/// Why a server that is ours to start over HTTP could not be asked.
pub(super) async fn missing(context: &Context, absent: Absent) -> Problem {
    let (message, hint) = match absent {
        Absent::NotStarted(error) => {
            (error.to_string(), "check that the path exists and is executable; a script needs its interpreter named")
        }
        Absent::Ended(status) => (
            format!("the server ended before it listened ({status})"),
            "run the command by hand and see what it prints; it may lack an argument, a variable or a folder",
        ),
        Absent::Silent => (
            format!("the server does not listen at the address within {:.0?}", context.plan.startup_timeout),
            "does the command listen on the host and the port of --url? give a slow one longer with --startup-timeout",
        ),
        Absent::GivenUp => ("the server ended too often".to_owned(), "see what it prints when it is run by hand"),
    };
    Problem {
        kind: ProblemKind::NotAServer,
        message,
        hint: hint.to_owned(),
        stderr: match &context.plan.launcher {
            Launcher::Http(server) => context.host.output(server).await,
            Launcher::Command(_) | Launcher::BuiltIn(_) | Launcher::Within(_) => String::new(),
        },
        evidence: Vec::new(),
    }
}

/// What is to be said of revisions that were asked for by name and are not spoken: a gate must not take
/// them for judged.
fn unspoken(asked: &Revisions, spoken: &[Revision]) -> Option<Problem> {
    let Revisions::Named(named) = asked else { return None };
    let missing: Vec<&str> = named.iter().filter(|revision| !spoken.contains(revision)).map(|r| r.as_str()).collect();
    (!missing.is_empty()).then(|| Problem {
        kind: ProblemKind::NothingToJudge,
        message: format!("the server does not speak {}, which was asked for", missing.join(" and ")),
        hint: "leave that --revision out, or leave them all out to judge what the server speaks".to_owned(),
        stderr: String::new(),
        evidence: Vec::new(),
    })
}

/// Why nothing could be judged.
pub(super) async fn unjudged(context: &Context, refused: Vec<(Revision, Refused)>) -> Problem {
    let (message, hint) = explain(&refused, context.plan.startup_timeout, context.plan.transport());
    // A server of the older era answers what it does not know by an error, which proves nothing where
    // the older era was tried as well.
    let only_stateless = refused.iter().all(|(revision, _)| revision.era() == crate::spec::Era::Stateless);
    let speaks = refused.iter().any(|(_, refused)| match refused.reason {
        Refusal::Other(_) => true,
        Refusal::Error(_) => only_stateless,
        _ => false,
    });
    let mut problem = Problem {
        kind: if speaks { ProblemKind::NothingToJudge } else { ProblemKind::NotAServer },
        message,
        hint,
        stderr: String::new(),
        evidence: Vec::new(),
    };
    // The attempts say the same; the one of the newest handshake revision is shown.
    let mut refused: Vec<_> = refused.into_iter().filter_map(|(revision, r)| Some((revision, r.connection?))).collect();
    refused.sort_by_key(|(revision, _)| (revision.era() == crate::spec::Era::Stateless, std::cmp::Reverse(*revision)));
    let mut endings = JoinSet::new();
    for (at, (_, connection)) in refused.into_iter().enumerate() {
        let context = context.clone();
        endings.spawn(async move { (at, context.end(connection, "probe".to_owned()).await) });
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

/// A time in milliseconds, to the hundredth.
pub(super) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The processor time of this process so far, where the system tells.
fn own_cpu_ms() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    // Fields 14 and 15 of the file, counted in ticks of a hundredth of a second.
    let ticks: u32 = fields.get(11)?.parse::<u32>().ok()? + fields.get(12)?.parse::<u32>().ok()?;
    Some(f64::from(ticks) * 10.0)
}
