//! Tools that were called, but that no generated call could satisfy.

use super::Report;
use super::visible::excerpt;
use crate::event::{FuzzSummary, Untested};

/// The maximum length of a name, and of a reason or a remedy.
const MAX_NAME_CHARS: usize = 60;
const MAX_CHARS: usize = 300;

/// The untested tools of all revisions, each with its name.
pub(super) fn untested(report: &Report) -> impl Iterator<Item = (&str, &Untested)> {
    report.targets.iter().filter_map(|target| target.summary.fuzz.as_ref()).flat_map(of_summary)
}

/// The untested tools of one revision.
fn of_summary(fuzz: &FuzzSummary) -> impl Iterator<Item = (&str, &Untested)> {
    fuzz.tools.iter().filter_map(|tool| Some((tool.tool.as_str(), tool.untested.as_ref()?)))
}

/// What a report says of each untested tool of one revision: one line for those with the same reason and remedy.
pub(super) fn lines(fuzz: &FuzzSummary) -> Vec<String> {
    let mut groups: Vec<(&Untested, Vec<String>)> = Vec::new();
    for (tool, untested) in of_summary(fuzz) {
        let name = excerpt(tool, MAX_NAME_CHARS, 0);
        match groups.iter_mut().find(|(known, _)| *known == untested) {
            Some((_, names)) => names.push(name),
            None => groups.push((untested, vec![name])),
        }
    }
    let line = |(untested, names): (&Untested, Vec<String>)| {
        let [reason, remedy] = [&untested.reason, &untested.remedy].map(|text| excerpt(text, MAX_CHARS, 0));
        format!("{}: {reason}. To test it, {remedy}.", names.join(", "))
    };
    groups.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Conclusion, FailOn, example, verdict_line};

    #[test]
    fn untested_tools_fail_a_run_only_on_request() {
        let mut report = example();
        report.baseline = None;
        for target in &mut report.targets {
            target.results.retain(|result| result.verdict == crate::verdict::Verdict::Pass);
        }
        report.summary.as_mut().expect("a summary").problem = None;
        assert!(untested(&report).next().is_some(), "the example has an untested tool");
        for (fail_on, expected) in [
            (FailOn::Must, Conclusion::Passed),
            (FailOn::Should, Conclusion::Passed),
            (FailOn::Never, Conclusion::Passed),
            (FailOn::Untested, Conclusion::Failed),
        ] {
            report.options.fail_on = fail_on;
            assert_eq!(Conclusion::of(&report), expected, "{fail_on:?}");
        }
        assert!(verdict_line(&report).contains("1 tool was not tested"), "{}", verdict_line(&report));
        for tool in
            report.targets.iter_mut().filter_map(|target| target.summary.fuzz.as_mut()).flat_map(|fuzz| &mut fuzz.tools)
        {
            tool.untested = None;
        }
        assert_eq!(Conclusion::of(&report), Conclusion::Passed);
    }

    #[test]
    fn tools_with_the_same_reason_share_a_line() {
        let mut report = example();
        let fuzz = report.targets.iter_mut().find_map(|target| target.summary.fuzz.as_mut()).expect("it was fuzzed");
        let one = fuzz.tools.iter().find(|tool| tool.untested.is_some()).expect("an untested tool").clone();
        fuzz.tools.push(crate::event::ToolFuzz { tool: "other".to_owned(), ..one });
        let lines = lines(fuzz);
        assert!(matches!(lines.as_slice(), [line] if line.contains(", other: none of its")), "{lines:?}");
    }
}
