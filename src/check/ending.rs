//! The checks of how a connection ends: not before its calls are answered, and not by force.

use super::seen::{Seen, breach, name_of};
use super::watch::{Index, method_of};
use crate::transcript::{Event, ShutdownStep};

/// Whether the server lives on until it has answered the plain calls of a session.
pub(super) fn calls_survived(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let entries = &index.record.entries;
    let end = entries.iter().position(|entry| matches!(entry.event, Event::Closed | Event::Exited { .. }));
    // Where we shut it down ourselves the end tells nothing.
    let by_itself =
        entries.iter().any(|entry| matches!(entry.event, Event::Shutdown { step: ShutdownStep::AlreadyExited, .. }));
    // What the session itself sends are plain calls with valid arguments; cases judge their own.
    let plain = |at: usize| matches!(entries[at].event, Event::Sent { mark: None, .. });
    // Nor does it where a case had sent something by then that may have ended the server.
    let by_itself = by_itself
        && !entries[..end.unwrap_or(0)].iter().any(|entry| matches!(entry.event, Event::Sent { mark: Some(_), .. }));
    for exchange in index.exchanges.iter().filter(|e| method_of(e.request) == "tools/call" && plain(e.sent)) {
        match (exchange.responses.first(), end) {
            (Some(_), _) => seen.look(None),
            (None, Some(end)) if end > exchange.sent && by_itself => {
                seen.look(Some(breach(
                    "the server ended before it answered",
                    name_of(exchange.request),
                    &[exchange.sent, end],
                )));
            }
            _ => {}
        }
    }
    seen
}

/// Whether the process ends without being killed.
pub(super) fn ends_on_sigterm(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, entry) in index.record.entries.iter().enumerate() {
        match entry.event {
            Event::Shutdown { step: ShutdownStep::Sigkill, .. } => {
                seen.look(Some(breach("the process had to be killed", "", &[position])));
            }
            Event::Shutdown { step: ShutdownStep::StdinClosed | ShutdownStep::Sigterm, .. } => seen.look(None),
            _ => {}
        }
    }
    seen
}
