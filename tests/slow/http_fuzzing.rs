//! Fuzzing over HTTP, end to end: the same faults are found as over stdio, the crash of a server that was not started
//! by the program is reported, and a rate limit is not mistaken for a hang.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_conformance::reference::{Fault, HttpFault};
use mcp_conformance::report::Report;
use mcp_conformance::verdict::{Direction, Finding, Verdict};
use serde_json::{Value, json};

use super::address::{RunningServer, unused_address};
use super::raw::{HttpRequest, minimal_server, response, serve_response};
use crate::support::{PROGRAM, Trial, describe_error, program_command, trial};
use crate::support::{evaluation_faults as faults, evaluation_server as server};

/// Evaluation faults for different oracles, each with the revision to fuzz.
const SAMPLE: [(&str, &str); 12] = [
    ("search-tags-twice", "2025-11-25"),
    ("search-limit-text", "2026-07-28"),
    ("idle-keyword", "2025-11-25"),
    ("search-tags-object", "2026-07-28"),
    ("draft-read-text", "2025-11-25"),
    ("search-tag-empty", "2026-07-28"),
    ("search-tags-full", "2025-11-25"),
    ("search-quote-breaks-tool", "2025-11-25"),
    ("search-limit-without-sort", "2026-07-28"),
    ("search-limit-57", "2025-11-25"),
    ("search-rank-drifts", "2025-11-25"),
    ("impossible-schema", "2025-11-25"),
];

/// The number of servers that are fuzzed concurrently.
const WORKERS: usize = 3;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("fuzzing/http/the-conforming-server-has-no-finding", the_conforming_server_has_no_finding),
        trial("fuzzing/http/an-error-status-is-shown-as-one", an_error_status_is_shown_as_one),
        trial("fuzzing/http/a-sample-of-evaluation-faults-is-found", a_sample_of_evaluation_faults_is_found),
        trial("fuzzing/http/a-failing-call-is-replayed", a_failing_call_is_replayed),
        trial("fuzzing/http/a-crash-of-the-server-is-reported", a_crash_of_the_server_is_reported),
        trial("fuzzing/http/a-rate-limit-stops-fuzzing", a_rate_limit_stops_fuzzing),
        trial("hostile/http/a-permanent-rate-limit-is-an-error", a_permanent_rate_limit_is_an_error),
        trial("hostile/http/an-occasional-rate-limit-changes-no-verdict", an_occasional_rate_limit_changes_no_verdict),
        trial("hostile/http/an-ended-session-changes-no-verdict", || {
            changes_no_verdict(HttpFault::SessionExpires, "had ended the session")
        }),
        trial("hostile/http/a-case-that-ends-its-session-has-a-warning", a_case_that_ends_its_session_has_a_warning),
        trial("hostile/http/a-closed-connection-changes-no-verdict", || {
            changes_no_verdict(HttpFault::ClosesKeptAlive, "closed the connection under")
        }),
        trial("hostile/http/a-large-body-that-is-cut-off-changes-no-verdict", || {
            changes_no_verdict(HttpFault::LargeBodiesCutOff, "before it had read")
        }),
    ]
}

/// The result of a run.
struct Run {
    code: Option<i32>,
    report: Report,
    /// Standard output and standard error.
    text: String,
}

impl Run {
    fn start(folder: &Path, arguments: &[&str]) -> Result<Self, String> {
        let mut command = program_command();
        command.current_dir(folder).args(["--regressions", "none", "--report", "json=r.json"]).args(arguments);
        let output = command.stdin(Stdio::null()).output().map_err(describe_error)?;
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let json = fs::read_to_string(folder.join("r.json")).map_err(|error| format!("{error}: {text}"))?;
        let report = serde_json::from_str(&json).map_err(describe_error)?;
        Ok(Self { code: output.status.code(), report, text })
    }

    /// Fuzzes the built-in server, which the program starts.
    fn fuzz(options: &[&str], path: &str, faults: &[&str]) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(describe_error)?;
        let address = unused_address().to_string();
        let url = format!("http://{address}{path}");
        let [program, serve] = server::command()?;
        let server = ["--select", "fuzz/*", "--url", &url, "--", &program, &serve, "--http", &address];
        Self::start(folder.path(), &[options, &server, faults].concat())
    }

    /// The cases with the verdict fail, warn or error.
    fn cases_with_findings(&self) -> Vec<String> {
        let has_finding = |verdict| matches!(verdict, Verdict::Fail | Verdict::Warn | Verdict::Error);
        self.report.results().filter(|result| has_finding(result.verdict)).map(|result| result.case.clone()).collect()
    }

    fn summary(&self) -> Option<&mcp_conformance::event::FuzzSummary> {
        self.report.targets.iter().find_map(|target| target.summary.fuzz.as_ref())
    }
}

fn the_conforming_server_has_no_finding() -> Result<(), String> {
    let tools = ["--tool", "echo", "--tool", "weather", "--tool", "search", "--tool", "ask_user", "--tool", "draft*"];
    for (revision, seed, path) in
        [("2025-11-25", "1", "/mcp"), ("2026-07-28", "2", "/mcp"), ("2024-11-05", "3", "/sse")]
    {
        let run = Run::fuzz(&[&["--revision", revision, "--seed", seed], &tools[..]].concat(), path, &[])?;
        if !run.cases_with_findings().is_empty() {
            return Err(format!("{revision}, seed {seed}: {}", run.text));
        }
        if run.summary().is_none_or(|fuzz| fuzz.calls < 150) {
            return Err(format!("expected at least 150 calls in {revision}: {}", run.text));
        }
    }
    Ok(())
}

fn a_sample_of_evaluation_faults_is_found() -> Result<(), String> {
    let next = AtomicUsize::new(0);
    let missed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some((name, revision)) = SAMPLE.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = faults::find(name).and_then(|fault| {
                        let family = format!("{}*", fault.tool().split('_').next().unwrap_or_default());
                        let options = [
                            &["--revision", revision, "--seed", "1", "--fuzz-time", "10m"][..],
                            &["--tool", &family, "--tool", "echo"],
                        ];
                        let run = Run::fuzz(&options.concat(), "/mcp", &["--fault", name])?;
                        let found = run.cases_with_findings();
                        let is_found = found.iter().any(|case| fault.oracles().contains(&case.as_str()));
                        if is_found { Ok(()) } else { Err(format!("{found:?}\n{}", run.text)) }
                    });
                    if let Err(error) = outcome {
                        missed.lock().expect("no thread panics").push(format!("{name} in {revision}: {error}"));
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().expect("no thread panics");
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
}

fn a_failing_call_is_replayed() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let run = |arguments: &[&str]| {
        let mut command = program_command();
        command
            .current_dir(folder.path())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().map(|status| status.code()).map_err(describe_error)
    };
    let address = unused_address().to_string();
    let url = format!("http://{address}/mcp");
    let [program, serve] = server::command()?;
    let server = ["--url", &url, "--", &program, &serve, "--http", &address];
    let fuzz = ["--select", "fuzz/*", "--revision", "2025-11-25", "--tool", "search", "--regressions", "saved"];
    let fault = ["--fault", "search-tags-twice"];
    let code = run(&[&fuzz[..], &server, &fault].concat())?;
    let mut folders = fs::read_dir(folder.path().join("saved")).map_err(describe_error)?.flatten();
    let own = folders.next().ok_or("there is no folder of the server")?.path();
    let mut files = fs::read_dir(own).map_err(describe_error)?.flatten();
    let file = files.next().ok_or("no failing call was saved")?.path().display().to_string();
    let replay = |options: &[&str]| run(&[&["replay", &file], &server[..], options].concat());
    match (code, replay(&fault)?, replay(&[])?) {
        (Some(1), Some(1), Some(0)) => Ok(()),
        codes => Err(format!("the run and its replays exit with {codes:?}")),
    }
}

fn a_crash_of_the_server_is_reported() -> Result<(), String> {
    let [program, serve] = server::command()?;
    let mut command = Command::new(program);
    command.arg(serve);
    let mut server = RunningServer::start(command, &["--fault", "search-tags-twice"])?;
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let url = format!("http://{}/mcp", server.address());
    let options = ["--select", "fuzz/*", "--revision", "2025-11-25", "--tool", "search", "--startup-timeout", "20s"];
    let run = Run::start(folder.path(), &[&options[..], &[&url]].concat())?;
    let ended = server.has_ended()?;
    let reason = run.summary().and_then(|fuzz| fuzz.stopped_early.clone()).unwrap_or_default();
    if !ended || run.code != Some(1) || !reason.contains("the server ended, and the client cannot restart it") {
        return Err(format!("ended: {ended}, reason: {reason}\n{}", run.text));
    }
    if !run.cases_with_findings().contains(&"fuzz/crash".to_owned()) {
        return Err(format!("no crash is reported: {}", run.text));
    }
    // Oracles that need a process started by the program are skipped with a reason.
    for case in ["fuzz/memory", "fuzz/descriptors"] {
        let is_skipped = |result: &mcp_conformance::event::CaseResult| {
            result.case == case && result.verdict == Verdict::Skip && result.reason.is_some()
        };
        if !run.report.results().any(is_skipped) {
            return Err(format!("{case} is not skipped: {}", run.text));
        }
    }
    Ok(())
}

/// A server with one tool that fails for long texts with status 500 and an empty body.
fn a_server_that_fails_by_status(request: &HttpRequest) -> Vec<u8> {
    let message = request.message();
    let is_long = message["params"]["arguments"]["text"].as_str().is_some_and(|text| text.len() > 5);
    if message["method"] == "tools/call" && is_long {
        return response("500 Internal Server Error", &[], "");
    }
    // It limits no rate.
    rate_limited_server(request, &AtomicUsize::new(0), usize::MAX)
}

/// The evidence shows what the server sent, and no message that it did not send.
fn an_error_status_is_shown_as_one() -> Result<(), String> {
    let address = serve_response(a_server_that_fails_by_status);
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let url = format!("http://{address}/mcp");
    let run = Run::start(folder.path(), &["--select", "fuzz/*", "--revision", "2025-06-18", &url])?;
    let is_about_errors = |result: &&mcp_conformance::event::CaseResult| result.case == "fuzz/internal-error";
    let mut findings = run.report.results().filter(is_about_errors).flat_map(|result| &result.findings);
    let finding: &Finding = findings.next().ok_or_else(|| format!("no finding: {}", run.text))?;
    let expected = "HTTP status 500, without a JSON-RPC message";
    let made_up = run.report.results().flat_map(|result| &result.findings).flat_map(|finding| &finding.evidence);
    let made_up: Vec<&str> =
        made_up.filter(|item| item.direction == Direction::Received).map(|item| item.text.as_str()).collect();
    let is_shown = finding.evidence.iter().any(|item| item.direction == Direction::Event && item.text == expected);
    if finding.actual == expected && is_shown && !made_up.iter().any(|text| text.contains("HTTP status")) {
        return Ok(());
    }
    Err(format!("the finding says {}, the evidence is {:?}, received {made_up:?}", finding.actual, finding.evidence))
}

/// A server with one tool that rejects every request after the first `allowed` ones with status 429.
fn rate_limited_server(request: &HttpRequest, count: &AtomicUsize, allowed: usize) -> Vec<u8> {
    if request.method == "POST" && count.fetch_add(1, Ordering::Relaxed) >= allowed {
        return response("429 Too Many Requests", &[("retry-after", "3600")], "slow down");
    }
    let message = request.message();
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "rate-limited", "version": "1" },
        }),
        Some("tools/list") => json!({ "tools": [{ "name": "say", "description": "Says the text.", "inputSchema": {
            "type": "object", "properties": { "text": { "type": "string" } },
        } }] }),
        Some("tools/call") => json!({ "content": [{ "type": "text", "text": "done" }] }),
        _ => return minimal_server(request),
    };
    let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    response("200 OK", &[("content-type", "application/json")], &body.to_string())
}

fn a_rate_limit_stops_fuzzing() -> Result<(), String> {
    let count = AtomicUsize::new(0);
    let address = serve_response(move |request| rate_limited_server(request, &count, 40));
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let url = format!("http://{address}/mcp");
    let run = Run::start(folder.path(), &["--select", "fuzz/*", "--revision", "2025-06-18", &url])?;
    let reason = run.summary().and_then(|fuzz| fuzz.stopped_early.clone()).unwrap_or_default();
    let hangs = run.cases_with_findings().iter().any(|case| case == "fuzz/hang" || case == "fuzz/crash");
    if reason.contains("429") && reason.contains("--max-rate") && !hangs {
        return Ok(());
    }
    Err(format!("the reason is: {reason}\n{}", run.text))
}

/// A rejection because of rate limiting: its status, its headers and the error in its body.
type Rejection = (&'static str, &'static [(&'static str, &'static str)], Option<Value>);

fn a_permanent_rate_limit_is_an_error() -> Result<(), String> {
    let error = json!({ "code": -32_000, "message": "Rate limit exceeded" });
    let forms: [Rejection; 5] = [
        ("429 Too Many Requests", &[("retry-after", "3600")], None),
        ("429 Too Many Requests", &[], None),
        ("429 Too Many Requests", &[("content-type", "application/json")], Some(error.clone())),
        ("503 Service Unavailable", &[("retry-after", "3600")], None),
        ("200 OK", &[("content-type", "application/json")], Some(error)),
    ];
    for (status, headers, error) in forms {
        permanent_rate_limit(status, headers, error).map_err(|problem| format!("{status} {headers:?}: {problem}"))?;
    }
    Ok(())
}

/// Judges a server that rejects every request after some with this status, these headers and this error.
fn permanent_rate_limit(
    status: &'static str,
    headers: &'static [(&'static str, &'static str)],
    error: Option<Value>,
) -> Result<(), String> {
    let count = AtomicUsize::new(0);
    let address = serve_response(move |request| {
        let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        // An error belongs to a request, a status to any message.
        let is_limited = error.is_none() || message.get("id").is_some();
        if request.method == "POST" && is_limited && count.fetch_add(1, Ordering::Relaxed) >= 30 {
            let body = error.as_ref().map_or_else(
                || "slow down".to_owned(),
                |error| json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string(),
            );
            return response(status, headers, &body);
        }
        minimal_server(request)
    });
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let url = format!("http://{address}/mcp");
    let run = Run::start(folder.path(), &["--revision", "2025-06-18", "--fuzz", "off", &url])?;
    let findings: Vec<_> = run.report.results().flat_map(|result| &result.findings).collect();
    // The findings for the same server without a rate limit.
    let unlimited = Run::start(
        folder.path(),
        &["--revision", "2025-06-18", "--fuzz", "off", &format!("http://{}/mcp", serve_response(minimal_server))],
    )?;
    let expected: Vec<_> = unlimited.report.results().flat_map(|result| &result.findings).collect();
    let is_new = |finding: &&&mcp_conformance::verdict::Finding| {
        !expected.iter().any(|known| known.requirement == finding.requirement && known.message == finding.message)
    };
    if let Some(finding) = findings.iter().find(is_new) {
        return Err(format!("{}: {}\n{}", finding.requirement, finding.message, run.text));
    }
    let errors = run.report.results().filter(|result| {
        result.verdict == Verdict::Error && result.reason.as_ref().is_some_and(|reason| reason.contains("429"))
    });
    let errors = errors.count();
    if errors < 5 || run.code == Some(0) || !run.text.contains("--max-rate") {
        return Err(format!("{errors} errors, exit code {:?}\n{}", run.code, run.text));
    }
    Ok(())
}

fn an_occasional_rate_limit_changes_no_verdict() -> Result<(), String> {
    let count = AtomicUsize::new(0);
    let address = serve_response(move |request| {
        // Every eighth request must be repeated.
        if request.method == "POST" && count.fetch_add(1, Ordering::Relaxed) % 8 == 7 {
            return response("429 Too Many Requests", &[("retry-after", "0")], "slow down");
        }
        minimal_server(request)
    });
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let run = |address: &str| {
        let url = format!("http://{address}/mcp");
        Run::start(folder.path(), &["--revision", "2025-06-18", "--fuzz", "off", &url])
    };
    let verdicts = |run: &Run| -> Vec<(String, Verdict)> {
        run.report.results().map(|result| (result.case.clone(), result.verdict)).collect()
    };
    let (limited, unlimited) = (run(&address.to_string())?, run(&serve_response(minimal_server).to_string())?);
    let (with_limit, without_limit) = (verdicts(&limited), verdicts(&unlimited));
    let differing: Vec<_> = with_limit.iter().filter(|one| !without_limit.contains(one)).collect();
    if !differing.is_empty() || with_limit.len() != without_limit.len() {
        return Err(format!("{differing:?}\n{}", limited.text));
    }
    let notes: Vec<&String> = limited.report.targets.iter().flat_map(|target| &target.summary.notes).collect();
    match notes.as_slice() {
        [only] if only.contains("asked the client to slow down") => Ok(()),
        _ => Err(format!("expected one note, found {notes:?}\n{}", limited.text)),
    }
}

/// What ends a session is reported with its messages, and leaves no case unjudged.
fn a_case_that_ends_its_session_has_a_warning() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let address = unused_address().to_string();
    let url = format!("http://{address}/mcp");
    let fault = Fault::Http(HttpFault::CancellationEndsSession).name();
    let server = ["--url", &url, "--", PROGRAM, "serve", "--http", &address, "--fault", fault];
    let run = Run::start(folder.path(), &[&["--revision", "2025-11-25", "--fuzz", "off"][..], &server].concat())?;
    let mut ending = Vec::new();
    for result in run.report.results().filter(|result| !matches!(result.verdict, Verdict::Pass | Verdict::Skip)) {
        let [finding] = result.findings.as_slice() else { return Err(format!("{}: {}", result.case, run.text)) };
        let shows = |text: &str| finding.evidence.iter().any(|item| item.text.contains(text));
        if !finding.message.starts_with("The server ends the session in the middle of this case")
            || !shows("notifications/cancelled")
            || !shows("the session had ended")
        {
            return Err(format!("{}: {finding:?}", result.case));
        }
        ending.push((result.case.as_str(), result.verdict));
    }
    let own = ("cancellation/under-way", Verdict::Warn);
    if run.code == Some(0) && ending.contains(&own) && ending.iter().all(|(_, verdict)| *verdict == Verdict::Warn) {
        return Ok(());
    }
    Err(format!("exit code {:?}, {ending:?}\n{}", run.code, run.text))
}

/// What a client has to put up with is said once, and changes no verdict, not even with the fuzzer.
fn changes_no_verdict(variant: HttpFault, note: &str) -> Result<(), String> {
    let name = Fault::Http(variant).name();
    let judge = |faults: &[&str]| {
        let folder = tempfile::tempdir().map_err(describe_error)?;
        let address = unused_address().to_string();
        let url = format!("http://{address}/mcp");
        let server = ["--url", &url, "--", PROGRAM, "serve", "--http", &address];
        // No latency: a request that is made twice takes longer.
        let options = ["--revision", "2025-11-25", "--strict", "--fuzz", "20", "--skip", "fuzz/latency"];
        Run::start(folder.path(), &[&options[..], &server, faults].concat())
    };
    let (varied, usual) = (judge(&["--fault", name])?, judge(&[])?);
    let judged = |run: &Run| -> Vec<(String, Verdict)> {
        let judged = run.report.results().filter(|result| result.verdict != Verdict::Skip);
        judged.map(|result| (result.case.clone(), result.verdict)).collect()
    };
    let usually = judged(&usual);
    // Which connection sees a change of a list depends on the order of the cases.
    let is_new = |one: &(String, Verdict)| one.1 != Verdict::Pass && !usually.contains(one);
    let differing: Vec<_> = judged(&varied).into_iter().filter(is_new).collect();
    let notes: Vec<&String> = varied.report.targets.iter().flat_map(|target| &target.summary.notes).collect();
    if varied.code != Some(0) || !differing.is_empty() || judged(&varied).len() + 5 < usually.len() {
        return Err(format!("exit code {:?}, {differing:?}\n{}", varied.code, varied.text));
    }
    match notes.as_slice() {
        [only] if only.contains(note) && varied.text.contains("Connections") => Ok(()),
        _ => Err(format!("expected one note, found {notes:?}\n{}", varied.text)),
    }
}
