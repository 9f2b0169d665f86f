//! How a string of a server is shortened for a finding.

use crate::text;

/// The beginning of a string, on one line.
pub(super) fn shortened(text: &str, max_chars: usize) -> String {
    text::shortened(text, max_chars).replace('\n', " ")
}
