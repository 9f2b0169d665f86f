//! A result told to whoever runs the cases as tests, in plain lines.

use super::account;
use super::visible::excerpt;
use crate::event::{CaseResult, Problem};
use crate::verdict::{Finding, Verdict};

/// How many characters of a text are kept.
const TEXT: usize = 2000;

/// How many lines of an error stream are told.
const STDERR: usize = 20;

/// The verdict of a case without what is accepted; none where all of it is.
pub(crate) fn standing(result: &CaseResult) -> Option<Verdict> {
    account::standing(result)
}

/// Why a case was skipped or could not be judged.
pub(crate) fn reason(result: &CaseResult) -> String {
    excerpt(result.reason.as_deref().unwrap_or("no reason was given"), TEXT, 0)
}

/// A finding with the messages that prove it.
pub(crate) fn lines(finding: &Finding) -> Vec<String> {
    let mut lines = account::account(finding);
    lines.extend(account::transcript(finding).into_iter().map(|line| format!("  {line}")));
    lines
}

/// Why nothing could be judged.
pub(crate) fn problem(problem: &Problem) -> String {
    let mut lines = vec![excerpt(&problem.message, TEXT, 0), excerpt(&problem.hint, TEXT, 0)];
    let stderr: Vec<&str> = problem.stderr.lines().collect();
    let last = &stderr[stderr.len().saturating_sub(STDERR)..];
    lines.extend(last.iter().map(|line| format!("stderr: {}", excerpt(line, TEXT, 0))));
    lines.join("\n")
}
