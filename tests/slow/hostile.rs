//! Hostile and broken servers: programs that are not MCP servers, or that flood, lie, fork, hang or do not exit.
//!
//! Every trial runs the real program with real processes, and checks its exit code, its output, its duration, its
//! memory usage and that it leaves no process behind.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcp_conformance::reference::Fault;
use mcp_conformance::report::Report;
use mcp_conformance::verdict::Verdict;
use rustix::process::{Pid, Signal, kill_process};

use super::address::unused_address;
use crate::support::{PROGRAM, Trial, clean, describe_error, limits, program_command, trial};

/// The maximum memory usage of a run, in KiB.
const MAX_MEMORY_KIB: u64 = 100 << 10;

/// Timeouts for servers that do not answer, so that a run takes seconds instead of minutes.
pub(crate) const SHORT_TIMEOUTS: [&str; 4] = ["--startup-timeout", "2s", "--timeout", "1s"];

/// Timeouts for servers that answer, on a busy machine too.
pub(crate) const LONG_TIMEOUTS: [&str; 4] = ["--startup-timeout", "20s", "--timeout", "5s"];

/// A case that a user wrote.
const USER_CASE: &str = r#"{
  // Comments and trailing commas are allowed.
  "title": "The server answers a ping",
  "requirements": ["ping-empty-result"],
  "why": "Our monitoring relies on it.",
  "fix": "Answer `ping` with an empty result.",
  "steps": [{ "send": { "method": "ping" }, "expect": [{ "outcome": ["success"] }] }],
}
"#;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for server in ending_servers().into_iter().chain(broken_servers()) {
        trials.push(trial(format!("hostile/server/{}", server.name), move || server.check()));
    }
    for (name, server, limit) in unjudgeable_servers() {
        trials.push(trial(format!("hostile/null/{name}"), move || passes_no_case(&server, limit)));
    }
    for (fault, code, allowed) in opening_servers() {
        trials.push(trial(format!("hostile/null/{fault}"), move || passes_only(fault, code, allowed, None)));
        trials.push(trial(format!("hostile/null/{fault}-over-http"), move || {
            passes_only(fault, code, allowed, Some(unused_address()))
        }));
    }
    for (name, signal) in [("interrupt", Signal::INT), ("terminate", Signal::TERM)] {
        trials.push(trial(format!("hostile/signal/{name}-leaves-no-process"), move || {
            a_signal_leaves_no_process(signal)
        }));
    }
    trials
        .push(trial("hostile/ids-of-the-wrong-type-are-reported-quickly", ids_of_the_wrong_type_are_reported_quickly));
    trials.push(trial(
        "hostile/unanswered-requests-are-waited-for-together",
        unanswered_requests_are_waited_for_together,
    ));
    trials.push(trial("hostile/an-idle-server-is-abandoned-early", an_idle_server_is_abandoned_early));
    trials.push(trial(
        "hostile/a-busy-server-gets-its-whole-startup-timeout",
        a_busy_server_gets_its_whole_startup_timeout,
    ));
    trials.push(trial("hostile/a-long-text-is-shrunk-in-little-memory", a_long_text_is_shrunk_in_little_memory));
    trials.push(trial("hostile/long-answers-lose-no-case-and-take-little-memory", long_answers_lose_no_case));
    trials.push(trial("hostile/a-process-that-is-left-running-is-named", a_process_that_is_left_running_is_named));
    trials.push(trial("hostile/a-list-of-20000-tools-is-refused-with-the-limit", a_list_beyond_the_limit_is_refused));
    trials.push(trial("hostile/server-text-does-not-control-the-terminal", server_text_does_not_control_the_terminal));
    trials.push(trial(
        "hostile/cases/every-error-of-an-invalid-case-is-reported",
        every_error_of_an_invalid_case_is_reported,
    ));
    trials.push(trial(
        "hostile/cases/user-cases-run-alongside-the-built-in-cases",
        user_cases_run_alongside_the_built_in_cases,
    ));
    trials.push(trial("hostile/cases/a-missing-folder-is-reported", || {
        let run = Run::judge(&["--cases", "/does/not/exist"], &[PROGRAM, "serve"])?;
        run.expect(2, &["/does/not/exist"])
    }));
    trials
}

/// A broken server, and what a run against it must result in.
struct BrokenServer {
    name: &'static str,
    server: Vec<String>,
    code: i32,
    expected: &'static [&'static str],
    limit: Duration,
}

impl BrokenServer {
    fn check(&self) -> Result<(), String> {
        // Servers that answer need more time on a busy machine.
        let options = if self.code == 0 { &LONG_TIMEOUTS } else { &SHORT_TIMEOUTS };
        let run = Run::judge(options, &as_strs(&self.server))?;
        run.expect(self.code, self.expected)?;
        run.expect_within(self.limit)
    }
}

/// Programs that end before they answer anything.
fn ending_servers() -> Vec<BrokenServer> {
    let row = |name, server, code, expected, limit| BrokenServer { name, server, code, expected, limit };
    vec![
        row(
            "exits-at-once",
            shell("echo 'no config' >&2; exit 3"),
            2,
            &["the server exited before", "no config"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "exits-without-a-variable",
            shell("echo 'Error: the variable SERVICE_API_KEY is required' >&2; exit 3"),
            2,
            &["(exit status: 3): Error: the variable SERVICE_API_KEY is required", "give it with --env NAME=VALUE"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "exits-without-a-program",
            shell("exec no-such-program-of-this-machine"),
            2,
            &["(exit status: 127)", "a program is missing"],
            limits::WITHOUT_TIMEOUT,
        ),
    ]
}

fn broken_servers() -> Vec<BrokenServer> {
    let row = |name, server, code, expected, limit| BrokenServer { name, server, code, expected, limit };
    vec![
        row(
            "missing",
            command(&["./does-not-exist"]),
            2,
            &["failed to start `./does-not-exist`", "No such file"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "not-executable",
            command(&[concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")]),
            2,
            &["README.md` cannot be started", "not executable"],
            limits::WITHOUT_TIMEOUT,
        ),
        row("a-folder", command(&["/"]), 2, &["`/` is a directory"], limits::WITHOUT_TIMEOUT),
        row(
            "banner",
            shell("echo 'Server ready'; cat >/dev/null"),
            2,
            &["no JSON-RPC response", "Server ready"],
            limits::ALL_CASES,
        ),
        row("no-newline", shell("cat /dev/zero"), 2, &["exceeds the limit of 8 MiB"], limits::WITHOUT_TIMEOUT),
        row("lines-without-end", shell("yes"), 2, &["exceeded the output limit"], limits::WITHOUT_TIMEOUT),
        row(
            "huge-first-line",
            shell("head -c 104857600 /dev/zero; echo; cat >/dev/null"),
            2,
            &["exceeds the limit of 8 MiB"],
            limits::WITHOUT_TIMEOUT,
        ),
        row("silent", shell("exec sleep 1000"), 2, &["did not answer the first message"], limits::ALL_CASES),
        row("child-holds-stdout", server_after("sleep 1000 &", ""), 0, &["PASS"], limits::ALL_CASES),
        row("child-outside-the-group", server_after("setsid sleep 1000 &", ""), 0, &["PASS"], limits::ALL_CASES),
        row(
            "only-a-child-left",
            shell("sleep 1000 & exit 0"),
            2,
            &["the server exited before"],
            limits::WITHOUT_TIMEOUT,
        ),
        row("ignores-eof", faulty_server("ignores-eof"), 0, &["stdio-exit-on-eof"], limits::ALL_CASES),
        row(
            "ignores-eof-and-sigterm",
            faulty_server("ignores-sigterm"),
            0,
            &["The server is still running after its input was closed and SIGTERM was sent."],
            limits::ALL_CASES,
        ),
        row(
            "child-ignores-all",
            server_after("(trap '' TERM INT HUP; while :; do sleep 9; done) &", ""),
            0,
            &["PASS"],
            limits::ALL_CASES,
        ),
        row("floods", faulty_server("floods"), 1, &["exceeded the output limit", "logging-opt-in"], limits::ALL_CASES),
        row("huge-line", faulty_server("huge-line"), 2, &["exceeded the output limit"], limits::ALL_CASES),
        row(
            "deep-nesting",
            faulty_server("deep-nesting"),
            2,
            &["exceeds the limit of 120 nesting levels"],
            limits::ALL_CASES,
        ),
        row(
            "eight-megabytes-first",
            faulty_server("no-newline"),
            2,
            &["exceeds the limit of 8 MiB"],
            limits::ALL_CASES,
        ),
        row(
            "garbage",
            faulty_server("answers-garbage"),
            2,
            &["no JSON-RPC response", "not a message"],
            limits::ALL_CASES,
        ),
        row("dies-on-call", faulty_server("dies-on-call"), 1, &["tools/call"], limits::ALL_CASES),
        row("slow-start", faulty_server("slow-start"), 0, &["PASS"], limits::ALL_CASES),
        row("noise-on-stderr", faulty_server("stderr-noise"), 0, &["PASS"], limits::ALL_CASES),
    ]
}

/// Programs against which no case can be judged.
fn unjudgeable_servers() -> Vec<(&'static str, Vec<String>, Duration)> {
    vec![
        ("exits-at-once", shell("exit 0"), limits::WITHOUT_TIMEOUT),
        ("cat", command(&["cat"]), limits::WITHOUT_TIMEOUT),
        ("empty-objects", faulty_server("answers-empty-object"), limits::ALL_CASES),
        ("same-error", faulty_server("answers-same-error"), limits::ALL_CASES),
        ("never-answers", faulty_server("never-answers"), limits::ALL_CASES),
        ("garbage", faulty_server("answers-garbage"), limits::ALL_CASES),
    ]
}

/// Faults of servers that do nothing useful once they are open, with the exit code of the run, and the cases that may
/// pass, by their id or its beginning: those whose subject such a server shows.
fn opening_servers() -> [(&'static str, i32, &'static [&'static str]); 3] {
    /// What the opening alone shows, and each message that follows.
    const OPENING: [&str; 11] = [
        "jsonrpc/",
        "lifecycle/",
        "stdio/",
        "stateless/",
        "mrtr/three-methods",
        "security/internal-details",
        "tasks-extension/no-legacy-capability",
        "tools/capability/list-changed-boolean",
        "tools/capability/shape",
        "tools/definition/icon-scheme",
        "tools/capability/declared",
    ];
    /// The same, and what an empty result shows: that there is a response, that nothing is broken by a malformed
    /// request, and that results that have to be empty are empty.
    const EMPTY_RESULTS: [&str; 23] = [
        "jsonrpc/",
        "lifecycle/",
        "stdio/",
        "stateless/",
        "mrtr/three-methods",
        "security/internal-details",
        "tasks-extension/no-legacy-capability",
        "tools/capability/list-changed-boolean",
        "tools/capability/shape",
        "tools/definition/icon-scheme",
        "tools/capability/declared",
        "cancellation/without-params",
        "logging/answered",
        "logging/set-level",
        "prompts/list/answered",
        "resources/list/answered",
        "resources/templates/answered",
        "resources/read/malformed-uri",
        "roots/changed",
        "tasks-extension/no-other-task",
        "tools/call/odd-names",
        "tools/list/answered",
        "tools/list/invalid-cursor-harmless",
    ];
    [
        ("silent-after-opening", 1, &OPENING),
        ("errors-after-opening", 1, &OPENING),
        ("empty-after-opening", 1, &EMPTY_RESULTS),
    ]
}

fn command(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

fn as_strs(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

fn shell(script: &str) -> Vec<String> {
    command(&["sh", "-c", script])
}

/// The built-in server with a fault.
fn faulty_server(fault: &str) -> Vec<String> {
    assert!(fault.parse::<Fault>().is_ok(), "there is no fault `{fault}`");
    command(&[PROGRAM, "serve", "--fault", fault])
}

/// The built-in server, started by a shell that runs another command first.
fn server_after(first: &str, options: &str) -> Vec<String> {
    command(&["sh", "-c", &format!("{first} exec \"$0\" serve {options}"), PROGRAM])
}

/// A server that ends at a long line: shrinking one such text once took twenty gigabytes.
fn a_long_text_is_shrunk_in_little_memory() -> Result<(), String> {
    const FILTER: &str = r#"perl -ne 'BEGIN { $| = 1 } exit 1 if length($_) > 140000; print' | exec "$0" serve"#;
    let options = ["--select", "fuzz/*", "--tool", "echo", "--revision", "2025-11-25", "--regressions", "none"];
    let options = [&["--fuzz", "auto", "--fuzz-time", "60s"][..], &options[..]].concat();
    let run = Run::judge(&options, &["sh", "-c", FILTER, PROGRAM])?;
    run.expect(1, &["echo: a call makes the server exit"])
}

/// Servers whose calls return seven million characters: the first few are kept whole, of the others the beginning.
fn long_answers_lose_no_case() -> Result<(), String> {
    const MAX_KIB: u64 = 150 << 10;
    const FILTER: &str = r#""$0" serve | perl -pe 'BEGIN { $| = 1; $long = "x" x 7000000 }
        s/("type":"text","text":")/$1$long/ unless /structuredContent|"messages"|"resource"|"isError":true/'"#;
    let options = ["--revision", "2025-11-25", "--regressions", "none", "--tool", "echo"];
    let selected = ["--select", "tools", "--select", "jsonrpc", "--select", "fuzz"];
    let options = [&selected[..], &options[..]].concat();
    let run = Run::judge(&options, &["sh", "-c", FILTER, PROGRAM])?;
    if run.code != Some(0) || run.text.contains("could not be judged") {
        return Err(run.failure("not every case passes"));
    }
    if run.peak.is_some_and(|peak| peak > MAX_KIB) {
        return Err(run.failure(&format!("the program uses more than {MAX_KIB} KiB")));
    }
    Ok(())
}

/// A server that exits and leaves a process running; one whose process ends soon after it, or has left its group, conforms.
fn a_process_that_is_left_running_is_named() -> Result<(), String> {
    let options =
        ["--strict", "--revision", "2025-11-25", "--regressions", "none", "--select", "stdio/no-process-left"];
    let run = Run::judge(&options, &[PROGRAM, "serve", "--fault", "leaves-process"])?;
    run.expect(1, &["stdio/no-process-left", "sleep still runs"])?;
    for leaving in ["sleep 60 & sleep 61 &", "sleep 0.1 &", "setsid sleep 3 &"] {
        let command = format!(r#""$0" serve; {leaving} exit 0"#);
        let run = Run::judge(&options, &["sh", "-c", &command, PROGRAM])?;
        match leaving {
            "sleep 60 & sleep 61 &" => run.expect(1, &["sleep still runs"])?,
            _ if run.code == Some(0) => {}
            _ => return Err(run.failure("a process that ends or has left the group counts as left running")),
        }
    }
    Ok(())
}

/// A page with 20,000 tools more than the built-in server has: what is wrong is the limit of the program, and it says so.
fn a_list_beyond_the_limit_is_refused() -> Result<(), String> {
    const FILTER: &str = r#""$0" serve | perl -pe 'BEGIN { $| = 1;
            $more = join "", map { qq(,{"name":"tool_$_","inputSchema":{"type":"object"}}) } 1 .. 20000 }
        s/(.*)\](?=[,}])/$1$more]/ if /"tools":\[\{/'"#;
    let run = Run::judge(&["--revision", "2025-11-25", "--regressions", "none"], &["sh", "-c", FILTER, PROGRAM])?;
    run.expect(2, &["a line of the server exceeds the limit of 200000 values", "NOT JUDGED"])
}

/// The result of running the program.
pub(crate) struct Run {
    command: String,
    pub(crate) code: Option<i32>,
    /// Standard output and standard error.
    pub(crate) text: String,
    pub(crate) duration: Duration,
    /// Its peak memory usage in KiB, if the system reports it.
    pub(crate) peak: Option<u64>,
    /// Processes that have its mark in their environment and still run.
    leftovers: Vec<String>,
}

impl Run {
    /// Judges a server.
    pub(crate) fn judge(options: &[&str], server: &[&str]) -> Result<Self, String> {
        Self::start(program_command(), options, server, &[], None)
    }

    /// Judges a server with another build of the program.
    pub(crate) fn judge_with_build(program: &Path, options: &[&str], server: &[&str]) -> Result<Self, String> {
        Self::start(clean(Command::new(program)), options, server, &[], None)
    }

    /// Judges a server, with variables in the environment of the program.
    pub(crate) fn judge_with_variables(
        options: &[&str],
        server: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Self, String> {
        Self::start(program_command(), options, server, variables, None)
    }

    /// Judges a server, and sends the given signal, if any, to the program after the given time.
    fn start(
        mut program: Command,
        options: &[&str],
        server: &[&str],
        variables: &[(&str, &str)],
        signal: Option<(Signal, Duration)>,
    ) -> Result<Self, String> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let mark = format!("MCP_CONFORMANCE_TRIAL={}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let (name, value) = mark.split_once('=').expect("it contains `=`");
        let folder = tempfile::tempdir().map_err(describe_error)?;
        let output = folder.path().join("output");
        let file = File::create(&output).map_err(describe_error)?;
        let began = Instant::now();
        let mut child = program
            .args(["--fuzz", "off"])
            .args(options)
            .arg("--")
            .args(server)
            .env(name, value)
            .envs(variables.iter().copied())
            .stdout(file.try_clone().map_err(describe_error)?)
            .stderr(file)
            .spawn()
            .map_err(describe_error)?;
        let mut signal = signal;
        let mut peak = None;
        let status = loop {
            peak = peak_memory_of(child.id()).max(peak);
            if let Some(status) = child.try_wait().map_err(describe_error)? {
                break status;
            }
            if let Some((which, after)) = signal
                && began.elapsed() >= after
            {
                let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("no process id")?;
                kill_process(pid, which).map_err(|error| format!("failed to send the signal: {error}"))?;
                signal = None;
            }
            if began.elapsed() > limits::here(limits::ANY_RUN) {
                child.kill().map_err(describe_error)?;
                child.wait().map_err(describe_error)?;
                return Err(format!("{options:?} -- {server:?} did not end"));
            }
            std::thread::sleep(Duration::from_millis(4));
        };
        Ok(Self {
            command: format!("mcp-conformance {} -- {}", options.join(" "), server.join(" ")),
            code: status.code(),
            text: String::from_utf8_lossy(&fs::read(&output).map_err(describe_error)?).into_owned(),
            duration: began.elapsed(),
            peak,
            leftovers: leftover_processes(&mark),
        })
    }

    /// Fails unless the program exited with this code, printed these strings, used little memory and left no process.
    pub(crate) fn expect(&self, code: i32, expected: &[&str]) -> Result<(), String> {
        if self.code != Some(code) {
            return Err(self.failure(&format!("the exit code is not {code}")));
        }
        let flat = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(missing) = expected.iter().find(|string| !flat.contains(**string)) {
            return Err(self.failure(&format!("the output lacks `{missing}`")));
        }
        if self.peak.is_some_and(|peak| peak > MAX_MEMORY_KIB) {
            return Err(self.failure(&format!("the program uses more than {MAX_MEMORY_KIB} KiB")));
        }
        if !self.leftovers.is_empty() {
            return Err(self.failure(&format!("processes still run:\n{}", self.leftovers.join("\n"))));
        }
        Ok(())
    }

    /// Fails if the run took longer.
    pub(crate) fn expect_within(&self, limit: Duration) -> Result<(), String> {
        let limit = limits::here(limit);
        if self.duration > limit { Err(self.failure(&format!("the run takes longer than {limit:?}"))) } else { Ok(()) }
    }

    /// A failure message: the problem, the command and the end of the output.
    pub(crate) fn failure(&self, problem: &str) -> String {
        const MAX_OUTPUT_BYTES: usize = 6_000;
        let from = self.text.len().saturating_sub(MAX_OUTPUT_BYTES);
        let from = (from..=self.text.len()).find(|at| self.text.is_char_boundary(*at)).unwrap_or_default();
        format!(
            "{problem}\n{}\nexit code {:?} after {:.2?}, peak {:?} KiB\n{}",
            self.command,
            self.code,
            self.duration,
            self.peak,
            &self.text[from..]
        )
    }
}

/// The peak memory usage of a process so far, in KiB.
fn peak_memory_of(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Processes with a variable in their environment, after killed processes had a moment to disappear: longer if a busy
/// machine has not let a killed one run until it ends.
fn leftover_processes(mark: &str) -> Vec<String> {
    let began = Instant::now();
    loop {
        let found = processes_with_mark(mark);
        let is_ending = found.iter().all(|folder| is_killed(folder));
        let limit = limits::here(if is_ending { limits::KILLED } else { limits::LEFT_BEHIND });
        if found.is_empty() || began.elapsed() >= limit {
            return found.iter().map(|folder| describe_process(folder)).collect();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The folders of the processes with a variable in their environment.
fn processes_with_mark(mark: &str) -> Vec<PathBuf> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let has_mark = |folder: &PathBuf| {
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    processes.flatten().map(|entry| entry.path()).filter(has_mark).collect()
}

/// Whether SIGKILL is pending for a process.
fn is_killed(folder: &Path) -> bool {
    const KILL: u64 = 1 << 8;
    let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
    let pending = status.lines().filter_map(|line| line.strip_prefix("SigPnd:").or(line.strip_prefix("ShdPnd:")));
    pending.filter_map(|mask| u64::from_str_radix(mask.trim(), 16).ok()).any(|mask| mask & KILL != 0)
}

fn describe_process(folder: &Path) -> String {
    let line = fs::read(folder.join("cmdline")).unwrap_or_default();
    let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
    let state = status.lines().find(|line| line.starts_with("State:")).unwrap_or_default();
    format!("{} {} {state}", folder.display(), String::from_utf8_lossy(&line).replace('\0', " "))
}

/// Judges a server and reads the report.
fn report(options: &[&str], server: &[&str]) -> Result<(Run, Report), String> {
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let path = folder.path().join("report.json");
    let format_and_path = format!("json={}", path.display());
    let run = Run::judge(&[options, &["--report", &format_and_path]].concat(), server)?;
    let text =
        fs::read_to_string(&path).map_err(|error| run.failure(&format!("failed to read the report: {error}")))?;
    let report =
        serde_json::from_str(&text).map_err(|error| run.failure(&format!("failed to parse the report: {error}")))?;
    Ok((run, report))
}

fn passes_no_case(server: &[String], limit: Duration) -> Result<(), String> {
    let (run, report) = report(&SHORT_TIMEOUTS, &as_strs(server))?;
    run.expect(2, &["NOT JUDGED"])?;
    run.expect_within(limit)?;
    let passed: Vec<&str> = report.results().filter(|r| r.verdict == Verdict::Pass).map(|r| r.case.as_str()).collect();
    if passed.is_empty() { Ok(()) } else { Err(run.failure(&format!("these cases pass: {passed:?}"))) }
}

/// What a server over HTTP shows by its statuses, headers and streams, whatever its messages are.
const OF_HTTP: [&str; 6] =
    ["http/", "http-headers/", "http-resumability/", "http-security/", "http-session/", "http-sse/"];

/// Fails if a case passes that is about something that a server with this fault does not show, over standard streams or at
/// an address.
fn passes_only(fault: &str, code: i32, allowed: &[&str], address: Option<SocketAddr>) -> Result<(), String> {
    let mut server = faulty_server(fault);
    let mut options: Vec<String> = LONG_TIMEOUTS.iter().map(|option| (*option).to_owned()).collect();
    let mut allowed = allowed.to_vec();
    if let Some(address) = address {
        server.extend(["--http".to_owned(), address.to_string()]);
        options.extend(["--url".to_owned(), format!("http://{address}/mcp")]);
        allowed.extend(OF_HTTP);
    }
    let (run, report) = report(&as_strs(&options), &as_strs(&server))?;
    run.expect(code, &[])?;
    let is_allowed = |case: &str| {
        let fits = |own: &&str| if own.ends_with('/') { case.starts_with(own) } else { case == *own };
        // Subscriptions are messages on a stream.
        allowed.iter().any(fits) && !case.starts_with("http/listen-")
    };
    let passed = report.results().filter(|result| result.verdict == Verdict::Pass);
    let wrong: Vec<&str> = passed.map(|result| result.case.as_str()).filter(|case| !is_allowed(case)).collect();
    if wrong.is_empty() { Ok(()) } else { Err(run.failure(&format!("these cases pass: {wrong:?}"))) }
}

fn a_signal_leaves_no_process(signal: Signal) -> Result<(), String> {
    let first = "setsid sleep 1000 & (trap '' TERM INT HUP; while :; do sleep 9; done) &";
    let server = server_after(first, "--fault ignores-sigterm");
    let after = limits::here(limits::BEFORE_SIGNAL);
    let run = Run::start(program_command(), &["--timeout", "1s"], &as_strs(&server), &[], Some((signal, after)))?;
    if run.duration < after {
        return Err(run.failure("the run ended before the signal"));
    }
    run.expect_within(after + limits::WITHOUT_TIMEOUT)?;
    // Violations found before the signal count.
    let code = run
        .code
        .filter(|code| [1, 2].contains(code))
        .ok_or_else(|| run.failure("the signal terminates the program"))?;
    run.expect(code, &["the run was interrupted"])
}

/// With the default timeouts: an idle server is distinguished from a slow one.
fn an_idle_server_is_abandoned_early() -> Result<(), String> {
    let run = Run::judge(&[], &as_strs(&shell("exec sleep 1000")))?;
    run.expect(2, &["did not answer the first message, and was idle for 5s", "--startup-timeout"])?;
    if cfg!(target_os = "linux") { run.expect_within(limits::IDLE_SERVER) } else { Ok(()) }
}

/// The server is busy for longer than an idle one may take, and then starts.
fn a_busy_server_gets_its_whole_startup_timeout() -> Result<(), String> {
    let busy = "end=$(($(date +%s) + 7)); while [ $(date +%s) -lt $end ]; do :; done";
    let server = shell(&format!("{busy}; exec '{PROGRAM}' serve"));
    let flags = ["--revision", "2025-11-25", "--select", "jsonrpc/base-methods"];
    Run::judge(&flags, &as_strs(&server))?.expect(0, &["PASS"])
}

/// The server answers every request under another id: waiting for the right ids would take minutes.
fn ids_of_the_wrong_type_are_reported_quickly() -> Result<(), String> {
    // Judging more revisions takes a processor longer than it takes to wait for anything, and the cases that are left out take
    // the time of four calls twice, as its finding is confirmed.
    let flags = ["--revision", "2025-11-25", "--skip", "cancellation/running-*"];
    let run = Run::judge(&flags, &as_strs(&faulty_server("ids-wrong-type")))?;
    run.expect(1, &["a result whose id differs from that of its request in value or type"])?;
    run.expect_within(limits::WRONG_IDS)
}

/// Three of six concurrent requests are not answered: one after the other they would be waited for three times as long.
fn unanswered_requests_are_waited_for_together() -> Result<(), String> {
    let flags = ["--strict", "--timeout", "5s", "--revision", "2025-06-18", "--select", "jsonrpc/ids-distinct"];
    let run = Run::judge(&flags, &as_strs(&faulty_server("id-kinds-confused")))?;
    run.expect(1, &["does not answer the one with the string id"])?;
    run.expect_within(limits::UNANSWERED_TOGETHER)
}

fn server_text_does_not_control_the_terminal() -> Result<(), String> {
    let run = Run::judge(&["-v"], &as_strs(&faulty_server("hostile-text")))?;
    run.expect(0, &["PASS"])?;
    let is_control = |c: char| c.is_control() && c != '\n';
    match run.text.lines().find(|line| line.contains(is_control)) {
        Some(line) => Err(run.failure(&format!("the program prints control characters: {line:?}"))),
        None => Ok(()),
    }
}

fn every_error_of_an_invalid_case_is_reported() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let area = folder.path().join("mine");
    fs::create_dir(&area).map_err(describe_error)?;
    fs::write(area.join("fine.jsonc"), USER_CASE).map_err(describe_error)?;
    let misspelt = USER_CASE.replace("ping-empty-result", "ping-emtpy-result").replace("\"steps\"", "\"stesp\"");
    fs::write(area.join("misspelt.jsonc"), misspelt).map_err(describe_error)?;
    fs::write(area.join("torn.jsonc"), "{\n  \"title\": \"Torn\n}\n").map_err(describe_error)?;
    let path = folder.path().display().to_string();
    let run = Run::judge(&["--cases", &path], &[PROGRAM, "serve"])?;
    run.expect(2, &["misspelt.jsonc:4", "`ping-empty-result`", "misspelt.jsonc:7", "`steps`", "torn.jsonc:2"])?;
    run.expect_within(limits::WITHOUT_TIMEOUT)
}

fn user_cases_run_alongside_the_built_in_cases() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(describe_error)?;
    fs::create_dir(folder.path().join("mine")).map_err(describe_error)?;
    fs::write(folder.path().join("mine/ping.jsonc"), USER_CASE).map_err(describe_error)?;
    let path = folder.path().display().to_string();
    let (run, report) = report(&["--revision", "2025-11-25", "--cases", &path], &[PROGRAM, "serve"])?;
    run.expect(0, &["PASS"])?;
    let results: Vec<_> = report.results().filter(|result| result.case == "mine/ping").collect();
    if results.len() != 1 || results[0].verdict != Verdict::Pass {
        return Err(run.failure(&format!("expected one passing result of the user's case, found {results:?}")));
    }
    if report.results().count() < 100 {
        return Err(run.failure("the built-in cases do not run"));
    }
    Ok(())
}
