//! Where a run's words go: the terminal, and the reports, all opened before anything is started.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::PathBuf;

use mcp_conformance::event::{Event, Sink};
use mcp_conformance::report::{
    Badge, Conclusion, Detail, Fold, Github, Html, Json, Junit, Live, Markdown, Renderer, Report, Sarif, Tap, Text,
};

use super::args::OutputArgs;
use super::error::CliError;
use super::inert::Inert;
use super::word::{Color, Format, WantedReport};

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

    /// The writer for text that a server had a hand in.
    fn text_writer(self) -> Box<dyn Write + Send> {
        if std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
            Box::new(Inert::new(self.writer()))
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

/// Every place that a run writes to.
#[derive(Debug)]
pub(super) struct Output {
    /// Where the text for the user goes.
    stream: Stream,
    color: bool,
    detail: Detail,
    /// What goes to standard output beside, or instead of, the text.
    out: Option<Format>,
    files: Vec<(Format, PathBuf, File)>,
}

impl Output {
    /// Opens every place, so that a bad path is told before anything runs.
    pub(super) fn open(args: &OutputArgs) -> Result<Self, CliError> {
        let mut out = None;
        let mut files: Vec<(Format, PathBuf, File)> = Vec::new();
        for WantedReport { format, path } in &args.report {
            match path {
                None if out.is_some() => return Err(CliError::SamePlace("standard output".to_owned())),
                None => out = Some(*format),
                Some(path) if files.iter().any(|(_, known, _)| known == path) => {
                    return Err(CliError::SamePlace(path.display().to_string()));
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
            (false, false) => Detail::Usual,
        };
        let color = colored(args.color, stream.is_terminal(), |name| std::env::var(name).ok());
        Ok(Self { stream, color, detail, out, files })
    }

    /// Whether every message is wanted as it goes by.
    pub(super) fn shows_wire(&self) -> bool {
        self.detail == Detail::Everything
    }

    /// The stream of the text, for words after the report.
    pub(super) fn stream_writer(&self) -> Box<dyn Write + Send> {
        self.stream.writer()
    }

    /// What shows the run while it goes on.
    pub(super) fn live(&self) -> Live<Box<dyn Write + Send>> {
        let writer = self.stream.text_writer();
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb") || std::env::var_os("CI").is_some();
        match self.detail {
            Detail::Everything => Live::lines(writer, self.color),
            Detail::Usual if Stream::Error.is_terminal() && !dumb => Live::progress(writer),
            Detail::Usual => Live::notices(writer),
            Detail::Verdict => Live::silent(writer),
        }
    }

    /// Writes the report to every place. One that fails does not keep the others from theirs; the first
    /// failure is told, and what was lost while the run was shown counts as one.
    pub(super) fn write(self, report: &Report, shown: Option<io::Error>) -> Result<(), CliError> {
        let text = Text { color: self.color, detail: self.detail, ..Text::default() };
        let mut lost = None;
        let mut note = |what: String, result: io::Result<()>| {
            if let Err(source) = result {
                let conclusion = Conclusion::of(report);
                lost.get_or_insert(CliError::Lost { what, source, conclusion });
            }
        };
        note("what the run showed".to_owned(), shown.map_or(Ok(()), Err));
        for (format, path, file) in self.files {
            let plain = Text { color: false, ..text };
            note(format!("the report to {}", path.display()), render(&*renderer(format, plain), report, file));
        }
        note(format!("the report to {}", self.stream.name()), render(&text, report, self.stream.text_writer()));
        if let Some(format) = self.out {
            let written = render(&*renderer(format, text), report, Stream::Out.writer());
            note("the report to standard output".to_owned(), written);
        }
        lost.map_or(Ok(()), Err)
    }
}

/// What writes a format; `text` is how the text is to look.
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
            let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
            terminal && !refused && variable("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

/// Both listeners of a run: the report, and what is shown meanwhile.
pub(super) struct Listeners {
    fold: Option<Fold>,
    live: Live<Box<dyn Write + Send>>,
    lost: Option<io::Error>,
}

impl Listeners {
    pub(super) fn new(report: Report, live: Live<Box<dyn Write + Send>>) -> Self {
        Self { fold: Some(Fold::new(report)), live, lost: None }
    }

    /// The report so far, once, and what was lost of the lines meanwhile.
    pub(super) fn take(&mut self) -> Option<(Report, Option<io::Error>)> {
        self.fold.take().map(|fold| (fold.into_report(), self.lost.take()))
    }
}

impl Sink for Listeners {
    /// A line that nobody can read keeps neither the report from being made nor the run from its end.
    fn on(&mut self, event: &Event) -> io::Result<()> {
        if let Err(error) = self.live.on(event) {
            self.lost.get_or_insert(error);
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

    fn args(report: Vec<WantedReport>) -> OutputArgs {
        OutputArgs { report, color: Color::Auto, quiet: true, verbose: false }
    }

    #[test]
    fn a_bad_path_is_told_before_anything_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("missing/report.json");
        let error = Output::open(&args(vec![WantedReport { format: Format::Json, path: Some(path) }]));
        assert!(matches!(error, Err(CliError::Open { .. })), "{error:?}");
    }

    #[test]
    fn two_reports_want_two_places() {
        let out = |format| WantedReport { format, path: None };
        let error = Output::open(&args(vec![out(Format::Text), out(Format::Json)]));
        assert!(matches!(error, Err(CliError::SamePlace(_))), "{error:?}");
    }

    #[test]
    fn every_file_gets_the_report_in_its_format() {
        let folder = tempfile::tempdir().expect("a folder");
        let [json, text] = ["r.json", "r.txt"].map(|name| folder.path().join(name));
        let wanted = vec![
            WantedReport { format: Format::Json, path: Some(json.clone()) },
            WantedReport { format: Format::Text, path: Some(text.clone()) },
        ];
        let output = Output::open(&args(wanted)).expect("both can be opened");
        output.write(&example(), None).expect("both can be written");
        let read: Report =
            serde_json::from_str(&std::fs::read_to_string(json).expect("it is there")).expect("a report");
        assert_eq!(read, example());
        assert!(std::fs::read_to_string(text).expect("it is there").contains("exit code 1"));
    }
}
