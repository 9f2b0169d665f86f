//! The front door of the library: a server and what is asked of it, made a report.
//!
//! Owns the settings and their defaults, which are those of the command line. Knows neither options nor a
//! terminal, and prints nothing.

use std::ffi::OsStr;
use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::sync::watch;

use super::error::JudgeError;
use super::fuzzing::Fuzzing;
use crate::case::{self, Baseline, Body, Case, Selection};
use crate::client::{Site, Within};
use crate::event::{Event, Sink};
use crate::reference::Fault;
use crate::report::{FailOn, Fold, Options, Report, gate};
use crate::run::{self, Calls, HttpServer, Launcher, Plan, Revisions, ServerCommand};
use crate::spec::Revision;

/// How long the server is given at each step of shutting it down.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

type Observer = Arc<Mutex<dyn FnMut(&Event) + Send>>;

/// A server and what is asked of it.
///
/// Made for a server by [`Judge::command`], [`Judge::in_process`], [`Judge::connect`] or [`Judge::http`], with the
/// settings of the command line where nothing else is said.
///
/// # Examples
///
/// ```
/// use mcp_conformance::{Conclusion, Judge};
///
/// // The built-in server, which is a conforming one, stands for yours.
/// let report = Judge::built_in([]).select("tools").run_blocking()?;
/// assert_eq!(report.conclusion(), Conclusion::Passed, "{}", report.to_text());
/// # Ok::<(), mcp_conformance::JudgeError>(())
/// ```
#[derive(Clone)]
#[must_use = "nothing is judged until it is run"]
pub struct Judge {
    server: Server,
    revisions: Revisions,
    select: Vec<String>,
    skip: Vec<String>,
    cases: Option<PathBuf>,
    hints: Option<PathBuf>,
    baseline: Option<PathBuf>,
    calls: Option<Calls>,
    timeout: Duration,
    startup_timeout: Duration,
    jobs: Option<NonZero<usize>>,
    seed: u64,
    retries: usize,
    fail_on: FailOn,
    fuzzing: Option<Fuzzing>,
    observer: Option<Observer>,
}

/// Which of the selected cases a run judges.
pub(crate) enum Part {
    /// All of them.
    Whole,
    /// Those of these ids. What only some cases show proves nothing of the others' known findings.
    #[cfg_attr(not(feature = "harness"), expect(dead_code, reason = "only tests of single cases ask for it"))]
    Some(Vec<String>),
}

#[derive(Debug, Clone)]
enum Server {
    Command(ServerCommand),
    Http { address: String, headers: Vec<(String, String)>, insecure: bool, command: Option<ServerCommand> },
    Within(Within),
    BuiltIn(Vec<Fault>),
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judge").field("server", &self.server).field("select", &self.select).finish_non_exhaustive()
    }
}

fn command_of<Word: AsRef<OsStr>>(words: impl IntoIterator<Item = Word>) -> ServerCommand {
    let command = words.into_iter().map(|word| word.as_ref().to_string_lossy().into_owned()).collect();
    ServerCommand { command, ..ServerCommand::default() }
}

impl Judge {
    fn of(server: Server) -> Self {
        Self {
            server,
            revisions: Revisions::Supported,
            select: Vec::new(),
            skip: Vec::new(),
            cases: None,
            hints: None,
            baseline: None,
            calls: None,
            timeout: Duration::from_secs(5),
            startup_timeout: Duration::from_secs(30),
            jobs: None,
            seed: 0,
            retries: 1,
            fail_on: FailOn::Must,
            fuzzing: None,
            observer: None,
        }
    }

    /// A server that is started as a process and spoken to over its standard streams; the program comes first.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use mcp_conformance::Judge;
    ///
    /// let report = Judge::command(["./my-server", "--stdio"]).run_blocking()?;
    /// print!("{}", report.to_text());
    /// # Ok::<(), mcp_conformance::JudgeError>(())
    /// ```
    pub fn command<Word: AsRef<OsStr>>(words: impl IntoIterator<Item = Word>) -> Self {
        Self::of(Server::Command(command_of(words)))
    }

    /// A server within this process. Each connection, of which there are several, is given the server's end of a
    /// pipe, and is served on a thread and a runtime of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::Judge;
    /// use tokio::io::{AsyncWriteExt, DuplexStream};
    ///
    /// // With the official SDK: `async { if let Ok(server) = MyServer.serve(pipe).await { server.waiting().await.ok(); } }`
    /// let judge = Judge::in_process(|mut pipe: DuplexStream| async move { pipe.write_all(b"hello\n").await });
    /// let report = judge.run_blocking()?;
    /// assert!(report.to_text().contains("hello"));
    /// # Ok::<(), mcp_conformance::JudgeError>(())
    /// ```
    pub fn in_process<Serve, Served>(serve: Serve) -> Self
    where
        Serve: Fn(DuplexStream) -> Served + Send + Sync + 'static,
        Served: Future + 'static,
    {
        Self::of(Server::Within(Within::new(serve)))
    }

    /// A server that `connect` connects to over any stream of bytes, once for each connection: a socket, a pipe to
    /// a container. A connection that fails is a server that closes its output.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::Judge;
    /// use tokio::net::TcpStream;
    ///
    /// let judge = Judge::connect(|| TcpStream::connect("127.0.0.1:3001"));
    /// # let _judge = judge;
    /// ```
    pub fn connect<Connect, Connecting, Stream>(connect: Connect) -> Self
    where
        Connect: Fn() -> Connecting + Send + Sync + 'static,
        Connecting: Future<Output = std::io::Result<Stream>> + 'static,
        Stream: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let connect = Arc::new(connect);
        Self::in_process(move |mut pipe| {
            let connect = Arc::clone(&connect);
            async move {
                let mut stream = connect().await?;
                tokio::io::copy_bidirectional(&mut pipe, &mut stream).await
            }
        })
    }

    /// A server that is reached over HTTP. See [`Judge::header`], [`Judge::insecure`] and [`Judge::started_by`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use mcp_conformance::Judge;
    ///
    /// let judge = Judge::http("http://127.0.0.1:3000/mcp").header("Authorization", "Bearer ...");
    /// let report = judge.started_by(["./my-server", "--port", "3000"]).run_blocking()?;
    /// # Ok::<(), mcp_conformance::JudgeError>(())
    /// ```
    pub fn http(address: impl Into<String>) -> Self {
        Self::of(Server::Http { address: address.into(), headers: Vec::new(), insecure: false, command: None })
    }

    /// The built-in server, with named faults: what a test of a test is held against.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::{Conclusion, Judge};
    ///
    /// let fault = mcp_conformance::reference::Fault::all()[0];
    /// let report = Judge::built_in([fault]).run_blocking()?;
    /// assert_ne!(report.conclusion(), Conclusion::Passed);
    /// # Ok::<(), mcp_conformance::JudgeError>(())
    /// ```
    pub fn built_in(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self::of(Server::BuiltIn(faults.into_iter().collect()))
    }

    /// A header that goes with every request, for a server over HTTP; its value is in no report.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Server::Http { headers, .. } = &mut self.server {
            headers.push((name.into(), value.into()));
        }
        self
    }

    /// Any TLS certificate is accepted, for a server over HTTP.
    pub fn insecure(mut self) -> Self {
        if let Server::Http { insecure, .. } = &mut self.server {
            *insecure = true;
        }
        self
    }

    /// The command that starts a server which is reached over HTTP; it is ended when the run is.
    pub fn started_by<Word: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = Word>) -> Self {
        if let Server::Http { command, .. } = &mut self.server {
            *command = Some(command_of(words));
        }
        self
    }

    fn process(&mut self) -> Option<&mut ServerCommand> {
        match &mut self.server {
            Server::Command(command) | Server::Http { command: Some(command), .. } => Some(command),
            Server::Http { command: None, .. } | Server::Within(_) | Server::BuiltIn(_) => None,
        }
    }

    /// A variable that the process of the server is started with, beside those that it inherits.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Some(command) = self.process() {
            command.environment.push((name.into(), value.into()));
        }
        self
    }

    /// The folder that the process of the server is started in.
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        if let Some(command) = self.process() {
            command.directory = Some(folder.into());
        }
        self
    }

    /// The revisions that are judged; without it every released one that the server speaks.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::{Judge, Revision, Revisions};
    ///
    /// let latest = Judge::command(["./my-server"]).revisions(Revisions::Latest);
    /// let one = Judge::command(["./my-server"]).revisions([Revision::V2025_06_18]);
    /// # let _both = (latest, one);
    /// ```
    pub fn revisions(mut self, revisions: impl Into<Revisions>) -> Self {
        self.revisions = revisions.into();
        self
    }

    /// Only cases whose id, area or tag matches this glob, or another that is given.
    pub fn select(mut self, glob: impl Into<String>) -> Self {
        self.select.push(glob.into());
        self
    }

    /// No cases whose id, area or tag matches this glob.
    pub fn skip(mut self, glob: impl Into<String>) -> Self {
        self.skip.push(glob.into());
        self
    }

    /// A folder of your own cases, which are judged beside the built-in ones.
    pub fn cases(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cases = Some(folder.into());
        self
    }

    /// A file of hints: what to ask beside what is asked anyway, so that the server shows more of itself.
    pub fn hints(mut self, file: impl Into<PathBuf>) -> Self {
        self.hints = Some(file.into());
        self
    }

    /// A file of findings that are known and accepted for now. One that is out of date fails a whole run.
    pub fn baseline(mut self, file: impl Into<PathBuf>) -> Self {
        self.baseline = Some(file.into());
        self
    }

    /// Which tools may be called; without it those that are not annotated as destructive, and on another machine
    /// those that are annotated as reading only.
    pub fn calls(mut self, calls: Calls) -> Self {
        self.calls = Some(calls);
        self
    }

    /// How long a request may take; 5 seconds without it.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long the first answer of a process may take; 30 seconds without it.
    pub fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = timeout;
        self
    }

    /// How many connections there may be side by side; by default twice as many as there are processors, at least 4,
    /// and where tools are fuzzed one for each processor.
    pub fn jobs(mut self, jobs: NonZero<usize>) -> Self {
        self.jobs = Some(jobs);
        self
    }

    /// The seed of everything random; 0 without it.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How often a failing case is tried again on a fresh connection before it is believed; once without it.
    pub fn retries(mut self, retries: usize) -> Self {
        self.retries = retries;
        self
    }

    /// Which findings make [`Report::conclusion`] a failure; without it those that break a rule which binds.
    pub fn fail_on(mut self, fail_on: FailOn) -> Self {
        self.fail_on = fail_on;
        self
    }

    /// Tools are fuzzed, which they are not without it.
    pub fn fuzz(mut self, fuzzing: Fuzzing) -> Self {
        self.fuzzing = Some(fuzzing);
        self
    }

    /// Shows each event of the run as it comes.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::{Judge, event::Event};
    ///
    /// let judge = Judge::built_in([]).select("lifecycle").observe(|event| {
    ///     if let Event::CaseFinished(result) = event {
    ///         println!("{} {}", result.verdict.as_str(), result.case);
    ///     }
    /// });
    /// judge.run_blocking()?;
    /// # Ok::<(), mcp_conformance::JudgeError>(())
    /// ```
    pub fn observe(mut self, observer: impl FnMut(&Event) + Send + 'static) -> Self {
        self.observer = Some(Arc::new(Mutex::new(observer)));
        self
    }

    /// Judges the server. Takes a runtime of tokio with its clock and its drivers; dropping the future ends every
    /// process that it started.
    ///
    /// # Errors
    /// When a setting cannot be used; nothing has been started then.
    ///
    /// # Examples
    ///
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    /// # runtime.block_on(async {
    /// let report = mcp_conformance::Judge::built_in([]).select("tools").run().await?;
    /// assert!(report.results().all(|result| result.findings.is_empty()));
    /// # Ok::<(), mcp_conformance::JudgeError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn run(self) -> Result<Report, JudgeError> {
        let all = self.all_cases()?;
        let selected = self.selected(&all)?;
        self.judge(&all, selected, Part::Whole).await
    }

    /// Judges the server on a runtime of its own, and waits for the report.
    ///
    /// # Errors
    /// As [`Judge::run`], and when a runtime cannot be started.
    ///
    /// # Panics
    /// Within an asynchronous task: [`Judge::run`] is for there.
    pub fn run_blocking(self) -> Result<Report, JudgeError> {
        block_on(self.run())?
    }

    /// Every case that there is, sorted by id.
    pub(crate) fn all_cases(&self) -> Result<Vec<Case>, JudgeError> {
        let faults: Vec<&str> = Fault::all().iter().map(|fault| fault.name()).collect();
        case::load(self.cases.as_deref(), &faults).map_err(JudgeError::Cases)
    }

    /// The cases that the settings select.
    pub(crate) fn selected(&self, all: &[Case]) -> Result<Vec<Arc<Case>>, JudgeError> {
        let selection = Selection { select: self.select.clone(), skip: self.skip.clone() };
        let fuzzes = self.fuzzing.is_some();
        let transport = match self.server {
            Server::Http { .. } => crate::spec::Transport::Http,
            Server::Command(_) | Server::Within(_) | Server::BuiltIn(_) => crate::spec::Transport::Stdio,
        };
        let selected = selection.of(all)?.into_iter();
        let is_wanted = |case: &&Case| (fuzzes || !matches!(case.body, Body::Fuzz(_))) && case.runs_over(transport);
        Ok(selected.filter(is_wanted).cloned().map(Arc::new).collect())
    }

    /// Judges the server by some of the cases.
    pub(crate) async fn judge(self, all: &[Case], cases: Vec<Arc<Case>>, part: Part) -> Result<Report, JudgeError> {
        let launcher = self.launcher()?;
        let ids: Vec<&str> = all.iter().map(|case| case.id.as_str()).collect();
        let hints = match &self.hints {
            Some(file) => case::load_hints(file, &ids).map_err(JudgeError::Hints)?,
            None => Vec::new(),
        };
        let baseline = match &self.baseline {
            Some(file) => Some((Baseline::load(file).map_err(JudgeError::Baseline)?.0, file.display().to_string())),
            None => None,
        };
        let elsewhere = matches!(&launcher, Launcher::Http(server) if !server.site.is_loopback());
        let calls = self.calls.unwrap_or(if elsewhere { Calls::ReadOnly } else { Calls::NonDestructive });
        let options = self.options(calls, part);
        let replay_suffix = match &launcher {
            Launcher::Command(server) => run::shell_words(" -- ", &server.command),
            Launcher::Http(HttpServer { site, command: Some(command) }) => {
                run::shell_words(&format!(" --url {} -- ", site.address()), &command.command)
            }
            Launcher::Http(HttpServer { site, command: None }) => {
                run::shell_words(" -- ", &[site.address().to_owned()])
            }
            Launcher::BuiltIn(_) | Launcher::Within(_) => String::new(),
        };
        let plan = Plan {
            launcher,
            revisions: self.revisions,
            cases,
            calls,
            hints,
            timeout: self.timeout,
            startup_timeout: self.startup_timeout,
            shutdown_grace: SHUTDOWN_GRACE,
            jobs: self.jobs.map_or_else(run::side_by_side, NonZero::get),
            seed: self.seed,
            fuzz: self.fuzzing.as_ref().map(|fuzzing| fuzzing.plan(self.jobs)).transpose()?,
            retries: self.retries,
            show_wire: false,
            replay_prefix: "mcp-conformance".to_owned(),
            replay_suffix,
        };
        let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let fold = Fold::new(Report::new(started, options));
        let listener = Arc::new(Mutex::new(Listener { fold: Some(fold), observer: self.observer }));
        let sink: Arc<Mutex<dyn Sink>> = listener.clone();
        // Nobody asks it to stop: whoever drops the future does.
        let (_going, stop) = watch::channel(false);
        let _summary = run::run(plan, sink, stop).await.expect("the listener takes every event");
        let fold = listener.lock().unwrap_or_else(PoisonError::into_inner).fold.take();
        let mut report = fold.expect("the report is taken once").into_report();
        if let Some((baseline, file)) = baseline {
            let is_case = |id: &str| ids.contains(&id) || id.starts_with("fuzz/");
            gate::compare_with_baseline(&mut report, &baseline, &file, is_case);
        }
        Ok(report)
    }

    fn launcher(&self) -> Result<Launcher, JudgeError> {
        Ok(match &self.server {
            Server::Command(command) => Launcher::Command(command.clone()),
            Server::Http { address, headers, insecure, command } => {
                Launcher::Http(HttpServer { site: Site::new(address, headers, *insecure)?, command: command.clone() })
            }
            Server::Within(within) => Launcher::Within(within.clone()),
            Server::BuiltIn(faults) => Launcher::BuiltIn(Arc::new(faults.iter().copied().collect())),
        })
    }

    /// The settings as the report repeats them.
    fn options(&self, calls: Calls, part: Part) -> Options {
        let mut select = self.select.clone();
        if let Part::Some(ids) = part {
            select.extend(ids);
        }
        Options {
            revisions: match &self.revisions {
                Revisions::Supported => Vec::new(),
                Revisions::Latest => vec!["latest".to_owned()],
                Revisions::All => vec!["all".to_owned()],
                Revisions::Named(named) => named.iter().map(Revision::to_string).collect(),
            },
            select,
            skip: self.skip.clone(),
            fail_on: self.fail_on,
            calls: match calls {
                Calls::ReadOnly => "read-only",
                Calls::NonDestructive => "non-destructive",
                Calls::Destructive => "destructive",
            }
            .to_owned(),
            hints: self.hints.as_ref().map(|file| file.to_string_lossy().into_owned()),
            seed: self.seed,
            timeout_ms: u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
            retries: self.retries,
            shard: None,
        }
    }

    #[cfg(feature = "harness")]
    pub(crate) fn has_baseline(&self) -> bool {
        self.baseline.is_some()
    }
}

/// Does work on a runtime of its own.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, JudgeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(JudgeError::Runtime)?;
    let done = runtime.block_on(work);
    // Nothing of ours is left to wait for; a reader that is stuck must not hold the report back.
    runtime.shutdown_background();
    Ok(done)
}

/// Makes the report of a run, and lets somebody watch.
struct Listener {
    fold: Option<Fold>,
    observer: Option<Observer>,
}

impl Sink for Listener {
    fn on(&mut self, event: &Event) -> std::io::Result<()> {
        if let Some(observer) = &self.observer {
            (observer.lock().unwrap_or_else(PoisonError::into_inner))(event);
        }
        self.fold.as_mut().map_or(Ok(()), |fold| fold.on(event))
    }
}
