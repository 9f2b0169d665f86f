//! What a run waited for, in one sentence.

use super::layout::format_ms;
use crate::event::Waits;

/// Waits that are shorter in all, in milliseconds, explain nothing.
const MIN_SHOWN_MS: f64 = 1_000.0;

/// What the run waited for and how long; `None` if that explains nothing.
pub(super) fn describe_waits(waits: &Waits) -> Option<String> {
    if waits.unanswered == 0 && waits.answered_ms + waits.ending_ms < MIN_SHOWN_MS {
        return None;
    }
    let responses = if waits.answered == 1 { "1 response".to_owned() } else { format!("{} responses", waits.answered) };
    let mut parts = vec![format!("{} for {responses}", format_ms(waits.answered_ms))];
    if waits.unanswered > 0 {
        parts.push(format!("{} for {} that did not come in time", format_ms(waits.unanswered_ms), waits.unanswered));
    }
    parts.push(format!("{} for connections to end", format_ms(waits.ending_ms)));
    Some(format!("waits, side by side: {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waits_that_explain_something_are_described() {
        let waits = |answered_ms, unanswered| Waits { answered: 3, answered_ms, unanswered, ..Waits::default() };
        assert_eq!(describe_waits(&waits(900.0, 0)), None);
        let expected = "waits, side by side: 2.50 s for 3 responses, 0.0 ms for connections to end";
        assert_eq!(describe_waits(&waits(2_500.0, 0)).as_deref(), Some(expected));
        let one = Waits { answered: 1, unanswered: 2, unanswered_ms: 10_000.0, ..Waits::default() };
        let expected = "waits, side by side: 0.0 ms for 1 response, 10.00 s for 2 that did not come in time, \
                        0.0 ms for connections to end";
        assert_eq!(describe_waits(&one).as_deref(), Some(expected));
    }
}
