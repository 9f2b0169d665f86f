//! From the settings and the server to the plan of a run, and to the options that its report repeats.
//!
//! Every file that the settings name is read here, except the baseline, which belongs to the report.

use std::num::NonZero;
use std::path::Path;
use std::time::Duration;

use globset::{Glob, GlobMatcher};

use super::error::JudgeError;
use super::server::Server;
use super::settings::{FuzzRevisions, FuzzSettings, Settings};
use crate::case::{self, Body, Case, SelectedCases, Selection};
use crate::plan::{self, CallBudget, CallPolicy, FuzzPlan, Launcher, Plan, Revisions};
use crate::reference::Fault;
use crate::report::Options;
use crate::shard::Shard;
use crate::shell::quote_shell_words;
use crate::spec::Revision;

/// Reads every case, the built-in ones and those in a folder, sorted by id.
///
/// # Errors
/// When a case file is wrong.
pub fn load_cases(folder: Option<&Path>) -> Result<Vec<Case>, JudgeError> {
    let faults: Vec<&str> = Fault::all().iter().map(|fault| fault.name()).collect();
    case::load(folder, &faults).map_err(JudgeError::Cases)
}

/// The cases that the settings select and that run in a revision that may be judged, with their stimuli.
///
/// # Errors
/// When a pattern is not a glob or matches no case.
pub fn select_cases(settings: &Settings, cases: &[Case]) -> Result<SelectedCases, JudgeError> {
    let selection = Selection { select: settings.select.clone(), skip: settings.skip.clone() };
    let revisions = settings.revisions.possible();
    let selected = selection.with_stimuli(cases)?;
    Ok(selected
        .retain(|case| !case.revisions.intersection(revisions).is_empty())
        .retain(|case| settings.shard.is_none_or(|shard| is_in_shard(shard, case))))
}

/// Whether a case runs in a shard. Passive cases run in each of them, as each sees messages of its own, and so do
/// the fuzz cases, because fuzzing is split by tool.
fn is_in_shard(shard: Shard, case: &Case) -> bool {
    matches!(case.body, Body::Passive { .. } | Body::Fuzz(_)) || shard.holds(&case.id)
}

/// Makes the plan of a run.
///
/// # Errors
/// When a setting cannot be used. Nothing has been started then.
pub fn plan(server: &Server, settings: &Settings) -> Result<Plan, JudgeError> {
    let known = load_cases(settings.cases.as_deref())?;
    let selected = select_cases(settings, &known)?;
    plan_for(server, settings, &known, selected)
}

/// Makes the plan of a run of cases that were loaded and selected before, without hints.
///
/// # Errors
/// When a setting cannot be used. Nothing has been started then.
pub fn plan_of_selected(server: &Server, settings: &Settings, selected: SelectedCases) -> Result<Plan, JudgeError> {
    plan_for(server, &Settings { hints: None, ..settings.clone() }, &[], selected)
}

/// Makes the plan of a run of some of the known cases.
pub(super) fn plan_for(
    server: &Server,
    settings: &Settings,
    known: &[Case],
    selected: SelectedCases,
) -> Result<Plan, JudgeError> {
    let launcher = server.launcher(settings.max_rate)?;
    let hints = match &settings.hints {
        Some(file) => {
            let ids: Vec<&str> = known.iter().map(|case| case.id.as_str()).collect();
            case::load_hints(file, &ids).map_err(JudgeError::Hints)?
        }
        None => Vec::new(),
    };
    Ok(Plan {
        calls: settings.calls.unwrap_or_else(|| default_calls(&launcher)),
        launcher,
        revisions: settings.revisions.clone(),
        cases: selected.cases,
        stimuli: selected.stimuli,
        hints,
        timeout: settings.timeout,
        startup_timeout: settings.startup_timeout,
        shutdown_grace: settings.shutdown_grace,
        jobs: settings.jobs.map_or_else(plan::default_jobs, NonZero::get),
        adapts_jobs: settings.jobs.is_none(),
        seed: settings.seed,
        fuzz: settings.fuzz.as_ref().map(|fuzz| fuzz_plan(settings, fuzz)).transpose()?,
        retries: settings.retries.into(),
        show_wire: false,
        save_transcript: false,
        reproduce_prefix: reproduce_prefix(server, settings),
        reproduce_suffix: server.reproduce_suffix(),
    })
}

/// A server on another machine may be in production, so only tools annotated as read-only are called there.
fn default_calls(launcher: &Launcher) -> CallPolicy {
    match launcher {
        Launcher::Http(server) if !server.endpoint.is_loopback() => CallPolicy::ReadOnly,
        Launcher::Http(_) | Launcher::Command(_) | Launcher::Reference(_) | Launcher::InProcess(_) => {
            CallPolicy::NonDestructive
        }
    }
}

fn fuzz_plan(settings: &Settings, fuzz: &FuzzSettings) -> Result<FuzzPlan, JudgeError> {
    Ok(FuzzPlan {
        calls: fuzz.calls.map_or(CallBudget::ByNeed, CallBudget::PerTool),
        time: fuzz.time,
        max_rate: settings.max_rate.map(|rate| rate.get().into()),
        in_flight: fuzz.in_flight.map(NonZero::get),
        jobs: settings.jobs.map(NonZero::get),
        tools: globs(&fuzz.tools)?,
        skip_tools: globs(&fuzz.skip_tools)?,
        seeds: fuzz.seed_values.clone(),
        regressions: fuzz.regressions.clone(),
        prune: fuzz.prune,
        sequences: fuzz.sequences,
        replay: None,
        every_revision: fuzz.revisions == FuzzRevisions::All,
        shard: settings.shard,
    })
}

fn globs(patterns: &[String]) -> Result<Vec<GlobMatcher>, JudgeError> {
    let glob = |pattern: &String| match Glob::new(pattern) {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(error) => Err(JudgeError::ToolPattern { pattern: pattern.clone(), reason: error.to_string() }),
    };
    patterns.iter().map(glob).collect()
}

/// The start of the command that reproduces a finding: the program, and the options that change what a case sees.
fn reproduce_prefix(server: &Server, settings: &Settings) -> String {
    let default = Settings::default();
    let mut words = vec!["mcp-conformance".to_owned()];
    words.extend(settings.cases.iter().map(|folder| format!("--cases {}", quote_shell_words([folder]))));
    match settings.calls {
        Some(CallPolicy::Destructive) => words.push("--call-destructive".to_owned()),
        Some(CallPolicy::ReadOnly) => words.push("--safe".to_owned()),
        // No option asks for what is usual.
        Some(CallPolicy::NonDestructive) | None => {}
    }
    words.extend(settings.hints.iter().map(|file| format!("--hints {}", quote_shell_words([file]))));
    if settings.seed != default.seed {
        words.push(format!("--seed {}", settings.seed));
    }
    if settings.timeout != default.timeout {
        words.push(format!("--timeout {}", compact(settings.timeout)));
    }
    if settings.startup_timeout != default.startup_timeout {
        words.push(format!("--startup-timeout {}", compact(settings.startup_timeout)));
    }
    words.extend(server.reproduce_options());
    words.join(" ")
}

/// A duration as one word.
fn compact(duration: Duration) -> String {
    humantime::format_duration(duration).to_string().replace(' ', "")
}

/// The settings as the report repeats them; `calls` is what the plan made of them.
#[must_use]
pub fn report_options(settings: &Settings, calls: CallPolicy) -> Options {
    Options {
        revisions: match &settings.revisions {
            Revisions::Supported => Vec::new(),
            Revisions::Latest => vec!["latest".to_owned()],
            Revisions::All => vec!["all".to_owned()],
            Revisions::Named(named) => named.iter().map(Revision::to_string).collect(),
        },
        select: settings.select.clone(),
        skip: settings.skip.clone(),
        fail_on: settings.fail_on,
        calls: match calls {
            CallPolicy::ReadOnly => "read-only",
            CallPolicy::NonDestructive => "non-destructive",
            CallPolicy::Destructive => "destructive",
        }
        .to_owned(),
        hints: settings.hints.as_ref().map(|file| file.to_string_lossy().into_owned()),
        seed: settings.seed,
        timeout_ms: u64::try_from(settings.timeout.as_millis()).unwrap_or(u64::MAX),
        retries: settings.retries.into(),
        shard: settings.shard,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn prefix(server: impl Into<Server>, settings: &Settings) -> String {
        reproduce_prefix(&server.into(), settings)
    }

    #[test]
    fn the_command_repeats_the_settings_that_matter_to_a_finding_and_no_others() {
        let unimportant = Settings {
            jobs: NonZero::new(4),
            fail_on: crate::report::FailOn::Should,
            retries: 3,
            baseline: Some(PathBuf::from("b")),
            ..Settings::default()
        };
        assert_eq!(prefix(Server::command("s"), &unimportant), "mcp-conformance");
        let important = Settings {
            calls: Some(CallPolicy::ReadOnly),
            seed: 9,
            timeout: Duration::from_millis(1_500),
            cases: Some(PathBuf::from("mine")),
            hints: Some(PathBuf::from("h")),
            ..Settings::default()
        };
        assert_eq!(
            prefix(Server::command("s").current_dir("a b"), &important),
            "mcp-conformance --cases mine --safe --hints h --seed 9 --timeout 1s500ms --cwd 'a b'"
        );
    }

    #[test]
    fn tools_of_a_server_on_another_machine_are_called_only_if_they_are_read_only() {
        let calls = |url: &str, calls| {
            let settings = Settings { calls, select: vec!["tools/list/*".to_owned()], ..Settings::default() };
            plan(&Server::http(url).into(), &settings).expect("a plan").calls
        };
        assert_eq!(calls("http://127.0.0.1:1/mcp", None), CallPolicy::NonDestructive);
        assert_eq!(calls("http://example.com/mcp", None), CallPolicy::ReadOnly);
        assert_eq!(calls("http://example.com/mcp", Some(CallPolicy::Destructive)), CallPolicy::Destructive);
    }

    #[test]
    fn the_default_plan_has_the_default_settings() {
        let plan = plan(&Server::reference([]), &Settings::default()).expect("a plan");
        let fuzz = plan.fuzz.expect("fuzzing is on");
        assert_eq!((plan.timeout, plan.startup_timeout), (Duration::from_secs(5), Duration::from_secs(30)));
        assert_eq!((plan.retries, plan.seed, fuzz.calls), (1, 0, CallBudget::ByNeed));
        assert_eq!(fuzz.regressions, Some(PathBuf::from(".mcp-conformance")));
    }

    #[test]
    fn a_pattern_for_tools_that_is_not_a_glob_is_an_error() {
        let fuzz = FuzzSettings { tools: vec!["a[".to_owned()], ..FuzzSettings::default() };
        let settings = Settings { fuzz: Some(fuzz), ..Settings::default() };
        let error = plan(&Server::reference([]), &settings).expect_err("an error").to_string();
        assert!(error.contains("`a[`"), "{error}");
    }
}
