//! From the options of a command line to the settings of a run.

use std::num::NonZero;

use mcp_conformance::spec::Revision;
use mcp_conformance::{CallPolicy, FuzzSettings, Revisions, Settings};

use super::args::{CallArgs, FuzzArgs, JudgeArgs, LookArgs, NO_REGRESSIONS};
use super::error::CliError;
use super::values::{FuzzCalls, RevisionChoice};

impl JudgeArgs {
    /// The settings that the options describe.
    pub(super) fn settings(&self) -> Result<Settings, CliError> {
        let Self { selection, run, .. } = self;
        Ok(Settings {
            revisions: revisions(&selection.revision)?,
            select: selection.select.clone(),
            skip: selection.skip.clone(),
            cases: selection.cases.clone(),
            shard: selection.shard,
            baseline: self.baseline.baseline.clone(),
            fail_on: self.threshold.fail_on(),
            accept: self.threshold.accept.map(Into::into),
            calls: run.calls.calls(),
            hints: run.hints.clone(),
            seed: run.seed,
            retries: run.retries,
            timeout: run.timeout.0,
            startup_timeout: run.startup_timeout.0,
            jobs: run.jobs.and_then(|jobs| NonZero::new(jobs.into())),
            max_rate: run.max_rate.and_then(NonZero::new),
            fuzz: self.fuzzing.settings(),
            ..Settings::default()
        })
    }
}

impl LookArgs {
    /// The settings that the options describe.
    pub(super) fn settings(&self) -> Result<Settings, CliError> {
        Ok(Settings {
            revisions: revisions(&self.revision)?,
            calls: self.calls.calls(),
            timeout: self.timeout.0,
            startup_timeout: self.startup_timeout.0,
            fuzz: None,
            ..Settings::default()
        })
    }
}

impl CallArgs {
    fn calls(&self) -> Option<CallPolicy> {
        match (self.safe, self.call_destructive) {
            (_, true) => Some(CallPolicy::Destructive),
            (true, false) => Some(CallPolicy::ReadOnly),
            (false, false) => None,
        }
    }
}

impl FuzzArgs {
    fn settings(&self) -> Option<FuzzSettings> {
        let calls = match self.fuzz {
            FuzzCalls::Off => return None,
            FuzzCalls::Auto => None,
            FuzzCalls::PerTool(calls) => Some(calls),
        };
        Some(FuzzSettings {
            calls,
            time: self.fuzz_time.map(|time| time.0),
            revisions: self.fuzz_revisions.into(),
            tools: self.tool.clone(),
            skip_tools: self.skip_tool.clone(),
            seed_values: self.seed_value.clone(),
            in_flight: self.in_flight.and_then(|calls| NonZero::new(calls.into())),
            regressions: (self.regressions.as_os_str() != NO_REGRESSIONS).then(|| self.regressions.clone()),
            prune: self.prune,
            sequences: self.sequences,
        })
    }
}

/// The revisions to judge. `latest` and `all` are choices of their own.
fn revisions(choices: &[RevisionChoice]) -> Result<Revisions, CliError> {
    match choices {
        [] => Ok(Settings::default().revisions),
        [RevisionChoice::Latest] => Ok(Revisions::Latest),
        [RevisionChoice::All] => Ok(Revisions::All),
        several => {
            let named: Vec<Revision> = several
                .iter()
                .map(|choice| match choice {
                    RevisionChoice::Named(revision) => Ok(*revision),
                    RevisionChoice::Latest => Err(CliError::CombinedRevision("latest")),
                    RevisionChoice::All => Err(CliError::CombinedRevision("all")),
                })
                .collect::<Result<_, _>>()?;
            Ok(named.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::Args;

    #[test]
    fn without_options_the_settings_are_the_defaults() {
        let args = Args::try_parse_from(["mcp-conformance", "./server"]).expect("it parses");
        assert_eq!(args.judge.settings().expect("valid settings"), Settings::default());
    }

    #[test]
    fn latest_and_all_cannot_be_combined_with_other_revisions() {
        use RevisionChoice::{All, Latest, Named};
        let [old, new] = [Revision::V2024_11_05, Revision::V2025_11_25];
        assert_eq!(revisions(&[]).expect("valid"), Revisions::Supported);
        assert_eq!(revisions(&[Latest]).expect("valid"), Revisions::Latest);
        assert_eq!(revisions(&[All]).expect("valid"), Revisions::All);
        assert_eq!(revisions(&[Named(new), Named(old), Named(new)]).expect("valid"), Revisions::Named(vec![old, new]));
        assert!(matches!(revisions(&[Latest, Named(old)]), Err(CliError::CombinedRevision("latest"))));
        assert!(matches!(revisions(&[Named(old), All]), Err(CliError::CombinedRevision("all"))));
    }
}
