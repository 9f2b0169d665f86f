//! What the judge must bear: servers that are no servers, that flood, lie, fork, hang or refuse to end.
//!
//! Every trial drives the real program with real processes, and looks at its exit code, its words, the
//! time and the memory that it took, and at what it left behind.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use mcp_conformance::reference::Fault;
use mcp_conformance::report::Report;
use mcp_conformance::verdict::Verdict;
use rustix::process::{Pid, Signal, kill_process};

use crate::trial;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-conformance");

/// The most memory that a run may take, in KiB.
const MEMORY: u64 = 100 << 10;

/// Bounds where silence is the point, so that it takes seconds instead of minutes.
pub(crate) const IMPATIENT: [&str; 4] = ["--startup-timeout", "2s", "--timeout", "1s"];

/// Settings for servers that answer.
pub(crate) const PATIENT: [&str; 4] = ["--startup-timeout", "20s", "--timeout", "5s"];

/// A case of a user's own, for servers that have tools.
const OWN_CASE: &str = r#"{
  // Comments and trailing commas are allowed.
  "title": "Our server answers a ping",
  "requirements": ["ping-empty-result"],
  "why": "We rely on it.",
  "fix": "Answer it.",
  "steps": [{ "send": { "method": "ping" }, "expect": [{ "outcome": ["success"] }] }],
}
"#;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for bad in bad_servers() {
        trials.push(trial(format!("hostile/server/{}", bad.name), move || bad.is_borne()));
    }
    for (name, server, limit) in null_servers() {
        trials.push(trial(format!("hostile/null/{name}"), move || passes_nothing(&server, limit)));
    }
    for (name, signal) in [("interrupt", Signal::INT), ("terminate", Signal::TERM)] {
        trials.push(trial(format!("hostile/signal/{name}-leaves-nothing"), move || a_signal_leaves_nothing(signal)));
    }
    trials.push(trial("hostile/ids-of-the-wrong-type-are-told-soon", ids_of_the_wrong_type_are_told_soon));
    trials.push(trial("hostile/one-that-does-nothing-is-given-up-soon", one_that_does_nothing_is_given_up_soon));
    trials.push(trial("hostile/one-that-is-busy-is-waited-for", one_that_is_busy_is_waited_for));
    trials.push(trial("hostile/text-of-the-server-steers-no-terminal", text_of_the_server_steers_no_terminal));
    trials.push(trial("hostile/cases/broken", every_fault_of_a_broken_case_is_told));
    trials.push(trial("hostile/cases/own", own_cases_run_beside_ours));
    trials.push(trial("hostile/cases/missing", || {
        let run = Run::of(&["--cases", "/does/not/exist"], &[PROGRAM, "serve"])?;
        run.expect(2, &["/does/not/exist"])
    }));
    trials
}

/// A server that the judge must bear.
struct Bad {
    name: &'static str,
    server: Vec<String>,
    code: i32,
    says: &'static [&'static str],
    limit: Duration,
}

impl Bad {
    fn is_borne(&self) -> Result<(), String> {
        // Only silence is made short: a server that answers is given its time, also on a busy machine.
        let options = if self.code == 0 { &PATIENT } else { &IMPATIENT };
        let run = Run::of(options, &words(&self.server))?;
        run.expect(self.code, self.says)?;
        run.within(self.limit)
    }
}

/// Long enough for a run in which nothing is waited for, on a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_secs(15);

/// Long enough for a run in which the start-up is waited for, or every case is judged.
pub(crate) const LATER: Duration = Duration::from_secs(45);

fn bad_servers() -> Vec<Bad> {
    let bad = |name, server, code, says, limit| Bad { name, server, code, says, limit };
    vec![
        bad(
            "missing",
            command(&["./does-not-exist"]),
            2,
            &["failed to start `./does-not-exist`", "No such file"],
            SOON,
        ),
        bad("not-executable", command(&["/etc/hosts"]), 2, &["failed to start `/etc/hosts`", "executable"], SOON),
        bad("a-folder", command(&["/"]), 2, &["failed to start `/`"], SOON),
        bad("ends-at-once", shell("echo 'no config' >&2; exit 3"), 2, &["the server exited before", "no config"], SOON),
        bad(
            "banner",
            shell("echo 'Server ready'; cat >/dev/null"),
            2,
            &["no JSON-RPC response", "Server ready"],
            LATER,
        ),
        bad("no-newline", shell("cat /dev/zero"), 2, &["exceed"], SOON),
        bad("lines-without-end", shell("yes"), 2, &["exceed"], SOON),
        bad("huge-first-line", shell("head -c 104857600 /dev/zero; echo; cat >/dev/null"), 2, &["exceed"], SOON),
        bad("silent", shell("exec sleep 1000"), 2, &["did not answer the first message"], LATER),
        bad("child-holds-stdout", forking("sleep 1000 &", ""), 0, &["PASS"], LATER),
        bad("child-outside-the-group", forking("setsid sleep 1000 &", ""), 0, &["PASS"], LATER),
        bad("only-a-child-left", shell("sleep 1000 & exit 0"), 2, &["the server exited before"], SOON),
        bad("ignores-eof", serving("ignores-eof"), 0, &["stdio-exit-on-eof"], LATER),
        bad("ignores-eof-and-sigterm", serving("ignores-sigterm"), 0, &["stdio-exit-on-sigterm"], LATER),
        bad(
            "child-ignores-all",
            forking("(trap '' TERM INT HUP; while :; do sleep 9; done) &", ""),
            0,
            &["PASS"],
            LATER,
        ),
        bad("floods", serving("floods"), 1, &["exceed", "logging-opt-in"], LATER),
        bad("huge-line", serving("huge-line"), 2, &["exceed"], LATER),
        bad("deep-nesting", serving("deep-nesting"), 2, &["nesting levels"], LATER),
        bad("eight-megabytes-first", serving("no-newline"), 2, &["exceeds the limit of 8 MiB"], LATER),
        bad("garbage", serving("answers-garbage"), 2, &["no JSON-RPC response", "not a message"], LATER),
        bad("dies-on-call", serving("dies-on-call"), 1, &["tools/call"], LATER),
        bad("slow-start", serving("slow-start"), 0, &["PASS"], LATER),
        bad("noise-on-stderr", serving("stderr-noise"), 0, &["PASS"], LATER),
    ]
}

/// Programs of which nothing can be proved.
fn null_servers() -> Vec<(&'static str, Vec<String>, Duration)> {
    vec![
        ("ends-at-once", shell("exit 0"), SOON),
        ("cat", command(&["cat"]), SOON),
        ("empty-objects", serving("answers-empty-object"), LATER),
        ("same-error", serving("answers-same-error"), LATER),
        ("never-answers", serving("never-answers"), LATER),
        ("garbage", serving("answers-garbage"), LATER),
    ]
}

fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn words(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

fn shell(script: &str) -> Vec<String> {
    command(&["sh", "-c", script])
}

/// The built-in server with a fault.
fn serving(fault: &str) -> Vec<String> {
    assert!(fault.parse::<Fault>().is_ok(), "there is no fault `{fault}`");
    command(&[PROGRAM, "serve", "--fault", fault])
}

/// The built-in server behind a shell that does something first.
fn forking(first: &str, options: &str) -> Vec<String> {
    command(&["sh", "-c", &format!("{first} exec \"$0\" serve {options}"), PROGRAM])
}

/// What came of running the program.
pub(crate) struct Run {
    command: String,
    pub(crate) code: Option<i32>,
    /// Standard output and standard error.
    pub(crate) text: String,
    pub(crate) wall: Duration,
    /// The most memory that it held, in KiB, where the system tells.
    peak: Option<u64>,
    /// Processes that carry its mark and are still there.
    left: Vec<String>,
}

impl Run {
    /// Judges a server.
    pub(crate) fn of(options: &[&str], server: &[&str]) -> Result<Self, String> {
        Self::with(options, server, &[], None)
    }

    /// Judges a server with variables in our own environment.
    pub(crate) fn with_variables(
        options: &[&str],
        server: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Self, String> {
        Self::with(options, server, variables, None)
    }

    /// Judges a server, and sends a signal to the judge after a while where one is given.
    fn with(
        options: &[&str],
        server: &[&str],
        variables: &[(&str, &str)],
        signal: Option<(Signal, Duration)>,
    ) -> Result<Self, String> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let mark = format!("MCP_CONFORMANCE_TRIAL={}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let (name, value) = mark.split_once('=').expect("it was written with one");
        let folder = tempfile::tempdir().map_err(told)?;
        let output = folder.path().join("output");
        let file = File::create(&output).map_err(told)?;
        let began = Instant::now();
        let mut child = Command::new(PROGRAM)
            .args(["--fuzz", "off"])
            .args(options)
            .arg("--")
            .args(server)
            .env(name, value)
            .envs(variables.iter().copied())
            .env_remove("CI")
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(told)?)
            .stderr(file)
            .spawn()
            .map_err(told)?;
        let mut signal = signal;
        let mut peak = None;
        let status = loop {
            peak = peak_of(child.id()).max(peak);
            if let Some(status) = child.try_wait().map_err(told)? {
                break status;
            }
            if let Some((which, after)) = signal
                && began.elapsed() >= after
            {
                let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("no process id")?;
                kill_process(pid, which).map_err(|error| format!("failed to send the signal: {error}"))?;
                signal = None;
            }
            if began.elapsed() > Duration::from_secs(120) {
                child.kill().map_err(told)?;
                child.wait().map_err(told)?;
                return Err(format!("{options:?} -- {server:?} did not end in two minutes"));
            }
            std::thread::sleep(Duration::from_millis(4));
        };
        Ok(Self {
            command: format!("mcp-conformance {} -- {}", options.join(" "), server.join(" ")),
            code: status.code(),
            text: String::from_utf8_lossy(&fs::read(&output).map_err(told)?).into_owned(),
            wall: began.elapsed(),
            peak,
            left: left_behind(&mark),
        })
    }

    /// Demands an exit code and words, little memory, and that nothing is left.
    pub(crate) fn expect(&self, code: i32, says: &[&str]) -> Result<(), String> {
        if self.code != Some(code) {
            return Err(self.complain(&format!("it does not exit with {code}")));
        }
        let flat = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(missing) = says.iter().find(|words| !flat.contains(**words)) {
            return Err(self.complain(&format!("it does not say `{missing}`")));
        }
        if self.peak.is_some_and(|peak| peak > MEMORY) {
            return Err(self.complain("it takes too much memory"));
        }
        if !self.left.is_empty() {
            return Err(self.complain(&format!("it leaves processes behind:\n{}", self.left.join("\n"))));
        }
        Ok(())
    }

    pub(crate) fn within(&self, limit: Duration) -> Result<(), String> {
        if self.wall > limit { Err(self.complain(&format!("it takes longer than {limit:?}"))) } else { Ok(()) }
    }

    pub(crate) fn complain(&self, what: &str) -> String {
        const TAIL: usize = 6_000;
        let from = self.text.len().saturating_sub(TAIL);
        let from = (from..=self.text.len()).find(|at| self.text.is_char_boundary(*at)).unwrap_or_default();
        format!(
            "{what}\n{}\nexit code {:?} after {:.2?}, peak {:?} KiB\n{}",
            self.command,
            self.code,
            self.wall,
            self.peak,
            &self.text[from..]
        )
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The most memory that a process has held so far, in KiB.
fn peak_of(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Processes with a variable in their environment, once what was killed has had a moment to go.
fn left_behind(mark: &str) -> Vec<String> {
    let mut left = Vec::new();
    for _ in 0..20 {
        left = marked(mark);
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    left
}

fn marked(mark: &str) -> Vec<String> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let carries = |folder: &Path| {
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let marked = processes.flatten().map(|entry| entry.path()).filter(|folder| carries(folder));
    marked
        .map(|folder| {
            let line = fs::read(folder.join("cmdline")).unwrap_or_default();
            format!("{} {}", folder.display(), String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
}

/// Judges a server and reads the report of it.
fn report(options: &[&str], server: &[&str]) -> Result<(Run, Report), String> {
    let folder = tempfile::tempdir().map_err(told)?;
    let path = folder.path().join("report.json");
    let wanted = format!("json={}", path.display());
    let run = Run::of(&[options, &["--report", &wanted]].concat(), server)?;
    let text = fs::read_to_string(&path).map_err(|error| run.complain(&format!("there is no report: {error}")))?;
    let report = serde_json::from_str(&text).map_err(|error| run.complain(&format!("it is no report: {error}")))?;
    Ok((run, report))
}

fn passes_nothing(server: &[String], limit: Duration) -> Result<(), String> {
    let (run, report) = report(&IMPATIENT, &words(server))?;
    run.expect(2, &["NOT JUDGED"])?;
    run.within(limit)?;
    let passed: Vec<&str> = report.results().filter(|r| r.verdict == Verdict::Pass).map(|r| r.case.as_str()).collect();
    if passed.is_empty() { Ok(()) } else { Err(run.complain(&format!("it passes {passed:?}"))) }
}

fn a_signal_leaves_nothing(signal: Signal) -> Result<(), String> {
    let first = "setsid sleep 1000 & (trap '' TERM INT HUP; while :; do sleep 9; done) &";
    let server = forking(first, "--fault ignores-sigterm");
    let after = Duration::from_millis(1500);
    let run = Run::with(&["--timeout", "1s"], &words(&server), &[], Some((signal, after)))?;
    if run.wall < after {
        return Err(run.complain("the run was over before the signal"));
    }
    run.within(after + SOON)?;
    // What was found by then counts: a breach that was proved stays one.
    let code = run.code.filter(|code| [1, 2].contains(code)).ok_or_else(|| run.complain("it ends by the signal"))?;
    run.expect(code, &["the run was interrupted"])
}

/// With the usual bounds: what does nothing is told from what takes its time.
fn one_that_does_nothing_is_given_up_soon() -> Result<(), String> {
    let run = Run::of(&[], &words(&shell("exec sleep 1000")))?;
    run.expect(2, &["did not answer the first message, and was idle for 5s", "--startup-timeout"])?;
    if cfg!(target_os = "linux") { run.within(Duration::from_secs(8)) } else { Ok(()) }
}

/// Busy for longer than one that does nothing is given, then there.
fn one_that_is_busy_is_waited_for() -> Result<(), String> {
    let busy = "end=$(($(date +%s) + 7)); while [ $(date +%s) -lt $end ]; do :; done";
    let server = shell(&format!("{busy}; exec '{PROGRAM}' serve"));
    let flags = ["--revision", "2025-11-25", "--select", "jsonrpc/base-methods"];
    Run::of(&flags, &words(&server))?.expect(0, &["PASS"])
}

/// Every answer comes, though under another id: waiting for better ones would take minutes.
fn ids_of_the_wrong_type_are_told_soon() -> Result<(), String> {
    let run = Run::of(&[], &words(&serving("ids-wrong-type")))?;
    run.expect(1, &["the request has id 1, its response has id \"1\""])?;
    // Built for speed it takes half of it.
    run.within(Duration::from_secs(if cfg!(debug_assertions) { 16 } else { 8 }))
}

fn text_of_the_server_steers_no_terminal() -> Result<(), String> {
    let run = Run::of(&["-v"], &words(&serving("hostile-text")))?;
    run.expect(0, &["PASS"])?;
    let steers = |c: char| c.is_control() && c != '\n';
    match run.text.lines().find(|line| line.contains(steers)) {
        Some(line) => Err(run.complain(&format!("it prints control characters: {line:?}"))),
        None => Ok(()),
    }
}

fn every_fault_of_a_broken_case_is_told() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(told)?;
    let area = folder.path().join("mine");
    fs::create_dir(&area).map_err(told)?;
    fs::write(area.join("fine.jsonc"), OWN_CASE).map_err(told)?;
    let broken = OWN_CASE.replace("ping-empty-result", "ping-emtpy-result").replace("\"steps\"", "\"stesp\"");
    fs::write(area.join("misspelt.jsonc"), broken).map_err(told)?;
    fs::write(area.join("torn.jsonc"), "{\n  \"title\": \"Torn\n}\n").map_err(told)?;
    let path = folder.path().display().to_string();
    let run = Run::of(&["--cases", &path], &[PROGRAM, "serve"])?;
    run.expect(2, &["misspelt.jsonc:4", "`ping-empty-result`", "misspelt.jsonc:7", "`steps`", "torn.jsonc:2"])?;
    run.within(SOON)
}

fn own_cases_run_beside_ours() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(told)?;
    fs::create_dir(folder.path().join("mine")).map_err(told)?;
    fs::write(folder.path().join("mine/ping.jsonc"), OWN_CASE).map_err(told)?;
    let path = folder.path().display().to_string();
    let (run, report) = report(&["--revision", "2025-11-25", "--cases", &path], &[PROGRAM, "serve"])?;
    run.expect(0, &["PASS"])?;
    let own: Vec<_> = report.results().filter(|result| result.case == "mine/ping").collect();
    if own.len() != 1 || own[0].verdict != Verdict::Pass {
        return Err(run.complain(&format!("the own case is not judged once and passed: {own:?}")));
    }
    if report.results().count() < 100 {
        return Err(run.complain("ours do not run beside it"));
    }
    Ok(())
}
