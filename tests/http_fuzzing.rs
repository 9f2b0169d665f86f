//! Fuzzing over HTTP, end to end: what is found over standard streams is found there as well, a server that is not
//! ours to start may die, and one that wants to be asked less is not taken for one that hangs.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use libtest_mimic::Trial;
use mcp_conformance::reference::EvaluationFault;
use mcp_conformance::report::Report;
use mcp_conformance::verdict::Verdict;
use serde_json::json;

use crate::raw::{HttpRequest, answer, minimal_server, serve_response};
use crate::{PROGRAM, trial};

/// Hidden faults of different oracles, each with a revision that it is looked for in.
const SAMPLE: [(&str, &str); 12] = [
    ("search-tags-twice", "2025-11-25"),
    ("search-limit-text", "2026-07-28"),
    ("lookup-never-succeeds", "2025-11-25"),
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

/// Servers that are fuzzed side by side.
const WORKERS: usize = 3;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("fuzzing/http/the-conforming-server-has-no-finding", the_conforming_server_has_no_finding),
        trial("fuzzing/http/a-sample-is-found", a_sample_is_found),
        trial("fuzzing/http/a-failing-call-is-replayed", a_failing_call_is_replayed),
        trial("fuzzing/http/a-server-that-dies-is-told", a_server_that_dies_is_told),
        trial("fuzzing/http/a-limit-ends-it", a_limit_ends_it),
        trial("hostile/http/limited-for-good", limited_for_good),
        trial("hostile/http/limited-now-and-then", limited_now_and_then),
    ]
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn free() -> Result<String, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(told)?;
    Ok(listener.local_addr().map_err(told)?.to_string())
}

/// What a run came to.
struct Run {
    code: Option<i32>,
    report: Report,
    words: String,
}

impl Run {
    fn of(folder: &Path, words: &[&str]) -> Result<Self, String> {
        let mut command = Command::new(PROGRAM);
        command.current_dir(folder).args(["--regressions", "none", "--report", "json=r.json"]).args(words);
        let output = command.stdin(Stdio::null()).output().map_err(told)?;
        let words = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let text = fs::read_to_string(folder.join("r.json")).map_err(|error| format!("{error}: {words}"))?;
        let report = serde_json::from_str(&text).map_err(told)?;
        Ok(Self { code: output.status.code(), report, words })
    }

    /// Fuzzes the built-in server, which the run starts.
    fn fuzz(options: &[&str], path: &str, faults: &[&str]) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(told)?;
        let address = free()?;
        let url = format!("http://{address}{path}");
        let server = ["--select", "fuzz/*", "--url", &url, "--", PROGRAM, "serve", "--http", &address];
        Self::of(folder.path(), &[options, &server, faults].concat())
    }

    /// The cases that complain.
    fn outdated_messages(&self) -> Vec<String> {
        let bad = |verdict| matches!(verdict, Verdict::Fail | Verdict::Warn | Verdict::Error);
        self.report.results().filter(|result| bad(result.verdict)).map(|result| result.case.clone()).collect()
    }

    fn summary(&self) -> Option<&mcp_conformance::event::FuzzSummary> {
        self.report.targets.iter().find_map(|target| target.summary.fuzz.as_ref())
    }
}

fn the_conforming_server_has_no_finding() -> Result<(), String> {
    let some = ["--tool", "echo", "--tool", "weather", "--tool", "search", "--tool", "ask_user", "--tool", "draft*"];
    for (revision, seed, path) in
        [("2025-11-25", "1", "/mcp"), ("2026-07-28", "2", "/mcp"), ("2024-11-05", "3", "/sse")]
    {
        let run = Run::fuzz(&[&["--revision", revision, "--seed", seed], &some[..]].concat(), path, &[])?;
        if !run.outdated_messages().is_empty() {
            return Err(format!("{revision}, seed {seed}: {}", run.words));
        }
        if run.summary().is_none_or(|fuzz| fuzz.calls < 150) {
            return Err(format!("little was called in {revision}: {}", run.words));
        }
    }
    Ok(())
}

fn a_sample_is_found() -> Result<(), String> {
    let next = AtomicUsize::new(0);
    let missed = Mutex::new(Vec::new());
    let fault_of = |name: &str| EvaluationFault::all().find(|fault| fault.name() == name);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some((name, revision)) = SAMPLE.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = fault_of(name).ok_or("there is no such fault".to_owned()).and_then(|fault| {
                        let family = format!("{}*", fault.tool().split('_').next().unwrap_or_default());
                        let options = [
                            &["--revision", revision, "--seed", "1", "--fuzz-time", "90s"][..],
                            &["--tool", &family, "--tool", "echo"],
                        ];
                        let run = Run::fuzz(&options.concat(), "/mcp", &["--fault", name])?;
                        let found = run.outdated_messages();
                        let right = found.iter().any(|case| fault.oracles().contains(&case.as_str()));
                        if right { Ok(()) } else { Err(format!("{found:?}\n{}", run.words)) }
                    });
                    if let Err(error) = outcome {
                        missed.lock().expect("unused_address panics").push(format!("{name} in {revision}: {error}"));
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().expect("unused_address panics");
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
}

fn a_failing_call_is_replayed() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(told)?;
    let run = |words: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.current_dir(folder.path()).args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().map(|status| status.code()).map_err(told)
    };
    let address = free()?;
    let url = format!("http://{address}/mcp");
    let server = ["--url", &url, "--", PROGRAM, "serve", "--http", &address, "--fault"];
    let fuzz = ["--select", "fuzz/*", "--revision", "2025-11-25", "--tool", "search", "--regressions", "kept"];
    let code = run(&[&fuzz[..], &server, &["search-tags-twice"]].concat())?;
    let mut files = fs::read_dir(folder.path().join("kept")).map_err(told)?.flatten();
    let file = files.next().ok_or("nothing was written down")?.path().display().to_string();
    let replay = |fault: &str| run(&[&["replay", &file], &server[..], &[fault]].concat());
    match (code, replay("search-tags-twice")?, replay("http-sessionless")?) {
        (Some(1), Some(1), Some(0)) => Ok(()),
        codes => Err(format!("the run and its replays exit with {codes:?}")),
    }
}

fn a_server_that_dies_is_told() -> Result<(), String> {
    let address = free()?;
    let mut server = Command::new(PROGRAM);
    server.args(["serve", "--http", &address, "--fault", "search-tags-twice"]);
    let mut server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(told)?;
    let folder = tempfile::tempdir().map_err(told)?;
    let url = format!("http://{address}/mcp");
    let options = ["--select", "fuzz/*", "--revision", "2025-11-25", "--tool", "search", "--startup-timeout", "20s"];
    for _ in 0..200 {
        if std::net::TcpStream::connect(&address).is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(25));
    }
    let run = Run::of(folder.path(), &[&options[..], &[&url]].concat());
    let ended = server.try_wait().map_err(told)?.is_some();
    if !ended {
        server.kill().map_err(told)?;
        server.wait().map_err(told)?;
    }
    let run = run?;
    let said = run.summary().and_then(|fuzz| fuzz.stopped_early.clone()).unwrap_or_default();
    if !ended || run.code != Some(1) || !said.contains("the server ended") {
        return Err(format!("ended: {ended}, said: {said}\n{}", run.words));
    }
    if !run.outdated_messages().contains(&"fuzz/crash".to_owned()) {
        return Err(format!("no crash is told: {}", run.words));
    }
    // What needs a process of ours is left out with its reason, and not passed.
    for case in ["fuzz/memory", "fuzz/descriptors"] {
        let is_skipped = |result: &mcp_conformance::event::CaseResult| {
            result.case == case && result.verdict == Verdict::Skip && result.reason.is_some()
        };
        if !run.report.results().any(is_skipped) {
            return Err(format!("{case} is not skipped: {}", run.words));
        }
    }
    Ok(())
}

/// A server with one tool that limits how often it is asked, once it was asked so often.
fn limiting(asked: &HttpRequest, count: &AtomicUsize, free: usize) -> Vec<u8> {
    if asked.method == "POST" && count.fetch_add(1, Ordering::Relaxed) >= free {
        return answer("429 Too Many Requests", &[("retry-after", "3600")], "slow down");
    }
    let message = asked.message();
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "limiting", "version": "1" },
        }),
        Some("tools/list") => json!({ "tools": [{ "name": "say", "description": "Says it.", "inputSchema": {
            "type": "object", "properties": { "text": { "type": "string" } },
        } }] }),
        Some("tools/call") => json!({ "content": [{ "type": "text", "text": "said" }] }),
        _ => return minimal_server(asked),
    };
    let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    answer("200 OK", &[("content-type", "application/json")], &body.to_string())
}

fn a_limit_ends_it() -> Result<(), String> {
    let count = AtomicUsize::new(0);
    let address = serve_response(move |asked| limiting(asked, &count, 40));
    let folder = tempfile::tempdir().map_err(told)?;
    let url = format!("http://{address}/mcp");
    let run = Run::of(folder.path(), &["--select", "fuzz/*", "--revision", "2025-06-18", &url])?;
    let said = run.summary().and_then(|fuzz| fuzz.stopped_early.clone()).unwrap_or_default();
    let hangs = run.outdated_messages().iter().any(|case| case == "fuzz/hang" || case == "fuzz/crash");
    if said.contains("429") && said.contains("--max-rate") && !hangs {
        return Ok(());
    }
    Err(format!("it said: {said}\n{}", run.words))
}

fn limited_for_good() -> Result<(), String> {
    let count = AtomicUsize::new(0);
    let address = serve_response(move |asked| {
        if asked.method == "POST" && count.fetch_add(1, Ordering::Relaxed) >= 30 {
            return answer("429 Too Many Requests", &[("retry-after", "3600")], "slow down");
        }
        minimal_server(asked)
    });
    let folder = tempfile::tempdir().map_err(told)?;
    let url = format!("http://{address}/mcp");
    let run = Run::of(folder.path(), &["--revision", "2025-06-18", "--fuzz", "off", &url])?;
    let findings: Vec<_> = run.report.results().flat_map(|result| &result.findings).collect();
    // What the same server is found to do where nothing is limited.
    let known = Run::of(
        folder.path(),
        &["--revision", "2025-06-18", "--fuzz", "off", &format!("http://{}/mcp", serve_response(minimal_server))],
    )?;
    let known: Vec<_> = known.report.results().flat_map(|result| &result.findings).collect();
    let is_new = |finding: &&&mcp_conformance::verdict::Finding| {
        !known.iter().any(|own| own.requirement == finding.requirement && own.message == finding.message)
    };
    if let Some(false_one) = findings.iter().find(is_new) {
        return Err(format!("{}: {}\n{}", false_one.requirement, false_one.message, run.words));
    }
    let errors = run.report.results().filter(|result| {
        result.verdict == Verdict::Error && result.reason.as_ref().is_some_and(|reason| reason.contains("429"))
    });
    let errors = errors.count();
    if errors < 5 || run.code == Some(0) || !run.words.contains("--max-rate") {
        return Err(format!("{errors} errors, exit code {:?}\n{}", run.code, run.words));
    }
    Ok(())
}

fn limited_now_and_then() -> Result<(), String> {
    let count = AtomicUsize::new(0);
    let address = serve_response(move |asked| {
        // Every eighth request has to be made again.
        if asked.method == "POST" && count.fetch_add(1, Ordering::Relaxed) % 8 == 7 {
            return answer("429 Too Many Requests", &[("retry-after", "0")], "slow down");
        }
        minimal_server(asked)
    });
    let folder = tempfile::tempdir().map_err(told)?;
    let run = |address: &str| {
        let url = format!("http://{address}/mcp");
        Run::of(folder.path(), &["--revision", "2025-06-18", "--fuzz", "off", &url])
    };
    let verdicts = |run: &Run| -> Vec<(String, Verdict)> {
        run.report.results().map(|result| (result.case.clone(), result.verdict)).collect()
    };
    let (limited, unlimited) = (run(&address.to_string())?, run(&serve_response(minimal_server).to_string())?);
    let (some, all) = (verdicts(&limited), verdicts(&unlimited));
    let differing: Vec<_> = some.iter().filter(|one| !all.contains(one)).collect();
    if differing.is_empty() && some.len() == all.len() {
        Ok(())
    } else {
        Err(format!("{differing:?}\n{}", limited.words))
    }
}
