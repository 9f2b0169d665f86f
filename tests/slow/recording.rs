//! Transcripts of runs, recordings of other clients, and how they are judged.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mcp_conformance::report::Report;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::address::unused_address;
use crate::support::{PROGRAM, Trial, limits, program, program_command, trial};

mod clients;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> =
        MALFORMED.iter().map(|file| trial(format!("recording/malformed/{}", file.name), || check(file))).collect();
    trials.extend([
        trial("recording/a-saved-run-has-the-findings-of-the-run", || saved_run_is_judged_alike(&[])),
        trial("recording/a-saved-run-over-http-has-the-findings-of-the-run", saved_run_over_http_is_judged_alike),
        trial("recording/a-foreign-client-is-judged", a_foreign_client_is_judged),
        trial("recording/a-foreign-client-over-http-is-judged", a_foreign_client_over_http_is_judged),
        trial("recording/every-format-and-the-baseline", every_format_and_the_baseline),
        trial("recording/bytes-pass-unchanged", bytes_pass_unchanged),
        trial("recording/the-exit-status-passes", the_exit_status_passes),
        trial("recording/sigterm-passes", sigterm_passes),
        trial("recording/a-closed-output-passes", a_closed_output_passes),
        trial("recording/secrets-are-masked", secrets_are_masked),
    ]);
    trials
}

/// The trials that need an installed client.
pub(crate) fn trials_of_clients() -> Vec<Trial> {
    clients::trials()
}

fn folder() -> Result<TempDir, String> {
    TempDir::new().map_err(|error| error.to_string())
}

fn read(folder: &Path, file: &str) -> Result<String, String> {
    fs::read_to_string(folder.join(file)).map_err(|error| format!("{file}: {error}"))
}

/// Faults that passive cases find, one in each kind of what they watch: lines, results, requests of the server,
/// notifications, connections.
const FAULTS: [&str; 6] =
    ["image-data-url", "priority-two", "banner-on-stdout", "answers-twice", "progress-goes-back", "log-undeclared"];

/// What a report says about a case, without times.
fn result_of(result: &Value) -> Value {
    let mut result = result.clone();
    result["duration-ms"] = Value::Null;
    for finding in result["findings"].as_array_mut().into_iter().flatten() {
        // A saved run cannot repeat a failure, and names another command.
        finding["confirmation"] = Value::Null;
        finding["reproduce"] = Value::Null;
        finding["origin"] = Value::Null;
        for evidence in finding["evidence"].as_array_mut().into_iter().flatten() {
            evidence["at-ms"] = Value::Null;
        }
    }
    result
}

/// Compares each result of a judged file with that of the run; the number of those with findings.
fn compare(folder: &Path) -> Result<usize, String> {
    let parse = |file: &str| -> Result<Value, String> {
        serde_json::from_str(&read(folder, file)?).map_err(|error| error.to_string())
    };
    let (run, judged) = (parse("run.json")?, parse("judged.json")?);
    let results = |report: &Value| -> Vec<Value> {
        let targets = report["targets"].as_array().into_iter().flatten();
        targets.flat_map(|target| target["results"].as_array().cloned().unwrap_or_default()).collect()
    };
    let run = results(&run);
    let mut with_findings = 0;
    for judged in results(&judged) {
        let same = |one: &&Value| one["case"] == judged["case"] && one["revision"] == judged["revision"];
        let own = run.iter().find(same).ok_or_else(|| format!("the run has no {}", judged["case"]))?;
        if result_of(own) != result_of(&judged) {
            return Err(format!("run:    {}\njudged: {}", result_of(own), result_of(&judged)));
        }
        with_findings += usize::from(judged["findings"].is_array());
    }
    Ok(with_findings)
}

fn saved_run_is_judged_alike(server: &[&str]) -> Result<(), String> {
    for (faults, code) in [(&FAULTS[..], 1), (&[], 0)] {
        let folder = folder()?;
        let folder = folder.path();
        let options = ["--quiet", "--retries", "0", "--fuzz", "off", "--save-transcript", "t.jsonl"];
        let mut words: Vec<&str> = options.to_vec();
        words.extend(["--revision", "2025-06-18", "--revision", "2026-07-28", "--report", "json=run.json"]);
        words.extend(if server.is_empty() { vec!["--", PROGRAM, "serve"] } else { server.to_vec() });
        words.extend(faults.iter().flat_map(|fault| ["--fault", fault]));
        program(folder, &words)?.with_code(code)?;
        program(folder, &["judge", "t.jsonl", "--quiet", "--report", "json=judged.json"])?.with_code(code)?;
        let with_findings = compare(folder)?;
        if (with_findings >= FAULTS.len()) != (code == 1) || (code == 0 && with_findings > 0) {
            return Err(format!("{with_findings} cases have findings with the faults {faults:?}"));
        }
    }
    Ok(())
}

fn saved_run_over_http_is_judged_alike() -> Result<(), String> {
    let address = unused_address().to_string();
    let url = format!("http://{address}/mcp");
    saved_run_is_judged_alike(&["--url", &url, "--", PROGRAM, "serve", "--http", &address])
}

/// What a simple client of another author writes.
fn client_messages(revision: &str) -> Vec<Value> {
    vec![
        json!({ "jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "simple", "version": "1" },
        } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": "b", "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": { "name": "image", "arguments": {} } }),
    ]
}

/// Starts the program as a wrapper of a command.
fn start_recording(folder: &Path, command: &[&str]) -> Result<Child, String> {
    let mut wrapper = program_command();
    wrapper.current_dir(folder).args(["record", "--output", "r.jsonl", "--"]).args(command);
    wrapper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    wrapper.spawn().map_err(|error| error.to_string())
}

/// Lets the simple client speak with the reference server through the wrapper, one message after the other.
fn record_session(folder: &Path, server: &[&str]) -> Result<(), String> {
    let mut wrapper = start_recording(folder, &[&[PROGRAM, "serve"], server].concat())?;
    let (input, output) = (wrapper.stdin.take(), wrapper.stdout.take());
    let (mut input, output) = input.zip(output).ok_or("the wrapper has no streams")?;
    let mut lines = BufReader::new(output).lines();
    for message in client_messages("2025-06-18") {
        writeln!(input, "{message}").map_err(|error| error.to_string())?;
        while message.get("id").is_some() {
            let line = lines.next().ok_or("the wrapper closed its output")?.map_err(|error| error.to_string())?;
            let answer: Value = serde_json::from_str(&line).unwrap_or_default();
            if answer.get("id") == message.get("id") {
                break;
            }
        }
    }
    drop(input);
    let status = wrapper.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

fn a_foreign_client_is_judged() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    record_session(folder, &[])?;
    program(folder, &["judge", "r.jsonl"])?.with_code(0)?.shows("2025-06-18")?.shows("all pass")?;
    // Another start of the server adds a connection.
    record_session(folder, &["--fault", "image-data-url"])?;
    let judged = program(folder, &["judge", "r.jsonl"])?.with_code(1)?.shows("is not base64")?;
    let judged = judged.shows("mcp-conformance judge r.jsonl --select content/image-base64")?;
    if judged.out.contains("mcp-conformance hints") {
        return Err(format!("a recording is shown options for a run:\n{}", judged.out));
    }
    program(folder, &["judge", "r.jsonl", "--select", "tools/definition/*"])?.with_code(0).map(drop)
}

/// A recording of HTTP traffic with an invalid image, with the members that another program would write.
fn http_recording(data: &str) -> String {
    let mut lines = Vec::new();
    let results = [
        json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "other", "version": "1" } }),
        json!({ "tools": [{ "name": "image", "inputSchema": { "type": "object" } }] }),
        json!({ "content": [{ "type": "image", "data": data, "mimeType": "image/png" }] }),
    ];
    let messages = client_messages("2025-06-18");
    let mut results = results.iter();
    for message in &messages {
        let headers = json!({ "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "Authorization": "Bearer abcdefgh" });
        lines.push(json!({ "direction": "client-to-server", "message": message,
            "http": { "method": "POST", "target": "/mcp", "headers": headers } }));
        let Some(id) = message.get("id") else {
            lines.push(json!({ "direction": "server-to-client", "http": { "status": 202, "headers": {} } }));
            continue;
        };
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": results.next() });
        if message["method"] == "tools/call" {
            lines.push(json!({ "direction": "server-to-client",
                "http": { "status": 200, "headers": { "Content-Type": "text/event-stream" } } }));
            lines.push(json!({ "direction": "server-to-client", "http": { "sse": {} }, "message": answer }));
        } else {
            lines.push(json!({ "direction": "server-to-client", "message": answer,
                "http": { "status": 200, "headers": { "Content-Type": "application/json" } } }));
        }
    }
    lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n") + "\n"
}

fn a_foreign_client_over_http_is_judged() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    for (data, code, expected) in [("aGVsbG8=", 0, "all pass"), ("no base64", 1, "is not base64")] {
        fs::write(folder.join("h.jsonl"), http_recording(data)).map_err(|error| error.to_string())?;
        let judged = program(folder, &["judge", "h.jsonl", "--report", "json=h.json"])?.with_code(code)?;
        judged.shows(expected)?;
        let report = Report::parse(&read(folder, "h.json")?).map_err(|error| error.to_string())?;
        let passed = |case: &str| report.results().any(|result| result.case == case && result.observed > 0);
        // A rule of each transport shows that the transport was recognized.
        if !passed("http/notification-accepted") || report.results().any(|result| result.case == "stdio/blank-lines") {
            let cases: Vec<&str> = report.results().filter(|r| r.observed > 0).map(|r| r.case.as_str()).collect();
            return Err(format!("not judged as HTTP: {cases:?}"));
        }
    }
    Ok(())
}

fn every_format_and_the_baseline() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    fs::write(folder.join("h.jsonl"), http_recording("no base64")).map_err(|error| error.to_string())?;
    let formats = ["text", "json", "html", "junit", "sarif", "tap", "markdown", "github", "badge"];
    let mut words: Vec<String> = ["judge", "h.jsonl"].map(str::to_owned).to_vec();
    for format in formats {
        words.extend(["--report".to_owned(), format!("{format}=r.{format}")]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    program(folder, &words)?.with_code(1)?;
    for format in formats {
        let text = read(folder, &format!("r.{format}"))?;
        let expected = if format == "badge" { "<svg" } else { "content/image-base64" };
        if !text.contains(expected) {
            return Err(format!("`{expected}` is not in the report {format}:\n{text}"));
        }
    }
    let update = ["judge", "h.jsonl", "--quiet", "--baseline", "b.jsonc", "--update-baseline"];
    program(folder, &update)?.with_code(0)?;
    program(folder, &["judge", "h.jsonl", "--baseline", "b.jsonc"])?.with_code(0)?.shows("Accepted by the baseline")?;
    fs::write(folder.join("h.jsonl"), http_recording("aGVsbG8=")).map_err(|error| error.to_string())?;
    program(folder, &["judge", "h.jsonl", "--baseline", "b.jsonc"])?.with_code(1)?.shows("out of date").map(drop)
}

/// Bytes that no line-based reader takes: a long line, no line feed at the end, zero bytes and invalid UTF-8.
fn hostile_bytes() -> Vec<u8> {
    let mut bytes = vec![b'x'; 20 << 20];
    bytes.extend(b"\n\r\n\0\xff\xfe{\"jsonrpc\":\"2.0\"}\n[[[[[[\n\n");
    bytes.extend(b"{\"jsonrpc\":\"2.0\",\"method\":\"unfinished");
    bytes
}

fn bytes_pass_unchanged() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let sent = hostile_bytes();
    // `cat` writes what the client sends, so that both directions have these bytes.
    let mut wrapper = start_recording(folder, &["cat"])?;
    let (input, output) = (wrapper.stdin.take(), wrapper.stdout.take());
    let (mut input, mut output) = input.zip(output).ok_or("the wrapper has no streams")?;
    let bytes = sent.clone();
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let mut received = Vec::new();
    output.read_to_end(&mut received).map_err(|error| error.to_string())?;
    writer.join().map_err(|_| "the writer panicked")?.map_err(|error| error.to_string())?;
    let status = wrapper.wait().map_err(|error| error.to_string())?;
    if received != sent || !status.success() {
        return Err(format!("{} bytes of {} came back, {status}", received.len(), sent.len()));
    }
    // Six lines in both directions, the two events at the end and the opening; the long lines are cut.
    let recorded = read(folder, "r.jsonl")?;
    if recorded.len() > 1 << 20 || recorded.lines().count() != 2 * 6 + 3 {
        return Err(format!("{} lines, {} bytes", recorded.lines().count(), recorded.len()));
    }
    program(folder, &["judge", "r.jsonl"])?.with_code(2)?.shows("no connection shows its revision")?;
    program(folder, &["judge", "r.jsonl", "--revision", "2025-06-18"])?.with_code(1)?.shows("stdio").map(drop)
}

fn the_exit_status_passes() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    for (script, code) in
        [("exit 7", 7), ("exit 0", 0), ("kill -9 $$", 137), ("echo '{'; exit 3", 3), ("cat; exit 4", 4)]
    {
        program(folder, &["record", "--output", "r.jsonl", "--", "sh", "-c", script])?.with_code(code)?;
    }
    // A process that keeps the output open does not keep the wrapper.
    program(folder, &["record", "--output", "r.jsonl", "--", "sh", "-c", "sleep 20 & echo x"])?.with_code(0)?;
    let missing = ["record", "--output", "r.jsonl", "--", "./no-such-program"];
    program(folder, &missing)?.with_code(2)?.shows("failed to run ./no-such-program")?;
    program(folder, &["record", "--output", "no/r.jsonl", "--", "cat"])?.with_code(2)?.shows("failed to create")?;
    let url = ["record", "--output", "r.jsonl", "http://127.0.0.1:1/mcp"];
    program(folder, &url)?.with_code(2)?.shows("--save-transcript FILE URL").map(drop)
}

fn sigterm_passes() -> Result<(), String> {
    let folder = folder()?;
    let script = "trap 'echo ended; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut wrapper = start_recording(folder.path(), &["sh", "-c", script])?;
    let output = wrapper.stdout.take().ok_or("the wrapper has no output")?;
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    if lines.next().as_deref() != Some("ready") {
        return Err("the server did not start".to_owned());
    }
    let pid = wrapper.id().to_string();
    Command::new("kill").args(["-TERM", &pid]).status().map_err(|error| error.to_string())?;
    let rest: Vec<String> = lines.collect();
    let status = wrapper.wait().map_err(|error| error.to_string())?;
    if rest != ["ended"] || status.code() != Some(9) {
        return Err(format!("{rest:?}, {status}"));
    }
    let recorded = read(folder.path(), "r.jsonl")?;
    if recorded.contains("exit status: 9") { Ok(()) } else { Err(recorded) }
}

/// A server that closes its output and runs on, and a client that closes what it reads.
fn a_closed_output_passes() -> Result<(), String> {
    let folder = folder()?;
    let mut wrapper = start_recording(folder.path(), &["sh", "-c", "echo x; exec >&-; cat > /dev/null; exit 5"])?;
    let mut output = wrapper.stdout.take().ok_or("the wrapper has no output")?;
    let mut text = String::new();
    // It ends although the input is open.
    output.read_to_string(&mut text).map_err(|error| error.to_string())?;
    drop(wrapper.stdin.take());
    let status = wrapper.wait().map_err(|error| error.to_string())?;
    if text != "x\n" || status.code() != Some(5) {
        return Err(format!("{text:?}, {status}"));
    }
    let mut wrapper = start_recording(folder.path(), &["yes"])?;
    drop(wrapper.stdout.take());
    let until = std::time::Instant::now() + limits::here(limits::RECORDED_END);
    while std::time::Instant::now() < until {
        // `yes` is ended by the signal for a closed pipe.
        if let Some(status) = wrapper.try_wait().map_err(|error| error.to_string())? {
            return if status.code() == Some(141) || status.code() == Some(1) {
                Ok(())
            } else {
                Err(status.to_string())
            };
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    wrapper.kill().map_err(|error| error.to_string())?;
    Err("the server was not ended when the client closed the stream".to_owned())
}

fn secrets_are_masked() -> Result<(), String> {
    const SECRET: &str = r#"h-u\s"h+1/2==t0k3n"#;
    const PARTS: [&str; 3] = ["h-u", "h+1/2==", "t0k3n"];
    let folder = folder()?;
    let folder = folder.path();
    // A server that says the secret of its environment in a message, in noise and on standard error.
    let script = r#"import json, os, sys
secret = os.environ["MY_TOKEN"]
print(secret, flush=True)
print(secret, file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "instructions": secret, secret: [secret],
                  "serverInfo": {"name": secret, "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;
    fs::write(folder.join("server.py"), script).map_err(|error| error.to_string())?;
    let variable = format!("MY_TOKEN={SECRET}");
    let run = ["--quiet", "--fuzz", "off", "--save-transcript", "t.jsonl", "--select", "lifecycle", "--env", &variable];
    program(folder, &[&run[..], &["--", "python3", "server.py"]].concat())?.with_code(1)?;
    let mut wrapper = program_command();
    wrapper.current_dir(folder).args(["record", "--output", "r.jsonl", "--", "python3", "server.py"]);
    wrapper.env("MY_TOKEN", SECRET).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut wrapper = wrapper.spawn().map_err(|error| error.to_string())?;
    let mut input = wrapper.stdin.take().ok_or("the wrapper has no input")?;
    writeln!(input, "{}", client_messages("2025-06-18")[0]).map_err(|error| error.to_string())?;
    drop(input);
    wrapper.wait().map_err(|error| error.to_string())?;
    for file in ["t.jsonl", "r.jsonl"] {
        let text = read(folder, file)?;
        let leaked = PARTS.iter().find(|part| text.contains(**part));
        if let Some(part) = leaked {
            return Err(format!("{file} contains `{part}`"));
        }
        if text.matches("[secret]").count() < 4 {
            return Err(format!("the secret did not reach {file}:\n{text}"));
        }
    }
    // Headers of HTTP: what a recording of others has is not repeated in a report.
    fs::write(folder.join("h.jsonl"), http_recording("no base64")).map_err(|error| error.to_string())?;
    program(folder, &["judge", "h.jsonl", "-v", "--report", "json=h.json"])?.with_code(1)?;
    let report = read(folder, "h.json")?;
    if report.contains("abcdefgh") { Err("the report has the header".to_owned()) } else { Ok(()) }
}

/// A file that cannot be judged.
struct Malformed {
    name: &'static str,
    text: &'static str,
    expected: &'static [&'static str],
}

const fn malformed(name: &'static str, text: &'static str, expected: &'static [&'static str]) -> Malformed {
    Malformed { name, text, expected }
}

const MALFORMED: &[Malformed] = &[
    malformed("empty", "\n\n", &["it has no message"]),
    malformed("no-json", "{}\nhello\n", &["line 1: it has no `direction`"]),
    malformed("text", "\nhello\n", &["line 2: it is no line of a transcript", "client-to-server"]),
    malformed("cut-off", "{\"direction\": \"client-to", &["line 1: it ends too early"]),
    malformed("an-array", "[]\n", &["line 1: it is an array", "expected a JSON object"]),
    malformed("unknown-member", "{\"dir\": \"in\"}\n", &["line 1", "unknown field `dir`", "`direction`"]),
    malformed("unknown-direction", "{\"direction\": \"in\", \"message\": {}}\n", &["line 1", "`client-to-server`"]),
    malformed("no-content", "{\"direction\": \"client-to-server\"}\n", &["line 1: it has neither `message`"]),
    malformed(
        "a-response-first",
        "{\"direction\": \"server-to-client\", \"http\": {\"status\": 200}}\n",
        &["line 1: no HTTP request comes before"],
    ),
    malformed(
        "negative-time",
        "{\"at-ms\": -1, \"direction\": \"client-to-server\", \"message\": {}}\n",
        &["line 1: `-1` is no time"],
    ),
    malformed(
        "no-base64",
        "{\"direction\": \"client-to-server\", \"base64\": \"?\"}\n",
        &["line 1: `base64` is invalid"],
    ),
    malformed(
        "another-message-is-carried",
        "{\"direction\": \"client-to-server\", \"http\": {\"method\": \"POST\", \"carries\": 5}}\n",
        &["line 1: `carries` is 5"],
    ),
    malformed(
        "no-revision",
        "{\"direction\": \"client-to-server\", \"message\": {\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}}\n",
        &["no connection shows its revision", "--revision"],
    ),
    malformed(
        "an-unknown-revision",
        "{\"direction\": \"client-to-server\", \"message\": {\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"initialize\"}}
{\"direction\": \"server-to-client\", \"message\": {\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {\"protocolVersion\": \"2999-01-01\"}}}\n",
        &["the version 2999-01-01", "2025-06-18"],
    ),
];

fn check(file: &Malformed) -> Result<(), String> {
    let folder = folder()?;
    fs::write(folder.path().join("f.jsonl"), file.text).map_err(|error| error.to_string())?;
    let mut judged = program(folder.path(), &["judge", "f.jsonl"])?.with_code(2)?.shows("f.jsonl")?;
    for expected in file.expected {
        judged = judged.shows(expected)?;
    }
    Ok(())
}
