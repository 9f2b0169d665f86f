//! The HTML report in a browser: opening, filtering, expanding, copying, accessibility, no external requests, and no
//! script injection.
//!
//! `tests/browser/check.mjs` drives a headless Chromium. If Chromium, Node or the npm package is missing, the trials
//! are ignored unless `MCP_CONFORMANCE_BROWSER=required` is set.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::support::{Trial, trial};
use mcp_conformance::report::fleet::Fleet;
use mcp_conformance::report::{HOSTILE, Html, HtmlComparison, Renderer as _, Report, example, poison};
use mcp_conformance::verdict::{Direction, Evidence, MessageSummary};

/// The size of the big report: cases, cases with a finding, and messages per finding.
const BIG_REPORT: (usize, usize, usize) = (5000, 1000, 20);

/// Runs one browser at a time, because two would only slow each other down.
static BROWSER_LOCK: Mutex<()> = Mutex::new(());

/// A trial of `check.mjs`, and what writes the page that it opens.
type BrowserTrial = (&'static str, fn(&mut dyn io::Write) -> io::Result<()>);

/// All trials.
const TRIALS: [BrowserTrial; 15] = [
    ("opens", |out| Html.render(&example(), out)),
    ("opens-without-script", |out| Html.render(&example(), out)),
    ("filters", |out| Html.render(&example(), out)),
    ("expands", |out| Html.render(&example(), out)),
    ("copies", |out| Html.render(&example(), out)),
    ("accessible", |out| Html.render(&example(), out)),
    ("hostile", |out| Html.render(&hostile(), out)),
    ("big", |out| Html.render(&big(), out)),
    ("lands", |out| Html.render(&big(), out)),
    ("long", |out| Html.render(&long(), out)),
    ("navigates", |out| Html.render(&example(), out)),
    ("prints", |out| Html.render(&example(), out)),
    ("attributes", |out| Html.render(&attributed(), out)),
    ("compares", compared),
    ("fleet", fleet),
];

pub(crate) fn trials() -> Vec<Trial> {
    let required = std::env::var_os("MCP_CONFORMANCE_BROWSER").is_some_and(|value| value == "required");
    let missing = missing_dependency();
    let trials = TRIALS.map(|(name, write)| {
        let absent = missing.clone();
        trial(format!("browser/{name}"), move || match &absent {
            Some(what) => Err(format!("{what}; .ci/run installs what it needs")),
            None => run_trial(name, write),
        })
        .with_ignored_flag(missing.is_some() && !required)
    });
    trials.into_iter().collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser")
}

fn chromium() -> String {
    std::env::var("MCP_CONFORMANCE_CHROMIUM").unwrap_or_else(|_| "chromium".to_owned())
}

/// Describes the first missing dependency.
fn missing_dependency() -> Option<String> {
    for program in [chromium(), "node".to_owned()] {
        let mut command = Command::new(&program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if !command.status().is_ok_and(|status| status.success()) {
            return Some(format!("`{program}` is missing"));
        }
    }
    let axe = folder().join("node_modules/axe-core/axe.min.js");
    (!axe.is_file()).then(|| format!("{} is missing: run `npm ci` in {}", axe.display(), folder().display()))
}

fn run_trial(name: &str, write: fn(&mut dyn io::Write) -> io::Result<()>) -> Result<(), String> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{name}.html"));
    let describe = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = BufWriter::new(File::create(&path).map_err(describe)?);
    write(&mut file).and_then(|()| file.flush()).map_err(describe)?;
    drop(file);
    let _guard = BROWSER_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new("node");
    command.arg(folder().join("check.mjs")).arg(name).arg(&path).env("MCP_CONFORMANCE_CHROMIUM", chromium());
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("node: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}\n{}\nThe page is {}.", output.status, String::from_utf8_lossy(&output.stderr), path.display()))
}

/// The example with an attack in every free text.
fn hostile() -> Report {
    const ATTACK: &str = "\"'></pre></script></style></title><script>globalThis.owned=1</script>\
        <img src=x onerror=globalThis.owned=1><svg onload=globalThis.owned=1>javascript:globalThis.owned=1";
    let mut report = example();
    poison(&mut report, &format!("{ATTACK}{HOSTILE}"));
    report.server = format!("{ATTACK}{HOSTILE}");
    // A link that runs a script.
    for finding in report.targets.iter_mut().flat_map(|target| &mut target.results).flat_map(|one| &mut one.findings) {
        "javascript:globalThis.owned=1".clone_into(&mut finding.link);
    }
    report
}

/// The example with findings of the author, of the SDK and of interpretation, and with one that two tools cause alike.
fn attributed() -> Report {
    let mut report = example();
    let results = &mut report.targets[1].results;
    let of = |case: &str| results.iter().position(|result| result.case == case).expect("the example has it");
    let (warned, crashed) = (of("jsonrpc/error-message"), of("fuzz/crash"));
    results[warned].findings[0].sdk = Some("TypeScript SDK 1".to_owned());
    let of_sdk = results[warned].findings[0].clone();
    let mut inferred = of_sdk.clone();
    (inferred.derived, inferred.sdk) = (true, None);
    "pagination-inferred".clone_into(&mut inferred.requirement);
    "The server accepts a cursor of another list.".clone_into(&mut inferred.message);
    let mut authors = of_sdk.clone();
    authors.sdk = None;
    "An error message of the author has two lines.".clone_into(&mut authors.message);
    results[warned].findings.extend([inferred, authors]);
    let crash = &mut results[crashed].findings;
    "search: The server exits on a call.".clone_into(&mut crash[0].message);
    let mut other = crash[0].clone();
    "echo: The server exits on a call.".clone_into(&mut other.message);
    "echo".clone_into(&mut other.counterexample.as_mut().expect("the fuzzer found it").tool);
    crash.push(other);
    report
}

/// A report compared with one in which the crash was not found, an accepted finding was not judged, and another had another
/// message.
fn compared(out: &mut dyn io::Write) -> io::Result<()> {
    let mut earlier = example();
    "2026-07-01T08:00:00Z".clone_into(&mut earlier.started);
    for result in &mut earlier.targets[1].results {
        match result.case.as_str() {
            "fuzz/crash" => result.findings.clear(),
            "jsonrpc/error-message" => "An error message has 99 lines.".clone_into(&mut result.findings[0].message),
            "stdio/stdout-only-messages" => {
                let mut fixed = example().targets[0].results[1].findings[0].clone();
                "The server wrote a blank line.".clone_into(&mut fixed.message);
                result.findings.push(fixed);
            }
            _ => {}
        }
    }
    HtmlComparison { earlier: &earlier }.render(&example(), out)
}

/// A fleet with a hostile server.
fn fleet(out: &mut dyn io::Write) -> io::Result<()> {
    let mut fleet = Fleet::default();
    fleet.add("a.json", "reports/a.html", &example());
    fleet.add("b.json", "javascript:globalThis.owned=1", &hostile());
    fleet.write_html(out)
}

/// The example with words in every free text that are wider than a phone.
fn long() -> Report {
    let mut report = example();
    poison(&mut report, &"LongNameWithoutABreak".repeat(12));
    report.server = "/a-folder-with-a-long-name".repeat(12);
    report
}

/// A big report, which has to open quickly.
fn big() -> Report {
    let (cases, failing, messages) = BIG_REPORT;
    let mut report = example();
    report.summary = None;
    report.targets.remove(0);
    let target = &mut report.targets[0];
    let of = |case| target.results.iter().find(|result| result.case == case).cloned().expect("the example has it");
    let (fail, pass) = (of("tools/call/unknown-tool"), of("stdio/stdout-only-messages"));
    target.results = (0..cases)
        .map(|number| {
            let mut result = if number < failing { fail.clone() } else { pass.clone() };
            result.case = format!("area-{:02}/case{number:04}", number % 25);
            for finding in &mut result.findings {
                finding.requirement = format!("rule-{:03}", number % 200);
                finding.message = format!("Response {number} violates the rule.");
                finding.evidence = (0..messages).map(|index| message(number, index)).collect();
            }
            result
        })
        .collect();
    target.summary.totals = target.results.iter().map(|result| result.verdict).collect();
    report
}

fn message(number: usize, index: usize) -> Evidence {
    let id = index / 2;
    let query = if number == 777 && index == 3 { "needle" } else { "hay" };
    let (direction, text, message) = if index.is_multiple_of(2) {
        let params = format!(r#"{{"name":"search","arguments":{{"query":"{query} {number}","limit":{index}}}}}"#);
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        (
            Direction::Sent,
            text,
            MessageSummary::Request { id: id.into(), method: "tools/call".to_owned(), tool: Some("search".to_owned()) },
        )
    } else {
        let content = format!(r#"[{{"type":"text","text":"{query} {number}, and a line of typical server output"}}]"#);
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{content}}}}}"#);
        (Direction::Received, text, MessageSummary::Result { id: Some(id.into()) })
    };
    let at_ms = f64::from(u32::try_from(index).unwrap_or_default());
    Evidence::new(direction, at_ms, text).with_message(message)
}
