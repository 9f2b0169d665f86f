//! A file of the book.

/// A file of the book that the program writes.
pub(super) struct Page {
    /// The path below the sources of the book.
    pub(super) path: String,
    /// The name in the summary of the book.
    pub(super) title: String,
    /// How many pages are above it in the summary.
    pub(super) depth: usize,
    /// The Markdown.
    pub(super) text: String,
}
