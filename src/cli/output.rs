//! The outputs of a run: the terminal and the report files, all opened before the run starts.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use mcp_conformance::event::{Event, Sink};
use mcp_conformance::report::{
    Badge, Conclusion, Detail, Github, Html, HtmlComparison, Json, Junit, Markdown, ProgressReporter, Renderer, Report,
    Sarif, Tap, Text,
};

use terminal_size::{Width, terminal_size_of};

use super::error::CliError;
use super::report_args::OutputArgs;
use super::report_file;
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

    /// The width of text, in columns: that of the terminal, or of `COLUMNS`, but not more than is easy to read.
    fn width(self) -> usize {
        let terminal = match self {
            Self::Out => terminal_size_of(io::stdout()),
            Self::Error => terminal_size_of(io::stderr()),
        };
        let typed = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let easy = Text::default().width;
        terminal.map(|(Width(columns), _)| usize::from(columns)).or(typed).map_or(easy, |columns| columns.min(easy))
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
    /// What the results of a SARIF report point to.
    sarif_file: Option<String>,
    /// The report of an earlier run, with which an HTML report is compared.
    earlier: Option<Report>,
}

impl Output {
    /// Opens every output, so that a bad path is reported before the run.
    pub(super) fn open(args: &OutputArgs) -> Result<Self, CliError> {
        let earlier = args.compare.as_deref().map(report_file::read).transpose()?;
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
        Ok(Self { stream, color, detail, out, files, sarif_file: args.sarif_file.clone(), earlier })
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
            Detail::Standard | Detail::Verdict => ProgressReporter::silent(writer),
        }
    }

    /// Writes the report to every output. An output that fails does not stop the others; the first failure is returned.
    /// `unwritten` is what could not be written during the run.
    pub(super) fn write(self, report: &Report, unwritten: Unwritten) -> Result<(), CliError> {
        let text = Text { color: self.color, detail: self.detail, width: self.stream.width() };
        let mut failure = None;
        let mut record = |what: String, result: io::Result<()>| {
            if let Err(source) = result {
                let conclusion = Conclusion::of(report);
                failure.get_or_insert(CliError::Write { what, source, conclusion });
            }
        };
        record("the progress of the run".to_owned(), unwritten.live.map_or(Ok(()), Err));
        if let Some((path, error)) = unwritten.transcript {
            record(format!("the transcript to {}", path.display()), Err(error));
        }
        for (format, path, file) in &self.files {
            let plain = Text { color: false, width: Text::default().width, ..text };
            record(format!("the report to {}", path.display()), render(&*self.renderer(*format, plain), report, file));
        }
        record(format!("the report to {}", self.stream.name()), render(&text, report, self.stream.text_writer()));
        if let Some(format) = self.out {
            let written = render(&*self.renderer(format, text), report, Stream::Out.writer());
            record("the report to standard output".to_owned(), written);
        }
        failure.map_or(Ok(()), Err)
    }

    /// The renderer of a format; `text` has the settings of the text format.
    fn renderer(&self, format: Format, text: Text) -> Box<dyn Renderer + '_> {
        match (format, &self.earlier) {
            (Format::Text, _) => Box::new(text),
            (Format::Json, _) => Box::new(Json),
            (Format::Html, None) => Box::new(Html),
            (Format::Html, Some(earlier)) => Box::new(HtmlComparison { earlier }),
            (Format::Junit, _) => Box::new(Junit),
            (Format::Sarif, _) => Box::new(Sarif { file: self.sarif_file.clone() }),
            (Format::Tap, _) => Box::new(Tap),
            (Format::Markdown, _) => Box::new(Markdown),
            (Format::Github, _) => Box::new(Github),
            (Format::Badge, _) => Box::new(Badge),
        }
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

/// The listeners of a run besides its report: the live display and the transcript.
pub(super) struct Listeners {
    live: ProgressReporter<Box<dyn Write + Send>>,
    live_error: Option<io::Error>,
    transcript: Option<TranscriptFile>,
}

impl Listeners {
    pub(super) fn new(live: ProgressReporter<Box<dyn Write + Send>>, transcript: Option<TranscriptFile>) -> Self {
        Self { live, live_error: None, transcript }
    }

    /// The first failure of the live display, and that of the transcript, once the run has ended.
    pub(super) fn take_unwritten(&mut self) -> Unwritten {
        let transcript = self.transcript.take().and_then(TranscriptFile::finish);
        Unwritten { live: self.live_error.take(), transcript }
    }
}

/// What could not be written during a run.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    /// The progress.
    pub(super) live: Option<io::Error>,
    /// The transcript in this file.
    pub(super) transcript: Option<(PathBuf, io::Error)>,
}

/// The file of `--save-transcript`.
#[derive(Debug)]
pub(super) struct TranscriptFile {
    path: PathBuf,
    file: BufWriter<File>,
    error: Option<io::Error>,
}

impl TranscriptFile {
    /// Opens the file, so that a bad path is reported before the run.
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        let opened = File::create(path);
        let file = opened.map_err(|source| CliError::SaveTranscript { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), error: None })
    }

    /// Adds a line. After a failure there are no more, as the file would have a gap.
    fn add(&mut self, line: &str) {
        if self.error.is_none() {
            self.error = writeln!(self.file, "{line}").err();
        }
    }

    /// The first failure.
    fn finish(mut self) -> Option<(PathBuf, io::Error)> {
        let error = self.error.or_else(|| self.file.flush().err())?;
        Some((self.path, error))
    }
}

impl Sink for Listeners {
    /// A failure of the live display stops neither the run nor the report.
    fn on(&mut self, event: &Event) -> io::Result<()> {
        if let Event::TranscriptLine { line } = event {
            if let Some(transcript) = &mut self.transcript {
                transcript.add(line);
            }
            return Ok(());
        }
        if let Err(error) = self.live.on(event) {
            self.live_error.get_or_insert(error);
        }
        Ok(())
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
        OutputArgs { report, sarif_file: None, compare: None, color: Color::Auto, quiet: true, verbose: false }
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
        output.write(&example(), Unwritten::default()).expect("both can be written");
        let read: Report =
            serde_json::from_str(&std::fs::read_to_string(json).expect("it is there")).expect("a report");
        assert_eq!(read, example());
        assert!(std::fs::read_to_string(text).expect("it is there").contains("exit code 1"));
    }
}
