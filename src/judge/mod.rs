//! The entry point of the library: a server and settings go in, a report comes out.
//!
//! Knows neither command-line options nor a terminal, and prints nothing.

mod error;
mod plan;
mod prepared;
mod reporter;
mod server;
mod settings;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

pub use error::JudgeError;
pub use plan::{load_cases, plan, plan_of_selected, report_options, select_cases};
pub use prepared::PreparedRun;
pub use reporter::{Reporter, apply_criteria, compare_with_baseline};
pub use server::{HttpServer, Server};
pub use settings::{FuzzRevisions, FuzzSettings, Settings};

use crate::baseline::Baseline;
use crate::case::{Case, SelectedCases};
use crate::client;
use crate::event::{Event, Sink};
use crate::report::Report;

type Observer = Arc<Mutex<dyn FnMut(&Event) + Send>>;

/// Judges a server against every revision of the specification that it supports.
///
/// # Examples
///
/// ```
/// use mcp_conformance::{Conclusion, Judge, Server, Settings};
///
/// // The built-in reference server stands in for yours, such as `Server::command("./my-server")`.
/// let server = Server::reference([]);
/// let settings = Settings { select: vec!["tools/*".to_owned()], ..Settings::default() };
/// let report = Judge::new(server).settings(settings).run_blocking()?;
/// assert_eq!(report.conclusion(), Conclusion::Passed, "{}", report.to_text());
/// # Ok::<(), mcp_conformance::JudgeError>(())
/// ```
#[derive(Clone)]
#[must_use = "nothing is judged until it is run"]
pub struct Judge {
    server: Server,
    settings: Settings,
    observer: Option<Observer>,
}

/// The part of the selected cases that a run judges.
pub(crate) enum Part {
    /// All of them.
    Whole,
    /// Those with these ids. Such a run cannot show that a baseline entry is out of date.
    #[cfg_attr(not(feature = "harness"), expect(dead_code, reason = "only tests of single cases need it"))]
    Some(Vec<String>),
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, settings, observer: _ } = self;
        f.debug_struct("Judge").field("server", server).field("settings", settings).finish_non_exhaustive()
    }
}

impl Judge {
    /// Judges this server, with the default settings.
    pub fn new(server: impl Into<Server>) -> Self {
        Self { server: server.into(), settings: Settings::default(), observer: None }
    }

    /// Replaces the settings.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Calls a function with each event of the run.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::event::Event;
    /// use mcp_conformance::{Judge, Server, Settings};
    ///
    /// let settings = Settings { select: vec!["lifecycle/*".to_owned()], ..Settings::default() };
    /// let judge = Judge::new(Server::reference([])).settings(settings).observe(|event| {
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

    /// Judges the server. This needs a tokio runtime with its timer and its I/O driver. Dropping the future ends
    /// every process that it started.
    ///
    /// # Errors
    /// When a setting cannot be used. Nothing has been started then.
    ///
    /// # Examples
    ///
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    /// # runtime.block_on(async {
    /// use mcp_conformance::{Judge, Server, Settings};
    ///
    /// let settings = Settings { select: vec!["tools/list/*".to_owned()], ..Settings::default() };
    /// let report = Judge::new(Server::reference([])).settings(settings).run().await?;
    /// assert!(report.results().all(|result| result.findings.is_empty()));
    /// # Ok::<(), mcp_conformance::JudgeError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn run(self) -> Result<Report, JudgeError> {
        let known = load_cases(self.settings.cases.as_deref())?;
        let selected = select_cases(&self.settings, &known)?;
        self.judge(&known, selected, Part::Whole).await
    }

    /// Judges the server on a runtime of its own, and waits for the report.
    ///
    /// # Errors
    /// As [`Judge::run`], and when a runtime cannot be started.
    ///
    /// # Panics
    /// When called in an asynchronous task; use [`Judge::run`] there.
    pub fn run_blocking(self) -> Result<Report, JudgeError> {
        block_on(self.run())?
    }

    /// Judges the server by some of the known cases.
    pub(crate) async fn judge(self, known: &[Case], cases: SelectedCases, part: Part) -> Result<Report, JudgeError> {
        let Self { server, settings, observer } = self;
        let mut run = PreparedRun::of_cases(&server, &settings, known, cases)?;
        if let Part::Some(ids) = part {
            run = run.judging_only(ids);
        }
        let baseline = match &settings.baseline {
            Some(file) => Some((Baseline::load(file).map_err(JudgeError::Baseline)?.0, file.display().to_string())),
            None => None,
        };
        let compare = |report: &mut Report| {
            if let Some((baseline, file)) = baseline {
                compare_with_baseline(report, &baseline, &file, |id| known.iter().any(|case| case.id == id));
            }
        };
        // A run is stopped by dropping its future, never by this channel.
        let (_running, stop) = watch::channel(false);
        let (report, handled) = run.run(Arc::new(Mutex::new(ObserverSink(observer))), stop, compare).await;
        handled.expect("the observer takes every event");
        Ok(report)
    }

    #[cfg(feature = "harness")]
    pub(crate) fn parts(&self) -> (&Server, &Settings) {
        (&self.server, &self.settings)
    }
}

/// Runs a future on a runtime of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, JudgeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(JudgeError::Runtime)?;
    let output = runtime.block_on(future);
    // The result is complete; a blocking read that never ends must not delay it.
    runtime.shutdown_background();
    Ok(output)
}

/// Runs a future that starts processes on a runtime of its own, in a process that does nothing else: no descendant of
/// the process is left when the future is done.
///
/// # Errors
/// When a runtime cannot be started.
pub fn block_on_and_end_processes<T>(future: impl Future<Output = T>) -> Result<T, JudgeError> {
    client::adopt_orphans();
    let output = block_on(future);
    client::end_every_process();
    output
}

/// Passes the events of a run to the observer.
struct ObserverSink(Option<Observer>);

impl Sink for ObserverSink {
    fn on(&mut self, event: &Event) -> std::io::Result<()> {
        if let Some(observer) = &self.0 {
            (observer.lock().unwrap_or_else(PoisonError::into_inner))(event);
        }
        Ok(())
    }
}
