//! `replay`: one failing call out of its file, and nothing else.

use std::time::Duration;

use mcp_conformance::report::Conclusion;
use mcp_conformance::run::{Calls, FuzzPlan, Plan, Regression, Revisions};

use super::args::{ReplayArgs, Scope};
use super::error::CliError;
use super::http::Named;
use super::output::Output;
use super::{cases, judge, replay};

/// Tries the failing call of a file again.
pub(super) fn again(args: &ReplayArgs) -> Result<Conclusion, CliError> {
    let regression = Regression::read(&args.file)?;
    let scope = Scope {
        revision: Vec::new(),
        select: vec![regression.case.clone()],
        skip: Vec::new(),
        cases: None,
        shard: None,
    };
    let named = Named { http: &args.http, server: &args.server, env: &args.env, cwd: args.cwd.as_ref() };
    let launcher = named.launcher()?;
    let output = Output::open(&args.output)?;
    let fuzz = FuzzPlan { replay: Some((args.file.clone(), regression.clone())), ..FuzzPlan::of(0) };
    let plan = Plan {
        launcher,
        revisions: Revisions::Named(vec![args.revision.unwrap_or(regression.revision)]),
        cases: cases::selected(&scope)?,
        // Whoever names the call asks for it.
        calls: Calls::Destructive,
        timeout: args.timeout,
        startup_timeout: Duration::from_secs(30),
        shutdown_grace: Duration::from_secs(2),
        jobs: 2,
        hints: Vec::new(),
        retries: 0,
        seed: 0,
        fuzz: Some(fuzz),
        show_wire: false,
        replay_prefix: "mcp-conformance".to_owned(),
        replay_suffix: replay::suffix(&args.http, &args.server),
    };
    let options = judge::replay_options(&regression.case, args.timeout);
    let (report, lost) = judge::conduct(plan, options, &output)?;
    output.write(&report, lost)?;
    Ok(Conclusion::of(&report))
}
