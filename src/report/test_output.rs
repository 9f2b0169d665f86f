//! Plain-text output about case results for the test harness.

use super::finding_text;
use super::visible::excerpt;
use crate::event::{CaseResult, Problem};
use crate::verdict::{Finding, Verdict};

/// The length at which a text is truncated, in characters.
const MAX_TEXT_CHARS: usize = 2000;

/// The number of stderr lines that are shown.
const MAX_STDERR_LINES: usize = 20;

/// The verdict of a case without accepted findings; `None` if all are accepted.
pub(crate) fn effective_verdict(result: &CaseResult) -> Option<Verdict> {
    finding_text::effective_verdict(result)
}

/// Why a case was skipped or could not be judged.
pub(crate) fn reason(result: &CaseResult) -> String {
    excerpt(result.reason.as_deref().unwrap_or("no reason given"), MAX_TEXT_CHARS, 0)
}

/// A finding with its evidence.
pub(crate) fn lines(finding: &Finding) -> Vec<String> {
    let mut lines = finding_text::finding_lines(finding);
    lines.extend(finding_text::evidence_lines(finding).into_iter().map(|line| format!("  {line}")));
    lines
}

/// A problem of the run, with advice and the end of stderr.
pub(crate) fn problem(problem: &Problem) -> String {
    let mut lines = vec![excerpt(&problem.message, MAX_TEXT_CHARS, 0), excerpt(&problem.hint, MAX_TEXT_CHARS, 0)];
    let stderr: Vec<&str> = problem.stderr.lines().collect();
    let last = &stderr[stderr.len().saturating_sub(MAX_STDERR_LINES)..];
    lines.extend(last.iter().map(|line| format!("stderr: {}", excerpt(line, MAX_TEXT_CHARS, 0))));
    lines.join("\n")
}
