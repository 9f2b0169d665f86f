//! Clients that use the same request ids on a published SDK whose transport mixes up their responses (CVE-2026-25536).

use mcp_conformance::report::Report;
use mcp_conformance::verdict::Verdict;

use super::address::unused_address;
use super::installed::{servers, servers_are_required};
use crate::support::{Trial, program, trial};

/// The case that finds it.
const CASE: &str = "http/same-ids-in-calls";

/// The server, and the SDK that it needs.
const SERVER: &str = "shared-responses.mjs";
const PACKAGE: &str = "node_modules/sdk-shared-responses";

pub(crate) fn trials() -> Vec<Trial> {
    let is_ignored = !servers().join(PACKAGE).exists() && !servers_are_required();
    let both = [("shared", Verdict::Fail), ("own", Verdict::Pass)];
    both.into_iter()
        .map(|(kind, verdict)| {
            let judged = trial(format!("real/shared-responses/{kind}"), move || results_in(kind, verdict));
            judged.with_ignored_flag(is_ignored)
        })
        .collect()
}

/// Judges the server with a transport of this kind; fails unless the case has this verdict.
///
/// In one revision, as sessions of several are clients whose responses are mixed up as well.
fn results_in(kind: &str, verdict: Verdict) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let server = servers().join(SERVER).display().to_string();
    let port = unused_address().port().to_string();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let options = ["--quiet", "--timeout", "10s", "--startup-timeout", "120s", "--fuzz", "off"];
    let chosen = ["--revision", "2025-11-25", "--select", CASE];
    let start = ["--report", "json=r.json", "--url", &url, "--", "node", &server, &port, kind];
    let output = program(folder.path(), &[&options[..], &chosen, &start].concat())?;
    let output = output.with_code(i32::from(verdict == Verdict::Fail))?;
    let text = std::fs::read_to_string(folder.path().join("r.json")).map_err(|error| error.to_string())?;
    let report = Report::parse(&text).map_err(|error| error.to_string())?;
    match report.results().find(|result| result.case == CASE) {
        Some(result) if result.verdict == verdict => Ok(()),
        result => Err(format!("{kind}: {result:?}\n{}", output.text)),
    }
}
