//! Fuzzing as a part of the run: chooses the tools, starts the campaign, and judges the cases that name an oracle.

use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

use serde_json::{Value, json};

use crate::campaign::{
    self, BoxFuture, CampaignResult, CampaignSettings, Environment, Failure, FailureFolder, FixedFailure,
    OpenedProcess, SelectedTool,
};
use crate::case::{Body, Case, Oracle};
use crate::check::fuzz::{ResultRules, excerpt, finding};
use crate::check::{Judgement, milliseconds};
use crate::client::headers::Mirrored;
use crate::client::{HostState, Responder, UnrecordedConnection, WaitOutcome};
use crate::context::Context;
use crate::event::{Event, FuzzSummary, ToolFuzz};
use crate::fuzz::ToolSchema;
use crate::inventory::{FirstCallOutcome, Inventory, Tool};
use crate::plan::{CallBudget, FuzzPlan, Launcher, processors};
use crate::run::cases::needs::declares_needed_capabilities;
use crate::session::{ClientResponder, connect_unrecorded, full_capabilities, initialize_params, stateless_meta};
use crate::spec::{Era, Revision, Transport};
use crate::transcript::{SessionParameters, messages};
use crate::verdict::{Confirmation, Finding, Verdict};
use crate::wire::{MessageKind, is_lost_id, same_id_loosely};

/// Why a case about sequences is not judged.
const NO_SEQUENCES: &str = "no calls were made in sequences (--sequences), or no tool takes what another one returns";
/// The id of the first request of a process.
const FIRST_ID: i64 = 1;

/// The judgements of the cases that name an oracle.
pub(super) struct FuzzingResult {
    pub(super) judgements: Vec<(Arc<Case>, Judgement)>,
    /// When fuzzing began; `None` if it could not begin.
    pub(super) began: Option<Instant>,
    pub(super) summary: Option<FuzzSummary>,
}

/// Fuzzes the tools of a server and judges the cases that name an oracle; `None` if there is nothing to do.
/// `stop_reason` says why no further requests are sent, if so. The passive ones among the cases are those whose rules no
/// message broke so far.
pub(super) async fn fuzz(
    context: &Context,
    revision: Revision,
    cases: &[Arc<Case>],
    inventory: &Inventory,
    stop_reason: Option<String>,
) -> Option<FuzzingResult> {
    let plan = context.plan.fuzz.as_ref()?;
    let oracle_cases: Vec<(&Arc<Case>, Oracle)> = cases
        .iter()
        .filter_map(|case| match &case.body {
            Body::Fuzz(oracle) => Some((case, *oracle)),
            _ => None,
        })
        .collect();
    if oracle_cases.is_empty() {
        return None;
    }
    if let Some(reason) = stop_reason {
        let judged = |(case, _): &(&Arc<Case>, Oracle)| (Arc::clone(case), Judgement::error(reason.clone()));
        let judgements = oracle_cases.iter().map(judged).collect();
        return Some(FuzzingResult { judgements, began: None, summary: None });
    }
    let began = Instant::now();
    let reasons: Vec<Option<String>> = inventory.tools.iter().map(|tool| reason_not_to_fuzz(tool, plan)).collect();
    let is_selected = |(tool, reason)| Option::is_none(reason).then_some(tool);
    let selected: Vec<&Tool> = inventory.tools.iter().zip(&reasons).filter_map(is_selected).collect();
    let names: Vec<String> = selected.iter().map(|tool| tool.name.clone()).collect();
    let settings = settings(context, plan, revision, cases, inventory);
    context.emit(&Event::FuzzingStarted {
        revision,
        tools: names.clone(),
        excluded: reasons.iter().flatten().count(),
        calls: match plan.calls {
            CallBudget::ByNeed => None,
            CallBudget::PerTool(calls) => Some(calls),
        },
        time: settings.time(),
        seed: context.plan.seed,
    });
    let environment = Arc::new(RunEnvironment(context.clone()));
    let selected = selected.into_iter().map(selected_tool).collect();
    let mut result = campaign::fuzz(environment, settings, selected).await;
    let mut called = std::mem::take(&mut result.tools).into_iter();
    let report = |(tool, reason): (&Tool, Option<String>)| match reason {
        Some(reason) => Some(campaign::uncalled_tool(&tool.name, reason)),
        None => called.next(),
    };
    let tools: Vec<ToolFuzz> = inventory.tools.iter().zip(reasons).filter_map(report).collect();
    let judged = |(case, oracle)| (Arc::clone(case), judge_oracle(case, oracle, revision, &names, &result, &tools));
    let judgements = oracle_cases.into_iter().map(judged).collect();
    let summary = FuzzSummary {
        seed: context.plan.seed,
        calls: result.calls,
        shrinking: result.shrinking_calls,
        wall_ms: milliseconds(began.elapsed().saturating_sub(result.waited)),
        restarts: result.restarts,
        stopped_early: result.stop_reason,
        saved_calls: result.saved,
        sequences: result.sequences,
        tools,
    };
    Some(FuzzingResult { judgements, began: Some(began), summary: Some(summary) })
}

/// The reason why a tool is not fuzzed, if there is one.
fn reason_not_to_fuzz(tool: &Tool, plan: &FuzzPlan) -> Option<String> {
    if tool.schema.as_deref().is_some_and(ToolSchema::is_unsatisfiable) {
        // That it cannot be called is reported as a finding.
        return None;
    }
    if let Some(reason) = &tool.exclusion {
        return Some(reason.clone());
    }
    let named = |globs: &[globset::GlobMatcher]| globs.iter().any(|glob| glob.is_match(&tool.name));
    if !plan.tools.is_empty() && !named(&plan.tools) {
        return Some("it was not selected (--tool)".to_owned());
    }
    if named(&plan.skip_tools) {
        return Some("it was excluded (--skip-tool)".to_owned());
    }
    if plan.shard.is_some_and(|shard| !shard.holds(&tool.name)) {
        return Some("it belongs to another shard".to_owned());
    }
    match tool.first_call {
        Some((FirstCallOutcome::MissingClientFeature, _)) => Some(
            "it requires something that the client lacks: a capability, a visited page, or a call as a task".to_owned(),
        ),
        Some((FirstCallOutcome::Unanswered, _)) => Some(
            "its first call was not answered within the time of discovery: tools/call/answered judges that".to_owned(),
        ),
        Some((FirstCallOutcome::Served | FirstCallOutcome::Failed | FirstCallOutcome::Ended, _)) => None,
        None => Some("discovery ended before it was called".to_owned()),
    }
}

fn selected_tool(tool: &Tool) -> SelectedTool {
    SelectedTool {
        name: tool.name.clone(),
        definition: tool.definition.clone(),
        schema: tool.schema.clone(),
        working_arguments: tool.arguments.clone().filter(|_| tool.is_served()),
        first_call: tool.first_call.map(|(_, duration)| duration),
        is_read_only: tool.has_annotation("readOnlyHint"),
        is_idempotent: tool.has_annotation("idempotentHint"),
    }
}

fn settings<'p>(
    context: &Context,
    plan: &'p FuzzPlan,
    revision: Revision,
    cases: &[Arc<Case>],
    inventory: &Inventory,
) -> CampaignSettings<'p> {
    let (transport, jobs) = (context.plan.transport(), context.plan.jobs);
    CampaignSettings {
        plan,
        revision,
        transport,
        seed: context.plan.seed,
        timeout: context.answer_times.of(revision).extended(context.plan.timeout, Duration::ZERO),
        jobs: plan.jobs.unwrap_or_else(processors).min(jobs),
        is_single_process: transport == Transport::Http || jobs == 1,
        startup: inventory.startup,
        stateless_meta: match revision.era() {
            Era::Stateless => Some(stateless_meta(&full_capabilities(revision))),
            Era::Handshake => None,
        },
        has_resources: inventory.session_parameters.declares("resources"),
        has_prompts: inventory.session_parameters.declares("prompts"),
        failure_folder: plan
            .regressions
            .as_ref()
            .map(|root| FailureFolder::new(root, &server_name(context, inventory))),
        result_rules: result_rules(cases, revision, inventory),
        known_strings: known_strings(&context.plan.launcher),
    }
}

/// The rules of passive cases about results, if a case checks them in the results of generated calls.
fn result_rules(cases: &[Arc<Case>], revision: Revision, inventory: &Inventory) -> Option<Arc<ResultRules>> {
    let parameters = &inventory.session_parameters;
    let applies = |case: &&Arc<Case>| {
        case.is_about_calls() && case.runs_in(revision) && declares_needed_capabilities(case, parameters)
    };
    let are_checked = cases.iter().any(|case| matches!(case.body, Body::Fuzz(Oracle::ResultRules)));
    let rules: Vec<Arc<Case>> = cases.iter().filter(applies).cloned().collect();
    // The sessions of a campaign declare everything.
    let parameters = SessionParameters { client_capabilities: full_capabilities(revision), ..parameters.clone() };
    are_checked.then(|| Arc::new(ResultRules::new(rules, revision, parameters)))
}

/// The name that the server says it has, or how it is started.
fn server_name(context: &Context, inventory: &Inventory) -> String {
    let opening = inventory.session_parameters.opening.as_ref();
    let pointers = ["/serverInfo/name", "/_meta/io.modelcontextprotocol~1serverInfo/name"];
    let name = pointers.iter().find_map(|pointer| opening?.pointer(pointer)?.as_str());
    name.filter(|name| !name.is_empty()).map_or_else(|| context.plan.reproduce_suffix.clone(), str::to_owned)
}

/// Strings that error messages may contain: the server's command line, environment values and working directory.
fn known_strings(launcher: &Launcher) -> Vec<String> {
    let server = match launcher {
        Launcher::Command(server) => Some(server),
        Launcher::Http(server) => server.command.as_ref(),
        Launcher::Reference(_) | Launcher::InProcess(_) => None,
    };
    let Some(server) = server else { return Vec::new() };
    let folder = server.directory.clone().or_else(|| std::env::current_dir().ok());
    let words = server.started_command().chain(server.started_environment().map(|(_, value)| value));
    let words = words.map(|word| word.to_string_lossy().into_owned());
    words.chain(folder.map(|folder| folder.to_string_lossy().into_owned())).collect()
}

/// Judges a case by the failures of its oracle; `names` are the names of the called tools.
fn judge_oracle(
    case: &Case,
    oracle: Oracle,
    revision: Revision,
    names: &[String],
    result: &CampaignResult,
    tools: &[ToolFuzz],
) -> Judgement {
    let observed: u64 = tools.iter().flat_map(|tool| &tool.calls).map(|calls| calls.count).sum();
    let observed = usize::try_from(observed).unwrap_or(usize::MAX);
    let findings: Vec<Finding> = result
        .failures
        .iter()
        .filter(|found| found.violation.oracle == oracle)
        .filter_map(|found| {
            let mut finding = finding(case, revision, &names[found.tool], &found.violation, &found.exchanges)?;
            finding.verdict = verdict(found);
            finding.count = found.count;
            finding.counterexample = found.counterexample.clone().map(Box::new);
            finding.confirmation = found.confirmation;
            Some(finding)
        })
        .collect();
    let verdict = findings.iter().map(|finding| finding.verdict).reduce(Verdict::join);
    let of_oracle = result.fixed.iter().filter(|fixed| fixed.oracle == oracle);
    let notes: Vec<String> = of_oracle.map(fixed_note).collect();
    let (observed, was_replayed) = (observed + notes.len(), !notes.is_empty());
    let judged = |verdict| Judgement { verdict, reason: None, applies: true, judged_count: observed, notes, findings };
    match verdict {
        Some(verdict) => judged(verdict),
        None if oracle.needs_sequence() && !was_replayed => match &result.sequences {
            Some(sequences) if sequences.sequences > 0 => {
                Judgement { judged_count: sequences.sequences, ..judged(Verdict::Pass) }
            }
            Some(sequences) => Judgement::skip(
                sequences
                    .problem
                    .clone()
                    .unwrap_or_else(|| "no tool was found that reads what another one creates".to_owned()),
            ),
            None => Judgement::skip(NO_SEQUENCES),
        },
        None if observed == 0 => Judgement::skip("no tool was called"),
        None if !result.had_process && matches!(oracle, Oracle::Memory | Oracle::Descriptors) => {
            Judgement::inapplicable("the resource usage of the server's process is not visible")
        }
        // The few responses prove nothing.
        None if result.given_up => Judgement::skip(result.stop_reason.clone().unwrap_or_default()),
        None => judged(Verdict::Pass),
    }
}

/// The verdict of a failure. One that no retry showed again, or that was not retried for want of time, only warns, as for
/// any other case, unless it ended several processes: each of them is an occurrence of its own, while one pause of the
/// machine leaves many calls unanswered.
fn verdict(found: &Failure) -> Verdict {
    let is_seen_again = found.violation.oracle == Oracle::Crash && found.count > 1;
    let is_unconfirmed = found.confirmation.is_some_and(Confirmation::is_unconfirmed) && !is_seen_again;
    if is_unconfirmed { found.violation.verdict.min(Verdict::Warn) } else { found.violation.verdict }
}

/// What the report says of a saved call that no longer fails.
fn fixed_note(fixed: &FixedFailure) -> String {
    let what = if fixed.removed { "was removed" } else { "can be removed (--prune)" };
    format!("{} no longer fails and {what}", fixed.path)
}

/// The run, as a campaign sees it.
struct RunEnvironment(Context);

impl Environment for RunEnvironment {
    fn is_stopping(&self) -> bool {
        self.0.is_stopping()
    }

    fn is_judging_cases(&self) -> bool {
        self.0.is_judging_cases()
    }

    fn wait_for_cases(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.wait_for_cases())
    }

    fn add_judging_time(&self, duration: Duration) {
        self.0.add_judging_time(duration);
    }

    fn open_process(
        &self,
        revision: Revision,
        mirrored: Arc<Mirrored>,
    ) -> BoxFuture<'static, Result<OpenedProcess, String>> {
        Box::pin(open_process(self.0.clone(), revision, mirrored))
    }

    fn host_state(&self) -> BoxFuture<'_, HostState> {
        Box::pin(self.0.host_state())
    }

    fn responder(&self, revision: Revision) -> Responder {
        Responder::new(full_capabilities(revision), ClientResponder::default().answer())
    }
}

/// Starts a process and opens a session with it. Its output meanwhile is judged by the cases. Over HTTP, restarts the
/// server if the client started it.
async fn open_process(context: Context, revision: Revision, mirrored: Arc<Mirrored>) -> Result<OpenedProcess, String> {
    let began = Instant::now();
    let process_id = context.restart_host().await?;
    let mut pipe = connect_unrecorded(&context, revision, &mirrored).map_err(|error| error.to_string())?;
    context.count_launch();
    let limit = context.slow_server.opening_limit(context.plan.startup_timeout);
    let requests = handshake(&mut pipe, revision, limit).await?;
    let process_id = process_id.or_else(|| pipe.process_id());
    Ok(OpenedProcess { pipe, startup: began.elapsed(), requests, process_id })
}

/// Opens a session; returns the requests that the server sent meanwhile.
async fn handshake(pipe: &mut UnrecordedConnection, revision: Revision, limit: Duration) -> Result<Vec<Value>, String> {
    const MAX_ERROR_CHARS: usize = 200;
    const REOPEN_FAILED: &str = "the server could not be opened again";
    let began = Instant::now();
    let capabilities = full_capabilities(revision);
    let (method, params) = match revision.era() {
        Era::Handshake => ("initialize", initialize_params(revision.as_str(), &capabilities)),
        Era::Stateless => ("server/discover", json!({ "_meta": stateless_meta(&capabilities) })),
    };
    pipe.queue(json!({"jsonrpc": "2.0", "id": FIRST_ID, "method": method, "params": params}).to_string().as_bytes());
    let mut requests = Vec::new();
    loop {
        let WaitOutcome::Ready(frame) = pipe.next(limit.saturating_sub(began.elapsed())).await else {
            return Err(pipe
                .end_reason()
                .map_or_else(|| REOPEN_FAILED.to_owned(), |reason| format!("{REOPEN_FAILED}: {}", reason.describe())));
        };
        for message in frame.json().into_iter().flat_map(messages) {
            match MessageKind::of(message) {
                MessageKind::Response { id: Some(id) } if same_id_loosely(&json!(FIRST_ID), id) && !is_lost_id(id) => {
                    if revision.era() == Era::Handshake {
                        // Without a session, what the server says of calls is about the session and not about the calls.
                        if let (Some(error), None) = (message.get("error"), message.get("result")) {
                            let error = excerpt(&error.to_string(), MAX_ERROR_CHARS);
                            return Err(format!("{REOPEN_FAILED}: it answers `{method}` with the error {error}"));
                        }
                        pipe.queue(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
                    }
                    return Ok(requests);
                }
                MessageKind::Request { .. } => requests.push(message.clone()),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::fuzz::OracleViolation;

    #[test]
    fn a_failure_that_no_retry_shows_again_warns() {
        let verdict = |oracle, count, confirmation: Option<(usize, usize)>| {
            let violation = OracleViolation::from_many_calls(oracle, "it fails", "as observed");
            let violation = OracleViolation { verdict: Verdict::Fail, ..violation };
            let confirmation = confirmation.map(|(tried, failed)| Confirmation { tried, failed });
            verdict(&Failure { tool: 0, violation, count, exchanges: Vec::new(), counterexample: None, confirmation })
        };
        assert_eq!(verdict(Oracle::Crash, 1, Some((3, 0))), Verdict::Warn);
        assert_eq!(verdict(Oracle::Hang, 5, Some((3, 0))), Verdict::Warn, "one pause leaves several calls unanswered");
        assert_eq!(verdict(Oracle::Crash, 2, Some((3, 0))), Verdict::Fail, "two processes ended");
        assert_eq!(verdict(Oracle::Crash, 1, Some((3, 1))), Verdict::Fail);
        assert_eq!(verdict(Oracle::Crash, 1, Some((0, 0))), Verdict::Warn, "there was no time for a retry");
        assert_eq!(verdict(Oracle::Crash, 1, None), Verdict::Fail, "nothing can be retried");
    }
}
