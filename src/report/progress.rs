//! Console output during a run: a line for each message and case in verbose mode, otherwise a progress bar on a
//! terminal, otherwise nothing.
//!
//! The lines go to the writer of the report; the progress bar goes to standard error and is removed at the end.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::finding_text::wire_line;
use super::layout::format_ms;
use super::palette::{Palette, paint};
use super::visible::{excerpt, visible};
use crate::event::{CaseResult, Event, Sink};
use crate::verdict::Verdict;

/// The length at which a message is truncated, in characters.
const MAX_LINE_CHARS: usize = 2000;

/// Shows the progress of a run on the console.
pub struct ProgressReporter<W> {
    out: W,
    palette: Palette,
    lines: bool,
    bar: Option<ProgressBar>,
    failing: usize,
}

impl<W: Write + Send> ProgressReporter<W> {
    /// Writes a line to `out` for each message and each case.
    #[must_use]
    pub fn lines(out: W, color: bool) -> Self {
        Self { out, palette: Palette::new(color), lines: true, bar: None, failing: 0 }
    }

    /// Shows a progress bar on standard error, which has to be a terminal.
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

    fn write_case(&mut self, result: &CaseResult) -> io::Result<()> {
        let verdict = format!("{:<5}", result.verdict.as_str());
        write!(
            self.out,
            "{} {}  {}",
            paint(self.palette.of(result.verdict), verdict),
            visible(&result.case),
            paint(self.palette.faint, result.revision)
        )?;
        if result.duration_ms > 0.0 {
            write!(self.out, "  {}", paint(self.palette.faint, format_ms(result.duration_ms)))?;
        }
        if let Some(reason) = &result.reason {
            write!(self.out, "  {}", excerpt(reason, MAX_LINE_CHARS, 0))?;
        }
        writeln!(self.out)?;
        for finding in &result.findings {
            writeln!(
                self.out,
                "        {}: {}",
                visible(&finding.requirement),
                excerpt(&finding.message, MAX_LINE_CHARS, 0)
            )?;
        }
        Ok(())
    }

    fn update_bar(&mut self, event: &Event) {
        let Some(bar) = &self.bar else { return };
        match event {
            Event::RunStarted { .. } => {
                bar.set_style(style("{spinner} {msg}"));
                bar.set_message("probing the server");
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
                // Case ids come from case files, never from the server.
                let failing = if self.failing == 0 { String::new() } else { format!("{} fail  ", self.failing) };
                bar.set_message(format!("{failing}{} {}", result.revision, visible(&result.case)));
            }
            Event::FuzzingStarted { tools, time, .. } => {
                // Which tools, and with which seed, is part of the report, before which nothing is written.
                let tools = if tools.len() == 1 { "1 tool".to_owned() } else { format!("{} tools", tools.len()) };
                bar.set_message(format!("fuzzing {tools}, at most {:.0} s", time.as_secs_f64()));
                bar.enable_steady_tick(Duration::from_millis(120));
            }
            Event::Wire { .. } | Event::TranscriptLine { .. } | Event::TargetFinished(_) => {}
            Event::RunFinished(_) => bar.finish_and_clear(),
        }
    }
}

/// Announces what will be fuzzed, in one line.
fn fuzzing_line(event: &Event) -> Option<String> {
    const MAX_NAMES: usize = 40;
    let Event::FuzzingStarted { revision, tools, excluded, calls, time, seed } = event else { return None };
    let names: Vec<String> = tools.iter().take(MAX_NAMES).map(|name| excerpt(name, 60, 0)).collect();
    let more = if tools.len() > MAX_NAMES { format!(" and {} more", tools.len() - MAX_NAMES) } else { String::new() };
    let excluded = match excluded {
        0 => String::new(),
        1 => "; 1 tool is excluded".to_owned(),
        count => format!("; {count} tools are excluded"),
    };
    let calls = match calls {
        None => "as many calls of each tool as its schema needs".to_owned(),
        Some(calls) => format!("{calls} calls per tool and those for mutants of its schema"),
    };
    let seconds = time.as_secs_f64();
    Some(format!(
        "fuzzing in {revision}, {calls}, in at most {seconds:.0} s, seed {seed}: {}{more}{excluded}",
        if names.is_empty() { "no tool".to_owned() } else { names.join(", ") }
    ))
}

/// A style with a fixed, valid template.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is fixed").progress_chars("=> ")
}

impl<W: Write + Send> Sink for ProgressReporter<W> {
    fn on(&mut self, event: &Event) -> io::Result<()> {
        self.update_bar(event);
        if !self.lines {
            return Ok(());
        }
        match event {
            Event::RunStarted { server } => {
                writeln!(self.out, "starting {}", excerpt(server, MAX_LINE_CHARS, 0))?;
            }
            Event::Probed { revisions, cases } => {
                let names: Vec<&str> = revisions.iter().map(|revision| revision.as_str()).collect();
                let names = if names.is_empty() { "no revision".to_owned() } else { names.join(", ") };
                let cases = if *cases == 1 { "1 case".to_owned() } else { format!("{cases} cases") };
                writeln!(self.out, "judging {names}: {cases} to run")?;
            }
            Event::Wire { connection, evidence } => {
                writeln!(
                    self.out,
                    "    {} {}",
                    paint(self.palette.faint, excerpt(connection, 60, 0)),
                    wire_line(evidence, self.palette, MAX_LINE_CHARS)
                )?;
            }
            Event::FuzzingStarted { .. } => {
                if let Some(line) = fuzzing_line(event) {
                    writeln!(self.out, "{line}")?;
                }
            }
            Event::CaseFinished(result) => self.write_case(result)?,
            Event::TargetFinished(_) | Event::TranscriptLine { .. } => {}
            Event::RunFinished(_) => writeln!(self.out)?,
        }
        self.out.flush()
    }
}

impl<W> Drop for ProgressReporter<W> {
    /// Removes the progress bar even if the run ends without its last event.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::visible::is_control_or_invisible;
    use crate::report::{HOSTILE, example};
    use crate::verdict::Evidence;

    fn events() -> Vec<Event> {
        let report = example();
        let mut result = report.targets[0].results[1].clone();
        result.reason = Some(HOSTILE.to_owned());
        result.findings[0].message = HOSTILE.to_owned();
        let evidence: Evidence = result.findings[0].evidence[1].clone();
        vec![
            Event::RunStarted { server: HOSTILE.to_owned() },
            Event::Probed { revisions: vec![result.revision], cases: 1 },
            Event::Wire { connection: HOSTILE.to_owned(), evidence },
            Event::CaseFinished(Box::new(result)),
            Event::TargetFinished(Box::new(report.targets[0].summary.clone())),
        ]
    }

    #[test]
    fn each_case_and_each_message_is_one_escaped_line() {
        let mut bytes = Vec::new();
        let mut reporter = ProgressReporter::lines(&mut bytes, false);
        for event in events() {
            reporter.on(&event).expect("a vector takes all that is written");
        }
        drop(reporter);
        let text = String::from_utf8(bytes).expect("UTF-8");
        assert!(!text.chars().any(|c| c != '\n' && is_control_or_invisible(c)), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert_eq!(lines[1], "judging 2025-06-18: 1 case to run");
        assert!(lines[2].starts_with("    ") && lines[2].contains("stderr"), "{}", lines[2]);
        assert!(lines[3].starts_with("fail  tools/call/unknown-tool  2025-06-18  4.5 ms  "), "{}", lines[3]);
    }

    #[test]
    fn only_verbose_output_writes_a_line_before_the_report() {
        let fuzzing = Event::FuzzingStarted {
            revision: crate::spec::Revision::ALL[0],
            tools: vec!["search".to_owned()],
            excluded: 2,
            calls: None,
            time: Duration::from_secs(60),
            seed: 7,
        };
        let written = |create: fn(Vec<u8>) -> ProgressReporter<Vec<u8>>| {
            let mut reporter = create(Vec::new());
            for event in events().iter().chain([&fuzzing]) {
                reporter.on(event).expect("a vector takes all that is written");
            }
            String::from_utf8(std::mem::take(&mut reporter.out)).expect("UTF-8")
        };
        assert_eq!(written(ProgressReporter::silent), "");
        assert_eq!(written(ProgressReporter::progress), "");
        let lines = written(|out| ProgressReporter::lines(out, false));
        assert!(lines.contains("fuzzing in 2024-10-07, ") && lines.contains("seed 7: search; 2 tools"), "{lines}");
    }

    #[test]
    fn a_closed_writer_is_reported_as_an_error() {
        struct ClosedWriter;
        impl Write for ClosedWriter {
            fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut reporter = ProgressReporter::lines(ClosedWriter, true);
        let result = reporter.on(&events()[0]).map_err(|error| error.kind());
        assert_eq!(result, Err(io::ErrorKind::BrokenPipe));
    }
}
