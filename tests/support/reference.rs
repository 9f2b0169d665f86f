//! Runs the suite against the built-in server, in this process.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use mcp_conformance::event::{CaseResult, Event, RunSummary, Sink};
use mcp_conformance::internals::case::{self, Case, SelectedCases};
use mcp_conformance::internals::run::{CallPolicy, Launcher, Plan, Revisions, run};
use mcp_conformance::reference::{Fault, FaultSet, HttpFault};
use mcp_conformance::spec::Revision;
use tokio::sync::watch;

use super::state_faults::StateFault;
use super::{evaluation_faults, state_faults};

/// The results of a run.
#[derive(Debug, Default)]
pub(crate) struct RunResults {
    /// The result of each case in each revision.
    pub(crate) results: Vec<CaseResult>,
    /// The end of the run.
    pub(crate) summary: Option<RunSummary>,
    /// What the connections went through, in all revisions.
    pub(crate) notes: Vec<String>,
    /// For what the server was started, in each revision.
    pub(crate) launches: Vec<(Revision, String)>,
}

impl RunResults {
    /// The result of a case in a revision.
    pub(crate) fn result(&self, case: &str, revision: Revision) -> Option<&CaseResult> {
        self.results.iter().find(|result| result.case == case && result.revision == revision)
    }
}

struct Collect(Arc<Mutex<RunResults>>);

impl Sink for Collect {
    fn on(&mut self, event: &Event) -> std::io::Result<()> {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::CaseFinished(result) => found.results.push(result.as_ref().clone()),
            Event::TargetFinished(summary) => {
                found.notes.extend(summary.notes.iter().cloned());
                let launches = summary.launches.iter().map(|launch| (summary.revision, launch.purpose.clone()));
                found.launches.extend(launches);
            }
            Event::RunFinished(summary) => found.summary = Some(summary.as_ref().clone()),
            _ => {}
        }
        Ok(())
    }
}

/// The built-in cases, checked as strictly as those of a user.
pub(crate) fn cases() -> &'static [Arc<Case>] {
    static CASES: OnceLock<Vec<Arc<Case>>> = OnceLock::new();
    CASES.get_or_init(|| {
        let own = Fault::all().iter().copied().map(Fault::name);
        let of_state: Vec<String> = state_faults::all().iter().map(StateFault::name).collect();
        let evaluated =
            evaluation_faults::all().map(|fault| -> &str { fault.name() }).chain(of_state.iter().map(String::as_str));
        let faults: Vec<&str> = own.map(|name| -> &str { name }).chain(evaluated).collect();
        let cases = case::parse_cases(case::read_embedded(), &faults, case::Trust::Nothing);
        cases
            .unwrap_or_else(|error| panic!("the built-in cases are invalid:\n{error}"))
            .into_iter()
            .map(Arc::new)
            .collect()
    })
}

/// The paths of the built-in server: that of Streamable HTTP, and that of the older HTTP+SSE transport.
pub(crate) const ENDPOINTS: [&str; 2] = ["mcp", "sse"];

/// The cases of a run: those of a selection with their stimuli, or all of a list.
pub(crate) struct Chosen(SelectedCases);

impl From<SelectedCases> for Chosen {
    fn from(selected: SelectedCases) -> Self {
        Self(selected)
    }
}

impl From<Vec<Arc<Case>>> for Chosen {
    fn from(cases: Vec<Arc<Case>>) -> Self {
        Self(SelectedCases { cases, stimuli: BTreeSet::new() })
    }
}

/// The usual timeout of a request.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// Runs cases against the built-in server with these faults.
pub(crate) fn judge(faults: FaultSet, revisions: &[Revision], cases: impl Into<Chosen>) -> RunResults {
    judge_launched(Launcher::Reference(Arc::new(faults)), revisions, cases)
}

/// Runs cases against the servers that a launcher starts.
pub(crate) fn judge_launched(launcher: Launcher, revisions: &[Revision], cases: impl Into<Chosen>) -> RunResults {
    judge_with_timeout(launcher, revisions, cases, TIMEOUT)
}

/// The same with another timeout of a request.
///
/// The built-in server is a task of the same runtime, so that the clock can be paused: it moves on only when both sides
/// wait, waits take no time, and a busy machine cannot make an answer late. Any other server has a thread or a process of
/// its own, for which the clock of this runtime would not wait.
pub(crate) fn judge_with_timeout(
    launcher: Launcher,
    revisions: &[Revision],
    cases: impl Into<Chosen>,
    timeout: Duration,
) -> RunResults {
    block_on(&launcher.clone(), run_cases(launcher, revisions, cases, timeout, JOBS))
}

/// Runs cases with so many processes at once.
pub(crate) fn judge_at_once(
    launcher: Launcher,
    revisions: &[Revision],
    cases: impl Into<Chosen>,
    timeout: Duration,
    jobs: usize,
) -> RunResults {
    block_on(&launcher.clone(), run_cases(launcher, revisions, cases, timeout, jobs))
}

/// The cases in an order that a number chooses.
fn shuffled(order: u64) -> Vec<Arc<Case>> {
    let mut shuffled = cases().to_vec();
    shuffled.sort_by_cached_key(|case| {
        let mut hasher = DefaultHasher::new();
        (order, &case.id).hash(&mut hasher);
        hasher.finish()
    });
    shuffled
}

/// Judges the built-in server by the cases in this order, so many of them at once.
pub(crate) fn judge_in_order(faults: FaultSet, revisions: &[Revision], order: u64, jobs: usize) -> RunResults {
    judge_at_once(Launcher::Reference(Arc::new(faults)), revisions, shuffled(order), TIMEOUT, jobs)
}

/// Waits for a run on the servers of a launcher, by a clock that is paused where it can be.
fn block_on(launcher: &Launcher, run: impl Future<Output = RunResults>) -> RunResults {
    let paused = matches!(launcher, Launcher::Reference(_));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(paused).build().expect("a runtime starts");
    // A run whose parts wait for each other never ends by itself: the clock moves on as long as anything looks again.
    let limited = async { tokio::time::timeout(MAX_RUN_TIME, run).await };
    runtime.block_on(limited).expect("the run ends")
}

/// More than any run takes by its own clock.
const MAX_RUN_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// How many processes run in parallel.
pub(crate) const JOBS: usize = 4;

/// Runs cases on the servers of a launcher, in this runtime.
pub(crate) async fn run_cases(
    launcher: Launcher,
    revisions: &[Revision],
    cases: impl Into<Chosen>,
    timeout: Duration,
    jobs: usize,
) -> RunResults {
    let Chosen(SelectedCases { cases, stimuli }) = cases.into();
    let plan = Plan {
        launcher,
        revisions: Revisions::Named(revisions.to_vec()),
        cases,
        stimuli,
        calls: CallPolicy::NonDestructive,
        hints: Vec::new(),
        timeout,
        startup_timeout: Duration::from_secs(5),
        shutdown_grace: Duration::from_millis(300),
        jobs,
        // As without `--jobs`; other numbers are there to show that they change nothing.
        adapts_jobs: jobs == JOBS,
        seed: 1,
        fuzz: None,
        // The built-in server is deterministic; `tests/gating.rs` tests retries.
        retries: 0,
        show_wire: false,
        save_transcript: false,
        reproduce_prefix: "mcp-conformance".to_owned(),
        reproduce_suffix: String::new(),
    };
    let found = Arc::new(Mutex::new(RunResults::default()));
    let sink: Arc<Mutex<dyn Sink>> = Arc::new(Mutex::new(Collect(Arc::clone(&found))));
    let (_running, stop) = watch::channel(false);
    run(plan, sink, stop).await.expect("the sink takes every event");
    std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Variants of the built-in server that conform over HTTP, for behaviour that the default one does not have.
pub(crate) const HTTP_VARIANTS: [Fault; 3] =
    [Fault::Http(HttpFault::Sessionless), Fault::Http(HttpFault::Polls), Fault::Http(HttpFault::DeleteRefused)];

/// The variants that conform, on every transport or over HTTP alone.
pub(crate) const CONFORMING: [Fault; 39] = [
    Fault::RelaysClientErrors,
    Fault::InterimWithNullContent,
    Fault::InputBeforeValidation,
    Fault::PromptEmbedsArgument,
    Fault::MarkupExample,
    Fault::ForbiddenTaskToolError,
    Fault::WithoutTools,
    Fault::OnlyResources,
    Fault::Http(HttpFault::MediaTypesUpperCase),
    Fault::Http(HttpFault::IdentityRequired),
    Fault::Http(HttpFault::ClosesKeptAlive),
    Fault::Http(HttpFault::AuthErrorBody),
    Fault::Http(HttpFault::AuthErrorWithId),
    Fault::Http(HttpFault::AuthOAuthBody),
    Fault::Http(HttpFault::AuthPageBody),
    Fault::LongLineRefused,
    Fault::NestedRequestRefused,
    Fault::ParticularTools,
    Fault::RenderKinds,
    Fault::SurrogateIdEchoed,
    Fault::Http(HttpFault::UnknownNotification400),
    Fault::Http(HttpFault::NameHeaderRequired),
    Fault::LongCursors,
    Fault::OtherScripts,
    Fault::ProgressFractions,
    Fault::ServicesUnreachable,
    Fault::QuotesArguments,
    Fault::ResultRefused,
    Fault::VanishingTool,
    Fault::EveryMember,
    Fault::WritesInPieces,
    Fault::WritesTogether,
    Fault::Http(HttpFault::Proxied),
    Fault::Http(HttpFault::BodiesInPieces),
    Fault::Http(HttpFault::OneSession),
    Fault::Http(HttpFault::OneSessionRefused),
    Fault::Http(HttpFault::AlwaysStreams),
    Fault::Http(HttpFault::LargeBodiesUnread),
    Fault::Http(HttpFault::LargeBodiesCutOff),
];

/// Conforming variants of the built-in server, for behaviour that the default one does not have.
pub(crate) const VARIANTS: [Fault; 6] = [
    Fault::WithoutTools,
    Fault::LastingTool,
    Fault::WithoutTasks,
    Fault::EmptyCursor,
    Fault::Awkward,
    Fault::ChoosyTools,
];

/// The variants that conform and take long to judge.
pub(crate) const LARGE_VARIANTS: [Fault; 1] = [Fault::ManyTools];

/// The runs of every case against the conforming variants, made once.
pub(crate) fn variants() -> &'static [(Fault, RunResults)] {
    static RUNS: OnceLock<Vec<(Fault, RunResults)>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let run = |fault| (fault, judge(FaultSet::from(fault), &Revision::ALL, cases().to_vec()));
        VARIANTS.into_iter().map(run).collect()
    })
}

/// The run of every case against the conforming server in every revision, made once.
pub(crate) fn clean() -> &'static RunResults {
    static CLEAN: OnceLock<RunResults> = OnceLock::new();
    CLEAN.get_or_init(|| judge(FaultSet::none(), &Revision::ALL, cases().to_vec()))
}

/// The revisions in which a fault shows.
pub(crate) fn revisions_of(fault: Fault) -> Vec<Revision> {
    let names: BTreeSet<&str> = fault.revisions().iter().map(|revision| revision.name()).collect();
    Revision::ALL.into_iter().filter(|revision| names.contains(revision.as_str())).collect()
}
