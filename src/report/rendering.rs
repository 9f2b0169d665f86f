//! Renders a report to a string.

use super::{Renderer, Report, Text};

impl Report {
    /// The report in one of the formats.
    ///
    /// # Panics
    /// When a custom renderer fails or writes something that is not UTF-8; the built-in ones do neither.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::{Judge, Server, Settings};
    /// use mcp_conformance::report::{Markdown, Tap};
    ///
    /// let settings = Settings { select: vec!["lifecycle".to_owned()], ..Settings::default() };
    /// let report = Judge::new(Server::reference([])).settings(settings).run_blocking()?;
    /// assert!(report.render(&Tap).starts_with("TAP version 13"));
    /// assert!(report.render(&Markdown).contains("PASS"));
    /// # Ok::<(), mcp_conformance::JudgeError>(())
    /// ```
    #[must_use]
    pub fn render(&self, renderer: &dyn Renderer) -> String {
        let mut bytes = Vec::new();
        renderer.render(self, &mut bytes).expect("memory takes all that is written");
        String::from_utf8(bytes).expect("every format is text")
    }

    /// The report as plain text: findings first, the verdict line last.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.render(&Text::default())
    }
}
