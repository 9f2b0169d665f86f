//! Merges the reports of the shards of a run into one report.
//!
//! Each active case ran in one shard. A passive case ran in all of them, over the messages of that shard: its
//! verdicts are joined as within one run, and equal findings of several shards are merged.

use std::collections::BTreeMap;

use super::{Report, Requirements, Target};
use crate::event::{CaseResult, RunSummary, SkipKind, TargetSummary, ToolNote, Waits};
use crate::shard::Shard;
use crate::verdict::Verdict;

/// Why reports cannot be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// No reports were given.
    #[error("no report was given")]
    NoReports,
    /// A report is not from a shard.
    #[error("{0} is not the report of a shard; only reports of runs with --shard K/N can be merged")]
    NotAShard(String),
    /// A report does not match the first one.
    #[error("{file} differs from {first} in {what}; only shards of one run can be merged")]
    Mismatch {
        /// The report.
        file: String,
        /// The first report.
        first: String,
        /// What differs.
        what: &'static str,
    },
    /// Two reports are from the same shard.
    #[error("{file} and {other} are both reports of shard {shard}")]
    DuplicateShard {
        /// A report.
        file: String,
        /// The other.
        other: String,
        /// The shard.
        shard: Shard,
    },
    /// Shards are missing.
    #[error("the report of shard {} is missing", join_shards(.0))]
    MissingShards(Vec<Shard>),
    /// A report is from an aborted run.
    #[error("{0} is the report of an aborted run; run that shard again")]
    Incomplete(String),
}

fn join_shards(shards: &[Shard]) -> String {
    shards.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Merges the reports of the shards of one run, each given with its file name.
///
/// # Errors
/// When they are not exactly the shards of one run.
pub fn merge(reports: Vec<(String, Report)>) -> Result<Report, MergeError> {
    let mut by_shard: BTreeMap<Shard, (String, Report)> = BTreeMap::new();
    let mut first: Option<(String, Report)> = None;
    for (file, report) in reports {
        let shard = report.options.shard.ok_or_else(|| MergeError::NotAShard(file.clone()))?;
        if report.summary.is_none() {
            return Err(MergeError::Incomplete(file));
        }
        let (first_file, first_shared) = first.get_or_insert_with(|| (file.clone(), shared_part(&report)));
        if let Some(what) = difference(first_shared, &shared_part(&report)) {
            return Err(MergeError::Mismatch { file, first: first_file.clone(), what });
        }
        if let Some((other, _)) = by_shard.get(&shard) {
            return Err(MergeError::DuplicateShard { file, other: other.clone(), shard });
        }
        by_shard.insert(shard, (file, report));
    }
    let of = by_shard.keys().next().ok_or(MergeError::NoReports)?.of;
    let missing: Vec<Shard> =
        (1..=of).map(|number| Shard { number, of }).filter(|shard| !by_shard.contains_key(shard)).collect();
    if !missing.is_empty() {
        return Err(MergeError::MissingShards(missing));
    }
    Ok(join_reports(by_shard.into_values().map(|(_, report)| report).collect()))
}

/// The part of a report that all shards of a run share.
fn shared_part(report: &Report) -> Report {
    let mut shared = Report { targets: Vec::new(), summary: None, baseline: None, ..report.clone() };
    shared.started.clear();
    // Shards of one run differ only in their number.
    shared.options.shard = report.options.shard.map(|shard| Shard { number: 1, of: shard.of });
    shared
}

fn difference(a: &Report, b: &Report) -> Option<&'static str> {
    if a.tool != b.tool {
        Some("the version of the tool")
    } else if a.server != b.server {
        Some("the server")
    } else if a.options.shard != b.options.shard {
        Some("the number of shards")
    } else if a.options != b.options {
        Some("the options")
    } else {
        None
    }
}

fn join_reports(reports: Vec<Report>) -> Report {
    let mut reports = reports.into_iter();
    let Some(mut whole) = reports.next() else { return Report::new(String::new(), super::Options::default()) };
    whole.options.shard = None;
    whole.baseline = None;
    for report in reports {
        whole.started = whole.started.min(report.started);
        for target in report.targets {
            match whole.targets.iter_mut().find(|known| known.summary.revision == target.summary.revision) {
                Some(known) => join_target(known, target),
                None => whole.targets.push(target),
            }
        }
        if let (Some(summary), Some(more)) = (&mut whole.summary, report.summary) {
            join_summary(summary, more);
        }
    }
    whole.targets.sort_by_key(|target| target.summary.revision);
    for target in &mut whole.targets {
        target.results.sort_by(|a, b| a.case.cmp(&b.case));
        target.requirements = Requirements::of(&target.results);
        target.summary.totals = target.results.iter().map(|result| result.verdict).collect();
    }
    let totals = whole.results().map(|result| result.verdict).collect();
    if let Some(summary) = &mut whole.summary {
        summary.totals = totals;
    }
    whole
}

fn join_target(known: &mut Target, more: Target) {
    for result in more.results {
        match known.results.iter_mut().find(|one| one.case == result.case) {
            Some(one) => join_result(one, result),
            None => known.results.push(result),
        }
    }
    join_target_summary(&mut known.summary, more.summary);
}

/// The beginning of the ids of the cases that judge the calls of the fuzzer.
const FUZZ_AREA: &str = "fuzz/";

/// Joins the results of a passive case in two shards, or of one that judges the calls of the fuzzer.
fn join_result(known: &mut CaseResult, more: CaseResult) {
    let verdict = known.verdict.join(more.verdict);
    if verdict == more.verdict && known.verdict != verdict {
        known.reason = more.reason;
    }
    // A case that was judged in one shard was not skipped.
    if !matches!(verdict, Verdict::Skip | Verdict::Error) {
        known.reason = None;
    }
    known.skipped = match (verdict, known.skipped, more.skipped) {
        (Verdict::Skip, Some(SkipKind::NotObserved), _) | (Verdict::Skip, _, Some(SkipKind::NotObserved)) => {
            Some(SkipKind::NotObserved)
        }
        (Verdict::Skip, own, other) => own.or(other),
        _ => None,
    };
    known.verdict = verdict;
    known.observed = if known.case.starts_with(FUZZ_AREA) {
        // Each tool is fuzzed in one shard.
        known.observed + more.observed
    } else {
        // Shards observe much of the same traffic, so the counts are not added.
        known.observed.max(more.observed)
    };
    known.duration_ms += more.duration_ms;
    for note in more.notes {
        if !known.notes.contains(&note) {
            known.notes.push(note);
        }
    }
    for finding in more.findings {
        let same = known.findings.iter_mut().find(|one| {
            one.requirement == finding.requirement && one.message == finding.message && one.verdict == finding.verdict
        });
        let Some(same) = same else {
            known.findings.push(finding);
            continue;
        };
        same.count = same.count.max(finding.count);
        for subject in finding.subjects {
            if !same.subjects.contains(&subject) {
                same.subjects.push(subject);
            }
        }
    }
    known.findings.sort_by(|a, b| (&a.requirement, &a.message).cmp(&(&b.requirement, &b.message)));
}

fn join_target_summary(known: &mut TargetSummary, more: TargetSummary) {
    for tool in more.tools {
        match known.tools.iter_mut().find(|one| one.name == tool.name) {
            Some(one) if tool.called && !one.called => *one = tool,
            Some(ToolNote { note, .. }) => *note = note.take().or(tool.note),
            None => known.tools.push(tool),
        }
    }
    known.launches.extend(more.launches);
    known.stderr.push_str(&more.stderr);
    known.stopped_early = known.stopped_early.take().or(more.stopped_early);
    known.notes.extend(more.notes);
    known.server_info = known.server_info.take().or(more.server_info);
    known.capabilities = known.capabilities.take().or(more.capabilities);
    known.fuzz = match (known.fuzz.take(), more.fuzz) {
        (Some(mut fuzz), Some(more)) => {
            fuzz.calls += more.calls;
            fuzz.shrinking += more.shrinking;
            fuzz.wall_ms = fuzz.wall_ms.max(more.wall_ms);
            fuzz.restarts += more.restarts;
            fuzz.stopped_early = fuzz.stopped_early.or(more.stopped_early);
            fuzz.saved_calls = match (fuzz.saved_calls.take(), more.saved_calls) {
                (Some(mut saved), Some(more)) => {
                    saved.saved += more.saved;
                    // Each shard tries all saved calls.
                    saved.fixed = saved.fixed.max(more.fixed);
                    saved.removed += more.removed;
                    saved.problems.extend(more.problems);
                    Some(saved)
                }
                (one, other) => one.or(other),
            };
            // Each tool is fuzzed in one shard; the other shards list it without calls.
            for tool in more.tools {
                match fuzz.tools.iter_mut().find(|one| one.tool == tool.tool) {
                    Some(one) if one.calls.is_empty() => *one = tool,
                    Some(_) => {}
                    None => fuzz.tools.push(tool),
                }
            }
            Some(fuzz)
        }
        (one, other) => one.or(other),
    };
}

fn join_summary(known: &mut RunSummary, more: RunSummary) {
    let (timing, other) = (&mut known.timing, more.timing);
    // Shards run in parallel, each on its own machine.
    timing.wall_ms = timing.wall_ms.max(other.wall_ms);
    timing.launches += other.launches;
    timing.startup_ms = timing.startup_ms.max(other.startup_ms);
    timing.judging_ms += other.judging_ms;
    timing.own_cpu_ms = match (timing.own_cpu_ms, other.own_cpu_ms) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    };
    timing.waits = match (timing.waits, other.waits) {
        (Some(one), Some(other)) => Some(Waits {
            answered: one.answered + other.answered,
            answered_ms: one.answered_ms + other.answered_ms,
            unanswered: one.unanswered + other.unanswered,
            unanswered_ms: one.unanswered_ms + other.unanswered_ms,
            ending_ms: one.ending_ms + other.ending_ms,
        }),
        (one, other) => one.or(other),
    };
    known.problem = known.problem.take().or(more.problem);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;
    use crate::spec::Revision;

    fn shards() -> Vec<(String, Report)> {
        let part = |number: u32| {
            let mut report = example();
            report.options.shard = Some(Shard { number, of: 2 });
            for (at, result) in report.targets.iter_mut().flat_map(|target| {
                let keep = |result: &CaseResult| {
                    result.case.starts_with("stdio") || Shard { number, of: 2 }.holds(&result.case)
                };
                target.results.retain(keep);
                target.results.iter_mut().enumerate()
            }) {
                result.observed += at;
            }
            (format!("{number}.json"), report)
        };
        vec![part(2), part(1)]
    }

    #[test]
    fn merged_shards_have_the_cases_and_totals_of_the_whole_run() {
        let whole = example();
        let merged = merge(shards()).expect("they are shards of one run");
        let cases = |report: &Report| -> Vec<(String, Revision, Verdict, usize)> {
            report.results().map(|r| (r.case.clone(), r.revision, r.verdict, r.findings.len())).collect()
        };
        assert_eq!(cases(&merged), cases(&whole));
        assert_eq!(merged.summary.as_ref().map(|s| s.totals), whole.summary.as_ref().map(|s| s.totals));
        assert_eq!(merged.options.shard, None);
        for (merged, whole) in merged.targets.iter().zip(&whole.targets) {
            assert_eq!(merged.summary.totals, whole.summary.totals);
            assert_eq!(merged.summary.tools, whole.summary.tools);
        }
    }

    #[test]
    fn a_passive_case_is_joined_as_within_one_run() {
        let mut parts = shards();
        let result = |report: &mut Report| -> usize {
            report.targets[0]
                .results
                .iter()
                .position(|result| result.case.starts_with("stdio"))
                .expect("a passive case")
        };
        let at = result(&mut parts[0].1);
        let skipped = &mut parts[0].1.targets[0].results[at];
        (skipped.verdict, skipped.reason) = (Verdict::Skip, Some("nothing was observed".to_owned()));
        let merged = merge(parts).expect("they are shards of one run");
        let joined = merged.results().find(|result| result.case.starts_with("stdio")).expect("it is there");
        assert_eq!((joined.verdict, &joined.reason), (Verdict::Pass, &None));
    }

    #[test]
    fn reports_that_are_not_the_shards_of_one_run_are_rejected() {
        let message = |parts: Vec<(String, Report)>| merge(parts).expect_err("it is rejected").to_string();
        assert_eq!(message(Vec::new()), "no report was given");
        let mut parts = shards();
        parts[0].1.options.shard = None;
        assert!(message(parts).starts_with("2.json is not the report of a shard"));
        let mut parts = shards();
        parts[1].1.server = "other".to_owned();
        assert!(message(parts).starts_with("1.json differs from 2.json in the server"));
        let mut parts = shards();
        parts[1].1.options.seed = 99;
        assert!(message(parts).contains("in the options"));
        assert_eq!(message(shards().split_off(1)), "the report of shard 2/2 is missing");
        let mut parts = shards();
        parts[1] = parts[0].clone();
        assert!(message(parts).ends_with("are both reports of shard 2/2"));
        let mut parts = shards();
        parts[1].1.summary = None;
        assert!(message(parts).starts_with("1.json is the report of an aborted run"));
    }
}
