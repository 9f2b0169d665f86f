//! The options that every command with a report has: what fails it, and where the report goes.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use mcp_conformance::{Settings, report};

use super::values::{Accept, Color, FailOn, RequestedReport, requested_report};

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Pass or fail")]
pub(super) struct BaselineArgs {
    /// File of accepted findings. New findings fail the run, and so do entries that are no longer found
    /// [default: no finding is accepted].
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,

    /// Rewrite the baseline: add new findings and remove stale entries, but keep reasons and comments.
    #[arg(long, requires = "baseline")]
    pub(super) update_baseline: bool,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Pass or fail")]
pub(super) struct ThresholdArgs {
    /// What fails the run: violations of MUST rules, of SHOULD rules too, violations of MUST rules and tools that no
    /// generated call satisfied, or nothing.
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = Settings::default().fail_on.into())]
    pub(super) fail_on: FailOn,

    /// Fail the run on warnings too; same as `--fail-on should`.
    #[arg(long, conflicts_with = "fail_on")]
    pub(super) strict: bool,

    /// Findings that do not fail the run: those that the server's SDK causes, on every server. By default they do,
    /// as a client meets them whoever caused them [default: none].
    #[arg(long, value_name = "WHOSE", value_enum)]
    pub(super) accept: Option<Accept>,
}

impl ThresholdArgs {
    pub(super) fn fail_on(&self) -> report::FailOn {
        if self.strict { report::FailOn::Should } else { self.fail_on.into() }
    }
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Report to write: `text`, `json`, `junit`, `sarif`, `tap`, `markdown`, `github` (annotations) or `badge` (SVG),
    /// to standard output or to a file (`json=report.json`), or `html`, to a file only; repeatable. A format other
    /// than `text` on standard output moves the text to standard error [default: text].
    #[arg(long, value_name = "FORMAT[=PATH]", value_parser = requested_report)]
    pub(super) report: Vec<RequestedReport>,

    /// File that every result of the SARIF report points to, relative to the root of the repository
    /// (`src/server.ts`): code scanning shows a result only where its file exists [default: the file of the case].
    #[arg(long, value_name = "PATH")]
    pub(super) sarif_file: Option<String>,

    /// JSON report of an earlier run: the HTML report says what is new, fixed and changed since [default: none].
    #[arg(long, value_name = "FILE")]
    pub(super) compare: Option<PathBuf>,

    /// When to colour the text; `auto` does on a terminal, unless `NO_COLOR` or `TERM=dumb` is set.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(super) color: Color,

    /// Show only the summary line.
    #[arg(short, long, conflicts_with = "verbose")]
    pub(super) quiet: bool,

    /// Show every message and every case while they run, and every finding in full.
    #[arg(short, long)]
    pub(super) verbose: bool,
}
