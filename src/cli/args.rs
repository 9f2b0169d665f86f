//! The definition of the command line: the subcommands, the options of each, and their help texts.
//!
//! How the value of an option is parsed is in [`super::values`]; no default but those of subcommands of their own is
//! here, as the others are those of [`Settings`].

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use mcp_conformance::reference::Fault;
use mcp_conformance::report::layout::wrap;
use mcp_conformance::report::{Conclusion, Shard};
use mcp_conformance::spec::Revision;
use mcp_conformance::{FuzzSettings, Settings};
use serde_json::Value;

use super::config_args::{CompletionsArgs, ConfigArgs, InitArgs};
use super::recording_args::{JudgeFileArgs, RecordArgs};
use super::report_args::{BaselineArgs, OutputArgs, ThresholdArgs};
use super::server::ServerArgs;
use super::values::{
    Accept, DurationValue, FailOn, FuzzCalls, FuzzRevisions, PageFormat, RevisionChoice, TableFormat, duration,
    fuzz_calls, revision_choice, seed_value, tool_glob,
};

/// The examples in the help.
const EXAMPLES: &str = "\
Examples:
  mcp-conformance init -- ./my-server
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
  mcp-conformance --save-transcript messages.jsonl ./my-server
  mcp-conformance judge messages.jsonl
  mcp-conformance hints --output mcp-hints.jsonc -- node server.js
  mcp-conformance --hints mcp-hints.jsonc -- node server.js
  mcp-conformance demo";

/// The text after the options in the help: the exit codes and examples.
fn after_help() -> String {
    /// The width of a line without its indentation.
    const WIDTH: usize = 86;
    let mut text = "Exit codes:\n".to_owned();
    for conclusion in Conclusion::ALL {
        let meaning = conclusion.meaning().replace('`', "");
        for (at, line) in wrap(&meaning, WIDTH).into_iter().enumerate() {
            let code = if at == 0 { conclusion.code().to_string() } else { String::new() };
            let _ = writeln!(text, "  {code:1}  {line}");
        }
    }
    format!("{text}\n{EXAMPLES}")
}

/// Judges a Model Context Protocol (MCP) server against every revision of the specification.
///
/// It starts the server, detects which revisions the server supports, runs the cases of each, and reports what is
/// wrong, with the messages that prove it. WARNING: tools without annotations are called with generated arguments.
/// If your server can change real data, use `--safe` or a sandbox.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = after_help(),
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    override_usage = "mcp-conformance [OPTIONS] [--] [SERVER]...\n       mcp-conformance <COMMAND>",
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
    /// Inspect a server and write mcp-conformance.toml for it, which `mcp-conformance` alone then uses.
    Init(InitArgs),
    /// Show what a run sees of a server, which tools it can use and why not the others, and what to do next. Like each run, it
    /// calls every tool once that may be called.
    Doctor(DoctorArgs),
    /// Explain a case or a requirement: what it checks, why, and how to fix a server that violates it.
    Explain(ExplainArgs),
    /// Show which requirements of the specification have a case, and which do not.
    Coverage(CoverageArgs),
    /// Write the reference of every requirement, case, option and exit code as Markdown files, for an mdBook; prints
    /// their lines for its summary.
    Docs(DocsArgs),
    /// Try out a server's tools, resources and prompts, and write a hint file with the requests that show most.
    Hints(HintsArgs),
    /// Judge the reference server with three faults; succeeds if exactly these are found.
    Demo(DemoArgs),
    /// Replay a failing call that fuzzing saved; has the exit codes of a run.
    Replay(ReplayArgs),
    /// Judge a recording: a file of --save-transcript or `record`, or another client's traffic; reports like a run.
    Judge(JudgeFileArgs),
    /// Record what a client and a server exchange over standard input and output, without changing a byte.
    Record(RecordArgs),
    /// Run the reference server, over standard input and output or HTTP.
    Serve(ServeArgs),
    /// Render the JSON report of an earlier run in other formats.
    Report(ReportArgs),
    /// Show the differences between two runs: new, fixed and changed findings; exits with 1 if there are new ones.
    Diff(DiffArgs),
    /// Merge the JSON reports of the shards of a run.
    Merge(MergeArgs),
    /// Show which servers violate which requirements, from the JSON reports of many servers.
    Fleet(FleetArgs),
    /// Print completions for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page.
    Man,
}

#[derive(Debug, ClapArgs)]
pub(super) struct JudgeArgs {
    /// The command that starts the server, with its arguments, or the URL of a running server; options of
    /// mcp-conformance come before it. `{scratch}` in an argument is the path of a folder with a few files, made for
    /// the run and removed after it.
    #[arg(value_name = "SERVER", trailing_var_arg = true)]
    pub(super) server: Vec<OsString>,

    /// List the selected cases without starting the server.
    #[arg(long, help_heading = "Case selection")]
    pub(super) list: bool,

    #[command(flatten)]
    pub(super) selection: SelectionArgs,

    #[command(flatten)]
    pub(super) run: RunArgs,

    #[command(flatten)]
    pub(super) fuzzing: FuzzArgs,

    #[command(flatten)]
    pub(super) baseline: BaselineArgs,

    #[command(flatten)]
    pub(super) threshold: ThresholdArgs,

    #[command(flatten)]
    pub(super) connection: ServerArgs,

    #[command(flatten)]
    pub(super) config: ConfigArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,

    /// File for every message of the run, with direction, time and connection; secrets are masked. `judge` judges it
    /// again [default: none].
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) save_transcript: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Case selection")]
pub(super) struct SelectionArgs {
    /// Revision to judge, such as 2025-06-18, `latest` or `all`; repeatable [default: every released revision
    /// that the server supports].
    #[arg(long, value_name = "REV", value_parser = revision_choice)]
    pub(super) revision: Vec<RevisionChoice>,

    /// Run only cases whose id, area or tag matches; repeatable [default: every case].
    #[arg(long, value_name = "GLOB")]
    pub(super) select: Vec<String>,

    /// Do not run cases whose id, area or tag matches; repeatable [default: none].
    #[arg(long, value_name = "GLOB")]
    pub(super) skip: Vec<String>,

    /// Folder of your own cases, which run in addition to the built-in ones [default: none].
    #[arg(long, value_name = "DIR")]
    pub(super) cases: Option<PathBuf>,

    /// Run only this shard of the cases, such as 1/3, to split a run over several machines; `merge` merges their
    /// reports. Passive cases run in every shard [default: all cases].
    #[arg(long, value_name = "K/N")]
    pub(super) shard: Option<Shard>,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Execution")]
pub(super) struct RunArgs {
    /// Number of times that a failing case is retried on a fresh process. A failure that does not reproduce is
    /// reported as a flaky warning.
    #[arg(
        long,
        value_name = "N",
        default_value_t = Settings::default().retries,
        value_parser = clap::value_parser!(u8).range(0..=10)
    )]
    pub(super) retries: u8,

    #[command(flatten)]
    pub(super) calls: CallArgs,

    /// Hint file: example requests that show more of the server; `mcp-conformance hints` writes one to start with
    /// [default: none].
    #[arg(long, value_name = "FILE")]
    pub(super) hints: Option<PathBuf>,

    /// Seed of every random choice.
    #[arg(long, value_name = "N", default_value_t = Settings::default().seed)]
    pub(super) seed: u64,

    /// Time limit of a request, such as 5s or 500ms.
    #[arg(
        long,
        value_name = "DUR",
        default_value_t = DurationValue(Settings::default().timeout),
        value_parser = duration
    )]
    pub(super) timeout: DurationValue,

    /// Time limit of the server's first response; a server that uses no processor time is given up after a sixth of
    /// it.
    #[arg(
        long,
        value_name = "DUR",
        default_value_t = DurationValue(Settings::default().startup_timeout),
        value_parser = duration
    )]
    pub(super) startup_timeout: DurationValue,

    /// Number of server processes that run in parallel [default: twice the number of processors, at least 4; for
    /// fuzzing, the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) jobs: Option<u16>,

    /// Maximum number of fuzz calls per second; over HTTP, of requests of any kind [default: no limit].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_rate: Option<u32>,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Execution")]
pub(super) struct CallArgs {
    /// Call every tool, destructive ones too [default: tools annotated `readOnlyHint: true` or
    /// `destructiveHint: false`, and tools without annotations].
    #[arg(long, conflicts_with = "safe")]
    pub(super) call_destructive: bool,

    /// Call only tools annotated `readOnlyHint: true`.
    #[arg(long)]
    pub(super) safe: bool,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Fuzzing")]
pub(super) struct FuzzArgs {
    /// Number of generated calls per tool: `auto` is as many as its schema needs, and `off` turns fuzzing off. To a number,
    /// calls that tell mutants of the schema apart are added, at most twice as many, and calls that shrink a failure.
    #[arg(
        long,
        value_name = "auto|N|off",
        default_value_t = FuzzCalls::from(FuzzSettings::default().calls),
        value_parser = fuzz_calls,
        overrides_with = "fuzz"
    )]
    pub(super) fuzz: FuzzCalls,

    /// Time limit of fuzzing per revision, divided among the tools; with more, each failure has more time to be
    /// shrunk [default: 60s, or as much per 200 calls of a tool if their number is given; at most 15ms per call].
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(super) fuzz_time: Option<DurationValue>,

    /// Revisions to fuzz: only the newest that is judged, or all of them.
    #[arg(
        long,
        value_name = "WHICH",
        value_enum,
        default_value_t = FuzzSettings::default().revisions.into()
    )]
    pub(super) fuzz_revisions: FuzzRevisions,

    /// Fuzz only tools whose name matches; repeatable [default: every tool that may be called].
    #[arg(long, value_name = "GLOB", value_parser = tool_glob)]
    pub(super) tool: Vec<String>,

    /// Do not fuzz tools whose name matches; repeatable [default: none].
    #[arg(long, value_name = "GLOB", value_parser = tool_glob)]
    pub(super) skip_tool: Vec<String>,

    /// Value to try for arguments of that name, as JSON or as plain text; repeatable [default: none].
    #[arg(long, value_name = "NAME=VALUE", value_parser = seed_value)]
    pub(super) seed_value: Vec<(String, Value)>,

    /// Maximum number of concurrent calls [default: 4, and 16 of a slow tool].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) in_flight: Option<u16>,

    /// Folder of saved failing calls, with a folder for each server: they are tried first, and new ones are written
    /// there; `none` does neither.
    #[arg(long, value_name = "DIR|none", default_value_os_t = default_regressions())]
    pub(super) regressions: PathBuf,

    /// Remove saved calls that no longer fail.
    #[arg(long)]
    pub(super) prune: bool,

    /// Also call tools in sequences that create, read, list, change and delete objects, on a process of its own: at most
    /// 600 calls and 20s (over HTTP 60s) per revision. Not in a shard.
    #[arg(long)]
    pub(super) sequences: bool,
}

fn default_regressions() -> PathBuf {
    FuzzSettings::default().regressions.unwrap_or_else(|| PathBuf::from(NO_REGRESSIONS))
}

/// The value of `--regressions` for none.
pub(super) const NO_REGRESSIONS: &str = "none";

#[derive(Debug, ClapArgs)]
pub(super) struct ExplainArgs {
    /// Ids of cases (`tools/call/unknown-tool`) or of requirements (`tools-call-unknown-tool-error`), or globs that
    /// match cases (`'tools/*'`).
    #[arg(value_name = "CASE|REQUIREMENT", required = true)]
    pub(super) names: Vec<String>,

    /// Folder of your own cases, in addition to the built-in ones [default: none].
    #[arg(long, value_name = "DIR")]
    pub(super) cases: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DocsArgs {
    /// Folder to write below, such as the sources of a book; existing pages are overwritten.
    #[arg(long, value_name = "DIR", default_value = "mcp-conformance-docs")]
    pub(super) output: PathBuf,

    /// Leave out the messages of each case: they are recorded from runs of the reference server, which take a minute.
    #[arg(long)]
    pub(super) without_examples: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct CoverageArgs {
    /// Output format.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TableFormat::Text)]
    pub(super) format: TableFormat,

    /// List the requirements without a case or a reason for having none.
    #[arg(long, conflicts_with = "all")]
    pub(super) uncovered: bool,

    /// List every requirement with the cases that check it.
    #[arg(long)]
    pub(super) all: bool,

    /// Only this area of the specification; repeatable [default: every area].
    #[arg(long, value_name = "AREA")]
    pub(super) area: Vec<String>,

    /// Folder of your own cases, counted in addition to the built-in ones [default: none].
    #[arg(long, value_name = "DIR")]
    pub(super) cases: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct HintsArgs {
    /// File to write the hints to; an existing file is not overwritten [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    #[command(flatten)]
    pub(super) look: LookArgs,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    pub(super) look: LookArgs,
}

/// What `hints` and `doctor` look at, and how.
#[derive(Debug, ClapArgs)]
pub(super) struct LookArgs {
    /// The command that starts the server, with its arguments, or the URL of a running server; options of
    /// mcp-conformance come before it. `{scratch}` in an argument is the path of a folder with a few files, made for
    /// the run and removed after it.
    #[arg(value_name = "SERVER", trailing_var_arg = true)]
    pub(super) server: Vec<OsString>,

    /// Revision to try, such as 2025-06-18, `latest` or `all`; repeatable [default: every released revision
    /// that the server supports].
    #[arg(long, value_name = "REV", value_parser = revision_choice)]
    pub(super) revision: Vec<RevisionChoice>,

    /// Time limit of a request, such as 5s or 500ms.
    #[arg(
        long,
        value_name = "DUR",
        default_value_t = DurationValue(Settings::default().timeout),
        value_parser = duration
    )]
    pub(super) timeout: DurationValue,

    /// Time limit of the server's first response; a server that uses no processor time is given up after a sixth of
    /// it.
    #[arg(
        long,
        value_name = "DUR",
        default_value_t = DurationValue(Settings::default().startup_timeout),
        value_parser = duration
    )]
    pub(super) startup_timeout: DurationValue,

    #[command(flatten)]
    pub(super) calls: CallArgs,

    #[command(flatten)]
    pub(super) connection: ServerArgs,

    #[command(flatten)]
    pub(super) config: ConfigArgs,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DemoArgs {
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ReportArgs {
    /// JSON report of a run; `-` reads standard input.
    #[arg(value_name = "REPORT")]
    pub(super) file: PathBuf,

    #[command(flatten)]
    pub(super) criteria: SavedReportCriteria,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// What decides whether a run that is over passed.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Pass or fail")]
pub(super) struct SavedReportCriteria {
    /// File of accepted findings to compare the report with [default: that of the run].
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,

    /// Findings that fail the run [default: those that failed the run].
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub(super) fail_on: Option<FailOn>,

    /// Findings that do not fail the run: those that the server's SDK causes, on every server [default: those that the
    /// run accepted].
    #[arg(long, value_name = "WHOSE", value_enum)]
    pub(super) accept: Option<Accept>,

    /// Folder of your own cases, whose ids the baseline may name [default: none].
    #[arg(long, value_name = "DIR")]
    pub(super) cases: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DiffArgs {
    /// JSON report of the earlier run.
    #[arg(value_name = "OLD")]
    pub(super) old: PathBuf,

    /// JSON report of the later run.
    #[arg(value_name = "NEW")]
    pub(super) new: PathBuf,

    /// Output format.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TableFormat::Text)]
    pub(super) format: TableFormat,
}

#[derive(Debug, ClapArgs)]
pub(super) struct MergeArgs {
    /// JSON reports of the shards, each once.
    #[arg(value_name = "REPORT", required = true)]
    pub(super) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) criteria: SavedReportCriteria,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ReplayArgs {
    /// File of the failing call, as a run wrote it to the folder of `--regressions`.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,

    /// The command that starts the server, with its arguments, or the URL of a running server, after `--`.
    #[arg(value_name = "SERVER", last = true)]
    pub(super) server: Vec<OsString>,

    /// Revision to replay the call in, such as 2025-06-18 [default: the one in the file].
    #[arg(long, value_name = "REV")]
    pub(super) revision: Option<Revision>,

    /// Time limit of a request, such as 5s or 500ms.
    #[arg(
        long,
        value_name = "DUR",
        default_value_t = DurationValue(Settings::default().timeout),
        value_parser = duration
    )]
    pub(super) timeout: DurationValue,

    #[command(flatten)]
    pub(super) connection: ServerArgs,

    #[command(flatten)]
    pub(super) config: ConfigArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(super) struct FleetArgs {
    /// JSON reports, one per server.
    #[arg(value_name = "REPORT", required = true)]
    pub(super) files: Vec<PathBuf>,

    /// Output format.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = PageFormat::Markdown)]
    pub(super) format: PageFormat,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ServeArgs {
    /// Fault to switch on; repeatable [default: none, which is a conforming server].
    #[arg(long, value_name = "NAME")]
    pub(super) fault: Vec<Fault>,

    /// Serve Streamable HTTP at this address and the path `/mcp`; port 0 takes any free port [default: standard
    /// input and output].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) http: Option<std::net::SocketAddr>,

    /// Require the bearer token that this environment variable holds, as an OAuth resource server does; the same token
    /// with the suffix `-narrow` may not call tools, with `-second` it belongs to another user, with `-guest` to a user
    /// who sees neither tools nor resources, and with `-foreign` to another server [default: no token is required].
    #[arg(long, value_name = "VAR", requires = "http")]
    pub(super) protected: Option<String>,

    /// List the faults and exit.
    #[arg(long)]
    pub(super) list_faults: bool,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::values::{Color, Format, RequestedReport};

    fn parse(words: &[&str]) -> Result<Args, String> {
        Args::try_parse_from(["mcp-conformance"].iter().chain(words)).map_err(|error| error.to_string())
    }

    fn judge(words: &[&str]) -> JudgeArgs {
        let args = parse(words).expect("it parses");
        assert!(args.command.is_none(), "{words:?} is a subcommand");
        args.judge
    }

    fn error(words: &[&str]) -> String {
        parse(words).expect_err("it does not parse")
    }

    #[test]
    fn the_definition_is_valid() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_server_keeps_its_own_flags() {
        let args = judge(&["--strict", "node", "server.js", "--strict", "-v", "--list", "--", "x"]);
        assert_eq!(args.server, ["node", "server.js", "--strict", "-v", "--list", "--", "x"]);
        assert!(args.threshold.strict && !args.output.verbose && !args.list);
    }

    #[test]
    fn two_dashes_end_the_options() {
        assert_eq!(judge(&["-v", "--", "./server", "-q"]).server, ["./server", "-q"]);
        assert_eq!(judge(&["--", "--odd-name"]).server, ["--odd-name"]);
        assert_eq!(judge(&["--", "demo"]).server, ["demo"]);
    }

    #[test]
    fn a_server_may_have_the_name_of_a_subcommand() {
        assert_eq!(judge(&["./demo"]).server, ["./demo"]);
        assert_eq!(judge(&["bin/serve", "explain"]).server, ["bin/serve", "explain"]);
        assert_eq!(judge(&["node", "demo"]).server, ["node", "demo"]);
        assert_eq!(judge(&["./help"]).server, ["./help"]);
        assert!(matches!(parse(&["demo", "-q"]).map(|args| args.command), Ok(Some(Command::Demo(_)))));
        assert!(matches!(parse(&["serve"]).map(|args| args.command), Ok(Some(Command::Serve(_)))));
    }

    #[test]
    fn an_unknown_option_is_not_mistaken_for_a_server() {
        let text = error(&["--strct", "./server"]);
        assert!(text.contains("--strct") && text.contains("--strict"), "{text}");
        assert!(error(&["-x", "./server"]).contains("-x"));
    }

    #[test]
    fn a_server_is_optional_as_a_configuration_may_have_it() {
        assert!(judge(&[]).server.is_empty() && judge(&["--strict"]).server.is_empty());
    }

    #[test]
    fn the_defaults_are_those_of_the_settings() {
        let args = judge(&["./server"]);
        assert_eq!(args.run.timeout.0, Duration::from_secs(5));
        assert_eq!(args.run.startup_timeout.0, Duration::from_secs(30));
        assert_eq!((args.fuzzing.fuzz, args.run.seed, args.run.jobs), (FuzzCalls::Auto, 0, None));
        assert_eq!(args.output.color, Color::Auto);
        assert!(args.selection.revision.is_empty() && args.output.report.is_empty());
    }

    #[test]
    fn repeatable_options_accumulate() {
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
        assert_eq!(args.selection.revision, named);
        assert_eq!((args.selection.select.len(), args.selection.skip.len()), (2, 1));
        assert_eq!(
            args.connection.process.env,
            [("A", "1"), ("B", "x=y")].map(|(name, value)| (name.into(), value.into()))
        );
        assert_eq!(
            args.output.report[0],
            RequestedReport { format: Format::Json, path: Some(PathBuf::from("r.json")) }
        );
        assert_eq!(args.output.report[1], RequestedReport { format: Format::Text, path: None });
    }

    #[test]
    fn an_error_about_a_value_lists_the_valid_ones() {
        assert!(error(&["--revision", "2025-01-01", "s"]).contains("2024-11-05"));
        assert!(error(&["--fuzz", "much", "s"]).contains("a number of calls, `auto` or `off`"));
        assert!(error(&["--report", "pdf", "s"]).contains("text, json, html"));
        assert!(error(&["--shard", "4/3", "s"]).contains("K/N"));
        assert!(error(&["--retries", "11", "s"]).contains("0..=10"));
        assert!(error(&["--fail-on", "may", "s"]).contains("never"));
        assert!(error(&["--report", "json=", "s"]).contains("path"));
        assert!(error(&["--report", "html", "s"]).contains("html=report.html"));
        assert!(error(&["--report", "html=-", "s"]).contains("html=report.html"));
        assert!(error(&["--timeout", "5", "s"]).contains("500ms"));
        assert!(error(&["--timeout", "0s", "s"]).contains("greater than zero"));
        assert!(error(&["--env", "novalue", "s"]).contains("NAME=VALUE"));
        assert!(error(&["--jobs", "0", "s"]).contains("1..=256"));
        assert!(error(&["serve", "--fault", "image-data-ulr"]).contains("image-data-url"));
    }

    #[test]
    fn contradictory_options_are_rejected() {
        assert!(error(&["--safe", "--call-destructive", "s"]).contains("--safe"));
        assert!(error(&["-q", "-v", "s"]).contains("--verbose"));
        assert!(error(&["--update-baseline", "s"]).contains("--baseline"));
        assert!(error(&["--strict", "--fail-on", "never", "s"]).contains("--strict"));
    }

    #[test]
    fn the_help_shows_every_default_and_the_exit_codes() {
        let help = Args::command().render_long_help().to_string();
        for code in ["0  the server passed", "1  the server failed", "2  the run could not", "3  nothing was"] {
            assert!(help.contains(code), "{code}");
        }
        let commands = Args::command();
        let all = std::iter::once(&commands).chain(commands.get_subcommands());
        for option in all.flat_map(clap::Command::get_arguments).filter(|option| option.get_action().takes_values()) {
            let long = option.get_long();
            let text = option.get_help().map(ToString::to_string).unwrap_or_default();
            let has_default = !option.get_default_values().is_empty() || text.contains("[default: ");
            assert!(has_default || long.is_none(), "{long:?} does not show its default");
        }
    }
}
