//! What a reader sees while a run goes on: lines as they come where everything is asked for, else a
//! progress line on a terminal, else nothing.
//!
//! The lines go to the writer that the report goes to; the progress line goes to standard error and is
//! gone when the run is over.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::palette::{Palette, paint};
use super::prose::time;
use super::text::wire_line;
use super::visible::{excerpt, visible};
use crate::event::{CaseResult, Event, Sink};
use crate::verdict::Verdict;

/// How many characters of a message are shown as it goes by.
const LINE: usize = 2000;

/// Shows a run while it goes on.
pub struct Live<W> {
    out: W,
    palette: Palette,
    lines: bool,
    bar: Option<ProgressBar>,
    failing: usize,
}

impl<W: Write + Send> Live<W> {
    /// Shows each message and each case as a line of `out`.
    #[must_use]
    pub fn lines(out: W, color: bool) -> Self {
        Self { out, palette: Palette::new(color), lines: true, bar: None, failing: 0 }
    }

    /// Shows a progress line on standard error, which has to be a terminal.
    #[must_use]
    pub fn progress(out: W) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        Self { out, palette: Palette::new(false), lines: false, bar: Some(bar), failing: 0 }
    }

    /// Shows nothing.
    #[must_use]
    pub fn silent(out: W) -> Self {
        Self { out, palette: Palette::new(false), lines: false, bar: None, failing: 0 }
    }

    fn case(&mut self, result: &CaseResult) -> io::Result<()> {
        let word = format!("{:<5}", result.verdict.as_str());
        write!(
            self.out,
            "{} {}  {}",
            paint(self.palette.of(result.verdict), word),
            visible(&result.case),
            paint(self.palette.faint, result.revision)
        )?;
        if result.took_ms > 0.0 {
            write!(self.out, "  {}", paint(self.palette.faint, time(result.took_ms)))?;
        }
        if let Some(reason) = &result.reason {
            write!(self.out, "  {}", excerpt(reason, LINE, 0))?;
        }
        writeln!(self.out)?;
        for finding in &result.findings {
            writeln!(self.out, "        {}: {}", visible(&finding.requirement), excerpt(&finding.message, LINE, 0))?;
        }
        Ok(())
    }

    fn advance(&mut self, event: &Event) {
        let Some(bar) = &self.bar else { return };
        match event {
            Event::RunStarted { .. } => {
                bar.set_style(style("{spinner} {msg}"));
                bar.set_message("finding out what the server speaks");
                bar.enable_steady_tick(Duration::from_millis(120));
            }
            Event::Probed { cases, .. } => {
                bar.set_style(style("{bar:30} {pos}/{len} {msg}"));
                bar.set_length(u64::try_from(*cases).unwrap_or(u64::MAX));
                bar.set_message("");
            }
            Event::CaseFinished(result) => {
                if result.verdict == Verdict::Fail {
                    self.failing += 1;
                }
                bar.inc(1);
                // Case ids are files of ours or of the user's, never the server's words.
                let failing = if self.failing == 0 { String::new() } else { format!("{} fail  ", self.failing) };
                bar.set_message(format!("{failing}{} {}", result.revision, visible(&result.case)));
            }
            Event::Wire { .. } | Event::TargetFinished(_) => {}
            Event::RunFinished(_) => bar.finish_and_clear(),
        }
    }
}

/// A style whose template is ours and therefore right.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is fixed").progress_chars("=> ")
}

impl<W: Write + Send> Sink for Live<W> {
    fn on(&mut self, event: &Event) -> io::Result<()> {
        self.advance(event);
        if !self.lines {
            return Ok(());
        }
        match event {
            Event::RunStarted { server } => {
                writeln!(self.out, "starting {}", excerpt(server, LINE, 0))?;
            }
            Event::Probed { revisions, cases } => {
                let names: Vec<&str> = revisions.iter().map(|revision| revision.as_str()).collect();
                let names = if names.is_empty() { "no revision that is judged".to_owned() } else { names.join(", ") };
                writeln!(self.out, "it speaks {names}; {cases} cases to run")?;
            }
            Event::Wire { connection, evidence } => {
                writeln!(
                    self.out,
                    "    {} {}",
                    paint(self.palette.faint, excerpt(connection, 60, 0)),
                    wire_line(evidence, self.palette, LINE)
                )?;
            }
            Event::CaseFinished(result) => self.case(result)?,
            Event::TargetFinished(_) => {}
            Event::RunFinished(_) => writeln!(self.out)?,
        }
        self.out.flush()
    }
}

impl<W> Drop for Live<W> {
    /// A run that ends without its last event leaves no progress line behind.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
