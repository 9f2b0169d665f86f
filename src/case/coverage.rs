//! Which requirements of the catalogue the cases check, and why no case checks the others.
//!
//! Owns the list of reasons (`cases/requirements/reasons.json`) and the counting. It does not depend on the results of a
//! run: a requirement is covered by a case whether or not the case applies to a server.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::model::Case;
use crate::spec::{Catalogue, Level, Requirement, Revision};

/// Why no case checks a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// Nothing that the server writes shows whether it complies.
    NotObservable,
    /// It permits something, so that nothing violates it.
    Permission,
}

impl Reason {
    /// Every reason, in the order in which they are counted.
    pub const ALL: [Self; 2] = [Self::NotObservable, Self::Permission];

    /// Its name in the list of reasons and in every report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotObservable => "not-observable",
            Self::Permission => "permission",
        }
    }

    /// What it means, in a sentence.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::NotObservable => "Nothing that the server writes shows whether it complies.",
            Self::Permission => "It permits something, so that nothing violates it.",
        }
    }
}

/// The file of reasons.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Reasons {
    /// What the file is for.
    #[serde(rename = "$comment")]
    _comment: IgnoredAny,
    /// The requirements, each with the reason in detail.
    not_observable: BTreeMap<String, ReasonDetail>,
    permission: Vec<String>,
}

/// What a user reads of a requirement that no case checks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasonDetail {
    /// Why no case checks it, and what it would take.
    pub reason: String,
    /// Why it matters.
    pub why: String,
    /// How to fix a server that violates it.
    pub fix: String,
}

impl Reasons {
    /// The embedded list, read once.
    fn embedded() -> &'static Self {
        static REASONS: OnceLock<Reasons> = OnceLock::new();
        const TEXT: &str = include_str!("../../cases/requirements/reasons.json");
        REASONS.get_or_init(|| serde_json::from_str(TEXT).expect("the embedded reasons are tested"))
    }

    fn of(&self, reason: Reason) -> Vec<&str> {
        match reason {
            Reason::NotObservable => self.not_observable.keys().map(String::as_str).collect(),
            Reason::Permission => self.permission.iter().map(String::as_str).collect(),
        }
    }
}

/// The requirements under each reason, in the order of the file.
///
/// # Panics
/// When the embedded data is damaged, which a test rules out.
pub fn reasons() -> impl Iterator<Item = (Reason, &'static str)> {
    let under = |reason| Reasons::embedded().of(reason).into_iter().map(move |id| (reason, id));
    Reason::ALL.into_iter().flat_map(under)
}

/// Why no case checks this requirement, why it matters and how to fix a violation, if nothing that a server writes shows
/// whether it complies.
///
/// # Panics
/// When the embedded data is damaged, which a test rules out.
#[must_use]
pub fn not_observable(id: &str) -> Option<&'static ReasonDetail> {
    Reasons::embedded().not_observable.get(id)
}

/// Why no case checks this requirement, in detail, if it has a reason.
///
/// # Panics
/// When the embedded data is damaged, which a test rules out.
#[must_use]
pub fn reason_in_detail(id: &str) -> Option<&'static str> {
    let reasons = Reasons::embedded();
    let is_permission = || reasons.permission.iter().any(|known| known == id);
    let in_detail = reasons.not_observable.get(id).map(|detail| detail.reason.as_str());
    in_detail.or_else(|| is_permission().then(|| Reason::Permission.meaning()))
}

/// What covers a requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<'a> {
    /// These cases, by id: never none.
    Cases(Vec<&'a str>),
    /// No case, for this reason.
    Reason(Reason),
    /// No case yet.
    None,
}

/// A requirement and what covers it.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The requirement.
    pub requirement: &'static Requirement,
    /// What covers it.
    pub answer: Answer<'a>,
}

/// How many requirements there are, and what covers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// All of them.
    pub all: usize,
    /// Those that a case checks.
    pub by_case: usize,
    /// Those that have a reason.
    pub by_reason: usize,
}

impl Count {
    /// Those without a case or a reason.
    #[must_use]
    pub const fn unanswered(self) -> usize {
        self.all - self.by_case - self.by_reason
    }

    fn add(&mut self, answer: &Answer<'_>) {
        self.all += 1;
        match answer {
            Answer::Cases(_) => self.by_case += 1,
            Answer::Reason(_) => self.by_reason += 1,
            Answer::None => {}
        }
    }
}

/// The counts of some requirements, level by level.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Of every level.
    pub total: Count,
    levels: BTreeMap<Level, Count>,
}

impl Counts {
    /// Of one level.
    #[must_use]
    pub fn of(&self, level: Level) -> Count {
        self.levels.get(&level).copied().unwrap_or_default()
    }

    fn add(&mut self, entry: &Entry<'_>) {
        self.total.add(&entry.answer);
        self.levels.entry(entry.requirement.level).or_default().add(&entry.answer);
    }
}

/// What covers every requirement of the catalogue.
#[derive(Debug, Clone)]
pub struct Coverage<'a> {
    /// Each requirement, by area and then by id.
    pub entries: Vec<Entry<'a>>,
}

impl<'a> Coverage<'a> {
    /// The coverage by these cases and the reasons.
    ///
    /// # Panics
    /// When the embedded data is damaged, which a test rules out.
    #[must_use]
    pub fn of(cases: &'a [Case]) -> Self {
        Self::of_each(cases.iter())
    }

    /// The coverage by these shared cases and the reasons.
    ///
    /// # Panics
    /// When the embedded data is damaged, which a test rules out.
    #[must_use]
    pub fn of_shared(cases: &'a [Arc<Case>]) -> Self {
        Self::of_each(cases.iter().map(Arc::as_ref))
    }

    fn of_each(cases: impl Iterator<Item = &'a Case>) -> Self {
        let mut citing: BTreeMap<&str, Vec<&'a str>> = BTreeMap::new();
        for case in cases {
            for requirement in &case.requirements {
                citing.entry(requirement.id.as_str()).or_default().push(&case.id);
            }
        }
        let why: BTreeMap<&str, Reason> = reasons().map(|(reason, id)| (id, reason)).collect();
        let answer = |id: &str| match (citing.remove(id), why.get(id)) {
            (Some(cases), _) => Answer::Cases(cases),
            (None, Some(reason)) => Answer::Reason(*reason),
            (None, None) => Answer::None,
        };
        Self::answered(answer)
    }

    fn answered(mut answer: impl FnMut(&str) -> Answer<'a>) -> Self {
        let mut entries: Vec<Entry<'a>> = Catalogue::embedded()
            .iter()
            .map(|requirement| Entry { requirement, answer: answer(&requirement.id) })
            .collect();
        entries.sort_by(|a, b| (&a.requirement.area, &a.requirement.id).cmp(&(&b.requirement.area, &b.requirement.id)));
        Self { entries }
    }

    /// The counts of each area, by name.
    #[must_use]
    pub fn areas(&self) -> BTreeMap<&'static str, Counts> {
        let mut areas: BTreeMap<&'static str, Counts> = BTreeMap::new();
        for entry in &self.entries {
            areas.entry(entry.requirement.area.as_str()).or_default().add(entry);
        }
        areas
    }

    /// The counts of the requirements that each revision states.
    #[must_use]
    pub fn revisions(&self) -> BTreeMap<Revision, Counts> {
        let mut revisions: BTreeMap<Revision, Counts> = BTreeMap::new();
        for entry in &self.entries {
            for revision in entry.requirement.revisions().iter() {
                revisions.entry(revision).or_default().add(entry);
            }
        }
        revisions
    }

    /// The counts of all requirements.
    #[must_use]
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.entries.iter().for_each(|entry| total.add(entry));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_cases_every_requirement_has_a_reason_or_nothing() {
        let coverage = Coverage::of(&[]);
        let total = coverage.total().total;
        assert_eq!(total.all, Catalogue::embedded().iter().count());
        assert_eq!((total.by_case, total.by_reason), (0, reasons().count()));
        assert_eq!(total.unanswered(), total.all - reasons().count());
    }

    #[test]
    fn the_counts_of_areas_and_levels_add_up() {
        let coverage = Coverage::of(&[]);
        let areas = coverage.areas();
        let total = coverage.total();
        assert_eq!(areas.values().map(|counts| counts.total.all).sum::<usize>(), total.total.all);
        let levels = [Level::Must, Level::Schema, Level::Should, Level::May];
        assert_eq!(levels.map(|level| total.of(level).all).iter().sum::<usize>(), total.total.all);
    }

    #[test]
    fn a_reason_fits_what_the_catalogue_says() {
        for (reason, id) in reasons() {
            let requirement = Catalogue::embedded().get(id).unwrap_or_else(|| panic!("{id} is no requirement"));
            match reason {
                Reason::Permission => assert_eq!(requirement.level, Level::May, "{id}"),
                Reason::NotObservable => {
                    assert_ne!(requirement.level, Level::May, "{id}");
                    let detail = reason_in_detail(id).expect("it has a reason");
                    assert!(detail.ends_with('.') && detail.split(' ').count() >= 6, "{id}: {detail}");
                }
            }
        }
    }
}
