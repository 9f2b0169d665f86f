//! The picture of a run in README: the beginning and the end of what the program prints, drawn from its colours.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::support::pages::{read, root};
use crate::support::{PROGRAM, program_command};

const PICTURE: &str = "docs/src/run.svg";

/// The server and its fault.
const SERVER: [&str; 4] = ["mcp-conformance", "serve", "--fault", "image-data-url"];

/// The width of a character in hundredths of a pixel, and the height of a line and the margin in pixels.
const CHARACTER_WIDTH: usize = 843;
const LINE_HEIGHT: usize = 19;
const MARGIN: usize = 16;
const MAX_COLUMNS: usize = 100;

/// A part of a line in one style.
struct Span {
    text: String,
    bold: bool,
    dim: bool,
    colour: Option<&'static str>,
}

/// The parts of a line with escape sequences for colours.
fn spans(line: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let (mut bold, mut dim, mut colour) = (false, false, None);
    for (at, part) in line.split("\u{1b}[").enumerate() {
        let text = if at == 0 {
            part
        } else {
            let (codes, text) = part.split_once('m').unwrap_or(("", part));
            for code in codes.split(';') {
                match code {
                    "1" => bold = true,
                    "2" => dim = true,
                    "31" => colour = Some("#ff7b72"),
                    "32" => colour = Some("#7ee787"),
                    "33" => colour = Some("#e3b341"),
                    "34" => colour = Some("#79c0ff"),
                    "35" => colour = Some("#d2a8ff"),
                    "36" => colour = Some("#76e3ea"),
                    _ => (bold, dim, colour) = (false, false, None),
                }
            }
            text
        };
        if !text.is_empty() {
            spans.push(Span { text: text.to_owned(), bold, dim, colour });
        }
    }
    spans
}

/// A line of at most [`MAX_COLUMNS`] characters.
fn shortened(mut spans: Vec<Span>) -> Vec<Span> {
    let mut left = MAX_COLUMNS;
    for span in &mut spans {
        let length = span.text.chars().count();
        if length > left {
            span.text = span.text.chars().take(left.saturating_sub(1)).chain((left > 0).then_some('…')).collect();
        }
        left = left.saturating_sub(length);
    }
    spans.retain(|span| !span.text.is_empty());
    spans
}

/// The width of so many characters in pixels, with a margin at the left.
fn pixels(characters: usize, margin: usize) -> String {
    let hundredths = characters * CHARACTER_WIDTH + margin * 100;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn drawn(lines: &[String]) -> String {
    let (width, height) = (pixels(MAX_COLUMNS, 2 * MARGIN), lines.len() * LINE_HEIGHT + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"A run in a terminal\">\n\
         <!-- Drawn from a run of the program by the trial docs/the-picture-is-that-of-a-run with UPDATE_GOLDEN=1. -->\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"14\" fill=\"#e6edf3\">\n"
    );
    for (at, line) in lines.iter().enumerate() {
        let y = (at + 1) * LINE_HEIGHT + 12;
        let mut column = 0;
        for span in shortened(spans(line)) {
            let text = span.text.trim();
            let (indent, length) = (span.text.len() - span.text.trim_start().len(), text.chars().count());
            let start = column + indent;
            column += span.text.chars().count();
            if text.is_empty() {
                continue;
            }
            // The width is given, so that columns are aligned in every font; spaces at the ends would be lost.
            let (x, width) = (pixels(start, MARGIN), pixels(length, 0));
            let _ = write!(svg, "<text x=\"{x}\" y=\"{y}\" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\"");
            if span.bold {
                svg.push_str(" font-weight=\"bold\"");
            }
            if span.dim {
                svg.push_str(" fill=\"#8b949e\"");
            } else if let Some(colour) = span.colour {
                let _ = write!(svg, " fill=\"{colour}\"");
            }
            let _ = writeln!(svg, ">{}</text>", escaped(text));
        }
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// What the run prints, as it is drawn: the command, the first finding, and the verdict.
fn printed() -> Result<Vec<String>, String> {
    let programs = Path::new(PROGRAM).parent().map(|path| path.display().to_string()).unwrap_or_default();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = program_command();
    command.args(["--color", "always", "--revision", "2025-11-25", "--fuzz", "off", "--select", "content/*", "--"]);
    command.args(SERVER).env("PATH", format!("{programs}:{path}"));
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8(output.stdout).map_err(|error| error.to_string())?;
    let is_finding = |line: &str| line.contains("FAIL") && line.contains("data");
    let (before, verdict) = text.trim_end().rsplit_once('\n').ok_or_else(|| format!("it printed: {text}"))?;
    let mut lines = vec![format!("\u{1b}[2m$\u{1b}[0m mcp-conformance -- {}", SERVER.join(" "))];
    let from_finding = before.lines().skip_while(|line| !is_finding(line));
    lines.extend(from_finding.take_while(|line| !line.is_empty()).map(without_ids));
    if lines.len() < 8 || !verdict.contains("exit code 1") {
        return Err(format!("{} lines of a finding, and the verdict {verdict}", lines.len()));
    }
    lines.extend(["…".to_owned(), verdict.to_owned()]);
    Ok(lines)
}

/// A line whose message has another id, as the order of the requests is not always the same.
fn without_ids(line: &str) -> String {
    let Some((before, rest)) = line.split_once("\"id\":") else { return line.to_owned() };
    let rest = rest.trim_start_matches(|character: char| character.is_ascii_digit());
    // The line is cut at the same column whatever the length of the id.
    let rest = rest.split('…').next().unwrap_or_default();
    format!("{before}\"id\":7{}…\u{1b}[0m", rest.chars().take(64).collect::<String>())
}

pub(super) fn picture_is_current() -> Result<(), String> {
    let (expected, path) = (drawn(&printed()?), root().join(PICTURE));
    roxmltree::Document::parse(&expected).map_err(|error| format!("the picture is not XML: {error}"))?;
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, &expected).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if read(&path)? != expected {
        return Err(format!("{PICTURE} is stale: UPDATE_GOLDEN=1 rewrites it"));
    }
    let readme = read(&root().join("README.md"))?;
    if readme.contains(&format!("({PICTURE})")) { Ok(()) } else { Err(format!("README.md does not show {PICTURE}")) }
}
