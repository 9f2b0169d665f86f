//! The end of the report: how much was judged, and what to do next.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::page::{Page, write_hanging};
use crate::report::conclusion::CaseCounts;
use crate::report::{Report, UnjudgedRequirements};
use crate::verdict::{Finding, Verdict};

/// The number of next actions shown.
const MAX_ACTIONS: usize = 3;

/// Writes how many requirements were judged and how many tools were called.
pub(super) fn write_extent(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Extent { judged, not_shown, not_judged, tools, called } = Extent::of(report);
    if judged + not_shown + not_judged == 0 {
        return Ok(());
    }
    let mut parts = vec![format!("{} judged", counted(judged, "requirement", "requirements"))];
    if not_shown > 0 {
        parts.push(format!("{not_shown} not shown by this server"));
    }
    if not_judged > 0 {
        parts.push(format!("{not_judged} could not be judged"));
    }
    if tools > 0 {
        parts.push(format!("{called} of {} called", counted(tools, "tool", "tools")));
    }
    let text = parts.join(", ");
    page.write_faint(0, &text, out)
}

/// Writes the most useful next actions.
pub(super) fn write_next(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let actions = actions(page, report);
    if actions.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    page.write_heading("Next", out)?;
    for action in actions.iter().take(MAX_ACTIONS) {
        write_hanging(action, page.room(4), out)?;
    }
    Ok(())
}

fn actions(page: &Page, report: &Report) -> Vec<String> {
    let CaseCounts { totals, .. } = CaseCounts::of(report);
    let Extent { not_shown, tools, called, .. } = Extent::of(report);
    let mut actions = Vec::new();
    if totals.fail + totals.warn > 0 && !page.is_verbose() {
        actions.push("every message of every finding: -v, or --report html=report.html for a browser".to_owned());
    }
    // What a recording does not show, no option adds.
    let is_recording = report.options.is_of_recording();
    if not_shown > 0 && report.options.hints.is_none() && !is_recording {
        actions.push(format!(
            "show {}: `mcp-conformance hints --output hints.jsonc -- SERVER` finds requests that do, and --hints \
             hints.jsonc sends them",
            counted(not_shown, "more requirement", "more requirements")
        ));
    }
    if tools > called && report.options.calls != "destructive" && !is_recording {
        actions.push(format!(
            "call {}: --call-destructive calls all, on data that may be lost; above is why {} not called",
            counted(tools - called, "more tool", "more tools"),
            if tools - called == 1 { "it was" } else { "they were" }
        ));
    }
    let is_of_sdk =
        |finding: &Finding| finding.sdk.is_some() && finding.accepted.is_none() && finding.verdict == Verdict::Fail;
    if report.results().flat_map(|result| &result.findings).any(is_of_sdk) {
        actions.insert(0, "gate on your own code only: --accept sdk leaves out what the SDK causes".to_owned());
    }
    if totals.fail > 0 && report.baseline.is_none() {
        actions.push("gate on new findings only: --baseline known.jsonc --update-baseline accepts today's".to_owned());
    }
    actions
}

/// How much of the requirements and of the server was covered, over all revisions.
struct Extent {
    judged: usize,
    not_shown: usize,
    not_judged: usize,
    tools: usize,
    called: usize,
}

impl Extent {
    fn of(report: &Report) -> Self {
        let ids = |open: &'_ [UnjudgedRequirements]| -> Vec<String> {
            open.iter().flat_map(|one| one.requirements.iter().cloned()).collect()
        };
        let (mut judged, mut not_shown, mut not_judged) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let (mut tools, mut called) = (BTreeSet::new(), BTreeSet::new());
        for target in &report.targets {
            judged.extend(target.requirements.judged.iter().cloned());
            not_shown.extend(ids(&target.requirements.not_observed));
            not_judged.extend(ids(&target.requirements.not_judged));
            for tool in &target.summary.tools {
                tools.insert(&tool.name);
                if tool.called {
                    called.insert(&tool.name);
                }
            }
        }
        // What one revision shows needs no hint in another.
        not_shown.retain(|id| !judged.contains(id));
        not_judged.retain(|id| !judged.contains(id) && !not_shown.contains(id));
        Self {
            judged: judged.len(),
            not_shown: not_shown.len(),
            not_judged: not_judged.len(),
            tools: tools.len(),
            called: called.len(),
        }
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
