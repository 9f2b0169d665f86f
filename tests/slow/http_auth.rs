//! A protected server, end to end: with its token, with another token, and without a token.

use std::time::Instant;

use mcp_conformance::verdict::Verdict;

use super::address::unused_address;
use super::hostile::Run;
use crate::support::{PROGRAM, Trial, limits, trial};

const TOKEN: &str = "a-t0ken-of-the-trial";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("auth/a-server-is-judged-with-its-token", || {
            let run = judge(&["--bearer-env", "SENT_TOKEN"], TOKEN)?;
            run.expect(0, &["PASS"])
        }),
        trial("auth/without-a-token-unauthenticated-cases-are-judged", || {
            let run = judge(&[], TOKEN)?;
            run.expect(2, &["NOT JUDGED", "the server requires a token", "HTTP status 401", "--bearer-env"])?;
            expect_judged_cases(&run)
        }),
        trial("auth/a-protected-server-is-recognized-by-any-body", || {
            for fault in ["auth-error-body", "auth-error-with-id", "auth-oauth-body", "auth-page-body"] {
                for status in [&[][..], &["--fault", "auth-forbidden"]] {
                    let began = Instant::now();
                    let run = judge_protected(&[], TOKEN, &[&["--fault", fault], status].concat())?;
                    let code = if status.is_empty() { "HTTP status 401" } else { "HTTP status 403" };
                    run.expect(2, &["the server requires a token", code, "--bearer-env", "--header", " judged, "])?;
                    if began.elapsed() > limits::here(limits::REJECTION) {
                        return Err(run.failure("the rejection was waited for"));
                    }
                }
            }
            Ok(())
        }),
        trial("auth/with-another-token-unauthenticated-cases-are-judged", || {
            let run = judge(&["--bearer-env", "SENT_TOKEN"], "another-t0ken")?;
            run.expect(2, &["the server requires a token", "invalid_token"])?;
            expect_judged_cases(&run)
        }),
        trial("auth/a-violation-is-found-without-a-token", || {
            let run = judge_protected(&[], TOKEN, &["--fault", "auth-no-scope"])?;
            run.expect(2, &["auth-challenge-scope", "The server sends a challenge that names no scope."])?;
            let run = judge_protected(&[], TOKEN, &["--fault", "auth-any-token"])?;
            run.expect(1, &["auth-invalid-token-401"])
        }),
        trial("auth/a-server-without-authorization-has-no-finding", || {
            let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
            let path = folder.path().join("report.json");
            let address = unused_address().to_string();
            let run = Run::judge(
                &["--select", "auth/*", "--report", &format!("json={}", path.display()), "--url", &url(&address)],
                &[PROGRAM, "serve", "--http", &address],
            )?;
            let text = std::fs::read_to_string(path).map_err(|error| run.failure(&error.to_string()))?;
            let report: mcp_conformance::report::Report =
                serde_json::from_str(&text).map_err(|error| error.to_string())?;
            let results: Vec<_> = report.results().filter(|result| result.verdict != Verdict::Skip).collect();
            if report.results().count() > 20 && results.is_empty() {
                return Ok(());
            }
            Err(run.failure(&format!("some cases were not skipped: {results:?}")))
        }),
    ]
}

fn url(address: &str) -> String {
    format!("http://{address}/mcp")
}

fn judge(options: &[&str], sent_token: &str) -> Result<Run, String> {
    judge_protected(options, sent_token, &[])
}

/// Judges the protected server, which accepts `TOKEN`.
fn judge_protected(options: &[&str], sent_token: &str, server_options: &[&str]) -> Result<Run, String> {
    let address = unused_address().to_string();
    let url = url(&address);
    let server = [&[PROGRAM, "serve", "--http", &address, "--protected", "ACCEPTED_TOKEN"], server_options].concat();
    let variables = [("ACCEPTED_TOKEN", TOKEN), ("SENT_TOKEN", sent_token)];
    Run::judge_with_variables(&[options, &["--url", &url]].concat(), &server, &variables)
}

/// Fails unless the cases that need no token were judged.
fn expect_judged_cases(run: &Run) -> Result<(), String> {
    if run.text.contains("cases judged, all pass") { Ok(()) } else { Err(run.failure("no case was judged")) }
}
