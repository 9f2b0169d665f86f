//! The interface of all report formats.

use std::io;

use super::Report;

/// Writes a finished report in one format.
///
/// # Examples
///
/// ```
/// use std::io;
///
/// use mcp_conformance::{Judge, Server, Settings};
/// use mcp_conformance::report::{Renderer, Report};
///
/// /// Lists the failed cases.
/// struct FailedCases;
///
/// impl Renderer for FailedCases {
///     fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
///         let failed = report.results().filter(|result| !result.findings.is_empty());
///         failed.into_iter().try_for_each(|result| writeln!(out, "{} in {}", result.case, result.revision))
///     }
/// }
///
/// let settings = Settings { select: vec!["lifecycle".to_owned()], ..Settings::default() };
/// let report = Judge::new(Server::reference([])).settings(settings).run_blocking()?;
/// assert_eq!(report.render(&FailedCases), "");
/// # Ok::<(), mcp_conformance::JudgeError>(())
/// ```
pub trait Renderer {
    /// Writes the report.
    ///
    /// # Errors
    /// When the writer fails.
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()>;
}
