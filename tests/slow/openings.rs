//! Broken openings: the real program judges them, over both transports, and judges the rest of the server as well.

use std::fs;

use super::address::unused_address;
use crate::support::opening_faults::{ENDINGS, FAULTS};
use crate::support::{PROGRAM, Trial, program, trial};
use mcp_conformance::event::CaseResult;
use mcp_conformance::reference::Fault;
use mcp_conformance::report::Report;
use mcp_conformance::spec::Revision;
use mcp_conformance::verdict::Verdict;

/// Faults of the first line, which only standard output has.
const LINE_FAULTS: [(&str, &str); 2] =
    [("byte-order-mark", "stdio/byte-order-mark"), ("first-line-unterminated", "stdio/line-feed")];

/// Faults with which nothing is served in the revision.
const UNSERVED: [&str; 3] = ["oldest-initialize-unanswered", "oldest-initialize-exits", "listed-version-rejected"];

/// How many cases of the areas that are run pass in the revision of a broken opening, at least.
const MIN_PASSES: usize = 5;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("opening/stdio/a-server-that-opens-in-no-revision", || opens_in_no_revision(&over_stdio())),
        trial("opening/http/a-server-that-opens-in-no-revision", || opens_in_no_revision(&over_http())),
        trial("opening/stdio/a-server-that-ends-at-every-opening", || ends_at_every_opening(&over_stdio())),
        trial("opening/http/a-server-that-ends-at-every-opening", || ends_at_every_opening(&over_http())),
    ];
    for (fault, case, revision) in FAULTS {
        trials.push(trial(format!("opening/stdio/{fault}"), move || is_judged(fault, case, revision, &over_stdio())));
        trials.push(trial(format!("opening/http/{fault}"), move || is_judged(fault, case, revision, &over_http())));
    }
    for (fault, case, revision) in ENDINGS {
        trials.push(trial(format!("opening/stdio/{fault}"), move || is_judged(fault, case, revision, &over_stdio())));
        trials.push(trial(format!("opening/http/{fault}"), move || is_judged(fault, case, revision, &over_http())));
    }
    for (fault, case) in LINE_FAULTS {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let name = format!("opening/stdio/{fault}/{revision}");
            trials.push(trial(name, move || is_judged(fault, case, revision, &over_stdio())));
        }
    }
    trials
}

fn over_stdio() -> Vec<String> {
    ["--", PROGRAM, "serve"].map(str::to_owned).to_vec()
}

fn over_http() -> Vec<String> {
    let address = unused_address().to_string();
    let url = format!("http://{address}/mcp");
    ["--url", &url, "--", PROGRAM, "serve", "--http", &address].map(str::to_owned).to_vec()
}

/// Judges the server with a fault in every revision that it supports, and fails unless the case fails, the exit code is
/// 1, and other cases pass in the same revision.
fn is_judged(fault: &str, case: &str, revision: Revision, server: &[String]) -> Result<(), String> {
    if fault.parse::<Fault>().is_err() {
        return Err(format!("no fault has the name `{fault}`"));
    }
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut arguments = vec!["--quiet", "--timeout", "4s", "--fuzz", "off", "--report", "json=r.json"];
    for area in ["lifecycle", "stateless", "stdio", "tools/list"] {
        arguments.extend(["--select", area]);
    }
    arguments.extend(server.iter().map(String::as_str));
    arguments.extend(["--fault", fault]);
    let output = program(folder.path(), &arguments)?;
    let text = fs::read_to_string(folder.path().join("r.json")).map_err(|error| format!("{error}: {}", output.text))?;
    let report: Report = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let output = output.with_code(1)?;
    if let Some(problem) = report.summary.as_ref().and_then(|summary| summary.problem.as_ref()) {
        return Err(format!("{}: {}", problem.message, output.text));
    }
    let of_revision = || report.results().filter(|result| result.revision == revision);
    if !of_revision().any(|result| result.case == case && result.verdict == Verdict::Fail) {
        return Err(format!("{case} does not fail in {revision}: {}", output.text));
    }
    let passes = of_revision().filter(|result| result.verdict == Verdict::Pass).count();
    if passes < MIN_PASSES && !UNSERVED.contains(&fault) {
        return Err(format!("only {passes} cases pass in {revision}: {}", output.text));
    }
    Ok(())
}

/// Judges a server whose process ends at the only opening: fails unless its exit status and what it wrote to standard error
/// are the reason that it cannot be judged.
fn ends_at_every_opening(server: &[String]) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut arguments = vec!["--fuzz", "off", "--revision", "2024-11-05"];
    arguments.extend(server.iter().map(String::as_str));
    arguments.extend(["--fault", "oldest-initialize-exits"]);
    let output = program(folder.path(), &arguments)?.with_code(2)?;
    let output = output.shows("the server exited before it answered the first message (exit status: ")?;
    // Over HTTP it says where it listens.
    let writes = server.iter().any(|word| word == "--http");
    if writes { output.shows("end of stderr")?.shows("listening at ").map(drop) } else { Ok(()) }
}

/// Judges a server that answers other requests, and never `initialize`: fails unless this is a finding in each revision
/// with a handshake, and the exit code is 1.
fn opens_in_no_revision(server: &[String]) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut arguments = vec!["--quiet", "--startup-timeout", "6s", "--fuzz", "off", "--report", "json=r.json"];
    arguments.extend(server.iter().map(String::as_str));
    arguments.extend(["--fault", "initialize-unanswered", "--fault", "discover-rejected"]);
    let output = program(folder.path(), &arguments)?.with_code(1)?;
    let text = fs::read_to_string(folder.path().join("r.json")).map_err(|error| format!("{error}: {}", output.text))?;
    let report: Report = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    for revision in
        Revision::ALL.into_iter().filter(|revision| !revision.is_draft() && *revision <= Revision::LATEST_HANDSHAKE)
    {
        let is_found = |result: &&CaseResult| {
            result.case == "lifecycle/initialize-answered"
                && result.revision == revision
                && result.verdict == Verdict::Fail
        };
        if report.results().filter(is_found).count() != 1 {
            return Err(format!("no finding in {revision}: {}", output.text));
        }
    }
    Ok(())
}
