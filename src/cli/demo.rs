//! `demo`: what a run looks like, on the built-in server with three faults switched on; and a proof that
//! the suite finds exactly those.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use mcp_conformance::event::CaseResult;
use mcp_conformance::report::{Conclusion, Report};
use mcp_conformance::verdict::Verdict;

use super::args::DemoArgs;
use super::error::CliError;
use super::judge::{conduct, usual_plan};
use super::output::Output;

/// The faults that are switched on: one in how a call is answered, one in what it returns, one on the wire.
const FAULTS: [&str; 3] = ["unknown-tool-succeeds", "image-data-url", "banner-on-stdout"];

/// Judges the built-in server and says whether exactly its faults were found.
pub(super) fn demo(args: &DemoArgs) -> Result<Conclusion, CliError> {
    let output = Output::open(&args.output)?;
    let program = std::env::current_exe().map_err(CliError::Own)?;
    let mut command = vec![program.to_string_lossy().into_owned(), "serve".to_owned()];
    command.extend(FAULTS.iter().flat_map(|fault| ["--fault".to_owned(), (*fault).to_owned()]));
    let (plan, options) = usual_plan(command, &output)?;
    let fault_of: BTreeMap<String, String> =
        plan.cases.iter().filter_map(|case| Some((case.id.clone(), case.fault.clone()?))).collect();
    let (report, lost) = conduct(plan, options, &output)?;
    let found = Found::of(&report, &fault_of);
    let stream = output.stream_writer();
    output.write(&report, lost)?;
    tell(&found, stream).map_err(|source| CliError::Lost {
        what: "the outcome of the demo".to_owned(),
        source,
        conclusion: found.conclusion(),
    })?;
    Ok(found.conclusion())
}

/// What a run on the faulty server found, held against what it ought to find.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    /// The faults that no case found.
    missed: Vec<&'static str>,
    /// The cases that complain though their fault is off, or that could not judge, with their verdicts.
    unexpected: BTreeSet<(String, &'static str)>,
    /// Whether the run came to its end without a problem.
    whole: bool,
}

impl Found {
    fn of(report: &Report, fault_of: &BTreeMap<String, String>) -> Self {
        let switched_on = |result: &CaseResult| {
            fault_of.get(&result.case).and_then(|fault| FAULTS.into_iter().find(|name| name == fault))
        };
        let complains = |result: &&CaseResult| matches!(result.verdict, Verdict::Fail | Verdict::Warn);
        let found: BTreeSet<&str> = report.results().filter(complains).filter_map(switched_on).collect();
        // Other cases may see the same breach from their side; what breaks another requirement is
        // something else.
        let broken: BTreeSet<&str> = report
            .results()
            .filter(|result| switched_on(result).is_some())
            .flat_map(|result| result.findings.iter().map(|finding| finding.requirement.as_str()))
            .collect();
        let same_breach = |result: &CaseResult| {
            !result.findings.is_empty()
                && result.findings.iter().all(|finding| broken.contains(finding.requirement.as_str()))
        };
        let unexpected = report
            .results()
            .filter(|result| match result.verdict {
                Verdict::Fail | Verdict::Warn => switched_on(result).is_none() && !same_breach(result),
                Verdict::Error => true,
                Verdict::Pass | Verdict::Skip => false,
            })
            .map(|result| (result.case.clone(), result.verdict.as_str()))
            .collect();
        Self {
            missed: FAULTS.into_iter().filter(|fault| !found.contains(fault)).collect(),
            unexpected,
            whole: report.summary.as_ref().is_some_and(|summary| summary.problem.is_none()),
        }
    }

    fn conclusion(&self) -> Conclusion {
        if self.whole && self.missed.is_empty() && self.unexpected.is_empty() {
            Conclusion::Passed
        } else {
            Conclusion::Failed
        }
    }
}

fn tell(found: &Found, mut out: impl Write) -> io::Result<()> {
    let faults = FAULTS.join(", ");
    match found.conclusion() {
        Conclusion::Passed => writeln!(
            out,
            "DEMO: the built-in server was started with the faults {faults}; exactly these were found, so the demo itself exits with 0"
        )?,
        Conclusion::Failed | Conclusion::Unjudged | Conclusion::Nothing => {
            writeln!(
                out,
                "DEMO: the built-in server was started with the faults {faults}; the run did not find exactly these:"
            )?;
            for fault in &found.missed {
                writeln!(out, "  not found: {fault}")?;
            }
            for (case, verdict) in &found.unexpected {
                writeln!(out, "  not expected: {case} ({verdict})")?;
            }
            if !found.whole {
                writeln!(out, "  the run did not come to its end")?;
            }
            writeln!(out, "the demo exits with 1")?;
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
                    // Each breaks a requirement of its own, but for the last: it sees what `a` sees.
                    let mut finding = finding.clone();
                    finding.requirement = if *case == "other-side-of-a" { "a".to_owned() } else { (*case).to_owned() };
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
        let found = |rows: &[(&str, Verdict)]| Found::of(&report(rows), &faults());
        let all = [("a", Fail), ("b", Warn), ("c", Fail), ("d", Pass), ("e", Skip)];
        assert_eq!(found(&all).conclusion(), Conclusion::Passed);
        let seen_twice = [("a", Fail), ("b", Warn), ("c", Fail), ("other-side-of-a", Warn)];
        assert_eq!(found(&seen_twice).conclusion(), Conclusion::Passed);
        let missed = found(&[("a", Fail), ("b", Pass), ("c", Fail)]);
        assert_eq!((missed.missed.as_slice(), missed.conclusion()), ([FAULTS[1]].as_slice(), Conclusion::Failed));
        for verdict in [Warn, Error] {
            let more = found(&[("a", Fail), ("b", Fail), ("c", Fail), ("d", verdict)]);
            assert_eq!(more.conclusion(), Conclusion::Failed);
        }
        assert_eq!(found(&[("a", Fail), ("b", Fail), ("c", Fail), ("own", Fail)]).unexpected.len(), 1);
    }

    #[test]
    fn a_run_with_a_problem_proves_nothing() {
        let mut report = report(&[("a", Verdict::Fail), ("b", Verdict::Fail), ("c", Verdict::Fail)]);
        report.summary = None;
        assert_eq!(Found::of(&report, &faults()).conclusion(), Conclusion::Failed);
    }

    #[test]
    fn the_faults_are_faults_of_the_built_in_server() {
        for fault in FAULTS {
            assert!(fault.parse::<mcp_conformance::reference::Fault>().is_ok(), "{fault}");
        }
    }
}
