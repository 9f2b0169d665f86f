//! From a violation to a finding of the case that names its oracle.

use serde_json::Value;

use super::call::Arguments;
use super::exchange::{ExchangeOutcome, FuzzExchange};
use super::message_text::excerpt;
use super::violation::OracleViolation;
use crate::case::Case;
use crate::check::evidence::{message_summary, milliseconds};
use crate::spec::{Catalogue, Revision};
use crate::text::{first_bytes, last_bytes};
use crate::verdict::{Direction, Evidence, Finding, MessageSummary, Verdict};
use crate::wire::{HTTP_STATUS_MEMBER, member};

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
    finding.fix.clone_from(violation.fix.as_ref().unwrap_or(&case.fix));
    finding.evidence = exchanges.iter().flat_map(|exchange| evidence(exchange, violation)).collect();
    Some(finding)
}

/// What was sent and received for a call; of the server's own messages those that a violation is about, or else the first.
fn evidence(exchange: &FuzzExchange, violation: &OracleViolation) -> Vec<Evidence> {
    let at_ms = milliseconds(exchange.duration);
    let piece = |direction, at_ms, text: &str| {
        let shown = first_bytes(text, MAX_LINE_BYTES);
        Evidence { direction, at_ms, text: shown.to_owned(), omitted: text.len() - shown.len(), message: None }
    };
    let sent = piece(Direction::Sent, 0.0, &String::from_utf8_lossy(&exchange.line));
    let mut all = vec![Evidence { message: sent_message(exchange), ..sent }];
    let received = |message: &Value| Evidence {
        message: message_summary(message),
        ..piece(Direction::Received, at_ms, &message.to_string())
    };
    all.extend(exchange.other.noise.iter().take(4).map(|line| piece(Direction::Received, at_ms, line)));
    let messages = &exchange.other.messages;
    let is_meant = |message: &&Value| violation.value.as_ref() == Some(*message);
    match messages.iter().find(is_meant) {
        Some(meant) => all.push(received(meant)),
        None => all.extend(messages.iter().take(4).map(received)),
    }
    all.extend(exchange.responses.iter().take(4).map(|response| match http_status(response) {
        Some(status) => piece(Direction::Event, at_ms, &format!("{status}, without a JSON-RPC message")),
        None => received(response),
    }));
    match &exchange.outcome {
        ExchangeOutcome::Answered => {}
        ExchangeOutcome::TimedOut { waited } => {
            all.push(piece(Direction::Event, at_ms, &format!("no response within {waited:.1?}")));
        }
        ExchangeOutcome::Exited { status, stderr } => {
            if !stderr.is_empty() {
                all.push(piece(Direction::Stderr, at_ms, last_bytes(stderr, MAX_LINE_BYTES)));
            }
            all.push(piece(Direction::Event, at_ms, &format!("the process exited ({status})")));
        }
    }
    all
}

/// The HTTP status that an error stands for, if the server sent no message, with the text of its body.
fn http_status(response: &Value) -> Option<&str> {
    let error = member(response, "error").filter(|error| member(error, HTTP_STATUS_MEMBER).is_some())?;
    member(error, "message")?.as_str()
}

/// The request of a call. Where its arguments are no JSON, the line as a whole is none either, but its id and method
/// are known.
fn sent_message(exchange: &FuzzExchange) -> Option<MessageSummary> {
    match serde_json::from_slice::<Value>(&exchange.line) {
        Ok(request) => message_summary(&request),
        Err(_) => Some(MessageSummary::Request { id: exchange.id.into(), method: "tools/call".to_owned(), tool: None }),
    }
}

impl Arguments {
    /// The arguments as a report shows them: truncated to a string if they are very large or not JSON.
    #[must_use]
    pub(crate) fn shown(&self) -> serde_json::Value {
        const MAX_BYTES: usize = 4_000;
        if matches!(self, Self::Raw(text) if text.is_empty()) {
            return serde_json::Value::String("(absent)".to_owned());
        }
        let bytes = match self {
            Self::Json(value) => {
                let text = value.to_string();
                if text.len() <= MAX_BYTES {
                    return value.clone();
                }
                text.into_bytes()
            }
            Self::Raw(text) => {
                let bytes = text.bytes().into_owned();
                match serde_json::from_slice(&bytes) {
                    Ok(value) if bytes.len() <= MAX_BYTES => return value,
                    _ => bytes,
                }
            }
        };
        let text = String::from_utf8_lossy(&bytes);
        serde_json::Value::String(format!("({} bytes) {}", bytes.len(), excerpt(&text, 400)))
    }
}
