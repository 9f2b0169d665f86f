//! The report: everything that a run found, complete enough that every format is rendered from it.
//!
//! A [`Sink`] folds the events of a run into a [`Report`]; nothing else makes one. The JSON form is
//! versioned by [`FORMAT`] and described by `reports/schema.json`.

use std::io;

use serde::{Deserialize, Serialize};

use super::requirements::Requirements;
use super::{BaselineComparison, Conclusion, Renderer, Text};
use crate::case::Shard;
use crate::event::{CaseResult, Event, RunSummary, Sink, TargetSummary};

/// The version of the JSON report's format.
pub const FORMAT: u32 = 2;

/// What made the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Tool {
    /// `mcp-conformance`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The settings that decide what was judged and how.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// The revisions that were asked for, as they were written; empty for the default.
    pub revisions: Vec<String>,
    /// The patterns that selected cases.
    pub select: Vec<String>,
    /// The patterns that left cases out.
    pub skip: Vec<String>,
    /// Which findings fail the run.
    pub fail_on: FailOn,
    /// Which tools may be called: `read-only`, `harmless` (the default) or `destructive`.
    pub calls: String,
    /// The file of hints that was followed, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<String>,
    /// The seed of everything random.
    pub seed: u64,
    /// Milliseconds that a request may take.
    pub timeout_ms: u64,
    /// How often a failing case is tried again on a fresh process.
    pub retries: usize,
    /// The part of the cases that was run, where they were split over several machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
}

/// Which findings fail a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailOn {
    /// Those that break a rule which binds.
    #[default]
    Must,
    /// Warnings too.
    Should,
    /// None: the run only tells.
    Never,
}

/// One revision of the server and what its cases say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Target {
    /// Everything beside the cases.
    pub summary: TargetSummary,
    /// What came of each requirement.
    pub requirements: Requirements,
    /// The cases, sorted by id.
    pub results: Vec<CaseResult>,
}

/// Everything that a run found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Report {
    /// The version of this format.
    pub format: u32,
    /// What made it.
    pub tool: Tool,
    /// When the run began, RFC 3339 in UTC.
    pub started: String,
    /// The server: its command line.
    pub server: String,
    /// The settings.
    pub options: Options,
    /// The revisions that were judged, oldest first.
    pub targets: Vec<Target>,
    /// The run as a whole; absent only in the report of a run that was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<RunSummary>,
    /// What came of holding it against a baseline, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineComparison>,
}

/// Why a text is no report that can be rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// It is no JSON, or not of the form of a report.
    #[error("failed to read it as a report of this tool: {0}; a report is written by --report json=FILE")]
    Form(#[from] serde_json::Error),
    /// It is of another version of the format.
    #[error(
        "it is of format {found}, and this version reads format {FORMAT}: render it with the version that wrote it, or run again"
    )]
    Format {
        /// The version that it says it is of.
        found: u64,
    },
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
    /// When the text is no report, or one of another version of the format.
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
    /// assert_eq!(Report::parse(&text).expect("it was written as one"), report);
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

    /// What the run comes to.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        Conclusion::of(self)
    }

    /// The report in one of the formats.
    ///
    /// # Panics
    /// When a renderer of the caller's own fails or writes what is no text; ours do neither.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::{Judge, Server, Settings};
    /// use mcp_conformance::report::{Html, Junit};
    ///
    /// let settings = Settings { select: vec!["lifecycle".to_owned()], ..Settings::default() };
    /// let report = Judge::new(Server::reference([])).settings(settings).run_blocking()?;
    /// assert!(report.render(&Junit).starts_with("<?xml"));
    /// assert!(report.render(&Html).contains("<html"));
    /// # Ok::<(), mcp_conformance::JudgeError>(())
    /// ```
    #[must_use]
    pub fn render(&self, renderer: &dyn Renderer) -> String {
        let mut bytes = Vec::new();
        renderer.render(self, &mut bytes).expect("memory takes all that is written");
        String::from_utf8(bytes).expect("every format is text")
    }

    /// The report as plain text: findings first, the verdict line last.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.render(&Text::default())
    }

    /// Every case result, revision by revision.
    pub fn results(&self) -> impl Iterator<Item = &CaseResult> {
        self.targets.iter().flat_map(|target| &target.results)
    }
}

/// Folds the events of a run into a [`Report`].
#[derive(Debug)]
pub struct Fold {
    report: Report,
    pending: Vec<CaseResult>,
}

impl Fold {
    /// Begins with an empty report.
    #[must_use]
    pub fn new(report: Report) -> Self {
        Self { report, pending: Vec::new() }
    }

    /// The report so far.
    #[must_use]
    pub fn into_report(mut self) -> Report {
        // A run that was cut off may leave cases whose revision was never told of; they count all the same.
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
                stopped_early: Some("the run was cut off".to_owned()),
                fuzz: None,
                totals,
            });
        }
        self.report.targets.sort_by_key(|target| target.summary.revision);
        self.report
    }

    /// Joins what is known of a revision with its cases.
    fn finish(&mut self, summary: &TargetSummary) {
        let (mut results, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|r| r.revision == summary.revision);
        self.pending = rest;
        results.sort_by(|a, b| a.case.cmp(&b.case));
        let requirements = Requirements::of(&results);
        self.report.targets.push(Target { summary: summary.clone(), requirements, results });
    }
}

impl Sink for Fold {
    fn on(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::RunStarted { server } => self.report.server.clone_from(server),
            Event::Probed { .. } | Event::Wire { .. } | Event::FuzzingStarted { .. } => {}
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
            // Cases finish in whatever order; the report has its own.
            events.extend(target.results.iter().rev().cloned().map(|result| Event::CaseFinished(Box::new(result))));
        }
        // So do revisions.
        for target in report.targets.iter().rev() {
            events.push(Event::TargetFinished(Box::new(target.summary.clone())));
        }
        events.extend(report.summary.clone().map(|summary| Event::RunFinished(Box::new(summary))));
        events
    }

    fn folded(events: &[Event]) -> Report {
        let empty = Report { server: String::new(), targets: Vec::new(), summary: None, baseline: None, ..example() };
        let mut fold = Fold::new(empty);
        for event in events {
            fold.on(event).expect("folding cannot fail");
        }
        fold.into_report()
    }

    #[test]
    fn the_events_of_a_run_fold_into_its_report() {
        assert_eq!(folded(&events(&example())), Report { baseline: None, ..example() });
    }

    #[test]
    fn a_run_that_is_cut_off_keeps_the_cases_that_it_finished() {
        let all = events(&example());
        let cut = folded(&all[..6]);
        assert_eq!(cut.results().count(), 5);
        assert!(cut.summary.is_none());
        assert!(cut.targets.iter().all(|target| target.summary.stopped_early.is_some()));
    }

    #[test]
    fn a_report_of_another_format_is_refused_with_what_to_do() {
        let text = |format: u32| {
            let mut value = serde_json::to_value(example()).expect("JSON");
            value["format"] = format.into();
            value.to_string()
        };
        assert_eq!(Report::parse(&text(FORMAT)).expect("a report"), example());
        let error = Report::parse(&text(FORMAT + 1)).expect_err("it is of another format").to_string();
        assert!(error.contains("it is of format 2") && error.contains("run again"), "{error}");
        for text in ["", "[]", "{}", "{\"format\": 1}"] {
            assert!(matches!(Report::parse(text), Err(ReportError::Form(_))), "{text}");
        }
    }
}
