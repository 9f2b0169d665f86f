//! The report: everything that a run found, complete enough to render every format from it.
//!
//! A [`Sink`] builds a [`Report`] from the events of a run. The JSON form is versioned by [`FORMAT`] and described
//! by `reports/schema.json`.

use std::io;

use serde::{Deserialize, Serialize};

use super::BaselineComparison;
use super::requirements::Requirements;
use crate::event::{CaseResult, Event, RunSummary, Sink, TargetSummary};
use crate::shard::Shard;

/// The version of the JSON report's format.
pub const FORMAT: u32 = 2;

/// The value of `calls` where a recording is judged.
pub const NO_CALLS: &str = "none";

/// The program that wrote the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Tool {
    /// `mcp-conformance`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The settings of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// The requested revisions, as given by the user; empty for the default.
    pub revisions: Vec<String>,
    /// The patterns that selected cases.
    pub select: Vec<String>,
    /// The patterns that excluded cases.
    pub skip: Vec<String>,
    /// Which findings fail the run.
    pub fail_on: FailOn,
    /// Which tools may be called: `read-only`, `non-destructive` (the default) or `destructive`; `none` where a recording
    /// is judged.
    pub calls: String,
    /// The hints file, if one was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<String>,
    /// The seed of all random choices.
    pub seed: u64,
    /// The request timeout, in milliseconds.
    pub timeout_ms: u64,
    /// How often a failing case is retried on a fresh process.
    pub retries: usize,
    /// The shard of the cases that was run, if they were split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
}

/// Which findings fail a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailOn {
    /// Failures only.
    #[default]
    Must,
    /// Failures and warnings.
    Should,
    /// Failures, and tools that no generated call could satisfy.
    Untested,
    /// None: the run only reports.
    Never,
}

/// The results in one revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Target {
    /// Everything except the case results.
    pub summary: TargetSummary,
    /// The status of each requirement.
    pub requirements: Requirements,
    /// The case results, sorted by case id.
    pub results: Vec<CaseResult>,
}

/// Everything that a run found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Report {
    /// The version of this format.
    pub format: u32,
    /// The program that wrote it.
    pub tool: Tool,
    /// When the run began, RFC 3339 in UTC.
    pub started: String,
    /// The server: its command line.
    pub server: String,
    /// The settings of the run.
    pub options: Options,
    /// The revisions that were judged, oldest first.
    pub targets: Vec<Target>,
    /// The run as a whole; absent only if the run was aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<RunSummary>,
    /// The comparison with a baseline, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineComparison>,
}

/// Why a text cannot be read as a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The text is not JSON, or not a report.
    #[error("it is not a valid report: {0}; --report json=FILE writes one")]
    Form(#[from] serde_json::Error),
    /// The report has another format version.
    #[error(
        "the report has format {found}, but this version reads format {FORMAT}: use the version that wrote it, or run again"
    )]
    Format {
        /// The format version of the report.
        found: u64,
    },
}

impl Options {
    /// Whether a recording is judged instead of a server.
    pub(super) fn is_of_recording(&self) -> bool {
        self.calls == NO_CALLS
    }
}

impl Report {
    /// An empty report, to be filled by the events of a run.
    #[must_use]
    pub fn new(started: String, options: Options) -> Self {
        Self {
            format: FORMAT,
            tool: Tool { name: env!("CARGO_PKG_NAME").to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            started,
            server: String::new(),
            options,
            targets: Vec::new(),
            summary: None,
            baseline: None,
        }
    }

    /// Reads a report as it is written by [`Json`](super::Json).
    ///
    /// # Errors
    /// When the text is not a report, or has another format version.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::report::Json;
    /// use mcp_conformance::{Judge, Report, Server, Settings};
    ///
    /// let settings = Settings { select: vec!["lifecycle".to_owned()], ..Settings::default() };
    /// let report = Judge::new(Server::reference([])).settings(settings).run_blocking()?;
    /// let text = report.render(&Json);
    /// assert_eq!(Report::parse(&text).expect("a report"), report);
    /// # Ok::<(), mcp_conformance::JudgeError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, ReportError> {
        #[derive(Deserialize)]
        struct Head {
            format: u64,
        }
        let Head { format } = serde_json::from_str(text)?;
        if format != u64::from(FORMAT) {
            return Err(ReportError::Format { found: format });
        }
        Ok(serde_json::from_str(text)?)
    }

    /// All case results, revision by revision.
    pub fn results(&self) -> impl Iterator<Item = &CaseResult> {
        self.targets.iter().flat_map(|target| &target.results)
    }
}

/// Builds a [`Report`] from the events of a run.
#[derive(Debug)]
pub struct ReportBuilder {
    report: Report,
    pending: Vec<CaseResult>,
}

impl ReportBuilder {
    /// Starts with an empty report.
    #[must_use]
    pub fn new(report: Report) -> Self {
        Self { report, pending: Vec::new() }
    }

    /// The report so far.
    #[must_use]
    pub fn into_report(mut self) -> Report {
        // An aborted run may leave cases of a revision that never finished; they count as well.
        while let Some(revision) = self.pending.first().map(|result| result.revision) {
            let totals = self.pending.iter().filter(|r| r.revision == revision).map(|r| r.verdict).collect();
            self.finish(&TargetSummary {
                revision,
                server_info: None,
                capabilities: None,
                tools: Vec::new(),
                hints: Vec::new(),
                launches: Vec::new(),
                stderr: String::new(),
                stopped_early: Some("the run was aborted".to_owned()),
                notes: Vec::new(),
                fuzz: None,
                totals,
            });
        }
        self.report.targets.sort_by_key(|target| target.summary.revision);
        self.report
    }

    /// Combines the summary of a revision with its cases.
    fn finish(&mut self, summary: &TargetSummary) {
        let (mut results, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|r| r.revision == summary.revision);
        self.pending = rest;
        results.sort_by(|a, b| a.case.cmp(&b.case));
        let requirements = Requirements::of(&results);
        self.report.targets.push(Target { summary: summary.clone(), requirements, results });
    }
}

impl Sink for ReportBuilder {
    fn on(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::RunStarted { server } => self.report.server.clone_from(server),
            Event::Probed { .. } | Event::Wire { .. } | Event::TranscriptLine { .. } | Event::FuzzingStarted { .. } => {
            }
            Event::CaseFinished(result) => self.pending.push(result.as_ref().clone()),
            Event::TargetFinished(summary) => self.finish(summary),
            Event::RunFinished(summary) => self.report.summary = Some(summary.as_ref().clone()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    fn events(report: &Report) -> Vec<Event> {
        let mut events = vec![Event::RunStarted { server: report.server.clone() }];
        for target in &report.targets {
            // Cases finish in any order; the report sorts them.
            events.extend(target.results.iter().rev().cloned().map(|result| Event::CaseFinished(Box::new(result))));
        }
        // Revisions finish in any order, too.
        for target in report.targets.iter().rev() {
            events.push(Event::TargetFinished(Box::new(target.summary.clone())));
        }
        events.extend(report.summary.clone().map(|summary| Event::RunFinished(Box::new(summary))));
        events
    }

    fn folded(events: &[Event]) -> Report {
        let empty = Report { server: String::new(), targets: Vec::new(), summary: None, baseline: None, ..example() };
        let mut fold = ReportBuilder::new(empty);
        for event in events {
            fold.on(event).expect("folding cannot fail");
        }
        fold.into_report()
    }

    #[test]
    fn the_events_of_a_run_build_its_report() {
        assert_eq!(folded(&events(&example())), Report { baseline: None, ..example() });
    }

    #[test]
    fn an_aborted_run_keeps_its_finished_cases() {
        let all = events(&example());
        let aborted = folded(&all[..6]);
        assert_eq!(aborted.results().count(), 5);
        assert!(aborted.summary.is_none());
        assert!(aborted.targets.iter().all(|target| target.summary.stopped_early.is_some()));
    }

    #[test]
    fn a_report_of_another_format_is_rejected_with_advice() {
        let text = |format: u32| {
            let mut value = serde_json::to_value(example()).expect("JSON");
            value["format"] = format.into();
            value.to_string()
        };
        assert_eq!(Report::parse(&text(FORMAT)).expect("a report"), example());
        let error = Report::parse(&text(FORMAT + 1)).expect_err("it has another format").to_string();
        assert!(error.contains("the report has format 3") && error.contains("run again"), "{error}");
        for text in ["", "[]", "{}", "{\"format\": 2}"] {
            assert!(matches!(Report::parse(text), Err(ReportError::Form(_))), "{text}");
        }
    }
}
