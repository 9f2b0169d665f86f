//! The main command: judges a server, or lists the cases that would run.

use std::ffi::OsString;

use mcp_conformance::internals::judge::{PreparedRun, select_cases};
use mcp_conformance::report::{Conclusion, Report};

use super::args::JudgeArgs;
use super::baseline::BaselineFile;
use super::error::CliError;
use super::output::{Output, TranscriptFile};
use super::run::run_to_end;
use super::server_check;
use super::stdout::print;
use super::unmatched_tool::check_tool_patterns;
use super::{cases, list};

/// Judges the server of the command line, or lists the cases that would run.
pub(super) fn judge(args: &JudgeArgs, line: &[OsString]) -> Result<Conclusion, CliError> {
    let settings = args.settings()?;
    if args.list {
        let cases = select_cases(&settings, &cases::all(settings.cases.as_deref())?)?;
        return print(|out| Ok(list::list(&cases.reported(), settings.revisions.possible(), out)?));
    }
    server_check::find_mistake(&args.server, line, args.connection.process.cwd.as_deref())?;
    let server = args.connection.server(&args.server)?;
    let run = PreparedRun::new(&server, &settings)?;
    if settings.shard.is_some() && settings.baseline.is_some() {
        return Err(CliError::ShardBaseline);
    }
    let baseline = BaselineFile::open(&args.baseline, settings.cases.as_deref())?;
    let output = Output::open(&args.output)?;
    let transcript = args.save_transcript.as_deref().map(TranscriptFile::open).transpose()?;
    let run = run.showing_wire(output.shows_wire());
    let mut applied = Ok(());
    let compare = |report: &mut Report| applied = baseline.map_or(Ok(()), |baseline| baseline.apply(report));
    let (report, unwritten) = run_to_end(run, &output, transcript, compare)?;
    output.write(&report, unwritten)?;
    applied?;
    check_tool_patterns(&settings, &report)?;
    Ok(Conclusion::of(&report))
}
