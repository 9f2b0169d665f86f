//! How a string of a server is shortened for a finding.

/// The beginning of a string, on one line.
pub(super) fn shortened(text: &str, max_chars: usize) -> String {
    let mut short: String = text.chars().take(max_chars).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short.replace('\n', " ")
}
