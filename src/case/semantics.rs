//! Finds what is wrong with the meaning of a case file.
//!
//! Works on the JSON value and passes over what has the wrong type, which the schema of case files reports. So all
//! that is wrong with a file is reported in one go.

use serde_json::{Map, Value};

use super::checker::{Checker, strings, text};
use super::checks::Oracle;
use super::problem::UnlocatedDiagnostic;
use super::rule_semantics::check_passive;
use super::shapes::Shapes;
use super::step_semantics::check_active;
use crate::spec::RevisionSet;

/// The greatest length of a title, in characters.
const MAX_TITLE_CHARS: usize = 70;

/// Everything that is wrong with the meaning of a case.
///
/// `faults` are the faults that the reference server knows; with none of them given, those of cases are not checked.
pub(super) fn flaws(case: &Value, faults: &[&str], shapes: &Shapes) -> Vec<UnlocatedDiagnostic> {
    let Value::Object(case) = case else { return Vec::new() };
    let mut checker = Checker::new(shapes);
    check_description(&mut checker, case, faults);
    check_revisions(&mut checker, case);
    check_kind(&mut checker, case);
    check_passive(&mut checker, case);
    check_active(&mut checker, case);
    checker.flaws
}

fn check_description(checker: &mut Checker<'_>, case: &Map<String, Value>, faults: &[&str]) {
    if let Some(title) = text(case, "title") {
        let length = title.chars().count();
        if length > MAX_TITLE_CHARS {
            checker
                .report("/title", format!("the title has {length} characters; at most {MAX_TITLE_CHARS} are allowed"));
        }
        if title.split(|c: char| !c.is_alphabetic()).any(|word| word.eq_ignore_ascii_case("should")) {
            checker.report("/title", "the title contains `should`: state what a conforming server does");
        }
    }
    if let Some(fault) = text(case, "fault")
        && !faults.is_empty()
        && !faults.contains(&fault)
    {
        checker.flaws.push(
            UnlocatedDiagnostic::at("/fault", format!("the reference server has no fault `{fault}`"))
                .nearest(fault, faults.iter().copied()),
        );
    }
    for name in ["tool", "client-request"] {
        if let Some(schema) = case.get("needs").and_then(|needs| needs.get(name)) {
            checker.check_schema(schema, &format!("/needs/{name}"));
        }
    }
}

/// Determines the revisions that the case runs in.
fn check_revisions(checker: &mut Checker<'_>, case: &Map<String, Value>) {
    let given = checker.revision_set(case, "");
    let mut stated = RevisionSet::default();
    let mut all_known = true;
    let mut known = Vec::new();
    for (index, id) in strings(case, "requirements") {
        let pointer = format!("/requirements/{index}");
        match checker.requirement(id, &pointer) {
            Some(revisions) => {
                stated = stated.union(revisions);
                known.push((pointer, id, revisions));
            }
            None => all_known = false,
        }
    }
    let Some(given) = given else { return };
    let runs = given.intersection(stated);
    if all_known && !known.is_empty() && runs.is_empty() {
        checker.report("/revisions", format!("the case runs in no revision: its requirements are stated in {stated}"));
        return;
    }
    if !all_known || known.is_empty() {
        checker.revisions = given;
        return;
    }
    checker.revisions = runs;
    for (pointer, id, revisions) in known {
        if revisions.intersection(runs).is_empty() {
            checker
                .report(pointer, format!("the requirement `{id}` is not stated in the revisions of the case ({runs})"));
        }
    }
}

/// Checks that the case is of one kind, and has nothing of another.
fn check_kind(checker: &mut Checker<'_>, case: &Map<String, Value>) {
    let has = |name: &str| case.contains_key(name);
    if has("rules") && !has("watch") {
        checker.report_name("/rules", "`rules` needs `watch`");
    }
    if has("fuzz") {
        let foreign = [
            "watch",
            "rules",
            "provoked-by",
            "steps",
            "for-each",
            "process",
            "once",
            "client-capabilities",
            "across-steps",
            "needs",
        ];
        for name in foreign.into_iter().filter(|name| has(name)) {
            checker.report_name(format!("/{name}"), format!("`{name}` does not apply to a fuzz case"));
        }
        if let Some(name) = text(case, "fuzz")
            && let Err(unknown) = name.parse::<Oracle>()
        {
            let known = Oracle::ALL.iter().map(|oracle| oracle.as_str());
            checker.flaws.push(UnlocatedDiagnostic::at("/fuzz", unknown.to_string()).nearest(name, known));
        }
        return;
    }
    if has("provoked-by") && has("steps") {
        checker.report_name("/provoked-by", "`provoked-by` applies to passive cases only");
    }
    match (has("watch"), has("steps")) {
        (true, true) => {
            checker.report_name("/steps", "the case has both `watch` and `steps`: a case is either passive or active");
        }
        (false, false) if !has("rules") => checker.report("", "the case has none of `watch`, `steps` and `fuzz`"),
        (true, false) => {
            if !has("rules") {
                checker.report_name("/watch", "`watch` needs `rules`");
            }
            for name in ["for-each", "process", "once", "client-capabilities", "client-responses", "across-steps"]
                .into_iter()
                .filter(|name| has(name))
            {
                checker
                    .report_name(format!("/{name}"), format!("`{name}` applies to steps, and a passive case has none"));
            }
        }
        (false, _) => {}
    }
}
