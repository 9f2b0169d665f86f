//! Judges a server in one revision.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::SendError;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::again::{self, Doubt};
use super::conduct::{Context, Ended, UnderWay, milliseconds};
use super::fuzz;
use super::hinted::Followed;
use super::lane::{self, Done, LIMITED};
use super::offer::{Called, Offer};
use super::session::Session;
use super::survey::survey;
use crate::case::{Act, Body, Case, Process, Step};
use crate::check::{self, Connected, Judged, Watched, stderr_of};
use crate::event::{CaseResult, Event, FuzzSummary, Launch, Problem, ProblemKind, Skipped, TargetSummary, ToolNote};
use crate::spec::{Revision, Transport};
use crate::transcript::{self, Terms, Transcript, without_limited};
use crate::verdict::{Totals, Verdict};

/// What the lanes of a target share.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) context: Context,
    pub(super) revision: Revision,
    /// What the server offers, once the survey is done.
    pub(super) offer: watch::Receiver<Option<Arc<Offer>>>,
    /// Why nothing more is asked of the server, once that is so.
    pub(super) dead: Arc<watch::Sender<Option<String>>>,
    /// How many processes stayed silent at their start, though the server is known to speak.
    pub(super) stuck: Arc<AtomicUsize>,
    /// How often each verdict was given.
    pub(super) totals: Arc<Mutex<Totals>>,
    /// Takes the failures of acting cases, to be tried again before they are told; none where they are told at once.
    pub(super) doubts: Option<UnboundedSender<Doubt>>,
}

impl Target {
    /// What the server offers; waits for the survey.
    pub(super) async fn offer(&mut self) -> Arc<Offer> {
        let seen = self.offer.wait_for(Option::is_some).await.ok().and_then(|offer| offer.clone());
        seen.unwrap_or_default()
    }

    /// Why nothing more is asked of the server.
    pub(super) fn dead(&self) -> Option<String> {
        self.dead.borrow().clone()
    }

    /// Gives the server up.
    pub(super) fn give_up(&self, reason: &str) {
        self.dead.send_if_modified(|dead| {
            let first = dead.is_none();
            dead.get_or_insert_with(|| reason.to_owned());
            first
        });
    }

    /// Tells what an acting case says, or has it tried again first if it fails.
    pub(super) fn tell(&self, case: &Arc<Case>, judged: Judged, began: Option<Instant>) {
        let took = began.map(|began| began.elapsed());
        if let (Verdict::Fail, Some(took), Some(doubts)) = (judged.verdict, took, &self.doubts) {
            let doubt = Doubt { case: Arc::clone(case), judged, took };
            // Where nobody tries again any more, it is told as it is.
            if let Err(SendError(doubt)) = doubts.send(doubt) {
                self.tell_now(&doubt.case, doubt.judged, Some(doubt.took));
            }
            return;
        }
        self.tell_now(case, judged, took);
    }

    /// Makes a case's judgement a result and tells it.
    pub(super) fn tell_now(&self, case: &Case, mut judged: Judged, took: Option<Duration>) {
        for finding in &mut judged.findings {
            let origin = finding.origin.and_then(|pass| self.context.case_of(pass));
            let cases: Vec<&str> = std::iter::once(case.id.as_str()).chain(origin.as_deref()).collect();
            finding.reproduce = match finding.counterexample.as_ref().and_then(|example| example.file.as_deref()) {
                Some(file) => self.context.plan.replay_file(file),
                None => self.context.plan.replay(&cases, self.revision),
            };
        }
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).add(judged.verdict);
        let requirements = case.requirements.iter().filter(|r| r.revisions().contains(self.revision));
        self.context.emit(&Event::CaseFinished(Box::new(CaseResult {
            case: case.id.clone(),
            title: case.title.clone(),
            revision: self.revision,
            requirements: requirements.map(|requirement| requirement.id.clone()).collect(),
            verdict: judged.verdict,
            reason: judged.reason,
            skipped: (judged.verdict == Verdict::Skip).then_some(if judged.applies {
                Skipped::NotObserved
            } else {
                Skipped::NotApplicable
            }),
            observed: judged.seen,
            notes: judged.notes,
            findings: judged.findings,
            duration_ms: took.map(milliseconds).unwrap_or_default(),
        })));
    }
}

/// A connection of the target that has ended.
pub(super) struct Kept {
    pub(super) ended: Ended,
    pub(super) terms: Terms,
    /// Whether it was opened, and is counted, for another revision.
    pub(super) lent: bool,
}

/// Judges the server in the revision of an opened session.
///
/// Where it is `fuzzed`, that is done once its cases are through: beside those of other revisions as far as its tools
/// only read, unless one process serves all of them. Its places among those who wait for a permit are taken at once.
pub(super) fn judge(
    context: Context,
    mut main: Session,
    fuzzed: bool,
    under_way: UnderWay,
) -> impl Future<Output = Option<Problem>> + Send {
    let revision = main.revision;
    let runs = |case: &&Arc<Case>| case.runs_in(revision);
    let (cases, elsewhere): (Vec<_>, Vec<_>) =
        context.plan.cases.iter().filter(runs).cloned().partition(|case| context.plan.reaches(case));
    let (offers, offer) = watch::channel(None);
    let (doubts, doubted) = unbounded_channel();
    let mut target = Target {
        context: context.clone(),
        revision,
        offer,
        dead: Arc::new(watch::Sender::new(None)),
        stuck: Arc::default(),
        totals: Arc::default(),
        doubts: (context.plan.retries > 0).then_some(doubts),
    };
    for case in elsewhere {
        target.tell(&case, Judged::inapplicable("it is for servers that are reached in another way"), None);
    }
    let acting = |process: Process| -> Vec<Arc<Case>> {
        cases
            .iter()
            .filter(|case| matches!(&case.body, Body::Act(Act { process: own, .. }) if *own == process))
            .cloned()
            .collect()
    };
    let opening = main.terms.opening.clone().unwrap_or_default();
    let asked = context.ask();
    let mut lanes: JoinSet<Done> = JoinSet::new();
    // It ends when every lane that may send it something has.
    lanes.spawn(again::again(Target { doubts: None, ..target.clone() }, doubted));
    let expendable = acting(Process::Disposable);
    if !expendable.is_empty() {
        lanes.spawn(lane::expendable(target.clone(), expendable));
    }
    for case in acting(Process::Fresh).into_iter().chain(acting(Process::Uninitialized)) {
        lanes.spawn(lane::alone(target.clone(), case));
    }
    let shared = acting(Process::Shared);
    async move {
        let permit = asked.given().await;
        let (surveyed, stragglers) = survey(&mut main, &context.plan).await;
        let startup = main.connection.first_line().unwrap_or_default();
        let surveyed = Arc::new(Offer { terms: main.terms.clone(), startup, ..surveyed });
        if let Some(reason) = &surveyed.dead {
            target.give_up(reason);
        }
        offers.send_replace(Some(Arc::clone(&surveyed)));
        let mut done = lane::shared(target.clone(), main, shared, stragglers, permit).await;
        target.doubts = None;
        while let Some(finished) = lanes.join_next().await {
            match finished {
                Ok(more) => done.extend(more),
                Err(error) => target.give_up(&format!("the suite failed: {error}")),
            }
        }
        tell_watching(&target, &cases, &done).await;
        drop(under_way);
        let fuzz = if fuzzed { in_turn(&target, &cases, &surveyed).await } else { None };
        let totals = *target.totals.lock().unwrap_or_else(PoisonError::into_inner);
        let dead = target.dead();
        let stderr: String = done.iter().map(|kept| stderr_of(&kept.ended.entries, 4_000)).collect();
        context.emit(&Event::TargetFinished(Box::new(TargetSummary {
            revision,
            server_info: opening
                .get("serverInfo")
                .or_else(|| opening.pointer("/_meta/io.modelcontextprotocol~1serverInfo"))
                .cloned(),
            capabilities: opening.get("capabilities").cloned(),
            tools: notes(&surveyed),
            hints: surveyed.hinted.iter().map(Followed::note).collect(),
            launches: done.iter().filter(|kept| !kept.lent).map(|kept| launch(&kept.ended)).collect(),
            stderr: tail(&stderr, 8_000),
            stopped_early: dead.clone(),
            fuzz,
            totals,
        })));
        let limited = done.iter().any(|kept| kept.ended.limited > 0);
        stopped(revision, limited, dead, tail(&stderr, 4_000))
    }
}

/// Why not everything could be judged in a revision, if that is so.
fn stopped(revision: Revision, limited: bool, dead: Option<String>, stderr: String) -> Option<Problem> {
    let (reason, hint) = if limited {
        (
            format!("{LIMITED}, so not everything could be judged"),
            "ask less often with --max-rate, which counts requests a second, or lift the limit for the run",
        )
    } else {
        (dead?, "run with -v to see every message up to there; --timeout gives a slow server longer")
    };
    Some(Problem {
        kind: ProblemKind::Stopped,
        message: format!("in {revision}: {reason}"),
        hint: hint.to_owned(),
        stderr,
        evidence: Vec::new(),
    })
}

/// Fuzzes the target when that disturbs nobody.
async fn in_turn(target: &Target, cases: &[Arc<Case>], surveyed: &Offer) -> Option<FuzzSummary> {
    let context = &target.context;
    if context.plan.transport() == Transport::Http {
        // What calls do to the one process of the server is done to whoever else uses it.
        context.cases_through().await;
    }
    let _turn = context.fuzzing_turn().await;
    context.fuzzing().fetch_add(1, Ordering::Relaxed);
    let summary = fuzz::fuzz(target, cases, surveyed).await;
    context.fuzzing().fetch_sub(1, Ordering::Relaxed);
    summary
}

/// The cases that need nothing of a server but what it answers to anybody.
pub(super) fn seen_from_outside(context: &Context, revision: Revision) -> Vec<Arc<Case>> {
    let is_seen = |case: &&Arc<Case>| {
        let Body::Act(act) = &case.body else { return false };
        act.process == Process::Uninitialized && act.steps.iter().all(Step::is_http)
    };
    let runs = |case: &&Arc<Case>| case.runs_in(revision) && context.plan.reaches(case);
    context.plan.cases.iter().filter(runs).filter(is_seen).cloned().collect()
}

/// Judges a server that opens for nobody by such cases.
pub(super) async fn judge_from_outside(context: &Context, revision: Revision, cases: Vec<Arc<Case>>) {
    let (_offers, offer) = watch::channel(Some(Arc::default()));
    let target = Target {
        context: context.clone(),
        revision,
        offer,
        dead: Arc::new(watch::Sender::new(None)),
        stuck: Arc::default(),
        totals: Arc::default(),
        doubts: None,
    };
    let mut done = Vec::new();
    for case in cases {
        done.extend(lane::alone(target.clone(), case).await);
    }
    let totals = *target.totals.lock().unwrap_or_else(PoisonError::into_inner);
    context.emit(&Event::TargetFinished(Box::new(TargetSummary {
        revision,
        server_info: None,
        capabilities: None,
        tools: Vec::new(),
        hints: Vec::new(),
        launches: done.iter().map(|kept: &Kept| launch(&kept.ended)).collect(),
        stderr: String::new(),
        stopped_early: target.dead(),
        fuzz: None,
        totals,
    })));
}

/// Judges the watching cases by every connection of the target.
async fn tell_watching(target: &Target, cases: &[Arc<Case>], done: &Done) {
    let connected: Vec<Connected> = done
        .iter()
        .map(|kept| Connected {
            label: kept.ended.purpose.clone(),
            transcript: Transcript { entries: without_limited(&kept.ended.entries), terms: kept.terms.clone() },
        })
        .collect();
    let cases: Vec<Arc<Case>> = cases.iter().filter(|case| matches!(case.body, Body::Watch { .. })).cloned().collect();
    let revision = target.revision;
    let judging = target.context.judging_beside(move || {
        let watched = Watched::new(&connected, revision);
        let judge = |case: Arc<Case>| {
            let Body::Watch(passive) = &case.body else { return None };
            let judged = if needs_are_met(&case, &connected) {
                check::watch(&case, passive, revision, &watched)
            } else {
                Judged::inapplicable(unmet(&case))
            };
            Some((case, judged))
        };
        cases.into_iter().filter_map(judge).collect::<Vec<_>>()
    });
    match judging.await {
        Ok(judged) => judged.into_iter().for_each(|(case, judged)| target.tell(&case, judged, None)),
        Err(error) => target.give_up(&format!("the suite failed: {error}")),
    }
}

fn needs_are_met(case: &Case, connected: &[Connected]) -> bool {
    case.needs.capabilities.is_empty()
        || connected.iter().any(|c| c.transcript.terms.opening.is_some() && meets(case, &c.transcript.terms))
}

/// Whether the capabilities that a case needs were declared (or, with `!`, were not).
pub(super) fn meets(case: &Case, terms: &Terms) -> bool {
    case.needs.capabilities.iter().all(|name| match name.strip_prefix('!') {
        Some(name) => !terms.declares(name),
        None => terms.declares(name),
    })
}

/// Why a case does not apply to a server with these capabilities.
pub(super) fn unmet(case: &Case) -> String {
    let words: Vec<String> = case
        .needs
        .capabilities
        .iter()
        .map(|name| match name.strip_prefix('!') {
            Some(name) => format!("no {name} capability"),
            None => format!("the {name} capability"),
        })
        .collect();
    format!("it is for servers with {}", words.join(" and "))
}

fn notes(offer: &Offer) -> Vec<ToolNote> {
    let tools = offer.tools.iter();
    tools
        .map(|tool| {
            let note = match (&tool.barred, tool.called) {
                (Some(reason), _) => Some(reason.clone()),
                (None, Some((Called::Unanswered, _))) => {
                    Some("its call took longer than the survey waits, so the cases did without it".to_owned())
                }
                (None, Some((Called::Ended, _))) => Some("the server ended before its call was answered".to_owned()),
                (None, Some((Called::Refused, _))) => Some("its plain call was refused".to_owned()),
                (None, Some((Called::Lacking, _))) => Some(
                    "it asks for what the client lacks: a capability, a visited page, or a call as a task".to_owned(),
                ),
                (None, Some((Called::Served, _))) => None,
                (None, None) => Some("the survey ended before its turn".to_owned()),
            };
            ToolNote { name: tool.name.clone(), called: tool.called.is_some(), note }
        })
        .collect()
}

fn launch(ended: &Ended) -> Launch {
    let count =
        |wanted: fn(&transcript::Event) -> bool| ended.entries.iter().filter(|entry| wanted(&entry.event)).count();
    Launch {
        purpose: if ended.without_runner {
            format!("{}, without the package runner", ended.purpose)
        } else {
            ended.purpose.clone()
        },
        startup_ms: ended.startup.map(milliseconds),
        shutdown: Some(Launch::word(ended.step).to_owned()),
        sent: count(|event| matches!(event, transcript::Event::Sent { .. })),
        received: count(|event| matches!(event, transcript::Event::Received(_))),
    }
}

fn tail(text: &str, longest: usize) -> String {
    let from = text.len().saturating_sub(longest);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text[from..].to_owned()
}
