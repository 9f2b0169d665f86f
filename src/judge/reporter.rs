//! Makes the report of a run from its events, and applies to it what decides which findings count.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::baseline::Baseline;
use crate::event::{Event, InstalledPackage, Sink};
use crate::report::{Accept, Options, Report, ReportBuilder, baseline_comparison, sdk};

/// Folds the events of a run into a report, after it has passed each of them on.
pub struct Reporter {
    fold: ReportBuilder,
    listener: Arc<Mutex<dyn Sink>>,
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter").finish_non_exhaustive()
    }
}

impl Reporter {
    /// Begins the report of a run that starts now. Each event is passed on to the listener.
    #[must_use]
    pub fn new(options: Options, listener: Arc<Mutex<dyn Sink>>) -> Self {
        let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        Self { fold: ReportBuilder::new(Report::new(started, options)), listener }
    }

    /// The report of the events so far: findings of SDKs are attributed to the installed packages, and the known findings
    /// accepted, as [`apply_criteria`] does it.
    #[must_use]
    pub fn finish(
        self,
        installed: &[InstalledPackage],
        baseline: impl FnOnce(&mut Report),
        accept: Option<Accept>,
    ) -> Report {
        let mut report = self.fold.into_report();
        sdk::attribute(&mut report, installed);
        apply_criteria(&mut report, baseline, accept);
        report
    }
}

impl Sink for Reporter {
    /// An event that the listener fails to handle is in the report all the same.
    fn on(&mut self, event: &Event) -> io::Result<()> {
        let handled = self.listener.lock().unwrap_or_else(PoisonError::into_inner).on(event);
        self.fold.on(event)?;
        handled
    }
}

/// Compares a report with a baseline, in the way of the caller, and then accepts the other findings that do not count.
pub fn apply_criteria(report: &mut Report, baseline: impl FnOnce(&mut Report), accept: Option<Accept>) {
    baseline(report);
    if let Some(accept) = accept {
        accept.apply(report);
    }
}

/// Accepts the findings of a report that a baseline file lists. `is_case` says whether there is a case of an id.
pub fn compare_with_baseline(report: &mut Report, baseline: &Baseline, file: &str, is_case: impl Fn(&str) -> bool) {
    // The findings of fuzzing have ids for which there is no case file.
    baseline_comparison::apply_baseline(report, baseline, file, |id| id.starts_with("fuzz/") || is_case(id));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::BaselineEntry;
    use crate::report::example;

    /// Counts the events, and fails at each of them.
    struct FailingSink(usize);

    impl Sink for FailingSink {
        fn on(&mut self, _: &Event) -> io::Result<()> {
            self.0 += 1;
            Err(io::Error::other("the pipe is closed"))
        }
    }

    /// The events of a run with the results of the first target of the example.
    fn events() -> Vec<Event> {
        let target = example().targets.swap_remove(0);
        let results = target.results.into_iter().map(|result| Event::CaseFinished(Box::new(result)));
        results.chain([Event::TargetFinished(Box::new(target.summary))]).collect()
    }

    #[test]
    fn a_report_has_each_event_also_if_the_listener_fails() {
        let listener = Arc::new(Mutex::new(FailingSink(0)));
        let mut reporter = Reporter::new(example().options, listener.clone());
        let events = events();
        for event in &events {
            assert!(reporter.on(event).is_err());
        }
        let report = reporter.finish(&[], |_| {}, None);
        assert_eq!(report.results().count() + 1, events.len());
        assert_eq!(listener.lock().expect("nothing panicked").0, events.len());
    }

    #[test]
    fn the_baseline_is_compared_before_findings_of_the_sdk_are_accepted() {
        let mut report = example();
        let findings = |report: &mut Report| {
            let results = report.targets.iter_mut().flat_map(|target| &mut target.results);
            results.flat_map(|result| std::mem::take(&mut result.findings)).collect::<Vec<_>>()
        };
        for finding in
            report.targets.iter_mut().flat_map(|target| &mut target.results).flat_map(|one| &mut one.findings)
        {
            (finding.sdk, finding.accepted) = (Some("an SDK".to_owned()), None);
        }
        let mut compared = Vec::new();
        apply_criteria(&mut report, |report| compared = findings(&mut report.clone()), Some(Accept::Sdk));
        let accepted = findings(&mut report);
        assert!(!compared.is_empty() && compared.iter().all(|finding| finding.accepted.is_none()));
        assert!(accepted.len() == compared.len() && accepted.iter().all(|finding| finding.accepted.is_some()));
    }

    #[test]
    fn an_entry_of_fuzzing_needs_no_case_file() {
        let mut report = example();
        report.summary.as_mut().expect("a summary").problem = None;
        let entry = |case: &str| BaselineEntry {
            case: case.to_owned(),
            requirement: "ping-response".to_owned(),
            tool: None,
            revisions: None,
            verdict: None,
            reason: "known".to_owned(),
            expires: None,
            flaky: false,
        };
        let mut baseline = Baseline::default();
        baseline.entries.extend(["fuzz/memory", "ping/answered", "ping/removed"].map(entry));
        compare_with_baseline(&mut report, &baseline, "baseline.jsonc", |id| id == "ping/answered");
        let stale = report.baseline.expect("it was compared").stale;
        assert_eq!(stale.iter().map(|stale| stale.entry.case.as_str()).collect::<Vec<_>>(), ["ping/removed"]);
    }
}
