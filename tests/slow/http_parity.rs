//! The same server judged over stdio and over HTTP: the findings are the same, except those of cases that run over one
//! transport only.

use std::collections::BTreeSet;
use std::fs;

use mcp_conformance::reference::Fault;
use mcp_conformance::report::Report;
use mcp_conformance::spec::{Revision, Transport};
use mcp_conformance::verdict::Verdict;

use super::address::unused_address;
use crate::support::reference::cases;
use crate::support::{PROGRAM, Trial, program, trial};

/// Faults of every area, each with a revision in which it shows.
const FAULTS: [(&str, Revision); 30] = [
    ("ping-not-empty", Revision::V2025_11_25),
    ("tools-capability-true", Revision::V2025_06_18),
    ("next-cursor-number", Revision::V2026_07_28),
    ("empty-cursor-restarts", Revision::V2026_07_28),
    ("input-schema-draft4", Revision::V2025_11_25),
    ("header-on-object", Revision::V2026_07_28),
    ("arguments-required", Revision::V2024_11_05),
    ("enum-unchecked", Revision::V2025_06_18),
    ("audio-without-data", Revision::V2025_03_26),
    ("priority-two", Revision::V2024_11_05),
    ("log-undeclared", Revision::V2025_03_26),
    ("read-contents-object", Revision::V2025_11_25),
    ("resource-cache-scope-varies", Revision::V2026_07_28),
    ("missing-prompt-argument-served", Revision::V2025_06_18),
    ("extension-string", Revision::V2026_07_28),
    ("listen-unrequested-notification", Revision::V2026_07_28),
    ("task-id-sequential", Revision::V2025_11_25),
    ("tasks-cursor-unchecked", Revision::V2025_11_25),
    ("task-handle-for-legacy", Revision::V2026_07_28),
    ("interim-caching", Revision::V2026_07_28),
    ("progress-message-empty", Revision::V2025_06_18),
    ("elicit-form-nested", Revision::V2025_11_25),
    ("elicit-content-unchecked", Revision::V2025_06_18),
    ("roots-unavailable-hangs", Revision::V2025_03_26),
    ("mrtr-state-unchecked", Revision::V2026_07_28),
    ("retired-code", Revision::V2026_07_28),
    ("notification-with-id", Revision::V2025_11_25),
    ("large-id-rounded", Revision::V2025_06_18),
    ("ping-still-served", Revision::V2026_07_28),
    ("unknown-tool-is-error", Revision::V2024_10_07),
];

/// The number of trials that the faults are divided among.
const TRIAL_COUNT: usize = 5;

pub(crate) fn trials() -> Vec<Trial> {
    let trial_of =
        |number| move || FAULTS.iter().skip(number).step_by(TRIAL_COUNT).try_for_each(is_found_over_both_transports);
    (0..TRIAL_COUNT).map(|number| trial(format!("parity/{}-of-{TRIAL_COUNT}", number + 1), trial_of(number))).collect()
}

/// Findings, each as its case, requirement, verdict and message.
type Findings = BTreeSet<(String, String, &'static str, String)>;

fn is_found_over_both_transports((fault, revision): &(&str, Revision)) -> Result<(), String> {
    if fault.parse::<Fault>().is_err() {
        return Err(format!("no fault has the name `{fault}`"));
    }
    let over_stdio = findings_of(&["--".to_owned(), PROGRAM.to_owned(), "serve".to_owned()], fault, *revision)?;
    let address = unused_address().to_string();
    let url = format!("http://{address}/mcp");
    let server = ["--url", &url, "--", PROGRAM, "serve", "--http", &address].map(str::to_owned);
    let over_http = findings_of(&server, fault, *revision)?;
    if over_stdio.is_empty() {
        return Err(format!("{fault} is not found in {revision}"));
    }
    if over_stdio == over_http {
        return Ok(());
    }
    let only = |one: &Findings, other: &Findings| {
        let lines: Vec<String> = one.difference(other).map(|finding| format!("{finding:?}\n")).collect();
        lines.concat()
    };
    Err(format!(
        "{fault} in {revision}\nonly over stdio:\n{}only over HTTP:\n{}",
        only(&over_stdio, &over_http),
        only(&over_http, &over_stdio)
    ))
}

/// The findings for the built-in server with a fault, of the cases that run over both transports.
fn findings_of(server: &[String], fault: &str, revision: Revision) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut arguments = vec!["--quiet", "--revision", revision.as_str(), "--timeout", "4s", "--fuzz", "off"];
    arguments.extend(["--report", "json=r.json"]);
    arguments.extend(server.iter().map(String::as_str));
    arguments.extend(["--fault", fault]);
    let output = program(folder.path(), &arguments)?;
    let text = fs::read_to_string(folder.path().join("r.json")).map_err(|error| format!("{error}: {}", output.text))?;
    let report: Report = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if let Some(problem) = report.summary.as_ref().and_then(|summary| summary.problem.as_ref()) {
        return Err(format!("{fault} in {revision}: {}: {}", problem.message, output.text));
    }
    let runs_over_both = |case: &str| {
        let both = [Transport::Stdio, Transport::Http];
        cases().iter().any(|known| known.id == case && both.iter().all(|transport| known.runs_over(*transport)))
    };
    Ok(report
        .results()
        .filter(|result| runs_over_both(&result.case) && !matches!(result.verdict, Verdict::Pass | Verdict::Skip))
        .flat_map(|result| {
            let row = |requirement: &str, message: &str| {
                (result.case.clone(), requirement.to_owned(), result.verdict.as_str(), message.to_owned())
            };
            let findings = result.findings.iter().map(move |finding| row(&finding.requirement, &finding.message));
            findings.chain(result.findings.is_empty().then(|| row("", result.reason.as_deref().unwrap_or_default())))
        })
        .collect())
}
