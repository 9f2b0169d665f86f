//! The main command: judges a server, or lists the cases that would run.

use mcp_conformance::internals::judge::{plan, report_options, select_cases};
use mcp_conformance::report::Conclusion;

use super::args::JudgeArgs;
use super::baseline::BaselineFile;
use super::dispatch::print;
use super::error::CliError;
use super::output::Output;
use super::run::run_plan;
use super::server::reject_misplaced_subcommand;
use super::{cases, list};

/// Judges the server of the command line, or lists the cases that would run.
pub(super) fn judge(args: &JudgeArgs) -> Result<Conclusion, CliError> {
    let settings = args.settings()?;
    if args.list {
        let cases = select_cases(&settings, &cases::all(settings.cases.as_deref())?)?;
        return print(|out| Ok(list::list(&cases.reported(), settings.revisions.possible(), out)?));
    }
    reject_misplaced_subcommand(&args.server, std::env::args_os())?;
    let server = args.connection.server(&args.server)?;
    let mut plan = plan(&server, &settings)?;
    if settings.shard.is_some() && settings.baseline.is_some() {
        return Err(CliError::ShardBaseline);
    }
    let baseline = BaselineFile::open(&args.baseline, settings.cases.as_deref())?;
    let output = Output::open(&args.output)?;
    plan.show_wire = output.shows_wire();
    let options = report_options(&settings, plan.calls);
    let (mut report, shown) = run_plan(plan, options, &output)?;
    let applied = baseline.map_or(Ok(()), |baseline| baseline.apply(&mut report));
    output.write(&report, shown)?;
    applied?;
    Ok(Conclusion::of(&report))
}
