//! `demo`: judges the reference server with three faults, to show what a run looks like, and checks that the run finds
//! exactly these.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use mcp_conformance::event::CaseResult;
use mcp_conformance::internals::judge::PreparedRun;
use mcp_conformance::report::{Conclusion, Report};
use mcp_conformance::verdict::Verdict;
use mcp_conformance::{Server, Settings};

use super::args::DemoArgs;
use super::error::CliError;
use super::output::Output;
use super::run::run_to_end;

/// The faults that are switched on: one in the response to a call, one in its content, one in the framing.
const FAULTS: [&str; 3] = ["unknown-tool-succeeds", "image-data-url", "banner-on-stdout"];

/// Judges the reference server and reports whether exactly its faults were found.
pub(super) fn demo(args: &DemoArgs) -> Result<Conclusion, CliError> {
    let output = Output::open(&args.output)?;
    let program = std::env::current_exe().map_err(CliError::OwnProgram)?;
    let server = Server::command(program).arg("serve").args(FAULTS.iter().flat_map(|fault| ["--fault", fault]));
    let settings = Settings { fuzz: None, ..Settings::default() };
    let run = PreparedRun::new(&server.into(), &settings)?.showing_wire(output.shows_wire());
    let fault_of: BTreeMap<String, String> =
        run.cases().iter().filter_map(|case| Some((case.id.clone(), case.fault.clone()?))).collect();
    let (report, unwritten) = run_to_end(run, &output, None, |_| {})?;
    let outcome = DemoOutcome::of(&report, &fault_of);
    let stream = output.stream_writer();
    output.write(&report, unwritten)?;
    print_outcome(&outcome, stream).map_err(|source| CliError::Write {
        what: "the outcome of the demo".to_owned(),
        source,
        conclusion: outcome.conclusion(),
    })?;
    Ok(outcome.conclusion())
}

/// The findings of the run, compared with the expected ones.
#[derive(Debug, PartialEq, Eq)]
struct DemoOutcome {
    /// The faults that no case found.
    missed: Vec<&'static str>,
    /// The cases with findings although their fault is off, and those with an error, with their verdicts.
    unexpected: BTreeSet<(String, &'static str)>,
    /// Whether the run ended without a problem.
    is_complete: bool,
}

impl DemoOutcome {
    fn of(report: &Report, fault_of: &BTreeMap<String, String>) -> Self {
        let switched_on = |result: &CaseResult| {
            fault_of.get(&result.case).and_then(|fault| FAULTS.into_iter().find(|name| name == fault))
        };
        let has_finding = |result: &&CaseResult| matches!(result.verdict, Verdict::Fail | Verdict::Warn);
        let found: BTreeSet<&str> = report.results().filter(has_finding).filter_map(switched_on).collect();
        // Several cases may find the same violation. A violation of another requirement is unexpected.
        let violated: BTreeSet<&str> = report
            .results()
            .filter(|result| switched_on(result).is_some())
            .flat_map(|result| result.findings.iter().map(|finding| finding.requirement.as_str()))
            .collect();
        let is_same_violation = |result: &CaseResult| {
            !result.findings.is_empty()
                && result.findings.iter().all(|finding| violated.contains(finding.requirement.as_str()))
        };
        let unexpected = report
            .results()
            .filter(|result| match result.verdict {
                Verdict::Fail | Verdict::Warn => switched_on(result).is_none() && !is_same_violation(result),
                Verdict::Error => true,
                Verdict::Pass | Verdict::Skip => false,
            })
            .map(|result| (result.case.clone(), result.verdict.as_str()))
            .collect();
        Self {
            missed: FAULTS.into_iter().filter(|fault| !found.contains(fault)).collect(),
            unexpected,
            is_complete: report.summary.as_ref().is_some_and(|summary| summary.problem.is_none()),
        }
    }

    fn conclusion(&self) -> Conclusion {
        if self.is_complete && self.missed.is_empty() && self.unexpected.is_empty() {
            Conclusion::Passed
        } else {
            Conclusion::Failed
        }
    }
}

fn print_outcome(outcome: &DemoOutcome, mut out: impl Write) -> io::Result<()> {
    let faults = FAULTS.join(", ");
    match outcome.conclusion() {
        Conclusion::Passed => writeln!(
            out,
            "DEMO: the run found exactly the three faults of the reference server ({faults}), so the demo succeeded (exit code 0)"
        )?,
        Conclusion::Failed | Conclusion::Unjudged | Conclusion::NothingJudged => {
            writeln!(out, "DEMO: the run did not find exactly the three faults of the reference server ({faults}):")?;
            for fault in &outcome.missed {
                writeln!(out, "  missed: {fault}")?;
            }
            for (case, verdict) in &outcome.unexpected {
                writeln!(out, "  unexpected: {case} ({verdict})")?;
            }
            if !outcome.is_complete {
                writeln!(out, "  the run was incomplete")?;
            }
            writeln!(out, "The demo failed (exit code 1).")?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use mcp_conformance::report::example;

    use super::*;

    fn report(verdicts: &[(&str, Verdict)]) -> Report {
        let mut report = example();
        let template = report.targets[0].results[0].clone();
        let finding = report.targets[0].results[1].findings[0].clone();
        report.targets.truncate(1);
        report.targets[0].results = verdicts
            .iter()
            .map(|(case, verdict)| {
                let mut result = template.clone();
                (*case).clone_into(&mut result.case);
                result.verdict = *verdict;
                if matches!(verdict, Verdict::Fail | Verdict::Warn) {
                    // Each violates a requirement of its own, except the last, which finds the violation of `a`.
                    let mut finding = finding.clone();
                    finding.requirement = if *case == "same-as-a" { "a".to_owned() } else { (*case).to_owned() };
                    result.findings = vec![finding];
                }
                result
            })
            .collect();
        report.summary.as_mut().expect("a summary").problem = None;
        report
    }

    fn faults() -> BTreeMap<String, String> {
        let cases = ["a", "b", "c", "d"].map(str::to_owned);
        let faults = FAULTS.into_iter().chain(["other-fault"]).map(str::to_owned);
        cases.into_iter().zip(faults).collect()
    }

    #[test]
    fn exactly_the_three_faults_have_to_be_found() {
        use Verdict::{Error, Fail, Pass, Skip, Warn};
        let found = |rows: &[(&str, Verdict)]| DemoOutcome::of(&report(rows), &faults());
        let all = [("a", Fail), ("b", Warn), ("c", Fail), ("d", Pass), ("e", Skip)];
        assert_eq!(found(&all).conclusion(), Conclusion::Passed);
        let found_twice = [("a", Fail), ("b", Warn), ("c", Fail), ("same-as-a", Warn)];
        assert_eq!(found(&found_twice).conclusion(), Conclusion::Passed);
        let missed = found(&[("a", Fail), ("b", Pass), ("c", Fail)]);
        assert_eq!((missed.missed.as_slice(), missed.conclusion()), ([FAULTS[1]].as_slice(), Conclusion::Failed));
        for verdict in [Warn, Error] {
            let more = found(&[("a", Fail), ("b", Fail), ("c", Fail), ("d", verdict)]);
            assert_eq!(more.conclusion(), Conclusion::Failed);
        }
        assert_eq!(found(&[("a", Fail), ("b", Fail), ("c", Fail), ("own", Fail)]).unexpected.len(), 1);
    }

    #[test]
    fn a_run_with_a_problem_fails_the_demo() {
        let mut report = report(&[("a", Verdict::Fail), ("b", Verdict::Fail), ("c", Verdict::Fail)]);
        report.summary = None;
        assert_eq!(DemoOutcome::of(&report, &faults()).conclusion(), Conclusion::Failed);
    }

    #[test]
    fn the_faults_are_faults_of_the_built_in_server() {
        for fault in FAULTS {
            assert!(fault.parse::<mcp_conformance::reference::Fault>().is_ok(), "{fault}");
        }
    }
}
