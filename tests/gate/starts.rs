//! For what the server is started, and how often: cases share processes as long as that changes no verdict.

use std::collections::BTreeMap;
use std::fs;

use mcp_conformance::reference::{Fault, FaultSet};
use mcp_conformance::report::Report;
use mcp_conformance::spec::{Era, Revision};
use mcp_conformance::verdict::{Confirmation, Verdict};
use tempfile::TempDir;

use crate::support::reference::{RunResults, cases, judge};
use crate::support::{PROGRAM, Trial, program, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("starts/cases-that-run-once-start-nothing-in-other-revisions", cases_that_run_once_start_nothing_twice),
        trial("starts/cases-follow-one-another-on-a-process", cases_follow_one_another),
        trial("starts/what-failed-on-a-process-is-judged-on-a-fresh-one", what_failed_is_judged_on_a_fresh_process),
        trial("starts/a-passive-failure-is-repeated-once-in-each-revision", a_passive_failure_is_repeated_once),
    ]
}

fn with_handshake() -> Vec<Revision> {
    Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Handshake).collect()
}

/// How often the server was started for each purpose.
fn starts(found: &RunResults) -> BTreeMap<&str, usize> {
    let mut starts = BTreeMap::new();
    for (_, purpose) in &found.launches {
        *starts.entry(purpose.as_str()).or_default() += 1;
    }
    starts
}

/// The processes that cases share that ask for a fresh one.
fn in_turn(found: &RunResults) -> usize {
    starts(found).get("cases in turn").copied().unwrap_or_default()
}

fn cases_that_run_once_start_nothing_twice() -> Result<(), String> {
    let found = judge(FaultSet::none(), &with_handshake(), cases().to_vec());
    let starts = starts(&found);
    for case in ["stdio/exit-on-eof", "stdio/without-locale", "lifecycle/version-unknown"] {
        let passed = found.results.iter().filter(|result| result.case == case && result.verdict == Verdict::Pass);
        let (count, passed) = (starts.get(format!("case {case}").as_str()).copied(), passed.count());
        if count != Some(1) || passed < 4 {
            return Err(format!("{case}: {count:?} starts, passed in {passed} revisions"));
        }
    }
    Ok(())
}

fn cases_follow_one_another() -> Result<(), String> {
    let found = judge(FaultSet::none(), &with_handshake(), cases().to_vec());
    let (starts, processes) = (starts(&found), in_turn(&found));
    // The first one ends its process.
    for case in ["stdio/exit-on-sigterm-first", "jsonrpc/params-array", "jsonrpc/long-message", "stdio/in-pieces"] {
        if starts.contains_key(format!("case {case}").as_str()) {
            return Err(format!("{case} has a process of its own"));
        }
        if found.result(case, Revision::V2025_11_25).map(|result| result.verdict) != Some(Verdict::Pass) {
            return Err(format!("{case} does not pass"));
        }
    }
    if (1..=6).contains(&processes) { Ok(()) } else { Err(format!("{processes} processes: {starts:?}")) }
}

fn what_failed_is_judged_on_a_fresh_process() -> Result<(), String> {
    let usual = in_turn(&judge(FaultSet::none(), &with_handshake(), cases().to_vec()));
    let fault = Fault::all().iter().find(|fault| fault.name() == "running-call-exits").ok_or("no such fault")?;
    let found = judge(FaultSet::from(*fault), &with_handshake(), cases().to_vec());
    let of_case = found.result("cancellation/running", Revision::V2025_11_25).ok_or("it was not judged")?;
    if of_case.verdict != Verdict::Fail {
        return Err(format!("{:?}", of_case.verdict));
    }
    // The first process ends, the case has another one to itself, which ends as well, and the other cases go on with one more.
    let again = in_turn(&found);
    if again > usual { Ok(()) } else { Err(format!("{again} processes instead of more than {usual}")) }
}

/// The repetition begins before the other cases have finished, and shows all that they found as well.
fn a_passive_failure_is_repeated_once() -> Result<(), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let options = ["--no-config", "--quiet", "--fuzz", "off", "--report", "json=r.json", "--", PROGRAM, "serve"];
    program(folder.path(), &[&options[..], &["--fault", "image-data-url"]].concat())?.with_code(1)?;
    let text = fs::read_to_string(folder.path().join("r.json")).map_err(|error| error.to_string())?;
    let report = Report::parse(&text).map_err(|error| error.to_string())?;
    for target in &report.targets {
        let failures = target.results.iter().filter(|result| result.verdict == Verdict::Fail);
        let counts: Vec<_> = failures.flat_map(|result| &result.findings).map(|finding| finding.confirmation).collect();
        let is_confirmed = |count: &Option<Confirmation>| *count == Some(Confirmation { tried: 1, failed: 1 });
        if counts.is_empty() || !counts.iter().all(is_confirmed) {
            return Err(format!("{}: {counts:?}", target.summary.revision));
        }
    }
    // The processes of a repetition are counted, and listed nowhere.
    let listed: usize = report.targets.iter().map(|target| target.summary.launches.len()).sum();
    let summary = report.summary.as_ref().ok_or("the run has no summary")?;
    let (all, revisions) = (summary.timing.launches, report.targets.len());
    if revisions >= 4 && all == listed + revisions {
        Ok(())
    } else {
        Err(format!("{all} starts, {listed} of them listed, in {revisions} revisions"))
    }
}
