//! A protected server, end to end: with its token, with others, and without any.

use std::net::TcpListener;

use libtest_mimic::Trial;
use mcp_conformance::verdict::Verdict;

use crate::hostile::Run;
use crate::{PROGRAM, trial};

const TOKEN: &str = "a-t0ken-of-the-trial";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("auth/judged-with-the-token", || {
            let run = judged(&["--bearer-env", "GIVEN"], TOKEN)?;
            run.expect(0, &["PASS"])
        }),
        trial("auth/told-and-looked-at-without-a-token", || {
            let run = judged(&[], TOKEN)?;
            run.expect(2, &["NOT JUDGED", "the server requires a token", "HTTP status 401", "--bearer-env"])?;
            looked_at(&run)
        }),
        trial("auth/told-and-looked-at-with-another-token", || {
            let run = judged(&["--bearer-env", "GIVEN"], "another-t0ken")?;
            run.expect(2, &["the server requires a token", "invalid_token"])?;
            looked_at(&run)
        }),
        trial("auth/a-breach-is-found-from-outside", || {
            let run = of_server(&[], TOKEN, &["--fault", "auth-no-scope"])?;
            run.expect(2, &["auth-challenge-scope", "a challenge that names no scope"])?;
            let run = of_server(&[], TOKEN, &["--fault", "auth-any-token"])?;
            run.expect(1, &["auth-invalid-token-401"])
        }),
        trial("auth/a-server-for-everybody-is-not-failed", || {
            let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
            let path = folder.path().join("report.json");
            let address = free()?;
            let run = Run::of(
                &["--select", "auth/*", "--report", &format!("json={}", path.display()), "--url", &url(&address)],
                &[PROGRAM, "serve", "--http", &address],
            )?;
            let text = std::fs::read_to_string(path).map_err(|error| run.complain(&error.to_string()))?;
            let report: mcp_conformance::report::Report =
                serde_json::from_str(&text).map_err(|error| error.to_string())?;
            let judged: Vec<_> = report.results().filter(|result| result.verdict != Verdict::Skip).collect();
            if report.results().count() > 20 && judged.is_empty() {
                return Ok(());
            }
            Err(run.complain(&format!("{judged:?}")))
        }),
    ]
}

fn free() -> Result<String, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.to_string()).map_err(|error| error.to_string())
}

fn url(address: &str) -> String {
    format!("http://{address}/mcp")
}

fn judged(options: &[&str], given: &str) -> Result<Run, String> {
    of_server(options, given, &[])
}

/// Judges the protected server, which takes `TOKEN`.
fn of_server(options: &[&str], given: &str, more: &[&str]) -> Result<Run, String> {
    let address = free()?;
    let url = url(&address);
    let server = [&[PROGRAM, "serve", "--http", &address, "--protected", "TAKEN"], more].concat();
    let variables = [("TAKEN", TOKEN), ("GIVEN", given)];
    Run::with_variables(&[options, &["--url", &url]].concat(), &server, &variables)
}

/// What can be seen from outside has been judged all the same.
fn looked_at(run: &Run) -> Result<(), String> {
    if run.text.contains("cases judged, all pass") { Ok(()) } else { Err(run.complain("nothing was judged")) }
}
