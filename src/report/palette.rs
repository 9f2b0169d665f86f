//! Terminal colours: one style per meaning, or none.

use anstyle::{AnsiColor, Style};

use crate::verdict::{Direction, Verdict};

/// One style per meaning. Without colour every style is empty, so that the same code writes plain text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Palette {
    color: bool,
    pub(super) strong: Style,
    pub(super) faint: Style,
}

impl Palette {
    pub(super) fn new(color: bool) -> Self {
        let style = |style: Style| if color { style } else { Style::new() };
        Self { color, strong: style(Style::new().bold()), faint: style(Style::new().dimmed()) }
    }

    pub(super) fn of(&self, verdict: Verdict) -> Style {
        if !self.color {
            return Style::new();
        }
        match verdict {
            Verdict::Fail => AnsiColor::Red.on_default().bold(),
            Verdict::Warn => AnsiColor::Yellow.on_default().bold(),
            Verdict::Error => AnsiColor::Magenta.on_default().bold(),
            Verdict::Pass => AnsiColor::Green.on_default().bold(),
            Verdict::Skip => Style::new().dimmed(),
        }
    }

    pub(super) fn of_direction(&self, direction: Direction) -> Style {
        match direction {
            Direction::Sent => self.sent(),
            Direction::Received => self.received(),
            Direction::Stderr => self.of(Verdict::Warn),
            Direction::Event => self.faint,
        }
    }

    pub(super) fn sent(&self) -> Style {
        if self.color { AnsiColor::Cyan.on_default() } else { Style::new() }
    }

    pub(super) fn received(&self) -> Style {
        if self.color { AnsiColor::Blue.on_default() } else { Style::new() }
    }
}

/// Applies a style to a text.
pub(super) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}
