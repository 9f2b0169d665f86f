//! The HTML report in a browser: it opens, filters, opens its parts and copies, nobody is kept out, nothing is
//! asked for, and no text of a server runs.
//!
//! `tests/browser/check.mjs` drives a headless Chromium; where that, Node or its one package is not there the
//! trials are ignored, unless `MCP_CONFORMANCE_BROWSER=required` is set.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use libtest_mimic::Trial;
use mcp_conformance::report::{HOSTILE, Html, Renderer as _, Report, example, poison};
use mcp_conformance::verdict::{Direction, Evidence};

use crate::trial;

/// How many cases the big report has, how many of them have a finding, and how many messages prove each.
const BIG: (usize, usize, usize) = (5000, 1000, 20);

/// One after the other: two browsers at a time would only slow each other down.
static ALONE: Mutex<()> = Mutex::new(());

/// A trial of `check.mjs`, and the report that it looks at.
type Look = (&'static str, fn() -> Report);

/// What is looked at.
const TRIALS: [Look; 8] = [
    ("opens", example),
    ("opens-without-script", example),
    ("filters", example),
    ("expands", example),
    ("copies", example),
    ("accessible", example),
    ("hostile", hostile),
    ("big", big),
];

pub(crate) fn trials() -> Vec<Trial> {
    let required = std::env::var_os("MCP_CONFORMANCE_BROWSER").is_some_and(|value| value == "required");
    let lacking = lacking();
    let browsed = TRIALS.map(|(name, report)| {
        let absent = lacking.clone();
        trial(format!("browser/{name}"), move || match absent {
            Some(what) => Err(format!("{what}; .ci/run installs what it needs")),
            None => look(name, &report()),
        })
        .with_ignored_flag(lacking.is_some() && !required)
    });
    browsed.into_iter().collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser")
}

fn chromium() -> String {
    std::env::var("MCP_CONFORMANCE_CHROMIUM").unwrap_or_else(|_| "chromium".to_owned())
}

/// What is not there, in words.
fn lacking() -> Option<String> {
    for program in [chromium(), "node".to_owned()] {
        let mut command = Command::new(&program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if !command.status().is_ok_and(|status| status.success()) {
            return Some(format!("`{program}` is not there"));
        }
    }
    let axe = folder().join("node_modules/axe-core/axe.min.js");
    (!axe.is_file()).then(|| format!("{} is not there: run `npm ci` in {}", axe.display(), folder().display()))
}

fn look(name: &str, report: &Report) -> Result<(), String> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{name}.html"));
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = BufWriter::new(File::create(&path).map_err(told)?);
    Html.render(report, &mut file).and_then(|()| file.flush()).map_err(told)?;
    drop(file);
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new("node");
    command.arg(folder().join("check.mjs")).arg(name).arg(&path).env("MCP_CONFORMANCE_CHROMIUM", chromium());
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("node: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}\n{}\nThe page is {}.", output.status, String::from_utf8_lossy(&output.stderr), path.display()))
}

/// The example with every text but the words that have a meaning trying to get out.
fn hostile() -> Report {
    const ATTACK: &str = "\"'></pre></script></style></title><script>globalThis.owned=1</script>\
        <img src=x onerror=globalThis.owned=1><svg onload=globalThis.owned=1>javascript:globalThis.owned=1";
    let mut report = example();
    poison(&mut report, &format!("{ATTACK}{HOSTILE}"));
    report.server = format!("{ATTACK}{HOSTILE}");
    // An address that runs instead of leading somewhere.
    for finding in report.targets.iter_mut().flat_map(|target| &mut target.results).flat_map(|one| &mut one.findings) {
        "javascript:globalThis.owned=1".clone_into(&mut finding.link);
    }
    report
}

/// A report of the size that has to open at once.
fn big() -> Report {
    let (cases, broken, proofs) = BIG;
    let mut report = example();
    report.summary = None;
    report.targets.remove(0);
    let target = &mut report.targets[0];
    let of = |case| target.results.iter().find(|result| result.case == case).cloned().expect("the example has it");
    let (fail, pass) = (of("tools/call/unknown-tool"), of("stdio/stdout-only-messages"));
    target.results = (0..cases)
        .map(|number| {
            let mut result = if number < broken { fail.clone() } else { pass.clone() };
            result.case = format!("area-{:02}/case-{number:04}", number % 25);
            for finding in &mut result.findings {
                finding.requirement = format!("rule-{:03}", number % 200);
                finding.message = format!("Answer number {number} is not what the rule asks for.");
                finding.evidence = (0..proofs).map(|proof| message(number, proof)).collect();
            }
            result
        })
        .collect();
    target.summary.totals = target.results.iter().map(|result| result.verdict).collect();
    report
}

fn message(number: usize, proof: usize) -> Evidence {
    let id = proof / 2;
    let word = if number == 777 && proof == 3 { "needle" } else { "hay" };
    let (direction, text) = if proof.is_multiple_of(2) {
        let params = format!(r#"{{"name":"search","arguments":{{"query":"{word} {number}","limit":{proof}}}}}"#);
        (Direction::Sent, format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#))
    } else {
        let content =
            format!(r#"[{{"type":"text","text":"{word} {number}, and a line of text as servers write it"}}]"#);
        (Direction::Received, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{content}}}}}"#))
    };
    Evidence::new(direction, f64::from(u32::try_from(proof).unwrap_or_default()), text)
}
