//! Views of the case results: the matrix of areas and revisions, and the tables with all cases.

use std::collections::BTreeMap;

use super::display::{area, counts, describe_counts, display, fragment, revisions, shares, slug};
use super::finding::Findings;
use crate::event::CaseResult;
use crate::report::Report;
use crate::report::layout::format_ms;
use crate::spec::Revision;
use crate::verdict::{Totals, Verdict};

/// A matrix of areas and revisions.
#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) revisions: Vec<Column>,
    pub(super) rows: Vec<(String, String, Vec<Cell>)>,
}

/// A revision with the totals of all areas.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) revision: &'static str,
    pub(super) fragment: String,
    pub(super) total: Cell,
}

/// The verdicts of an area in a revision.
#[derive(Debug)]
pub(super) struct Cell {
    /// The most severe verdict, or `none`.
    pub(super) tone: &'static str,
    /// The count of the most severe verdict.
    pub(super) main: String,
    /// The counts of all verdicts.
    pub(super) all: String,
    pub(super) shares: Vec<(&'static str, usize, usize)>,
    pub(super) fragment: String,
}

impl Cell {
    fn of(totals: Totals, fragment: String) -> Self {
        let parts = counts(totals);
        let worst = [Verdict::Fail, Verdict::Warn, Verdict::Error].into_iter().find(|one| totals.of(*one) > 0);
        let (tone, main) = match worst {
            Some(verdict) => (verdict.as_str(), format!("{} {}", totals.of(verdict), verdict.as_str())),
            None if totals.pass > 0 => ("pass", format!("{} pass", totals.pass)),
            None if totals.skip > 0 => ("skip", format!("{} skip", totals.skip)),
            None => ("none", "–".to_owned()),
        };
        Self { tone, main, all: describe_counts(totals), shares: shares(&parts), fragment }
    }
}

/// The cases of an area.
#[derive(Debug)]
pub(super) struct Area {
    pub(super) name: String,
    pub(super) slug: String,
    pub(super) counts: Vec<(&'static str, usize)>,
    pub(super) cases: Vec<Case>,
}

/// A case in all revisions.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) id: String,
    pub(super) title: String,
    /// Its verdict in each revision, in the order of the columns.
    pub(super) marks: Vec<Option<StepId>>,
    /// Reasons and notes, with the revisions to which they apply.
    pub(super) reasons: Vec<Reason>,
    /// The findings: requirement and id.
    pub(super) findings: Vec<(String, String)>,
    /// The levels of its findings, separated by spaces.
    pub(super) levels: String,
    /// The indices of the tools that its findings are about, separated by spaces.
    pub(super) tools: String,
}

/// A verdict in one revision.
#[derive(Debug)]
pub(super) struct StepId {
    pub(super) verdict: &'static str,
    pub(super) detail: String,
}

/// A reason or note about a case.
#[derive(Debug)]
pub(super) struct Reason {
    /// `skip`, `error` or `note`.
    pub(super) kind: &'static str,
    /// The revisions, unless it applies to all.
    pub(super) revisions: Option<String>,
    pub(super) text: String,
}

/// Counts verdicts by area and revision.
pub(super) fn matrix(report: &Report) -> Matrix {
    let mut by_area: BTreeMap<&str, Vec<Totals>> = BTreeMap::new();
    let mut whole = vec![Totals::default(); report.targets.len()];
    for (at, target) in report.targets.iter().enumerate() {
        for result in &target.results {
            let row = by_area.entry(area(&result.case)).or_insert_with(|| vec![Totals::default(); whole.len()]);
            row[at].add(result.verdict);
            whole[at].add(result.verdict);
        }
    }
    let names: Vec<&'static str> = report.targets.iter().map(|target| target.summary.revision.as_str()).collect();
    let rows = by_area
        .into_iter()
        .map(|(area, totals)| {
            let area = display(area);
            let cells = totals
                .into_iter()
                .zip(&names)
                .map(|(totals, name)| Cell::of(totals, fragment(&[("area", &area), ("revision", name)])))
                .collect();
            let all = fragment(&[("area", &area)]);
            (area, all, cells)
        })
        .collect();
    let revisions = names
        .iter()
        .zip(whole)
        .map(|(name, totals)| {
            let fragment = fragment(&[("revision", name)]);
            Column { revision: name, fragment: fragment.clone(), total: Cell::of(totals, fragment) }
        })
        .collect();
    Matrix { revisions, rows }
}

/// All cases, by area and id.
pub(super) fn areas(report: &Report, findings: &Findings) -> Vec<Area> {
    let of: Vec<Revision> = report.targets.iter().map(|target| target.summary.revision).collect();
    let tools: BTreeMap<&str, &str> =
        findings.all().map(|finding| (finding.slug.as_str(), finding.tools.as_str())).collect();
    let mut by_case: BTreeMap<&str, Vec<Option<&CaseResult>>> = BTreeMap::new();
    for (at, target) in report.targets.iter().enumerate() {
        for result in &target.results {
            by_case.entry(&result.case).or_insert_with(|| vec![None; of.len()])[at] = Some(result);
        }
    }
    let mut areas: Vec<Area> = Vec::new();
    let mut totals: Vec<Totals> = Vec::new();
    for (id, results) in by_case {
        let name = display(area(id));
        if areas.last().is_none_or(|last| last.name != name) {
            let slug = format!("area-{}", slug(&name));
            areas.push(Area { name, slug, counts: Vec::new(), cases: Vec::new() });
            totals.push(Totals::default());
        }
        let (Some(area), Some(totals)) = (areas.last_mut(), totals.last_mut()) else { continue };
        for result in results.iter().flatten() {
            totals.add(result.verdict);
        }
        area.counts = counts(*totals);
        area.cases.push(Case::of(id, &results, of.len(), findings, &tools));
    }
    areas
}

impl Case {
    fn of(
        id: &str,
        results: &[Option<&CaseResult>],
        columns: usize,
        findings: &Findings,
        tools: &BTreeMap<&str, &str>,
    ) -> Self {
        let mut reasons: Vec<(&'static str, &str, Vec<Revision>)> = Vec::new();
        let mut links: Vec<(String, String)> = Vec::new();
        let mut levels: Vec<String> = Vec::new();
        let mut about: Vec<&str> = Vec::new();
        for result in results.iter().flatten() {
            let why = match result.verdict {
                Verdict::Skip | Verdict::Error => {
                    Some((result.verdict.as_str(), result.reason.as_deref().unwrap_or("no reason given")))
                }
                Verdict::Pass | Verdict::Warn | Verdict::Fail => {
                    result.reason.as_deref().map(|reason| ("note", reason))
                }
            };
            for (kind, text) in why.into_iter().chain(result.notes.iter().map(|note| ("note", note.as_str()))) {
                match reasons.iter_mut().find(|(known, text_so_far, _)| *known == kind && *text_so_far == text) {
                    Some((_, _, of)) => of.push(result.revision),
                    None => reasons.push((kind, text, vec![result.revision])),
                }
            }
            for finding in &result.findings {
                let level = finding.level.to_string();
                if !levels.contains(&level) {
                    levels.push(level);
                }
                let Some(slug) = findings.slug(id, finding) else { continue };
                about.extend(tools.get(slug).iter().flat_map(|numbers| numbers.split(' ')));
                if !links.iter().any(|(_, known)| known == slug) {
                    links.push((display(&finding.requirement), slug.to_owned()));
                }
            }
        }
        about.sort_unstable();
        about.dedup();
        Self {
            id: display(id),
            title: display(results.iter().flatten().next_back().map_or("", |result| result.title.as_str())),
            marks: results.iter().map(|result| result.map(StepId::of)).collect(),
            reasons: reasons
                .into_iter()
                .map(|(kind, text, of)| Reason {
                    kind,
                    revisions: (of.len() < columns).then(|| revisions(&of)),
                    text: display(text),
                })
                .collect(),
            findings: links,
            levels: levels.join(" "),
            tools: about.join(" ").trim().to_owned(),
        }
    }
}

impl StepId {
    fn of(result: &CaseResult) -> Self {
        let observed = match result.observed {
            0 => "nothing observed".to_owned(),
            1 => "1 observation".to_owned(),
            observed => format!("{observed} observations"),
        };
        let duration =
            if result.duration_ms > 0.0 { format!(", took {}", format_ms(result.duration_ms)) } else { String::new() };
        Self { verdict: result.verdict.as_str(), detail: format!("{observed}{duration}") }
    }
}
