//! Fuzzing: every tool that may be called is called with arguments made from its inputSchema, and the
//! cases that name an oracle look at what comes back.
//!
//! Owns the loop, the process that is called, and what makes a failure small. What is wrong with an
//! answer is said by [`crate::check::fuzz`], and arguments are made by [`crate::fuzz`].

mod ahead;
mod familiar;
mod hunt;
mod pace;
mod parked;
mod patience;
mod pool;
mod reached;
mod recipe;
mod regression;
mod rig;
mod seen;
mod shot;
mod shrink;
mod side;
mod spare;
mod state;
mod steady;
mod stock;
mod tally;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::ahead::Ahead;
use self::hunt::{Found, Hunt, Turn};
use self::pace::Pace;
use self::patience::Patience;
use self::pool::Pool;
use self::rig::Rig;
use self::seen::SeenByAll;
use self::shot::Shot;
use self::steady::{Suspicion, Watch};
use self::stock::Stock;
use self::tally::Tally;
use super::conduct::{Context, milliseconds};
use super::offer::{Called, Offer, Tool};
use super::plan::{FuzzPlan, Launcher};
use super::target::Target;
use crate::case::{Body, Case, Oracle};
use crate::check::Judged;
use crate::check::fuzz::{Arguments, Breach, Call, Standing, Subject, finding, lints, misplaced_bound, never_succeeds};
use crate::event::{Event, FuzzSummary, ToolFuzz};
use crate::fuzz::ToolSchema;
use crate::spec::Transport;
use crate::verdict::{CallKind, Finding, Verdict};

pub use self::regression::{Earlier, Fed, Regression, RegressionError};

/// How long fuzzing may take in a revision, unless that was said.
const TIME: Duration = Duration::from_secs(60);
/// How long making failures small may take in a revision.
const SHRINKING: Duration = Duration::from_secs(45);
/// How long a tool's turn may take for each of its calls, unless the time for all was said.
const EACH: Duration = Duration::from_millis(15);
/// How many times as long everything may take over HTTP, where each call is a request.
const OVER_HTTP: u32 = 3;
/// The shortest turn.
const SHORTEST: Duration = Duration::from_millis(500);
/// How many valid calls a tool has to refuse before it counts as one that never succeeds.
const NEVER: u64 = 12;

/// How long fuzzing may take where that was not said: more where more calls were asked for than usual.
fn time_for(calls: u64) -> Duration {
    const USUAL: u64 = 200;
    const MOST: u64 = 10_000;
    TIME * u32::try_from(calls.div_ceil(USUAL).clamp(1, MOST)).unwrap_or(1)
}

/// How many times as long as usual everything may take.
fn slowness(context: &Context) -> u32 {
    if context.plan.transport() == Transport::Http { OVER_HTTP } else { 1 }
}

/// Why a tool is not fuzzed, if it is not.
fn left_out(tool: &Tool, plan: &FuzzPlan) -> Option<String> {
    if tool.schema.as_deref().is_some_and(ToolSchema::is_unsatisfiable) {
        // It cannot be called, which is what is to be told of it.
        return None;
    }
    if let Some(reason) = &tool.barred {
        return Some(reason.clone());
    }
    let named = |globs: &[globset::GlobMatcher]| globs.iter().any(|glob| glob.is_match(&tool.name));
    if !plan.tools.is_empty() && !named(&plan.tools) {
        return Some("it was not asked for (--tool)".to_owned());
    }
    if named(&plan.skip_tools) {
        return Some("it was left out (--skip-tool)".to_owned());
    }
    if plan.shard.is_some_and(|shard| !shard.holds(&tool.name)) {
        return Some("it belongs to another shard".to_owned());
    }
    match tool.called {
        Some((Called::Lacking, _)) => {
            Some("it asks for what the client lacks: a capability, a visited page, or a call as a task".to_owned())
        }
        Some((Called::Unanswered, _)) => Some("its plain call took longer than the survey waits".to_owned()),
        Some((Called::Served | Called::Refused | Called::Ended, _)) => None,
        None => Some("the survey ended before its turn".to_owned()),
    }
}

/// Fuzzes the tools of a target, tells the cases that name an oracle, and says what was exercised.
pub(super) async fn fuzz(target: &Target, cases: &[Arc<Case>], offer: &Offer) -> Option<FuzzSummary> {
    let context = &target.context;
    let plan = context.plan.fuzz.as_ref()?;
    let looking: Vec<(&Arc<Case>, Oracle)> = cases
        .iter()
        .filter_map(|case| match &case.body {
            Body::Fuzz(oracle) => Some((case, *oracle)),
            _ => None,
        })
        .collect();
    if looking.is_empty() {
        return None;
    }
    if let Some(reason) = target.dead() {
        for (case, _) in looking {
            target.tell(case, Judged::error(reason.clone()), None);
        }
        return None;
    }
    let began = Instant::now();
    let known = known_words(&context.plan.launcher);
    let mut tools: Vec<(&Tool, ToolFuzz, bool)> = Vec::new();
    let mut chosen: Vec<&Tool> = Vec::new();
    for tool in &offer.tools {
        let why = left_out(tool, plan);
        if why.is_none() {
            chosen.push(tool);
        }
        let is_chosen = why.is_none();
        tools.push((tool, Tally::default().report(&tool.name, why, None), is_chosen));
    }
    context.emit(&Event::FuzzingStarted {
        revision: target.revision,
        tools: chosen.iter().map(|tool| tool.name.clone()).collect(),
        left_out: tools.iter().filter(|(_, _, chosen)| !chosen).count(),
        calls: plan.calls,
        seed: context.plan.seed,
    });
    let subjects: Vec<Subject> =
        chosen.iter().map(|tool| Subject::new(&tool.definition, target.revision, known.clone())).collect();
    let deadline = began + plan.time.unwrap_or_else(|| time_for(plan.calls) * slowness(context));
    let seen_by_all = SeenByAll::default();
    let make = || Hunt {
        context,
        plan,
        rig: Rig::new(context, target.revision, &chosen, plan.max_rate),
        subjects: &subjects,
        schemas: chosen.iter().map(|tool| tool.schema.as_deref()).collect(),
        only_reads: chosen.iter().map(|tool| tool.says("readOnlyHint")).collect(),
        canaries: canaries(&chosen),
        listed: listed(offer),
        changeable: Vec::new(),
        plain_times: Vec::new(),
        pool: Pool::default(),
        familiar: None,
        found: Vec::new(),
        seen_by_all: seen_by_all.clone(),
        deadline,
        waited: Duration::ZERO,
        turn: Turn::new(Duration::ZERO, Duration::ZERO),
        shrinking_until: SHRINKING,
        shrinking_took: Duration::ZERO,
        shrinking: 0,
        in_flight: Pace::new(plan.in_flight),
        ended_early: None,
        patience: Patience::default(),
    };
    let mut first = make();
    if let Err(problem) = first.choose_canaries().await {
        first.ended_early = Some(problem);
    }
    let mended = first.try_again(&files(plan)).await.unwrap_or_else(|problem| {
        first.ended_early = Some(problem);
        Vec::new()
    });
    let beside = if plan.replay.is_some() { 0 } else { side::worth(context, plan, offer, &chosen) };
    // The others begin where the first is now; what that has waited for is no part of their time either.
    let (canaries, deadline) = (first.canaries.clone(), first.deadline);
    let others = (1..beside).map(|_| Hunt { canaries: canaries.clone(), deadline, ..make() });
    let hunts = std::iter::once(first).chain(others).collect();
    let (reports, came) = side::every_tool(hunts, if beside == 0 { &[] } else { &chosen }).await;
    let mut reports = reports.into_iter();
    let tools = tools
        .into_iter()
        .filter_map(|(_, report, is_chosen)| if is_chosen { reports.next() } else { Some(report) })
        .collect::<Vec<_>>();
    tell(target, &looking, &subjects, &came, &tools, &mended, began);
    Some(FuzzSummary {
        seed: context.plan.seed,
        calls: came.calls,
        shrinking: came.shrinking,
        wall_ms: milliseconds(began.elapsed().saturating_sub(came.waited)),
        restarts: came.restarts,
        stopped_early: came.ended_early,
        tools,
    })
}

/// The failing calls that are tried first.
fn files(plan: &FuzzPlan) -> Vec<(PathBuf, Regression)> {
    match (&plan.replay, &plan.regressions) {
        (Some((path, regression)), _) => vec![(path.clone(), regression.clone())],
        (None, Some(folder)) => Regression::read_all(folder),
        (None, None) => Vec::new(),
    }
}

/// What fuzzing came to.
struct Came {
    found: Vec<Found>,
    calls: u64,
    shrinking: u64,
    restarts: usize,
    /// How long it let the cases pass.
    waited: Duration,
    ended_early: Option<String>,
    /// Whether the server was given up as one that serves nothing.
    given_up: bool,
    /// Whether what a process of it holds could be seen.
    had_process: bool,
}

impl Came {
    fn of(hunts: Vec<Hunt<'_>>) -> Self {
        let mut came = Self {
            found: Vec::new(),
            calls: hunts.iter().map(|hunt| hunt.rig.calls).sum(),
            shrinking: hunts.iter().map(|hunt| hunt.shrinking).sum(),
            restarts: hunts.iter().map(|hunt| hunt.rig.starts.saturating_sub(1)).sum(),
            waited: hunts.iter().map(|hunt| hunt.waited).max().unwrap_or_default(),
            ended_early: hunts.iter().find_map(|hunt| hunt.ended_early.clone()),
            given_up: hunts.iter().all(|hunt| hunt.patience.given_up),
            had_process: hunts.iter().any(|hunt| hunt.rig.had_process()),
        };
        for found in hunts.into_iter().flat_map(|hunt| hunt.found) {
            let is_known = |known: &&mut Found| known.tool == found.tool && known.breach.is_like(&found.breach);
            match came.found.iter_mut().find(is_known) {
                Some(known) => known.count += found.count,
                None => came.found.push(found),
            }
        }
        came.found.sort_by_key(|found| found.tool);
        came
    }
}

/// A plain call of each tool that served it in the survey.
fn canaries(chosen: &[&Tool]) -> Vec<Shot> {
    let of = |(tool, chosen): (usize, &&Tool)| {
        let arguments = Arguments::Json(chosen.arguments.clone().filter(|_| chosen.is_served())?);
        let call = Call { kind: CallKind::Valid, standing: Standing::Valid, arguments, tape: None };
        Some(Shot::new(tool, Arc::new(call)))
    };
    chosen.iter().enumerate().filter_map(of).collect()
}

/// The lists that are compared, as far as the server declared them.
fn listed(offer: &Offer) -> &'static [(&'static str, &'static str)] {
    const ALL: [(&str, &str); 3] =
        [("tools/list", "tools"), ("resources/list", "resources"), ("prompts/list", "prompts")];
    match (offer.terms.declares("resources"), offer.terms.declares("prompts")) {
        (true, true) => &ALL,
        (true, false) => &ALL[..2],
        _ => &ALL[..1],
    }
}

/// A tool while it is fuzzed.
struct Work<'s> {
    tool: &'s Tool,
    stock: Option<Stock>,
    tally: Tally,
    left: u64,
    /// What its turn has left.
    time: Duration,
    /// Values out of its results.
    pool: Pool,
    note: Option<String>,
}

/// Fuzzes one tool by itself.
async fn by_itself(hunt: &mut Hunt<'_>, work: &mut Work<'_>) {
    let Some(stock) = &mut work.stock else { return };
    hunt.let_cases_pass(stock.tool).await;
    // What a process takes to start is no part of the turn: it could be all of it.
    let ready = hunt.rig.ready().await;
    hunt.begin(work.time, work.tool.called.map_or(Duration::ZERO, |(_, took)| took));
    hunt.plain_times.clear();
    hunt.pool = Pool::default();
    let outcome = match ready {
        Ok(()) => phases(hunt, work.tool, stock, &mut work.tally).await,
        Err(problem) => Err(problem),
    };
    work.pool = std::mem::take(&mut hunt.pool);
    work.time = hunt.turn.left();
    stock.compile_all();
    let schema = stock.schema().schema();
    let idle = stock.breakers.iter().filter(|breaker| breaker.is_without_effect());
    let misplaced: Vec<String> =
        idle.filter(|breaker| misplaced_bound(schema, &breaker.site)).map(|breaker| breaker.site.to_string()).collect();
    if let Some(breach) = lints(&misplaced) {
        hunt.note(stock.tool, breach);
    }
    work.note = match outcome {
        Ok(left) => {
            work.left = left;
            let note = hunt.is_hopeless();
            if let Some(why) = hunt.patience.end(&work.tally) {
                hunt.ended_early.get_or_insert(why);
            }
            note
        }
        Err(problem) => {
            hunt.ended_early.get_or_insert(problem.clone());
            Some(problem)
        }
    };
}

/// Fuzzes one tool with values out of the results of all.
async fn with_the_others(hunt: &mut Hunt<'_>, work: &mut Work<'_>, pool: &Pool) {
    let Some(stock) = &mut work.stock else { return };
    if work.note.is_none() && work.left > 0 {
        hunt.begin(work.time, Duration::ZERO);
        hunt.pool = pool.clone();
        if let Err(problem) = stateful(hunt, work.left, stock, &mut work.tally).await {
            hunt.ended_early.get_or_insert(problem);
        }
        work.note = hunt.is_hopeless();
    }
    let tally = &work.tally;
    if tally.valid >= NEVER.min(hunt.plan.calls / 4) && tally.valid > 0 && tally.succeeded == 0 {
        let breach = never_succeeds(stock.schema().schema(), tally.valid, tally.commonest_refusal());
        hunt.note(stock.tool, breach);
    }
}

/// How many calls are made between two looks at what came back.
const ROUND: u64 = 32;

fn shots(tool: usize, calls: Vec<Arc<Call>>) -> Vec<Shot> {
    calls.into_iter().map(|call| Shot::new(tool, call)).collect()
}

/// The phases of a tool by itself; returns how many calls are left for those with values of others.
async fn phases(hunt: &mut Hunt<'_>, tool: &Tool, stock: &mut Stock, tally: &mut Tally) -> Result<u64, String> {
    let at = stock.tool;
    stock.doubled = tool.says("idempotentHint") && hunt.plan.calls >= 32;
    hunt.rig.ready().await?;
    let mut watch = Watch::begin(hunt.rig.process_id());
    let lists = if tool.says("readOnlyHint") { hunt.lists().await? } else { None };
    hunt.look_at_canaries(true, stock).await?;
    let share = stock.share(hunt.plan.calls);
    let (mut coverage, mut malformed, mut rest) = (share.coverage, share.malformed, share.rest);
    while coverage > 0 && hunt.goes_on() {
        let round = shots(at, stock.coverage(coverage.min(ROUND)));
        if round.is_empty() {
            break;
        }
        // The second of two equal calls is a look at the first, beyond the budget.
        coverage -= (round.len() as u64 / if stock.doubled { 2 } else { 1 }).min(coverage);
        hunt.round(&round, 1, tally, stock).await?;
    }
    hunt.look_at_canaries(true, stock).await?;
    while malformed > 0 && hunt.goes_on() {
        let mut round = shots(at, stock.malformed(malformed.min(ROUND)));
        if round.is_empty() {
            break;
        }
        malformed -= round.len() as u64;
        // What comes of them is known of other tools, and is none of this one's doing.
        round.retain(|shot| !hunt.patience.knows(shot));
        hunt.round(&round, 1, tally, stock).await?;
    }
    rest += coverage + malformed;
    watch.settle(hunt.rig.process_id());
    let mut ahead = Ahead::of(rest);
    while hunt.goes_on() {
        let made = shots(at, ahead.next(stock, &mut rest, &mut hunt.rig).await);
        if made.is_empty() {
            break;
        }
        let (began, shrinking, in_flight) = (Instant::now(), hunt.shrinking_took, hunt.in_flight.now());
        hunt.round(&made, in_flight, tally, stock).await?;
        if hunt.shrinking_took == shrinking {
            watch.round(made.len(), began.elapsed());
        }
        hunt.look_at_canaries(true, stock).await?;
    }
    let goes_on = hunt.goes_on();
    if goes_on {
        if hunt.plan.calls >= 32 {
            hunt.look_for_swaps(stock).await?;
        }
        hunt.look_at_lists(lists, stock).await?;
        hunt.look_at_canaries(false, stock).await?;
    }
    // A tool that gets slower with every call has used up its time, and that is what is looked for.
    let used_up = hunt.turn.times.len() >= steady::LEAST && hunt.is_only_slow();
    let slower = used_up || steady::is_slower(&hunt.plain_times) || steady::ends_slower(&hunt.turn.times);
    let suspicion = watch.suspicion(hunt.rig.process_id());
    let suspicion = if slower && suspicion != Some(Suspicion::Clear) { Some(Suspicion::Slow) } else { suspicion };
    let got_slower = suspicion.is_some_and(|of| of != Suspicion::Heap) && !hunt.is_over() && hunt.is_only_slow();
    if let Some(suspicion) = suspicion
        && (hunt.goes_on() || got_slower)
    {
        hunt.look_at_trends(suspicion, stock).await?;
    }
    Ok(if goes_on { share.stateful + rest } else { 0 })
}

/// Calls with values out of results; what is left where none fit goes to others.
async fn stateful(hunt: &mut Hunt<'_>, calls: u64, stock: &mut Stock, tally: &mut Tally) -> Result<(), String> {
    let at = stock.tool;
    let mut left = calls;
    while left > 0 && hunt.goes_on() {
        let made = stock.stateful(left.min(ROUND), &hunt.pool);
        let made = hunt.renewed(made).await?;
        if made.is_empty() {
            break;
        }
        left -= made.len() as u64;
        hunt.round(&made, 1, tally, stock).await?;
    }
    let mut ahead = Ahead::of(left);
    while hunt.goes_on() {
        let made = shots(at, ahead.next(stock, &mut left, &mut hunt.rig).await);
        if made.is_empty() {
            break;
        }
        let in_flight = hunt.in_flight.now();
        hunt.round(&made, in_flight, tally, stock).await?;
    }
    hunt.look_at_canaries(true, stock).await
}

impl Hunt<'_> {
    /// How long the turn of the next tool may take, of so many that are still to come.
    fn share(&self, tools: usize) -> Duration {
        let left = self.time_left();
        if self.plan.time.is_some() {
            return left / u32::try_from(tools.max(1)).unwrap_or(u32::MAX);
        }
        let calls = u32::try_from(self.plan.calls).unwrap_or(u32::MAX);
        // Where calls are to be made slowly, that is none of the tool's fault.
        let paced = self.plan.max_rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate.max(0.001)));
        SHORTEST.max((EACH * slowness(self.context) + paced).saturating_mul(calls)).min(left)
    }

    /// Begins the turn of a tool.
    fn begin(&mut self, time: Duration, slowest: Duration) {
        self.patience.begin();
        self.turn = Turn::new(time, slowest);
    }

    /// Whether the tool under test is called further.
    fn goes_on(&mut self) -> bool {
        !self.is_over() && self.is_hopeless().is_none()
    }

    /// Adds what is wrong with a tool as a whole.
    fn note(&mut self, tool: usize, breach: Breach) {
        self.found.push(Found {
            tool,
            breach,
            count: 1,
            exchanges: Vec::new(),
            counterexample: None,
            confirmation: None,
        });
    }
}

/// Tells each case what was found.
fn tell(
    target: &Target,
    looking: &[(&Arc<Case>, Oracle)],
    subjects: &[Subject],
    came: &Came,
    tools: &[ToolFuzz],
    mended: &[(Oracle, String)],
    began: Instant,
) {
    let seen: u64 = tools.iter().flat_map(|tool| &tool.calls).map(|calls| calls.count).sum();
    let seen = usize::try_from(seen).unwrap_or(usize::MAX);
    for (case, oracle) in looking {
        let findings: Vec<Finding> = came
            .found
            .iter()
            .filter(|found| found.breach.oracle == *oracle)
            .filter_map(|found| {
                let name = &subjects[found.tool].name;
                let mut finding = finding(case, target.revision, name, &found.breach, &found.exchanges)?;
                finding.count = found.count;
                finding.counterexample = found.counterexample.clone().map(Box::new);
                finding.confirmation = found.confirmation;
                Some(finding)
            })
            .collect();
        let verdict = findings.iter().map(|finding| finding.verdict).reduce(Verdict::join);
        let own = mended.iter().filter(|(of, _)| of == oracle);
        let notes: Vec<String> = own.map(|(_, path)| format!("{path} fails no more, and may be taken away")).collect();
        let seen = seen + notes.len();
        let judged = match verdict {
            Some(verdict) => Judged { verdict, reason: None, applies: true, seen, notes, findings },
            None if seen == 0 => Judged::skip("no tool was called"),
            None if !came.had_process && matches!(oracle, Oracle::Memory | Oracle::Descriptors) => {
                Judged::inapplicable("what the process of the server holds is not seen from here")
            }
            // What little was answered proves nothing.
            None if came.given_up => Judged::skip(came.ended_early.clone().unwrap_or_default()),
            None => Judged { verdict: Verdict::Pass, reason: None, applies: true, seen, notes, findings },
        };
        target.tell(case, judged, Some(began));
    }
}

/// Text that an error may name: the words of the command line and the folder of the server.
fn known_words(launcher: &Launcher) -> Vec<String> {
    let server = match launcher {
        Launcher::Command(server) => Some(server),
        Launcher::Http(server) => server.command.as_ref(),
        Launcher::BuiltIn(_) | Launcher::Within(_) => None,
    };
    let Some(server) = server else { return Vec::new() };
    let folder = server.directory.clone().or_else(|| std::env::current_dir().ok());
    let words = server.command.iter().chain(server.environment.iter().map(|(_, value)| value));
    let words = words.map(|word| word.to_string_lossy().into_owned());
    words.chain(folder.map(|folder| folder.to_string_lossy().into_owned())).collect()
}
