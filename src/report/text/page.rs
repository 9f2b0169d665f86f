//! The page of the text report: its options, headings, labels and line wrapping.
//!
//! Responsible for the layout that all sections share, not for their content or order.

use std::io::{self, Write};

use crate::report::layout::{display_width, first_columns, wrap, wrap_and_break};
use crate::report::palette::{Palette, paint};
use crate::spec::Revision;

/// How much of the report to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Only the verdict line.
    Verdict,
    /// Findings, what was not judged or called, and the summary.
    #[default]
    Standard,
    /// Additionally every warning in full, notes, reasons for skips, processes and stderr.
    Everything,
}

/// Writes a report for a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    /// Whether to colour it.
    pub color: bool,
    /// How much to show.
    pub detail: Detail,
    /// The width to which text is wrapped, in columns.
    pub width: usize,
}

impl Default for Text {
    fn default() -> Self {
        Self { color: false, detail: Detail::default(), width: 100 }
    }
}

/// The length at which a line of evidence is truncated, in characters.
pub(super) const MAX_LINE_CHARS: usize = 300;
/// The same for verbose output.
pub(super) const MAX_LINE_CHARS_VERBOSE: usize = 4000;
/// The number of names listed in one place.
pub(super) const MAX_NAMES: usize = 12;
/// The number of places listed where a finding was made.
const MAX_PLACES: usize = 3;
/// The width of the labels of a finding's fields, in columns.
pub(super) const LABEL_WIDTH: usize = 11;
/// The minimum width of wrapped text, in columns.
const MIN_COLUMNS: usize = 20;

/// The layout that all sections share.
pub(super) struct Page {
    text: Text,
    pub(super) palette: Palette,
}

impl Page {
    pub(super) fn new(text: Text) -> Self {
        Self { text, palette: Palette::new(text.color) }
    }

    pub(super) fn is_verbose(&self) -> bool {
        self.text.detail == Detail::Everything
    }

    pub(super) fn max_line_chars(&self) -> usize {
        if self.is_verbose() { MAX_LINE_CHARS_VERBOSE } else { MAX_LINE_CHARS }
    }

    pub(super) fn write_heading(&self, title: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", paint(self.palette.strong, title))
    }

    /// The width of the report, in columns.
    pub(super) fn width(&self) -> usize {
        self.text.width
    }

    /// The width left for text after an indent, in columns.
    pub(super) fn room(&self, indent: usize) -> usize {
        self.text.width.saturating_sub(indent).max(MIN_COLUMNS)
    }

    /// Writes wrapped text with an indent.
    pub(super) fn write_wrapped(&self, indent: usize, text: &str, out: &mut dyn Write) -> io::Result<()> {
        for line in wrap(text, self.room(indent)) {
            writeln!(out, "{:indent$}{line}", "")?;
        }
        Ok(())
    }

    /// The same where it matters less.
    pub(super) fn write_faint(&self, indent: usize, text: &str, out: &mut dyn Write) -> io::Result<()> {
        for line in wrap(text, self.room(indent)) {
            writeln!(out, "{:indent$}{}", "", paint(self.palette.faint, line))?;
        }
        Ok(())
    }

    /// Writes a label and wrapped text with a hanging indent.
    pub(super) fn write_labelled(&self, label: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
        self.write_lines(label, &wrap(text, self.room(6 + LABEL_WIDTH)), out)
    }

    /// The same where it matters less.
    pub(super) fn write_labelled_faint(&self, label: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
        let lines = wrap(text, self.room(6 + LABEL_WIDTH));
        let lines: Vec<String> = lines.iter().map(|line| paint(self.palette.faint, line)).collect();
        self.write_lines(label, &lines, out)
    }

    /// The same for what a server wrote: its long words are broken, so that all lines are indented.
    pub(super) fn write_labelled_broken(&self, label: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
        self.write_lines(label, &wrap_and_break(text, self.room(6 + LABEL_WIDTH)), out)
    }

    fn write_lines(&self, label: &str, lines: &[String], out: &mut dyn Write) -> io::Result<()> {
        let mut label = label;
        for line in lines {
            writeln!(out, "      {}{line}", paint(self.palette.faint, format_args!("{label:<LABEL_WIDTH$}")))?;
            label = "";
        }
        Ok(())
    }

    /// The first few names, separated by commas.
    pub(super) fn join_names(&self, names: &[String]) -> String {
        self.join(names, ", ", MAX_NAMES)
    }

    /// The places where a finding was made, the first few of them.
    pub(super) fn join_places(&self, places: &[String]) -> String {
        self.join(places, "; ", MAX_PLACES)
    }

    fn join(&self, names: &[String], by: &str, limit: usize) -> String {
        let shown = if self.is_verbose() { names.len() } else { names.len().min(limit) };
        let list = names[..shown].join(by);
        if shown < names.len() { format!("{list} and {} more", names.len() - shown) } else { list }
    }
}

/// Writes wrapped text with a hanging indent.
pub(super) fn write_hanging(text: &str, room: usize, out: &mut dyn Write) -> io::Result<()> {
    for (index, line) in wrap(text, room).into_iter().enumerate() {
        writeln!(out, "{}{line}", if index == 0 { "  " } else { "    " })?;
    }
    Ok(())
}

/// A text cut to a number of columns.
pub(super) fn one_line(text: &str, columns: usize) -> String {
    if display_width(text) <= columns {
        return text.to_owned();
    }
    format!("{}…", first_columns(text, columns.saturating_sub(1)))
}

/// Joins revisions with commas.
pub(super) fn join_revisions(of: &[Revision]) -> String {
    of.iter().map(|revision| revision.as_str()).collect::<Vec<_>>().join(", ")
}
