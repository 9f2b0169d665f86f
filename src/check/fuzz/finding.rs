//! From a breach to a finding of the case that looks for it.

use super::{Arguments, Breach, Exchange, Fate, words::excerpt};
use crate::case::Case;
use crate::spec::{Catalogue, Revision};
use crate::verdict::{Direction, Evidence, Finding, Verdict};

/// How long a line of proof may be, in bytes.
const LONGEST: usize = 4_000;

/// The finding that a breach makes, proved by exchanges; `None` where the case says nothing in the revision.
#[must_use]
pub fn finding(
    case: &Case,
    revision: Revision,
    tool: &str,
    breach: &Breach,
    exchanges: &[Exchange],
) -> Option<Finding> {
    let named = breach.requirement.and_then(|id| Catalogue::embedded().get(id));
    let requirement =
        named.filter(|named| named.revisions().contains(revision)).or_else(|| case.requirement_in(revision))?;
    let mut finding = Finding::new(requirement, revision, Verdict::Fail.min(breach.verdict));
    finding.verdict = breach.verdict;
    finding.message = format!("{tool}: {}", breach.message);
    finding.expected.clone_from(&breach.expected);
    finding.actual.clone_from(&breach.actual);
    finding.value.clone_from(&breach.value);
    finding.subjects = vec![tool.to_owned()];
    finding.fix.clone_from(&case.fix);
    finding.evidence = exchanges.iter().flat_map(evidence).collect();
    Some(finding)
}

/// What went over the wire for a call.
fn evidence(exchange: &Exchange) -> Vec<Evidence> {
    let at_ms = crate::check::evidence::milliseconds(exchange.took);
    let piece = |direction, at_ms, text: &str| {
        let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        Evidence { direction, at_ms, text: text[..end].to_owned(), omitted: text.len() - end }
    };
    let mut all = vec![piece(Direction::Sent, 0.0, &String::from_utf8_lossy(&exchange.line))];
    all.extend(exchange.noise.iter().take(4).map(|line| piece(Direction::Received, at_ms, line)));
    all.extend(exchange.answers.iter().take(4).map(|answer| piece(Direction::Received, at_ms, &answer.to_string())));
    match &exchange.fate {
        Fate::Answered => {}
        Fate::Silent { waited } => {
            all.push(piece(Direction::Event, at_ms, &format!("no answer within {waited:.1?}")));
        }
        Fate::Ended { status, stderr } => {
            if !stderr.is_empty() {
                let from = stderr.len().saturating_sub(LONGEST);
                let from = (from..=stderr.len()).find(|at| stderr.is_char_boundary(*at)).unwrap_or(0);
                all.push(piece(Direction::Stderr, at_ms, &stderr[from..]));
            }
            all.push(piece(Direction::Event, at_ms, &format!("the process ended ({status})")));
        }
    }
    all
}

impl Arguments {
    /// The arguments as a report shows them: cut to a note where they are enormous or no JSON.
    #[must_use]
    pub fn shown(&self) -> serde_json::Value {
        const MOST: usize = 4_000;
        let bytes = match self {
            Self::Json(value) => {
                let text = value.to_string();
                if text.len() <= MOST {
                    return value.clone();
                }
                text.into_bytes()
            }
            Self::Raw(bytes) => match serde_json::from_slice(bytes) {
                Ok(value) if bytes.len() <= MOST => return value,
                _ => bytes.clone(),
            },
        };
        let text = String::from_utf8_lossy(&bytes);
        serde_json::Value::String(format!("({} bytes) {}", bytes.len(), excerpt(&text, 400)))
    }
}
