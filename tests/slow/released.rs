//! What is measured with the released program: `.ci/slow release` builds it, and names it in a variable.
//!
//! The development build reads so slowly that many long messages are on their way at the same time, and in memory.

use std::path::PathBuf;

use mcp_conformance::event::CaseResult;
use mcp_conformance::report::Report;
use mcp_conformance::verdict::Verdict;

use super::hostile::Run;
use crate::support::{PROGRAM, Trial, describe_error, trial};

/// The variable with the path of the released program.
const VARIABLE: &str = "MCP_CONFORMANCE_RELEASED";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("released/thirty-tools-with-long-answers-take-little-memory", thirty_tools_with_long_answers)
            .with_ignored_flag(std::env::var_os(VARIABLE).is_none()),
    ]
}

fn released() -> Result<PathBuf, String> {
    std::env::var_os(VARIABLE).map(PathBuf::from).ok_or(format!("{VARIABLE} is not set: .ci/slow release sets it"))
}

/// Each of the tools of the built-in server answers with a text of 7 MB: with all cases, in every revision, and with the
/// calls of fuzzing, every answer is judged and none stays in memory. Measured: 133 MiB, 44 s.
fn thirty_tools_with_long_answers() -> Result<(), String> {
    const MAX_KIB: u64 = 150 << 10;
    const FILTER: &str = r#""$0" serve | perl -pe 'BEGIN { $| = 1; $long = "x" x 7000000 }
        s/("type":"text","text":")/$1$long/ unless /structuredContent|"messages"|"resource"|"isError":true/'"#;
    // A notification has such a text there, and what no request asked for is kept up to a limit of its own.
    const LONG_NOTIFICATION: &str = "tasks-extension/subscription";
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let path = folder.path().join("report.json");
    let report = format!("json={}", path.display());
    let options = ["--no-config", "--regressions", "none", "--fuzz", "auto", "--report", &report];
    let run = Run::judge_with_build(&released()?, &options, &["sh", "-c", FILTER, PROGRAM])?;
    let text = std::fs::read_to_string(&path).map_err(|error| run.failure(&format!("no report: {error}")))?;
    let report = Report::parse(&text).map_err(describe_error)?;
    let is_as_usual = |result: &CaseResult| match result.verdict {
        Verdict::Pass | Verdict::Skip => true,
        Verdict::Error => result.case == LONG_NOTIFICATION,
        Verdict::Warn | Verdict::Fail => false,
    };
    if let Some(other) = report.results().find(|result| !is_as_usual(result)) {
        return Err(run.failure(&format!("{} is {:?}", other.case, other.verdict)));
    }
    if !report.results().any(|result| result.case == "fuzz/crash" && result.verdict == Verdict::Pass) {
        return Err(run.failure("no tool was fuzzed"));
    }
    match run.peak {
        Some(peak) if peak <= MAX_KIB => Ok(()),
        Some(_) => Err(run.failure(&format!("the program uses more than {MAX_KIB} KiB"))),
        None => Err(run.failure("the system does not report the memory of the program")),
    }
}
