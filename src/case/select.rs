//! Selects cases: globs are matched against the id, the area and the tags of each.

use std::collections::BTreeSet;
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};

use super::model::Case;
use super::problem::nearest;
use super::stimuli::stimuli;

/// Which cases run, as globs; `*` matches across slashes, so `tools/*` is everything below `tools`.
///
/// A glob is matched against the id of a case, each leading part of it (`tools`, `tools/call`; the first is the area) and
/// each of its tags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The cases that run; all where there are none.
    pub select: Vec<String>,
    /// The cases among them that do not run.
    pub skip: Vec<String>,
}

/// The cases that a run carries out.
#[derive(Debug, Clone, Default)]
pub struct SelectedCases {
    /// Those that were selected and their stimuli, sorted by id.
    pub cases: Vec<Arc<Case>>,
    /// The ids of those among them that were not selected: they only provoke what a selected passive case
    /// watches, and have no result.
    pub stimuli: BTreeSet<String>,
}

impl SelectedCases {
    /// These cases, and the stimuli that they need out of all cases.
    #[must_use]
    pub fn with_stimuli(selected: &[&Case], all: &[Case]) -> Self {
        let stimuli = stimuli(selected, all);
        let ids = stimuli.iter().map(|case| case.id.clone()).collect();
        let mut cases: Vec<&Case> = selected.iter().copied().chain(stimuli).collect();
        cases.sort_by(|a, b| a.id.cmp(&b.id));
        Self { cases: cases.into_iter().cloned().map(Arc::new).collect(), stimuli: ids }
    }

    /// The cases that have results.
    #[must_use]
    pub fn reported(&self) -> Vec<Arc<Case>> {
        self.cases.iter().filter(|case| !self.stimuli.contains(&case.id)).cloned().collect()
    }

    /// The requested ones of these cases, and their own stimuli.
    #[must_use]
    pub fn narrow(&self, requested: &BTreeSet<String>, all: &[Case]) -> Self {
        let cases: Vec<&Case> = all.iter().filter(|case| requested.contains(&case.id)).collect();
        Self::with_stimuli(&cases, all).retain(|case| self.cases.iter().any(|known| known.id == case.id))
    }

    /// The same without the cases that do not fit.
    #[must_use]
    pub fn retain(mut self, fits: impl Fn(&Case) -> bool) -> Self {
        self.cases.retain(|case| fits(case));
        self
    }
}

/// Why a selection cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// A pattern is not a valid glob.
    #[error("failed to read the pattern `{pattern}` of {option}: {source}")]
    Glob {
        /// The option that it was given to.
        option: &'static str,
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        source: globset::Error,
    },
    /// A pattern matches no case.
    #[error("the pattern `{pattern}` of {option} matches no case, area or tag{}", meant(nearest.as_deref()))]
    Nothing {
        /// The option that it was given to.
        option: &'static str,
        /// The pattern.
        pattern: String,
        /// The most similar area, tag or case.
        nearest: Option<String>,
    },
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

impl Selection {
    /// The cases that run, in the order in which they are given.
    ///
    /// # Errors
    /// When a pattern is not a valid glob, or matches no case: a mistake would otherwise select nothing, or too much.
    pub fn of<'a>(&self, cases: &'a [Case]) -> Result<Vec<&'a Case>, SelectError> {
        let select = matchers("--select", &self.select, cases)?;
        let skip = matchers("--skip", &self.skip, cases)?;
        let named = |globs: &[GlobMatcher], case: &Case| globs.iter().any(|glob| matches(glob, case));
        Ok(cases.iter().filter(|case| (select.is_empty() || named(&select, case)) && !named(&skip, case)).collect())
    }
}

impl Selection {
    /// The cases that run, with the stimuli of the passive ones among them; what is skipped is no stimulus.
    ///
    /// # Errors
    /// As [`Selection::of`].
    pub fn with_stimuli(&self, all: &[Case]) -> Result<SelectedCases, SelectError> {
        let selected = SelectedCases::with_stimuli(&self.of(all)?, all);
        let skip = matchers("--skip", &self.skip, all)?;
        Ok(selected.retain(|case| !skip.iter().any(|glob| matches(glob, case))))
    }
}

fn matchers(option: &'static str, patterns: &[String], cases: &[Case]) -> Result<Vec<GlobMatcher>, SelectError> {
    let matcher = |pattern: &String| {
        let glob = GlobBuilder::new(pattern).literal_separator(false).build();
        let glob = glob.map_err(|source| SelectError::Glob { option, pattern: pattern.clone(), source })?;
        let glob = glob.compile_matcher();
        if cases.iter().any(|case| matches(&glob, case)) {
            return Ok(glob);
        }
        let nearest = nearest(pattern, cases.iter().flat_map(names)).map(str::to_owned);
        Err(SelectError::Nothing { option, pattern: pattern.clone(), nearest })
    };
    patterns.iter().map(matcher).collect()
}

fn matches(glob: &GlobMatcher, case: &Case) -> bool {
    names(case).any(|name| glob.is_match(name))
}

/// The names by which a case is selected: its tags, each leading part of its id, its id.
fn names(case: &Case) -> impl Iterator<Item = &str> {
    let parts = case.id.match_indices('/').map(|(end, _)| &case.id[..end]);
    case.tags.iter().map(String::as_str).chain(parts).chain([case.id.as_str()])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::load::case_of;
    use super::*;

    fn cases() -> Vec<Case> {
        let case = |id: &str, tags: &[&str]| {
            case_of(
                id,
                &json!({
                    "title": "x", "fix": "y", "requirements": ["jsonrpc-message-format"], "tags": tags,
                    "watch": {"kind": "message"}, "rules": [{"schema": {"type": "object"}}],
                }),
            )
        };
        vec![
            case("jsonrpc/id-zero", &["base"]),
            case("tools/call/unknown-tool", &["errors"]),
            case("tools/call/no-name", &["errors", "base"]),
            case("tools/list/page-end", &[]),
        ]
    }

    fn run(select: &[&str], skip: &[&str]) -> Result<Vec<String>, String> {
        let owned = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let selection = Selection { select: owned(select), skip: owned(skip) };
        let cases = cases();
        let chosen = selection.of(&cases).map_err(|error| error.to_string())?;
        Ok(chosen.into_iter().map(|case| case.id.clone()).collect())
    }

    #[test]
    fn no_pattern_selects_all() {
        assert_eq!(run(&[], &[]).expect("all").len(), 4);
    }

    #[test]
    fn ids_areas_leading_parts_and_tags_select() {
        let call = ["tools/call/unknown-tool", "tools/call/no-name"];
        assert_eq!(run(&["tools/call/*"], &[]).expect("some"), call);
        assert_eq!(run(&["tools/call"], &[]).expect("some"), call);
        assert_eq!(run(&["errors"], &[]).expect("some"), call);
        assert_eq!(run(&["tools"], &[]).expect("some").len(), 3);
        assert_eq!(run(&["tools/*"], &[]).expect("some").len(), 3);
        assert_eq!(run(&["*-{tool,zero}"], &[]).expect("some"), ["jsonrpc/id-zero", "tools/call/unknown-tool"]);
        assert_eq!(run(&["jsonrpc/*", "tools/list"], &[]).expect("some"), ["jsonrpc/id-zero", "tools/list/page-end"]);
    }

    #[test]
    fn skipped_cases_do_not_run() {
        assert_eq!(run(&["tools"], &["errors"]).expect("some"), ["tools/list/page-end"]);
        assert_eq!(run(&[], &["base", "tools/list/*"]).expect("some"), ["tools/call/unknown-tool"]);
    }

    #[test]
    fn a_pattern_without_a_match_suggests_a_name() {
        let message = run(&["tool"], &[]).expect_err("nothing is named so");
        assert_eq!(message, "the pattern `tool` of --select matches no case, area or tag (did you mean `tools`?)");
        let message = run(&[], &["tools/call/unknwn-tool"]).expect_err("nothing is named so");
        assert!(message.contains("of --skip") && message.contains("`tools/call/unknown-tool`"), "{message}");
        let message = run(&["zzz"], &[]).expect_err("nothing is named so");
        assert_eq!(message, "the pattern `zzz` of --select matches no case, area or tag");
        assert!(run(&["a["], &[]).expect_err("no glob").starts_with("failed to read the pattern `a[` of --select"));
    }
}
