//! Fuzzing: every tool that may be called is called with arguments made from its inputSchema, and the
//! cases that name an oracle look at what comes back.
//!
//! Owns the loop, the process that is called, and what makes a failure small. What is wrong with an
//! answer is said by [`crate::check::fuzz`], and arguments are made by [`crate::fuzz`].

mod hunt;
mod rig;
mod shrink;
mod stock;
mod tally;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::hunt::{Found, Hunt, Pace};
use self::rig::{Rig, Shot};
use self::stock::{Share, Stock};
use self::tally::Tally;
use super::conduct::milliseconds;
use super::offer::{Called, Offer, Tool};
use super::plan::{FuzzPlan, Launcher};
use super::target::Target;
use crate::case::{Body, Case, Oracle};
use crate::check::Judged;
use crate::check::fuzz::{Breach, Subject, finding, lints, misplaced_bound, unsatisfiable};
use crate::event::{Event, FuzzSummary, ToolFuzz};
use crate::verdict::{Finding, Verdict};

/// How long making failures small may take in a revision.
const SHRINKING: Duration = Duration::from_secs(60);
/// How many valid calls a tool has to refuse before it counts as one that never succeeds.
const NEVER: u64 = 12;

/// Why a tool is not fuzzed, if it is not.
fn left_out(tool: &Tool, plan: &FuzzPlan) -> Option<String> {
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
    match tool.called {
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
    let names: Arc<[String]> = chosen.iter().map(|tool| tool.name.clone()).collect();
    let mut hunt = Hunt {
        context,
        plan,
        rig: Rig::new(context, target.revision, names, plan.max_rate),
        subjects: &subjects,
        found: Vec::new(),
        deadline: plan.time.map(|time| began + time),
        shrinking_until: SHRINKING,
        shrinking_took: Duration::ZERO,
        shrinking: 0,
        in_flight: Pace::new(plan.in_flight),
        ended_early: None,
        deaths: 0,
        silences: 0,
    };
    let mut reports: Vec<ToolFuzz> = Vec::new();
    for (at, tool) in chosen.iter().enumerate() {
        if hunt.is_over() {
            reports.push(Tally::default().report(
                &tool.name,
                Some("the time was used up before its turn".to_owned()),
                None,
            ));
            continue;
        }
        reports.push(of_tool(&mut hunt, at, tool, context.plan.seed).await);
    }
    hunt.rig.end().await;
    let mut reports = reports.into_iter();
    let tools = tools
        .into_iter()
        .filter_map(|(_, report, is_chosen)| if is_chosen { reports.next() } else { Some(report) })
        .collect::<Vec<_>>();
    tell(target, &looking, &hunt, &tools, began);
    Some(FuzzSummary {
        seed: context.plan.seed,
        calls: hunt.rig.calls,
        shrinking: hunt.shrinking,
        wall_ms: milliseconds(began.elapsed()),
        restarts: hunt.rig.starts.saturating_sub(1),
        ended_early: hunt.ended_early,
        tools,
    })
}

/// Fuzzes one tool.
async fn of_tool(hunt: &mut Hunt<'_>, at: usize, tool: &Tool, seed: u64) -> ToolFuzz {
    let Some(schema) = &tool.schema else {
        return Tally::default().report(&tool.name, Some("its inputSchema cannot be read".to_owned()), None);
    };
    let mut tally = Tally::default();
    if let Some(breach) = unsatisfiable(schema) {
        hunt.note(at, breach);
        return tally.report(&tool.name, Some("nothing satisfies its inputSchema".to_owned()), None);
    }
    let mut stock = Stock::new(schema, &tool.name, seed, &hunt.plan.seeds);
    (hunt.deaths, hunt.silences) = (0, 0);
    let outcome = phases(hunt, at, &mut stock, &mut tally).await;
    stock.compile_all();
    let misplaced: Vec<String> = stock
        .breakers
        .iter()
        .filter(|breaker| breaker.is_without_effect() && misplaced_bound(schema.schema(), &breaker.site))
        .map(|breaker| breaker.site.to_string())
        .collect();
    if let Some(breach) = lints(&misplaced) {
        hunt.note(at, breach);
    }
    if tally.valid >= NEVER.min(hunt.plan.calls / 4) && tally.valid > 0 && tally.succeeded == 0 {
        let actual = format!("none of {} calls with valid arguments succeeded", tally.valid);
        let message = "no call that the inputSchema admits succeeds, so little of the tool was tested";
        hunt.note(at, Breach::of_many(Oracle::NeverSucceeds, message, actual));
    }
    let note = match outcome {
        Ok(()) => hunt.is_hopeless(),
        Err(problem) => {
            hunt.ended_early.get_or_insert(problem.clone());
            Some(problem)
        }
    };
    tally.report(&tool.name, note, Some(&stock))
}

/// The phases of a tool, within its budget of calls.
async fn phases(hunt: &mut Hunt<'_>, at: usize, stock: &mut Stock<'_>, tally: &mut Tally) -> Result<(), String> {
    const ROUND: u64 = 32;
    let share = Share::of(hunt.plan.calls, stock.to_cover());
    let shots = |calls: Vec<Arc<_>>| -> Vec<Shot> { calls.into_iter().map(|call| Shot { tool: at, call }).collect() };
    let (mut coverage, mut malformed, mut rest) = (share.coverage, share.malformed, share.rest);
    while coverage > 0 && hunt.goes_on() {
        let round = shots(stock.coverage(coverage.min(ROUND)));
        if round.is_empty() {
            break;
        }
        coverage -= round.len() as u64;
        hunt.round(&round, 1, tally, stock).await?;
    }
    rest += coverage;
    while malformed > 0 && hunt.goes_on() {
        let round = shots(stock.malformed(malformed.min(ROUND)));
        if round.is_empty() {
            break;
        }
        malformed -= round.len() as u64;
        hunt.round(&round, 1, tally, stock).await?;
    }
    rest += malformed;
    let round = (rest / 8).clamp(ROUND, 1_024);
    while rest > 0 && hunt.goes_on() {
        let made = shots(stock.mixed(rest.min(round)));
        if made.is_empty() {
            break;
        }
        rest -= made.len() as u64;
        let in_flight = hunt.in_flight.now();
        hunt.round(&made, in_flight, tally, stock).await?;
    }
    Ok(())
}

impl Hunt<'_> {
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
fn tell(target: &Target, looking: &[(&Arc<Case>, Oracle)], hunt: &Hunt<'_>, tools: &[ToolFuzz], began: Instant) {
    let seen: u64 = tools.iter().flat_map(|tool| &tool.calls).map(|calls| calls.count).sum();
    let seen = usize::try_from(seen).unwrap_or(usize::MAX);
    for (case, oracle) in looking {
        let findings: Vec<Finding> = hunt
            .found
            .iter()
            .filter(|found| found.breach.oracle == *oracle)
            .filter_map(|found| {
                let name = &hunt.subjects[found.tool].name;
                let mut finding = finding(case, target.revision, name, &found.breach, &found.exchanges)?;
                finding.count = found.count;
                finding.counterexample = found.counterexample.clone().map(Box::new);
                finding.confirmation = found.confirmation;
                Some(finding)
            })
            .collect();
        let verdict = findings.iter().map(|finding| finding.verdict).reduce(Verdict::join);
        let judged = match verdict {
            Some(verdict) => Judged { verdict, reason: None, seen, notes: Vec::new(), findings },
            None if seen == 0 => Judged::skip("no tool was called"),
            None => Judged { verdict: Verdict::Pass, reason: None, seen, notes: Vec::new(), findings },
        };
        target.tell(case, judged, Some(began));
    }
}

/// Text that an error may name: the words of the command line and the folder of the server.
fn known_words(launcher: &Launcher) -> Vec<String> {
    let Launcher::Command(server) = launcher else { return Vec::new() };
    let folder = server.directory.clone().or_else(|| std::env::current_dir().ok());
    let words = server.command.iter().cloned().chain(server.environment.iter().map(|(_, value)| value.clone()));
    words.chain(folder.map(|folder| folder.to_string_lossy().into_owned())).collect()
}
