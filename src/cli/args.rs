//! What can be typed: the commands, the options of each, and how they are told in the help.
//!
//! Owns which options there are, and which of them go together. What a word may say is in [`super::word`]; what comes
//! of it is for each command to say.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand};
use globset::GlobMatcher;
use mcp_conformance::case::Shard;
use mcp_conformance::reference::Fault;
use mcp_conformance::report;
use mcp_conformance::spec::Revision;
use serde_json::Value;

use super::http::{HttpArgs, Named};
use super::word::{
    Color, FailOn, Fuzz, FuzzRevisions, PageFormat, RevisionChoice, TableFormat, WantedReport, duration, fuzz, glob,
    revision_choice, seed_value, variable, wanted_report,
};

/// What stands below the options in the help.
const AFTER: &str = "\
Exit codes:
  0  everything judged passes, but for what --baseline accepts; warnings are allowed unless --strict
     is given, and a failure that does not come back (see --retries) counts as one
  1  a case fails: a rule of level MUST is broken, or one in a way that no
     reading allows; any rule at all under --strict; or the baseline is out of date
  2  we could not judge: bad usage, a bad case file, the server cannot be started or never speaks MCP
  3  nothing was judged: no case was selected, or none applies

Examples:
  mcp-conformance ./my-server
  mcp-conformance --revision latest --select 'tools/*' -- node server.js --port 0
  mcp-conformance --report json=report.json --strict uvx mcp-server-time
  mcp-conformance http://localhost:3000/mcp
  mcp-conformance --url http://127.0.0.1:3000/mcp -- ./my-server --port 3000
  mcp-conformance --baseline known.jsonc --report junit=junit.xml ./my-server
  mcp-conformance report report.json --report markdown=comment.md
  mcp-conformance --select 'fuzz/*' --fuzz 5000 --tool 'search*' ./my-server
  mcp-conformance --fuzz off ./my-server
  mcp-conformance --list --select stdio
  mcp-conformance explain tools/call/unknown-tool
  mcp-conformance hints --output mcp-hints.jsonc -- node server.js
  mcp-conformance --hints mcp-hints.jsonc -- node server.js
  mcp-conformance demo";

/// Judges any Model Context Protocol (MCP) server against every revision of the specification.
///
/// It starts the server, finds out which revisions it speaks, runs the cases of each, and says what is
/// wrong, with the messages that prove it.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = AFTER,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    override_usage = "mcp-conformance [OPTIONS] [--] <SERVER>...\n       mcp-conformance <COMMAND>",
    max_term_width = 110
)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) judge: JudgeArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Says what a case or a requirement asks, why, and how to mend a server that breaks it.
    Explain(ExplainArgs),
    /// Says which requirements of the specification the cases check, and which they do not.
    Coverage(CoverageArgs),
    /// Tries a server's tools out and writes a file of hints: which calls show what of it.
    Hints(HintsArgs),
    /// Judges the built-in server with three faults switched on; exits with 0 when it finds exactly those.
    Demo(DemoArgs),
    /// Tries a failing call out of its file again; exits like a run.
    Replay(ReplayArgs),
    /// The built-in server itself, over standard input and output.
    Serve(ServeArgs),
    /// Renders the JSON report of an earlier run again, in any format.
    Report(ReportArgs),
    /// Says what two runs differ in: fixed, new and changed; exits with 1 if something is new.
    Diff(DiffArgs),
    /// Joins the JSON reports of all shards of a run into one.
    Merge(MergeArgs),
    /// Says which servers break which requirements, by the JSON reports of many.
    Fleet(FleetArgs),
}

#[derive(Debug, ClapArgs)]
pub(super) struct JudgeArgs {
    /// The command that starts the server, with its arguments, or the address of one that runs; our options
    /// come before it.
    #[arg(value_name = "SERVER", required_unless_present_any = ["list", "url"], trailing_var_arg = true)]
    pub(super) server: Vec<String>,

    /// Lists what would run and starts nothing.
    #[arg(long, help_heading = "What is judged")]
    pub(super) list: bool,

    #[command(flatten)]
    pub(super) scope: Scope,

    #[command(flatten)]
    pub(super) judging: Judging,

    #[command(flatten)]
    pub(super) fuzzing: Fuzzing,

    #[command(flatten)]
    pub(super) gate: GateArgs,

    /// A variable that the server is started with; may be repeated [default: it inherits ours].
    #[arg(long, value_name = "K=V", value_parser = variable, help_heading = "How the server is started")]
    pub(super) env: Vec<(String, String)>,

    /// The folder that the server is started in [default: the current one].
    #[arg(long, value_name = "DIR", help_heading = "How the server is started")]
    pub(super) cwd: Option<PathBuf>,

    #[command(flatten)]
    pub(super) http: HttpArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

impl JudgeArgs {
    /// The server that is named.
    pub(super) fn named(&self) -> Named<'_> {
        Named { http: &self.http, server: &self.server, env: &self.env, cwd: self.cwd.as_ref() }
    }
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "What is judged")]
pub(super) struct Scope {
    /// A revision such as 2025-06-18, `latest` or `all`; may be repeated [default: every released one
    /// that the server speaks].
    #[arg(long, value_name = "REV", value_parser = revision_choice)]
    pub(super) revision: Vec<RevisionChoice>,

    /// Only cases whose id, area or tag matches; may be repeated [default: every case].
    #[arg(long, value_name = "GLOB")]
    pub(super) select: Vec<String>,

    /// No cases whose id, area or tag matches; may be repeated [default: none are left out].
    #[arg(long, value_name = "GLOB")]
    pub(super) skip: Vec<String>,

    /// Your own cases, run beside ours [default: ours alone].
    #[arg(long, value_name = "DIR")]
    pub(super) cases: Option<PathBuf>,

    /// Only this part of the cases, such as 1/3, for several machines; `merge` joins their reports. Cases
    /// that watch run in every part [default: all of them].
    #[arg(long, value_name = "K/N")]
    pub(super) shard: Option<Shard>,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "What fails the run")]
pub(super) struct GateArgs {
    /// Accepts the findings that this file lists; one that it does not list fails the run, and so does a
    /// line that is not found any more [default: nothing is accepted].
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,

    /// Writes the baseline anew, keeping reasons and comments: stale lines go, what would fail comes in.
    #[arg(long, requires = "baseline")]
    pub(super) update_baseline: bool,

    #[command(flatten)]
    pub(super) threshold: Threshold,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "What fails the run")]
pub(super) struct Threshold {
    /// Which findings fail the run: broken MUST rules, SHOULD rules too, or none.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = FailOn::Must)]
    pub(super) fail_on: FailOn,

    /// The same as `--fail-on should`: warnings fail the run too.
    #[arg(long, conflicts_with = "fail_on")]
    pub(super) strict: bool,
}

impl Threshold {
    pub(super) fn fail_on(&self) -> report::FailOn {
        if self.strict { report::FailOn::Should } else { self.fail_on.into() }
    }
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "How it is judged")]
pub(super) struct Judging {
    /// How often a case that fails is tried again on a fresh process before it is believed. One that never
    /// fails again is told as a flaky warning.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=10))]
    pub(super) retries: u8,

    /// Calls every tool, destructive ones too [default: tools annotated `readOnlyHint: true` or
    /// `destructiveHint: false`, and tools without annotations].
    #[arg(long, conflicts_with = "safe")]
    pub(super) call_destructive: bool,

    /// Calls only tools annotated `readOnlyHint: true`.
    #[arg(long)]
    pub(super) safe: bool,

    /// A file that says which calls show more of the server; `mcp-conformance hints` writes a first one
    /// [default: none].
    #[arg(long, value_name = "FILE")]
    pub(super) hints: Option<PathBuf>,

    /// The seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,

    /// How long a request may take, such as 5s or 500ms.
    #[arg(long, value_name = "DUR", default_value = "5s", value_parser = duration)]
    pub(super) timeout: Duration,

    /// How long the server's first answer may take; one that does nothing at all is given up after a sixth of it.
    #[arg(long, value_name = "DUR", default_value = "30s", value_parser = duration)]
    pub(super) startup_timeout: Duration,

    /// How many processes of the server run side by side [default: twice the number of processors, at least 4; for
    /// fuzzing, whose processes are never idle, their number].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) jobs: Option<u16>,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Fuzzing")]
pub(super) struct Fuzzing {
    /// How many generated calls each tool gets; `off` makes none. What makes a failure small comes on top.
    #[arg(long, value_name = "N|off", default_value = "200", value_parser = fuzz, overrides_with = "fuzz")]
    pub(super) fuzz: Fuzz,

    /// How long fuzzing may take in a revision, each tool getting its share of it [default: 60s for each 200 calls
    /// of a tool, of which it takes no more than 15ms for each].
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(super) fuzz_time: Option<Duration>,

    /// Whether to fuzz in the `newest` revision that is judged, or in `all` of them.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = FuzzRevisions::Newest)]
    pub(super) fuzz_revisions: FuzzRevisions,

    /// Fuzzes only tools whose name matches; may be repeated [default: every tool that may be called].
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    pub(super) tool: Vec<GlobMatcher>,

    /// Fuzzes no tools whose name matches; may be repeated [default: none are left out].
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    pub(super) skip_tool: Vec<GlobMatcher>,

    /// A value for arguments of that name, as JSON or as text; may be repeated [default: none].
    #[arg(long, value_name = "NAME=VALUE", value_parser = seed_value)]
    pub(super) seed_value: Vec<(String, Value)>,

    /// How many calls are under way at once [default: as many as help].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) in_flight: Option<u16>,

    /// How many calls a second are made at most; over HTTP, how many requests of any kind [default: no limit].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_rate: Option<u32>,

    /// The folder of failing calls, a file each: tried first, and written to; `none` does neither.
    #[arg(long, value_name = "DIR|none", default_value = ".mcp-conformance")]
    pub(super) regressions: PathBuf,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "What is shown")]
pub(super) struct OutputArgs {
    /// A report: `text`, `json`, `junit`, `sarif`, `tap`, `markdown`, `github` (annotations) or `badge` (SVG),
    /// to standard output or to a file (`json=report.json`), or `html`, to a file only; may be repeated. Any but
    /// `text` on standard output moves the text to standard error [default: text].
    #[arg(long, value_name = "FORMAT[=PATH]", value_parser = wanted_report)]
    pub(super) report: Vec<WantedReport>,

    /// Whether to colour the text; `NO_COLOR` and `TERM=dumb` count as `never` for `auto`.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub(super) color: Color,

    /// Shows nothing but the verdict line.
    #[arg(short, long, conflicts_with = "verbose")]
    pub(super) quiet: bool,

    /// Shows every message and every case as it comes, and every finding in full.
    #[arg(short, long)]
    pub(super) verbose: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ExplainArgs {
    /// The id of a case (`tools/call/unknown-tool`) or of a requirement (`tools-call-unknown-tool-error`).
    #[arg(value_name = "CASE|REQUIREMENT")]
    pub(super) name: String,

    /// Your own cases, known beside ours [default: ours alone].
    #[arg(long, value_name = "DIR")]
    pub(super) cases: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct CoverageArgs {
    /// How it is written.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TableFormat::Text)]
    pub(super) format: TableFormat,

    /// Names the requirements that have no case yet.
    #[arg(long, conflicts_with = "all")]
    pub(super) unanswered: bool,

    /// Names every requirement with the cases that check it.
    #[arg(long)]
    pub(super) all: bool,

    /// Only this area of the specification; may be repeated [default: every area].
    #[arg(long, value_name = "AREA")]
    pub(super) area: Vec<String>,

    /// Your own cases, counted beside ours [default: ours alone].
    #[arg(long, value_name = "DIR")]
    pub(super) cases: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct HintsArgs {
    /// The command that starts the server, with its arguments, or the address of one that runs; our options
    /// come before it.
    #[arg(value_name = "SERVER", required_unless_present = "url", trailing_var_arg = true)]
    pub(super) server: Vec<String>,

    /// Where the hints are written to; a file that is there is left alone [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// A revision such as 2025-06-18, `latest` or `all`; may be repeated [default: every released one
    /// that the server speaks].
    #[arg(long, value_name = "REV", value_parser = revision_choice)]
    pub(super) revision: Vec<RevisionChoice>,

    /// Calls every tool, destructive ones too [default: tools annotated `readOnlyHint: true` or
    /// `destructiveHint: false`, and tools without annotations].
    #[arg(long, conflicts_with = "safe")]
    pub(super) call_destructive: bool,

    /// Calls only tools annotated `readOnlyHint: true`.
    #[arg(long)]
    pub(super) safe: bool,

    /// How long a request may take, such as 5s or 500ms.
    #[arg(long, value_name = "DUR", default_value = "5s", value_parser = duration)]
    pub(super) timeout: Duration,

    /// How long the server's first answer may take; one that does nothing at all is given up after a sixth of it.
    #[arg(long, value_name = "DUR", default_value = "30s", value_parser = duration)]
    pub(super) startup_timeout: Duration,

    /// A variable that the server is started with; may be repeated [default: it inherits ours].
    #[arg(long, value_name = "K=V", value_parser = variable)]
    pub(super) env: Vec<(String, String)>,

    /// The folder that the server is started in [default: the current one].
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,

    #[command(flatten)]
    pub(super) http: HttpArgs,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DemoArgs {
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ReportArgs {
    /// The JSON report of a run.
    #[arg(value_name = "REPORT")]
    pub(super) file: PathBuf,

    #[command(flatten)]
    pub(super) hold: HoldArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// A baseline for a run that is over.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "What fails the run")]
pub(super) struct HoldArgs {
    /// Holds the run against this baseline [default: as it was when it ran].
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,

    /// Which findings fail the run [default: as it was when it ran].
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(super) fail_on: Option<FailOn>,

    /// Your own cases, whose ids the baseline may name [default: ours alone].
    #[arg(long, value_name = "DIR")]
    pub(super) cases: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DiffArgs {
    /// The JSON report of the earlier run.
    #[arg(value_name = "OLD")]
    pub(super) old: PathBuf,

    /// The JSON report of the later run.
    #[arg(value_name = "NEW")]
    pub(super) new: PathBuf,

    /// How it is written.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TableFormat::Text)]
    pub(super) format: TableFormat,
}

#[derive(Debug, ClapArgs)]
pub(super) struct MergeArgs {
    /// The JSON reports of the shards, each once.
    #[arg(value_name = "REPORT", required = true)]
    pub(super) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) hold: HoldArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ReplayArgs {
    /// The file, as a run has written it below `--regressions`.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,

    /// The command that starts the server, with its arguments, or the address of one that runs, after `--`.
    #[arg(value_name = "SERVER", required_unless_present = "url", last = true)]
    pub(super) server: Vec<String>,

    /// The revision to speak, such as 2025-06-18 [default: the one that the file names].
    #[arg(long, value_name = "REV")]
    pub(super) revision: Option<Revision>,

    /// How long a request may take, such as 5s or 500ms.
    #[arg(long, value_name = "DUR", default_value = "5s", value_parser = duration)]
    pub(super) timeout: Duration,

    /// A variable that the server is started with; may be repeated [default: it inherits ours].
    #[arg(long, value_name = "K=V", value_parser = variable)]
    pub(super) env: Vec<(String, String)>,

    /// The folder that the server is started in [default: the current one].
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,

    #[command(flatten)]
    pub(super) http: HttpArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(super) struct FleetArgs {
    /// The JSON reports, one of each server.
    #[arg(value_name = "REPORT", required = true)]
    pub(super) files: Vec<PathBuf>,

    /// How it is written.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = PageFormat::Markdown)]
    pub(super) format: PageFormat,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ServeArgs {
    /// A fault to switch on; may be repeated [default: none, a server that conforms].
    #[arg(long, value_name = "NAME")]
    pub(super) fault: Vec<Fault>,

    /// Serves Streamable HTTP at this address and path `/mcp` instead of standard input and output; port 0
    /// takes any that is free [default: standard input and output].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) http: Option<std::net::SocketAddr>,

    /// Serves over HTTP who brings the bearer token that this variable holds, as an OAuth resource server does;
    /// the same token with `-narrow` behind it may not call tools [default: everybody].
    #[arg(long, value_name = "VAR", requires = "http")]
    pub(super) protected: Option<String>,

    /// Lists the faults and serves nothing.
    #[arg(long)]
    pub(super) list_faults: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::word::Format;

    fn parse(words: &[&str]) -> Result<Args, String> {
        Args::try_parse_from(["mcp-conformance"].iter().chain(words)).map_err(|error| error.to_string())
    }

    fn judge(words: &[&str]) -> JudgeArgs {
        let args = parse(words).expect("it parses");
        assert!(args.command.is_none(), "{words:?} is a subcommand");
        args.judge
    }

    fn complaint(words: &[&str]) -> String {
        parse(words).expect_err("it does not parse")
    }

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_server_keeps_its_own_flags() {
        let args = judge(&["--strict", "node", "server.js", "--strict", "-v", "--list", "--", "x"]);
        assert_eq!(args.server, ["node", "server.js", "--strict", "-v", "--list", "--", "x"]);
        assert!(args.gate.threshold.strict && !args.output.verbose && !args.list);
    }

    #[test]
    fn two_dashes_end_our_options() {
        assert_eq!(judge(&["-v", "--", "./server", "-q"]).server, ["./server", "-q"]);
        assert_eq!(judge(&["--", "--odd-name"]).server, ["--odd-name"]);
        assert_eq!(judge(&["--", "demo"]).server, ["demo"]);
    }

    #[test]
    fn a_server_may_be_called_like_a_subcommand() {
        assert_eq!(judge(&["./demo"]).server, ["./demo"]);
        assert_eq!(judge(&["bin/serve", "explain"]).server, ["bin/serve", "explain"]);
        assert_eq!(judge(&["node", "demo"]).server, ["node", "demo"]);
        assert_eq!(judge(&["help"]).server, ["help"]);
        assert!(matches!(parse(&["demo", "-q"]).map(|args| args.command), Ok(Some(Command::Demo(_)))));
        assert!(matches!(parse(&["serve"]).map(|args| args.command), Ok(Some(Command::Serve(_)))));
    }

    #[test]
    fn an_unknown_option_is_not_taken_for_a_server() {
        let text = complaint(&["--strct", "./server"]);
        assert!(text.contains("--strct") && text.contains("--strict"), "{text}");
        assert!(complaint(&["-x", "./server"]).contains("-x"));
    }

    #[test]
    fn without_a_server_only_listing_makes_sense() {
        assert!(complaint(&[]).contains("SERVER"));
        assert!(complaint(&["--strict"]).contains("SERVER"));
        assert!(judge(&["--list"]).list);
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let args = judge(&["./server"]);
        assert_eq!(args.judging.timeout, Duration::from_secs(5));
        assert_eq!(args.judging.startup_timeout, Duration::from_secs(30));
        assert_eq!((args.fuzzing.fuzz, args.judging.seed, args.judging.jobs), (Fuzz::Calls(200), 0, None));
        assert_eq!(args.output.color, Color::Auto);
        assert!(args.scope.revision.is_empty() && args.output.report.is_empty());
    }

    #[test]
    fn repeatable_options_add_up() {
        let args = judge(&[
            "--revision",
            "2025-06-18",
            "--revision",
            "2025-11-25",
            "--select",
            "a",
            "--select",
            "b",
            "--skip",
            "c",
            "--env",
            "A=1",
            "--env",
            "B=x=y",
            "--report",
            "json=r.json",
            "--report",
            "text",
            "s",
        ]);
        let named = [Revision::V2025_06_18, Revision::V2025_11_25].map(RevisionChoice::Named);
        assert_eq!(args.scope.revision, named);
        assert_eq!((args.scope.select.len(), args.scope.skip.len()), (2, 1));
        assert_eq!(args.env, [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "x=y".to_owned())]);
        assert_eq!(args.output.report[0], WantedReport { format: Format::Json, path: Some(PathBuf::from("r.json")) });
        assert_eq!(args.output.report[1], WantedReport { format: Format::Text, path: None });
    }

    #[test]
    fn a_wrong_value_is_told_with_the_right_ones() {
        assert!(complaint(&["--revision", "2025-01-01", "s"]).contains("2024-11-05"));
        assert!(complaint(&["--fuzz", "much", "s"]).contains("a number of calls, or `off`"));
        assert!(complaint(&["--report", "pdf", "s"]).contains("text, json, html"));
        assert!(complaint(&["--shard", "4/3", "s"]).contains("K/N"));
        assert!(complaint(&["--retries", "11", "s"]).contains("0..=10"));
        assert!(complaint(&["--fail-on", "may", "s"]).contains("never"));
        assert!(complaint(&["--report", "json=", "s"]).contains("path"));
        assert!(complaint(&["--report", "html", "s"]).contains("html=report.html"));
        assert!(complaint(&["--report", "html=-", "s"]).contains("html=report.html"));
        assert!(complaint(&["--timeout", "5", "s"]).contains("500ms"));
        assert!(complaint(&["--timeout", "0s", "s"]).contains("longer"));
        assert!(complaint(&["--env", "novalue", "s"]).contains("NAME=VALUE"));
        assert!(complaint(&["--jobs", "0", "s"]).contains("1..=256"));
        assert!(complaint(&["serve", "--fault", "image-data-ulr"]).contains("image-data-url"));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        assert!(complaint(&["--safe", "--call-destructive", "s"]).contains("--safe"));
        assert!(complaint(&["-q", "-v", "s"]).contains("--verbose"));
        assert!(complaint(&["--update-baseline", "s"]).contains("--baseline"));
        assert!(complaint(&["--strict", "--fail-on", "never", "s"]).contains("--strict"));
    }

    #[test]
    fn the_help_tells_every_default_and_the_exit_codes() {
        let help = Args::command().render_long_help().to_string();
        for code in ["0  everything", "1  a case fails", "2  we could not", "3  nothing was"] {
            assert!(help.contains(code), "{code}");
        }
        let commands = Args::command();
        let all = std::iter::once(&commands).chain(commands.get_subcommands());
        for option in all.flat_map(clap::Command::get_arguments).filter(|option| option.get_action().takes_values()) {
            let long = option.get_long();
            let text = option.get_help().map(ToString::to_string).unwrap_or_default();
            let has_default = !option.get_default_values().is_empty() || text.contains("[default: ");
            assert!(has_default || long.is_none(), "{long:?} does not tell its default");
        }
    }
}
