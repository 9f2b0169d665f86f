//! `replay`: repeats one failing call that a run saved to a file.

use std::num::NonZero;

use mcp_conformance::internals::judge::PreparedRun;
use mcp_conformance::internals::run::Regression;
use mcp_conformance::report::Conclusion;
use mcp_conformance::{CallPolicy, FuzzSettings, Settings};

use super::args::ReplayArgs;
use super::error::CliError;
use super::output::Output;
use super::run::run_to_end;

/// Replays the failing call of a file.
pub(super) fn replay(args: &ReplayArgs) -> Result<Conclusion, CliError> {
    let regression = Regression::read(&args.file)?;
    let settings = Settings {
        revisions: [args.revision.unwrap_or(regression.revision)].into(),
        select: vec![regression.case.clone()],
        // The user names the call, so its tool may be called whatever its annotations are.
        calls: Some(CallPolicy::Destructive),
        timeout: args.timeout.0,
        jobs: NonZero::new(2),
        retries: 0,
        fuzz: Some(FuzzSettings { calls: Some(0), regressions: None, ..FuzzSettings::default() }),
        ..Settings::default()
    };
    let run = PreparedRun::new(&args.connection.server(&args.server)?, &settings)?;
    let run = run.replaying(args.file.clone(), regression);
    let output = Output::open(&args.output)?;
    let (report, unwritten) = run_to_end(run, &output, None, |_| {})?;
    output.write(&report, unwritten)?;
    Ok(Conclusion::of(&report))
}
