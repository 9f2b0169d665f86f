//! The options of the commands about recordings: `judge` and `record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use mcp_conformance::spec::Revision;

use super::report_args::{BaselineArgs, OutputArgs, ThresholdArgs};

#[derive(Debug, ClapArgs)]
pub(super) struct JudgeFileArgs {
    /// File of --save-transcript or `record`, or a recording of any other client: one JSON object a line, such as
    /// `{"direction": "client-to-server", "message": {...}}`; `-` reads standard input.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,

    /// Revision to judge connections in that do not show theirs, such as 2025-06-18 [default: none, which is an error].
    #[arg(long, value_name = "REV", help_heading = "Case selection")]
    pub(super) revision: Option<Revision>,

    /// Judge only cases whose id, area or tag matches; repeatable [default: every passive case].
    #[arg(long, value_name = "GLOB", help_heading = "Case selection")]
    pub(super) select: Vec<String>,

    /// Do not judge cases whose id, area or tag matches; repeatable [default: none].
    #[arg(long, value_name = "GLOB", help_heading = "Case selection")]
    pub(super) skip: Vec<String>,

    /// Folder of your own cases, in addition to the built-in ones [default: none].
    #[arg(long, value_name = "DIR", help_heading = "Case selection")]
    pub(super) cases: Option<PathBuf>,

    #[command(flatten)]
    pub(super) baseline: BaselineArgs,

    #[command(flatten)]
    pub(super) threshold: ThresholdArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(super) struct RecordArgs {
    /// File to record to; each start of the server adds a connection to it [default: none, it is required].
    #[arg(long, value_name = "FILE")]
    pub(super) output: PathBuf,

    /// The command that starts the server, with its arguments, after `--`.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(super) server: Vec<OsString>,
}
