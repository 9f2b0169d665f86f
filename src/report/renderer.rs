//! What every format has in common.

use std::io;

use super::Report;

/// Writes a finished report in one format.
pub trait Renderer {
    /// Writes the report.
    ///
    /// # Errors
    /// When the writer fails.
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()>;
}
