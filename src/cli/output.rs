//! The outputs of a run: the terminal and the report files, all opened before the run starts.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::PathBuf;

use mcp_conformance::event::{Event, Sink};
use mcp_conformance::report::{
    Badge, Conclusion, Detail, Github, Html, Json, Junit, Markdown, ProgressReporter, Renderer, Report, ReportBuilder,
    Sarif, Tap, Text,
};

use super::args::OutputArgs;
use super::error::CliError;
use super::values::{Color, Format, RequestedReport};
use super::workflow_commands::WorkflowCommandEscaper;

/// A standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Error,
}

impl Stream {
    fn writer(self) -> Box<dyn Write + Send> {
        match self {
            Self::Out => Box::new(io::stdout()),
            Self::Error => Box::new(io::stderr()),
        }
    }

    /// The writer for text that the server influences.
    fn text_writer(self) -> Box<dyn Write + Send> {
        if std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
            Box::new(WorkflowCommandEscaper::new(self.writer()))
        } else {
            self.writer()
        }
    }

    fn is_terminal(self) -> bool {
        match self {
            Self::Out => io::stdout().is_terminal(),
            Self::Error => io::stderr().is_terminal(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Out => "standard output",
            Self::Error => "standard error",
        }
    }
}

/// The outputs of a run.
#[derive(Debug)]
pub(super) struct Output {
    /// The stream of the text report.
    stream: Stream,
    color: bool,
    detail: Detail,
    /// The format of the report on standard output, where that is not the text.
    out: Option<Format>,
    files: Vec<(Format, PathBuf, File)>,
}

impl Output {
    /// Opens every output, so that a bad path is reported before the run.
    pub(super) fn open(args: &OutputArgs) -> Result<Self, CliError> {
        let mut out = None;
        let mut files: Vec<(Format, PathBuf, File)> = Vec::new();
        for RequestedReport { format, path } in &args.report {
            match path {
                None if out.is_some() => return Err(CliError::DuplicateReport("standard output".to_owned())),
                None => out = Some(*format),
                Some(path) if files.iter().any(|(_, known, _)| known == path) => {
                    return Err(CliError::DuplicateReport(path.display().to_string()));
                }
                Some(path) => {
                    let file = File::create(path).map_err(|source| CliError::Open { path: path.clone(), source })?;
                    files.push((*format, path.clone(), file));
                }
            }
        }
        let out = out.filter(|format| *format != Format::Text);
        let stream = if out.is_some() { Stream::Error } else { Stream::Out };
        let detail = match (args.quiet, args.verbose) {
            (true, _) => Detail::Verdict,
            (false, true) => Detail::Everything,
            (false, false) => Detail::Standard,
        };
        let color = colored(args.color, stream.is_terminal(), |name| std::env::var(name).ok());
        Ok(Self { stream, color, detail, out, files })
    }

    /// Whether every message is shown during the run.
    pub(super) fn shows_wire(&self) -> bool {
        self.detail == Detail::Everything
    }

    /// The stream of the text report, for text after it.
    pub(super) fn stream_writer(&self) -> Box<dyn Write + Send> {
        self.stream.writer()
    }

    /// The display of the run while it is in progress.
    pub(super) fn live(&self) -> ProgressReporter<Box<dyn Write + Send>> {
        let writer = self.stream.text_writer();
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb") || std::env::var_os("CI").is_some();
        match self.detail {
            Detail::Everything => ProgressReporter::lines(writer, self.color),
            Detail::Standard if Stream::Error.is_terminal() && !dumb => ProgressReporter::progress(writer),
            Detail::Standard => ProgressReporter::notices(writer),
            Detail::Verdict => ProgressReporter::silent(writer),
        }
    }

    /// Writes the report to every output. An output that fails does not stop the others; the first failure is returned.
    /// `live_error` is the failure of the display during the run.
    pub(super) fn write(self, report: &Report, live_error: Option<io::Error>) -> Result<(), CliError> {
        let text = Text { color: self.color, detail: self.detail, ..Text::default() };
        let mut failure = None;
        let mut record = |what: String, result: io::Result<()>| {
            if let Err(source) = result {
                let conclusion = Conclusion::of(report);
                failure.get_or_insert(CliError::Write { what, source, conclusion });
            }
        };
        record("the progress of the run".to_owned(), live_error.map_or(Ok(()), Err));
        for (format, path, file) in self.files {
            let plain = Text { color: false, ..text };
            record(format!("the report to {}", path.display()), render(&*renderer(format, plain), report, file));
        }
        record(format!("the report to {}", self.stream.name()), render(&text, report, self.stream.text_writer()));
        if let Some(format) = self.out {
            let written = render(&*renderer(format, text), report, Stream::Out.writer());
            record("the report to standard output".to_owned(), written);
        }
        failure.map_or(Ok(()), Err)
    }
}

/// The renderer of a format; `text` has the settings of the text format.
fn renderer(format: Format, text: Text) -> Box<dyn Renderer> {
    match format {
        Format::Text => Box::new(text),
        Format::Json => Box::new(Json),
        Format::Html => Box::new(Html),
        Format::Junit => Box::new(Junit),
        Format::Sarif => Box::new(Sarif),
        Format::Tap => Box::new(Tap),
        Format::Markdown => Box::new(Markdown),
        Format::Github => Box::new(Github),
        Format::Badge => Box::new(Badge),
    }
}

fn render(renderer: &dyn Renderer, report: &Report, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    renderer.render(report, &mut out)?;
    out.flush()
}

/// Whether to colour, given the option, the stream and the environment.
fn colored(when: Color, terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    match when {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let disabled = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
            terminal && !disabled && variable("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

/// The listeners of a run: the report and the live display.
pub(super) struct Listeners {
    fold: Option<ReportBuilder>,
    live: ProgressReporter<Box<dyn Write + Send>>,
    live_error: Option<io::Error>,
}

impl Listeners {
    pub(super) fn new(report: Report, live: ProgressReporter<Box<dyn Write + Send>>) -> Self {
        Self { fold: Some(ReportBuilder::new(report)), live, live_error: None }
    }

    /// The report so far, once, and the first failure of the live display.
    pub(super) fn take(&mut self) -> Option<(Report, Option<io::Error>)> {
        self.fold.take().map(|fold| (fold.into_report(), self.live_error.take()))
    }
}

impl Sink for Listeners {
    /// A failure of the live display stops neither the run nor the report.
    fn on(&mut self, event: &Event) -> io::Result<()> {
        if let Err(error) = self.live.on(event) {
            self.live_error.get_or_insert(error);
        }
        self.fold.as_mut().map_or(Ok(()), |fold| fold.on(event))
    }
}

#[cfg(test)]
mod tests {
    use mcp_conformance::report::example;

    use super::*;

    #[test]
    fn colour_follows_the_option_then_the_environment_then_the_stream() {
        let none = |_: &str| None;
        let no_color = |name: &str| (name == "NO_COLOR").then(|| "1".to_owned());
        let empty = |name: &str| (name == "NO_COLOR").then(String::new);
        let dumb = |name: &str| (name == "TERM").then(|| "dumb".to_owned());
        assert!(colored(Color::Auto, true, none) && colored(Color::Auto, true, empty));
        assert!(!colored(Color::Auto, false, none) && !colored(Color::Auto, true, no_color));
        assert!(!colored(Color::Auto, true, dumb) && !colored(Color::Never, true, none));
        assert!(colored(Color::Always, false, no_color) && colored(Color::Always, false, dumb));
    }

    fn args(report: Vec<RequestedReport>) -> OutputArgs {
        OutputArgs { report, color: Color::Auto, quiet: true, verbose: false }
    }

    #[test]
    fn a_bad_path_is_reported_before_the_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("missing/report.json");
        let error = Output::open(&args(vec![RequestedReport { format: Format::Json, path: Some(path) }]));
        assert!(matches!(error, Err(CliError::Open { .. })), "{error:?}");
    }

    #[test]
    fn two_reports_need_two_destinations() {
        let out = |format| RequestedReport { format, path: None };
        let error = Output::open(&args(vec![out(Format::Text), out(Format::Json)]));
        assert!(matches!(error, Err(CliError::DuplicateReport(_))), "{error:?}");
    }

    #[test]
    fn every_file_contains_the_report_in_its_format() {
        let folder = tempfile::tempdir().expect("a folder");
        let [json, text] = ["r.json", "r.txt"].map(|name| folder.path().join(name));
        let wanted = vec![
            RequestedReport { format: Format::Json, path: Some(json.clone()) },
            RequestedReport { format: Format::Text, path: Some(text.clone()) },
        ];
        let output = Output::open(&args(wanted)).expect("both can be opened");
        output.write(&example(), None).expect("both can be written");
        let read: Report =
            serde_json::from_str(&std::fs::read_to_string(json).expect("it is there")).expect("a report");
        assert_eq!(read, example());
        assert!(std::fs::read_to_string(text).expect("it is there").contains("exit code 1"));
    }
}
