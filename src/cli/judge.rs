//! The main job: from the command line to a plan, from the plan to a report, and from that to a conclusion.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use mcp_conformance::case::Shard;
use mcp_conformance::client;
use mcp_conformance::event::Sink;
use mcp_conformance::report::{Conclusion, FailOn, Options, Report};
use mcp_conformance::run::{self, Calls, FuzzPlan, Launcher, Plan, Revisions, ServerCommand, Stop, side_by_side};
use mcp_conformance::spec::Revision;
use tokio::sync::watch;

use super::args::{Command, Fuzzing, JudgeArgs, Judging, Scope};
use super::command::written;
use super::error::CliError;
use super::gate::Gate;
use super::http::HttpArgs;
use super::output::{Listeners, Output};
use super::word::{Fuzz, FuzzRevisions, RevisionChoice};
use super::{cases, list, replay};

/// How long the server is given at each step of shutting it down.
pub(super) const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Judges the server of the command line, or lists what would be judged.
pub(super) fn judge(args: &JudgeArgs) -> Result<Conclusion, CliError> {
    let revisions = revisions(&args.scope.revision)?;
    if args.list {
        let cases = cases::selected(&args.scope)?;
        let possible = cases::possible(&args.scope.revision);
        return written(|out| Ok(list::list(&cases, possible, out)?));
    }
    refuse_misplaced_word(&args.server, std::env::args())?;
    let launcher = args.named().launcher()?;
    if let (Launcher::Http(server), Some(rate)) = (&launcher, args.fuzzing.max_rate) {
        server.site.set_max_rate(rate.into());
    }
    let cases = cases::selected(&args.scope)?;
    let hints = cases::hints(args.judging.hints.as_deref(), args.scope.cases.as_deref())?;
    if args.scope.shard.is_some() && args.gate.baseline.is_some() {
        return Err(CliError::ShardBaseline);
    }
    let gate = Gate::open(&args.gate, args.scope.cases.as_deref())?;
    let output = Output::open(&args.output)?;
    let calls = calls(args.judging.safe, args.judging.call_destructive, &launcher);
    let plan = Plan {
        launcher,
        revisions,
        cases,
        calls,
        hints,
        timeout: args.judging.timeout,
        startup_timeout: args.judging.startup_timeout,
        shutdown_grace: SHUTDOWN_GRACE,
        jobs: args.judging.jobs.map_or_else(side_by_side, usize::from),
        seed: args.judging.seed,
        fuzz: fuzz_plan(&args.fuzzing, args.judging.jobs, args.scope.shard),
        retries: args.judging.retries.into(),
        show_wire: output.shows_wire(),
        replay_prefix: replay::prefix(args),
        replay_suffix: replay::suffix(&args.http, &args.server),
    };
    let options = options(&args.scope, &args.judging, plan.calls, args.gate.threshold.fail_on());
    let (mut report, lost) = conduct(plan, options, &output)?;
    let held = gate.map_or(Ok(()), |gate| gate.hold(&mut report));
    output.write(&report, lost)?;
    held?;
    Ok(Conclusion::of(&report))
}

/// Runs a plan to its end, or to the user's, and returns what it found, with what went wrong in showing
/// it meanwhile. No process that it started is left when it returns.
pub(super) fn conduct(plan: Plan, options: Options, output: &Output) -> Result<(Report, Option<io::Error>), CliError> {
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let listeners = Arc::new(Mutex::new(Listeners::new(Report::new(started, options), output.live())));
    let sink: Arc<Mutex<dyn Sink>> = listeners.clone();
    let summary = until_stopped(|stop| run::run(plan, sink, stop))?;
    let taken = listeners.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (report, lost) = taken.expect("the report is taken once");
    // The summary came as the last event. Our listeners take every event, so an error of the run's could
    // only be one that they do not know of.
    Ok((report, lost.or(summary.err())))
}

/// Does work that starts processes to its end, or until a signal asks it to stop. No process that it started is
/// left when it returns.
pub(super) fn until_stopped<Work: Future>(work: impl FnOnce(Stop) -> Work) -> Result<Work::Output, CliError> {
    client::adopt_orphans();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let (cancel, cancelled) = watch::channel(false);
    let done = runtime.block_on(async {
        let watching = tokio::spawn(cancel_on_signal(cancel));
        let done = work(cancelled).await;
        watching.abort();
        done
    });
    // Nothing of ours is left to wait for; a reader that is stuck must not hold the report back.
    runtime.shutdown_background();
    client::end_every_process();
    Ok(done)
}

/// Waits for a signal that asks us to end, and has the run end its server and tell what it has.
async fn cancel_on_signal(cancel: watch::Sender<bool>) {
    loop {
        if ending_signal().await.is_err() {
            // Without a way to hear signals the run goes on to its end; the sender must stay, as
            // losing it would read as a cancellation.
            std::future::pending::<()>().await;
        }
        let said = writeln!(io::stderr(), "ending the server and reporting what is known so far");
        // A closed standard error is no reason not to end.
        drop(said);
        cancel.send_replace(true);
    }
}

#[cfg(unix)]
async fn ending_signal() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}

#[cfg(not(unix))]
async fn ending_signal() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Refuses `--strict demo`, which would start a server called `demo`, unless `--` says that it is one.
pub(super) fn refuse_misplaced_word(server: &[String], typed: impl Iterator<Item = String>) -> Result<(), CliError> {
    let Some(first) = server.first() else { return Ok(()) };
    if !<Command as clap::Subcommand>::has_subcommand(first) {
        return Ok(());
    }
    let typed: Vec<String> = typed.collect();
    // The server takes everything to the end of the line, so what stands before it is known.
    let before = typed.len().checked_sub(server.len() + 1).and_then(|at| typed.get(at));
    if before.is_some_and(|word| word == "--") { Ok(()) } else { Err(CliError::MisplacedWord(first.clone())) }
}

/// The revisions to judge, from the words for them.
pub(super) fn revisions(choices: &[RevisionChoice]) -> Result<Revisions, CliError> {
    match choices {
        [] => Ok(Revisions::Supported),
        [RevisionChoice::Latest] => Ok(Revisions::Latest),
        [RevisionChoice::All] => Ok(Revisions::All),
        several => {
            let mut named: Vec<Revision> = several
                .iter()
                .map(|choice| match choice {
                    RevisionChoice::Named(revision) => Ok(*revision),
                    RevisionChoice::Latest => Err(CliError::RevisionChoice("latest")),
                    RevisionChoice::All => Err(CliError::RevisionChoice("all")),
                })
                .collect::<Result<_, _>>()?;
            named.sort_unstable();
            named.dedup();
            Ok(Revisions::Named(named))
        }
    }
}

/// Which tools may be called, from `--safe` and `--call-destructive`.
///
/// A server on another machine may be somebody's in earnest: there only what is annotated as reading is called,
/// unless more is asked for.
pub(super) fn calls(safe: bool, destructive: bool, launcher: &Launcher) -> Calls {
    let elsewhere = matches!(launcher, Launcher::Http(server) if !server.site.is_loopback());
    match (safe || elsewhere, destructive) {
        (_, true) => Calls::Destructive,
        (true, false) => Calls::ReadOnly,
        (false, false) => Calls::NonDestructive,
    }
}

/// What fuzzing is to do, if anything.
fn fuzz_plan(fuzzing: &Fuzzing, jobs: Option<u16>, shard: Option<Shard>) -> Option<FuzzPlan> {
    let Fuzz::Calls(calls) = fuzzing.fuzz else { return None };
    Some(FuzzPlan {
        calls,
        time: fuzzing.fuzz_time,
        max_rate: fuzzing.max_rate.map(f64::from),
        in_flight: fuzzing.in_flight.map(usize::from),
        jobs: jobs.map(usize::from),
        tools: fuzzing.tool.clone(),
        skip_tools: fuzzing.skip_tool.clone(),
        seeds: fuzzing.seed_value.clone(),
        regressions: (fuzzing.regressions.as_os_str() != "none").then(|| fuzzing.regressions.clone()),
        replay: None,
        every_revision: fuzzing.fuzz_revisions == FuzzRevisions::All,
        shard,
    })
}

/// The settings as the report repeats them.
fn options(scope: &Scope, judging: &Judging, calls: Calls, fail_on: FailOn) -> Options {
    let calls = match calls {
        Calls::ReadOnly => "read-only",
        Calls::NonDestructive => "non-destructive",
        Calls::Destructive => "destructive",
    };
    let mut options = Options::default();
    let word = |choice: &RevisionChoice| match choice {
        RevisionChoice::Named(revision) => revision.to_string(),
        RevisionChoice::Latest => "latest".to_owned(),
        RevisionChoice::All => "all".to_owned(),
    };
    options.revisions = scope.revision.iter().map(word).collect();
    options.select.clone_from(&scope.select);
    options.skip.clone_from(&scope.skip);
    options.fail_on = fail_on;
    calls.clone_into(&mut options.calls);
    options.hints = judging.hints.as_ref().map(|file| file.to_string_lossy().into_owned());
    options.seed = judging.seed;
    options.timeout_ms = u64::try_from(judging.timeout.as_millis()).unwrap_or(u64::MAX);
    options.retries = judging.retries.into();
    options.shard = scope.shard;
    options
}

/// The settings of a replay as its report repeats them.
pub(super) fn replay_options(case: &str, timeout: Duration) -> Options {
    let mut options = Options::default();
    options.select = vec![case.to_owned()];
    "destructive".clone_into(&mut options.calls);
    options.timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    options
}

/// A plan for a server of ours, with the settings that are usual.
pub(super) fn usual_plan(command: Vec<String>, output: &Output) -> Result<(Plan, Options), CliError> {
    let scope = Scope { revision: Vec::new(), select: Vec::new(), skip: Vec::new(), cases: None, shard: None };
    let replay_suffix = replay::suffix(&HttpArgs::default(), &command);
    let plan = Plan {
        launcher: Launcher::Command(ServerCommand { command, environment: Vec::new(), directory: None }),
        revisions: Revisions::Supported,
        cases: cases::selected(&scope)?,
        calls: Calls::NonDestructive,
        hints: Vec::new(),
        timeout: Duration::from_secs(5),
        startup_timeout: Duration::from_secs(30),
        shutdown_grace: SHUTDOWN_GRACE,
        jobs: side_by_side(),
        seed: 0,
        fuzz: None,
        retries: 1,
        show_wire: output.shows_wire(),
        replay_prefix: "mcp-conformance".to_owned(),
        replay_suffix,
    };
    let mut options = Options::default();
    "non-destructive".clone_into(&mut options.calls);
    options.timeout_ms = 5000;
    options.retries = 1;
    Ok((plan, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_subcommand_after_options_is_told_apart_from_a_server_of_its_name() {
        let refuse = |typed: &str, server: &str| refuse_misplaced_word(&words(server), words(typed).into_iter());
        assert!(refuse("mcp-conformance --strict demo", "demo").is_err());
        assert!(refuse("mcp-conformance -v serve --fault x", "serve --fault x").is_err());
        assert!(refuse("mcp-conformance --strict -- demo", "demo").is_ok());
        assert!(refuse("mcp-conformance --strict ./demo", "./demo").is_ok());
    }

    #[test]
    fn latest_and_all_stand_alone() {
        use RevisionChoice::{All, Latest, Named};
        let [old, new] = [Revision::V2024_11_05, Revision::V2025_11_25];
        assert_eq!(revisions(&[]).expect("fine"), Revisions::Supported);
        assert_eq!(revisions(&[Latest]).expect("fine"), Revisions::Latest);
        assert_eq!(revisions(&[All]).expect("fine"), Revisions::All);
        assert_eq!(revisions(&[Named(new), Named(old), Named(new)]).expect("fine"), Revisions::Named(vec![old, new]));
        assert!(matches!(revisions(&[Latest, Named(old)]), Err(CliError::RevisionChoice("latest"))));
        assert!(matches!(revisions(&[Named(old), All]), Err(CliError::RevisionChoice("all"))));
    }
}
