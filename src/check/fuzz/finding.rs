//! From a violation to a finding of the case that names its oracle.

use super::call::Arguments;
use super::exchange::{ExchangeOutcome, FuzzExchange};
use super::message_text::excerpt;
use super::violation::OracleViolation;
use crate::case::Case;
use crate::check::evidence::milliseconds;
use crate::spec::{Catalogue, Revision};
use crate::verdict::{Direction, Evidence, Finding, Verdict};

/// The greatest length of a line of evidence, in bytes.
const MAX_LINE_BYTES: usize = 4_000;

/// The finding for a violation, with exchanges as its evidence; `None` if the case has no requirement in the revision.
#[must_use]
pub(crate) fn finding(
    case: &Case,
    revision: Revision,
    tool: &str,
    violation: &OracleViolation,
    exchanges: &[FuzzExchange],
) -> Option<Finding> {
    let named = violation.requirement.and_then(|id| Catalogue::embedded().get(id));
    let requirement =
        named.filter(|named| named.revisions().contains(revision)).or_else(|| case.requirement_in(revision))?;
    let mut finding = Finding::new(requirement, revision, Verdict::Fail.min(violation.verdict));
    finding.verdict = violation.verdict;
    finding.message = format!("{tool}: {}", violation.message);
    finding.expected.clone_from(&violation.expected);
    finding.actual.clone_from(&violation.actual);
    finding.value.clone_from(&violation.value);
    finding.subjects = vec![tool.to_owned()];
    finding.fix.clone_from(&case.fix);
    finding.evidence = exchanges.iter().flat_map(evidence).collect();
    Some(finding)
}

/// What was sent and received for a call.
fn evidence(exchange: &FuzzExchange) -> Vec<Evidence> {
    let at_ms = milliseconds(exchange.duration);
    let piece = |direction, at_ms, text: &str| {
        let end = (0..=MAX_LINE_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        Evidence { direction, at_ms, text: text[..end].to_owned(), omitted: text.len() - end }
    };
    let mut all = vec![piece(Direction::Sent, 0.0, &String::from_utf8_lossy(&exchange.line))];
    all.extend(exchange.noise.iter().take(4).map(|line| piece(Direction::Received, at_ms, line)));
    all.extend(exchange.responses.iter().take(4).map(|answer| piece(Direction::Received, at_ms, &answer.to_string())));
    match &exchange.outcome {
        ExchangeOutcome::Answered => {}
        ExchangeOutcome::TimedOut { waited } => {
            all.push(piece(Direction::Event, at_ms, &format!("no response within {waited:.1?}")));
        }
        ExchangeOutcome::Exited { status, stderr } => {
            if !stderr.is_empty() {
                let from = stderr.len().saturating_sub(MAX_LINE_BYTES);
                let from = (from..=stderr.len()).find(|at| stderr.is_char_boundary(*at)).unwrap_or(0);
                all.push(piece(Direction::Stderr, at_ms, &stderr[from..]));
            }
            all.push(piece(Direction::Event, at_ms, &format!("the process exited ({status})")));
        }
    }
    all
}

impl Arguments {
    /// The arguments as a report shows them: truncated to a string if they are very large or not JSON.
    #[must_use]
    pub(crate) fn shown(&self) -> serde_json::Value {
        const MAX_BYTES: usize = 4_000;
        let bytes = match self {
            Self::Json(value) => {
                let text = value.to_string();
                if text.len() <= MAX_BYTES {
                    return value.clone();
                }
                text.into_bytes()
            }
            Self::Raw(bytes) => match serde_json::from_slice(bytes) {
                Ok(value) if bytes.len() <= MAX_BYTES => return value,
                _ => bytes.clone(),
            },
        };
        let text = String::from_utf8_lossy(&bytes);
        serde_json::Value::String(format!("({} bytes) {}", bytes.len(), excerpt(&text, 400)))
    }
}
