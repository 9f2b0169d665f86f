//! The checks of a process: that it does not end before its calls are answered, how it ends, and what it writes to standard
//! error.

use super::index::{ConnectionIndex, method_of, name_of};
use super::violation::{CheckResult, Violation};
use crate::transcript::{Event, ShutdownStep, first_invalid_byte};

/// Checks that the server does not exit before it has answered the valid calls of discovery.
pub(super) fn server_survives_calls(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let entries = &index.record.entries;
    let end = entries.iter().position(|entry| matches!(entry.event, Event::Closed | Event::Exited { .. }));
    // An end that the client caused proves nothing.
    let ended_by_itself =
        entries.iter().any(|entry| matches!(entry.event, Event::Shutdown { step: ShutdownStep::AlreadyExited, .. }));
    // Discovery makes valid calls; the calls of cases are judged by the cases.
    let is_of_discovery = |at: usize| matches!(entries[at].event, Event::Sent { step_id: None, .. });
    // Nor does an end after a case sent something that may have caused it.
    let ended_by_itself = ended_by_itself
        && !entries[..end.unwrap_or(0)].iter().any(|entry| matches!(entry.event, Event::Sent { step_id: Some(_), .. }));
    for exchange in index.exchanges.iter().filter(|e| method_of(e.request) == "tools/call" && is_of_discovery(e.sent)) {
        match (exchange.responses.first(), end) {
            (Some(_), _) => checked.record(None),
            (None, Some(end)) if end > exchange.sent && ended_by_itself => {
                checked.record(Some(Violation::new(
                    "the server exited before it answered",
                    name_of(exchange.request),
                    &[exchange.sent, end],
                )));
            }
            _ => {}
        }
    }
    checked
}

/// Checks that a process to which SIGTERM was sent exits without being killed.
pub(super) fn exits_on_sigterm(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for (position, entry) in index.record.entries.iter().enumerate() {
        match entry.event {
            Event::Shutdown { step: ShutdownStep::Sigkill, .. } => {
                checked.record(Some(Violation::new("the process had to be killed", "", &[position])));
            }
            Event::Shutdown { step: ShutdownStep::Sigterm, .. } => checked.record(None),
            _ => {}
        }
    }
    checked
}

/// Checks that a process that has exited leaves none of its group running.
pub(super) fn leaves_no_process(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for (position, entry) in index.record.entries.iter().enumerate() {
        if let Event::Shutdown { left_running: Some(left), .. } = &entry.event {
            let violation = || Violation::new(format!("{} still runs", left.join(", ")), "", &[position]);
            checked.record((!left.is_empty()).then(violation));
        }
    }
    checked
}

/// Checks that what the server writes to standard error is UTF-8.
pub(super) fn stderr_is_utf8(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for (position, entry) in index.record.entries.iter().enumerate() {
        if let Event::Stderr(text) = &entry.event
            && !text.is_empty()
        {
            let violation = |byte| Violation::new(format!("the byte {byte} is not UTF-8"), "", &[position]);
            checked.record(first_invalid_byte(text).map(violation));
        }
    }
    checked
}
