//! A run that is ready: the one way from a server and settings to a report.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::error::JudgeError;
use super::plan::{load_cases, plan_for, report_options, select_cases};
use super::reporter::Reporter;
use super::server::Server;
use super::settings::Settings;
use crate::case::{Case, Regression, SelectedCases};
use crate::event::{Event, Sink};
use crate::plan::Plan;
use crate::report::{Accept, Options, Report, sdk};
use crate::run;

/// A run whose server and settings can be used. Nothing has been started.
///
/// The baseline of the settings is not read: whoever starts the run compares the report with it.
#[derive(Debug)]
#[must_use = "nothing is judged until it is run"]
pub struct PreparedRun {
    plan: Plan,
    options: Options,
    accept: Option<Accept>,
}

impl PreparedRun {
    /// Prepares a run of the cases that the settings select.
    ///
    /// # Errors
    /// When a setting cannot be used.
    pub fn new(server: &Server, settings: &Settings) -> Result<Self, JudgeError> {
        let known = load_cases(settings.cases.as_deref())?;
        let selected = select_cases(settings, &known)?;
        Self::of_cases(server, settings, &known, selected)
    }

    /// Prepares a run of some of the known cases.
    pub(super) fn of_cases(
        server: &Server,
        settings: &Settings,
        known: &[Case],
        selected: SelectedCases,
    ) -> Result<Self, JudgeError> {
        let plan = plan_for(server, settings, known, selected)?;
        let options = report_options(settings, plan.calls);
        Ok(Self { plan, options, accept: settings.accept })
    }

    /// Notes in the report that only the cases with these ids are judged.
    pub(super) fn judging_only(mut self, ids: Vec<String>) -> Self {
        self.options.select.extend(ids);
        self
    }

    /// Sends every message to the listener, if so.
    pub fn showing_wire(mut self, show_wire: bool) -> Self {
        self.plan.show_wire = show_wire;
        self
    }

    /// Sends the lines of the transcript to the listener, if so.
    pub fn saving_transcript(mut self, save_transcript: bool) -> Self {
        self.plan.save_transcript = save_transcript;
        self
    }

    /// Replays a failing call that was saved to a file, and fuzzes nothing else.
    pub fn replaying(mut self, file: PathBuf, regression: Regression) -> Self {
        if let Some(fuzz) = &mut self.plan.fuzz {
            fuzz.replay = Some((file, regression));
        }
        self
    }

    /// The cases that are run.
    #[must_use]
    pub fn cases(&self) -> &[Arc<Case>] {
        &self.plan.cases
    }

    /// Runs until the end, or until it is stopped. Each event goes to the listener too, whose first failure is returned
    /// with the report. `baseline` compares the report with the known findings, before those that the settings accept
    /// are.
    ///
    /// # Panics
    /// Never: the report is taken once.
    pub async fn run(
        self,
        listener: Arc<Mutex<dyn Sink>>,
        stop: watch::Receiver<bool>,
        baseline: impl FnOnce(&mut Report),
    ) -> (Report, io::Result<()>) {
        let Self { plan, options, accept } = self;
        let reporter = Arc::new(Mutex::new(RunReporter(Some(Reporter::new(options, listener)))));
        let sink: Arc<Mutex<dyn Sink>> = reporter.clone();
        let installed = run::installed_packages(&plan.launcher, &sdk::known_packages());
        // The summary is also in the report, as the last event.
        let handled = run::run(plan, sink, stop).await.map(drop);
        let reporter = reporter.lock().unwrap_or_else(PoisonError::into_inner).0.take();
        let reporter = reporter.expect("the report is taken once");
        (reporter.finish(&installed, baseline, accept), handled)
    }
}

/// The reporter of a run, until the report is taken: tasks that the run left behind may still hold the sink.
struct RunReporter(Option<Reporter>);

impl Sink for RunReporter {
    fn on(&mut self, event: &Event) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), |reporter| reporter.on(event))
    }
}
