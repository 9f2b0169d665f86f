//! Compares the speed of the fuzzer with that of a client that only writes and reads lines.
//!
//! `cargo bench --bench throughput` starts a server that only answers, calls it as fast as a minimal client
//! can, then fuzzes it with the whole program and every oracle, and prints a table: calls per second one at
//! a time and pipelined, processor time per call, ninety tools compared with one, and the peak memory for a
//! million calls. One at a time, the minimal client sends the very lines that the fuzzer sent before, since
//! arguments of some hundred bytes take longer than the few of a fixed call on any client. Everything is measured with whole processes in the same run, since the results depend on
//! the machine. `CALLS=<n>` makes the runs shorter or longer.
//!
//! The server is this program itself, started with the argument `serve` and a number of tools.
#![expect(clippy::print_stdout, reason = "the table is printed to the terminal")]

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-conformance");
/// The number of calls of a run, except for the memory measurement.
const CALLS: u64 = 100_000;
/// The number of calls of the memory measurement.
const MANY: u64 = 1_000_000;
/// The number of tools of a server with many tools.
const TOOLS: usize = 90;
/// How many calls the pipelined client keeps in flight.
const IN_FLIGHT: usize = 256;
const ONE_AT_A_TIME: &[&str] = &["--in-flight", "1"];
/// Clock ticks per second, the unit of processor time in Linux.
const TICKS: f64 = 100.0;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [word, tools, recording @ ..] = arguments.as_slice()
        && word == "serve"
    {
        return serve(tools.parse().unwrap_or(1), recording.first().map(Path::new));
    }
    measure()
}

// The server: it searches for the id and the method in the text of a request, and has fixed responses.

/// With `recording`, the file gets every byte of the input.
fn serve(tools: usize, recording: Option<&Path>) -> io::Result<()> {
    // A server may be started more than once; the fuzzer's lines are those of all processes.
    let mut recording =
        recording.map(|path| fs::OpenOptions::new().create(true).append(true).open(path)).transpose()?;
    let list = format!("{{\"tools\":[{}]}}", (0..tools).map(definition).collect::<Vec<_>>().join(","));
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    let mut bytes = vec![0; 1 << 18];
    let mut held = 0;
    let mut answers = Vec::with_capacity(1 << 18);
    loop {
        if held == bytes.len() {
            bytes.resize(held * 2, 0);
        }
        let read = input.read(&mut bytes[held..])?;
        if read == 0 {
            return Ok(());
        }
        let end = held + read;
        if let Some(file) = &mut recording {
            file.write_all(&bytes[held..end])?;
        }
        let mut start = 0;
        // Only the new bytes can contain a line ending that was not seen before.
        let mut from = held;
        while let Some(length) = bytes[from..end].iter().position(|byte| *byte == b'\n') {
            answer(&bytes[start..from + length], &list, &mut answers);
            start = from + length + 1;
            from = start;
        }
        bytes.copy_within(start..end, 0);
        held = end - start;
        output.write_all(&answers)?;
        output.flush()?;
        answers.clear();
    }
}

fn definition(number: usize) -> String {
    json!({
        "name": format!("tool_{number}"),
        "description": "Does nothing.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 100},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50},
                "sort": {"type": "string", "enum": ["name", "size", "date"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 4},
            },
            "required": ["query"],
        },
        "annotations": {"readOnlyHint": true},
    })
    .to_string()
}

fn answer(line: &[u8], list: &str, answers: &mut Vec<u8>) {
    let Some(id) = id(line) else { return };
    answers.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    answers.extend_from_slice(id);
    let has = |part: &[u8]| line.windows(part.len().max(1)).take(256).any(|window| window == part);
    if has(b"\"tools/call\"") {
        // A tool error is acceptable for valid and invalid arguments, so that nothing needs shrinking.
        answers.extend_from_slice(
            b",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"Not now.\"}],\"isError\":true}}\n",
        );
    } else if has(b"\"tools/list\"") {
        answers.extend_from_slice(format!(",\"result\":{list}}}\n").as_bytes());
    } else if has(b"\"initialize\"") {
        answers.extend_from_slice(
            b",\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"idle\",\"version\":\"1\"}}}\n",
        );
    } else if has(b"\"ping\"") {
        answers.extend_from_slice(b",\"result\":{}}\n");
    } else {
        answers.extend_from_slice(b",\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}\n");
    }
}

/// The id of a request as written; it is near the beginning or absent.
fn id(line: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = b"\"id\":";
    let at = line.windows(KEY.len()).take(64).position(|window| window == KEY)? + KEY.len();
    let length = line[at..].iter().position(|byte| matches!(byte, b',' | b'}'))?;
    Some(&line[at..at + length])
}

// The minimal client.

struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(tools: usize) -> io::Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .args(["serve", &tools.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().expect("it was requested");
        let output = BufReader::with_capacity(1 << 18, child.stdout.take().expect("it was requested"));
        Ok(Self { child, input, output })
    }

    /// Makes `calls` calls, `in_flight` at a time; returns the calls per second.
    fn call(&mut self, calls: u64, in_flight: usize) -> io::Result<f64> {
        let mut lines = Vec::new();
        let mut answer = Vec::new();
        let mut sent = 0;
        let began = Instant::now();
        while sent < calls {
            lines.clear();
            for _ in 0..in_flight {
                sent += 1;
                writeln!(
                    lines,
                    "{{\"jsonrpc\":\"2.0\",\"id\":{sent},\"method\":\"tools/call\",\"params\":{{\"name\":\"tool_0\",\"arguments\":{{\"query\":\"abc\",\"limit\":5}}}}}}"
                )?;
            }
            self.input.write_all(&lines)?;
            for _ in 0..in_flight {
                answer.clear();
                self.output.read_until(b'\n', &mut answer)?;
            }
        }
        Ok(per_second(sent, began.elapsed()))
    }

    /// Sends recorded calls one at a time; returns the calls per second.
    fn repeat(&mut self, recorded: &[u8]) -> io::Result<f64> {
        let mut answer = Vec::new();
        let mut sent = 0;
        let began = Instant::now();
        for line in recorded.split_inclusive(|byte| *byte == b'\n').filter(|line| is_call(line)) {
            sent += 1;
            self.input.write_all(line)?;
            answer.clear();
            self.output.read_until(b'\n', &mut answer)?;
        }
        Ok(per_second(sent, began.elapsed()))
    }

    fn end(mut self) -> io::Result<()> {
        drop(self.input);
        self.child.wait().map(drop)
    }
}

/// Whether the server answers the line, as it finds an id in it, and the line is a call.
fn is_call(line: &[u8]) -> bool {
    id(line).is_some() && line.windows(12).take(256).any(|window| window == b"\"tools/call\"")
}

// The fuzzer, as a separate process.

#[derive(Debug, Default)]
struct Fuzzed {
    calls: u64,
    per_second: f64,
    /// Processor time of the fuzzer alone, in microseconds per call.
    processor: f64,
    /// Its peak memory, in MiB.
    memory: f64,
    findings: u64,
}

fn fuzz(folder: &Path, tools: usize, calls: u64, more: &[&str], recording: Option<&Path>) -> io::Result<Fuzzed> {
    let report = folder.join("report.json");
    let each = (calls / tools as u64).to_string();
    let own = env::current_exe()?;
    let mut child = Command::new(PROGRAM)
        .args(["--select", "fuzz/*", "--revision", "2025-11-25", "--jobs", "1", "--fuzz-time", "1h", "--fuzz", &each])
        .args(more)
        .arg("--regressions")
        .arg(folder.join("regressions"))
        .arg("--report")
        .arg(format!("json={}", report.display()))
        .arg("--")
        .arg(own)
        .args(["serve", &tools.to_string()])
        .args(recording)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut fuzzed = Fuzzed::default();
    let mut ticks = 0.0;
    while child.try_wait()?.is_none() {
        if let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", child.id())) {
            ticks = processor_ticks(&stat).unwrap_or(ticks);
        }
        if let Ok(status) = fs::read_to_string(format!("/proc/{}/status", child.id())) {
            fuzzed.memory = peak(&status).unwrap_or(fuzzed.memory);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let text = fs::read_to_string(&report)?;
    let report: Value = serde_json::from_str(&text)?;
    let summary =
        find(&report, &|value| value.get("calls").is_some_and(Value::is_u64) && value.get("wall-ms").is_some());
    let (calls, wall) = summary.map_or((0, 0.0), |summary| {
        (summary["calls"].as_u64().unwrap_or_default(), summary["wall-ms"].as_f64().unwrap_or_default())
    });
    fuzzed.calls = calls;
    fuzzed.per_second = per_second(calls, Duration::from_secs_f64(wall / 1_000.0));
    fuzzed.processor = ticks / TICKS * 1e6 / as_real(calls);
    fuzzed.findings = text.matches("\"counterexample\"").count() as u64;
    Ok(fuzzed)
}

/// The first matching value at any depth.
fn find<'v>(value: &'v Value, wanted: &dyn Fn(&Value) -> bool) -> Option<&'v Value> {
    if wanted(value) {
        return Some(value);
    }
    match value {
        Value::Array(items) => items.iter().find_map(|item| find(item, wanted)),
        Value::Object(members) => members.values().find_map(|member| find(member, wanted)),
        _ => None,
    }
}

/// User and system time of a process, without its children.
fn processor_ticks(stat: &str) -> Option<f64> {
    // The program name may contain spaces; the fields after it do not.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let (user, system) = (fields.next()?.parse::<f64>().ok()?, fields.next()?.parse::<f64>().ok()?);
    Some(user + system)
}

/// The peak memory of a process so far, in MiB.
fn peak(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1_024.0)
}

#[expect(clippy::cast_precision_loss, reason = "no number of calls comes near 2^53")]
fn as_real(number: u64) -> f64 {
    number as f64
}

fn per_second(calls: u64, took: Duration) -> f64 {
    as_real(calls) / took.as_secs_f64().max(1e-9)
}

fn measure() -> io::Result<()> {
    let calls = env::var("CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(CALLS);
    let many = if calls < CALLS { calls * 10 } else { MANY };
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let mut server = Server::start(1)?;
    server.call(calls / 10, 1)?;
    let recording = folder.join("lines");
    fuzz(folder, 1, calls, ONE_AT_A_TIME, Some(&recording))?;
    let single = server.repeat(&fs::read(&recording)?)?;
    let pipelined = server.call(calls * 10, IN_FLIGHT)?;
    server.end()?;
    println!("{:<44} {:>12} {:>8} {:>10} {:>9}", "", "calls/s", "relative", "CPU µs", "MiB");
    let client = |name: &str, speed: f64| println!("{name:<44} {speed:>12.0} {:>8}", "100 %");
    let line = |name: &str, fuzzed: &Fuzzed, of: f64| {
        let share = fuzzed.per_second / of * 100.0;
        println!(
            "{name:<44} {:>12.0} {share:>6.1} % {:>10.2} {:>9.0}  ({} calls, {} findings)",
            fuzzed.per_second, fuzzed.processor, fuzzed.memory, fuzzed.calls, fuzzed.findings
        );
    };
    client("minimal client, one at a time", single);
    line("fuzzer, one at a time", &fuzz(folder, 1, calls, ONE_AT_A_TIME, None)?, single);
    client(&format!("minimal client, {IN_FLIGHT} in flight"), pipelined);
    let flight = IN_FLIGHT.to_string();
    line("fuzzer, as many in flight", &fuzz(folder, 1, calls * 5, &["--in-flight", &flight], None)?, pipelined);
    line("fuzzer, as it chooses", &fuzz(folder, 1, calls * 5, &[], None)?, pipelined);
    // Each tool gets its own boundaries and malformed calls, so ninety tools are compared with one that is called
    // as often as each of them; there the program's start has more weight.
    let each = calls * 5 / TOOLS as u64;
    line("fuzzer, ninety tools", &fuzz(folder, TOOLS, calls * 5, &[], None)?, pipelined);
    line("fuzzer, one tool, as often as each", &fuzz(folder, 1, each, &[], None)?, pipelined);
    line("fuzzer, ten tools, as often as each", &fuzz(folder, 10, each * 10, &[], None)?, pipelined);
    line("fuzzer, a million calls", &fuzz(folder, 1, many, &[], None)?, pipelined);
    Ok(())
}
