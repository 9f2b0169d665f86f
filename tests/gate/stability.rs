//! What users may rely on: the ids of cases and requirements, the exit codes, and the members of the JSON report. The lists in
//! `reports/frozen/` only grow; `UPDATE_GOLDEN=1` adds to them, and marks ids as retired.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use mcp_conformance::report::Conclusion;
use mcp_conformance::spec::Catalogue;
use serde_json::Value;

use crate::support::reference::cases;
use crate::support::{Trial, trial};

/// What follows the id of something that is gone.
const RETIRED: &str = " retired";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("stability/case-ids-are-kept", || {
            ids_are_kept("case-ids.txt", &cases().iter().map(|case| case.id.as_str()).collect())
        }),
        trial("stability/requirement-ids-are-kept", || {
            let all = Catalogue::embedded().iter();
            ids_are_kept("requirement-ids.txt", &all.map(|requirement| requirement.id.as_str()).collect())
        }),
        trial("stability/a-lost-or-returning-id-is-found", a_lost_or_returning_id_is_found),
        trial("stability/exit-codes-are-kept", exit_codes_are_kept),
        trial("stability/members-of-the-json-report-are-kept", members_of_the_json_report_are_kept),
        trial("stability/a-lost-or-changed-member-is-found", a_lost_or_changed_member_is_found),
    ]
}

fn path_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/frozen").join(name)
}

/// Compares a list with what is there; with `UPDATE_GOLDEN=1` it is rewritten first, if nothing is broken by that.
fn compare(name: &str, updated: &dyn Fn(&str) -> Result<String, String>) -> Result<(), String> {
    let path = path_of(name);
    let frozen = fs::read_to_string(&path).unwrap_or_default();
    let current = updated(&frozen)?;
    if current == frozen {
        return Ok(());
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        return fs::write(&path, current).map_err(|error| error.to_string());
    }
    let (before, now): (BTreeSet<&str>, BTreeSet<&str>) = (frozen.lines().collect(), current.lines().collect());
    let differing: Vec<&str> = before.symmetric_difference(&now).copied().collect();
    Err(format!("reports/frozen/{name} is not up to date (UPDATE_GOLDEN=1 updates it): {}", differing.join(", ")))
}

fn ids_are_kept(name: &str, current: &BTreeSet<&str>) -> Result<(), String> {
    compare(name, &|frozen| with_ids(frozen, current))
}

/// The list with new ids, and with those marked that are gone; an error if one is used again.
fn with_ids(frozen: &str, current: &BTreeSet<&str>) -> Result<String, String> {
    let mut all: BTreeMap<&str, bool> = current.iter().map(|id| (*id, true)).collect();
    for line in frozen.lines() {
        match line.strip_suffix(RETIRED) {
            Some(id) if current.contains(id) => {
                return Err(format!("the id {id} had another meaning before, which users may have in their files"));
            }
            Some(id) => all.insert(id, false),
            None if current.contains(line) => continue,
            None => all.insert(line, false),
        };
    }
    let line = |(id, is_used): (&str, bool)| format!("{id}{}\n", if is_used { "" } else { RETIRED });
    Ok(all.into_iter().map(line).collect())
}

fn a_lost_or_returning_id_is_found() -> Result<(), String> {
    let frozen = "a\nb retired\nc\n";
    let expected: [(&[&str], Option<&str>); 3] = [
        (&["a", "c", "d"], Some("a\nb retired\nc\nd\n")),
        (&["a"], Some("a\nb retired\nc retired\n")),
        (&["a", "b"], None),
    ];
    for (current, updated) in expected {
        let found = with_ids(frozen, &current.iter().copied().collect()).ok();
        if found.as_deref() != updated {
            return Err(format!("{current:?}: {found:?}"));
        }
    }
    Ok(())
}

fn exit_codes_are_kept() -> Result<(), String> {
    let codes = Conclusion::ALL.map(|conclusion| (conclusion, conclusion.code()));
    let kept =
        [(Conclusion::Passed, 0), (Conclusion::Failed, 1), (Conclusion::Unjudged, 2), (Conclusion::NothingJudged, 3)];
    if codes == kept { Ok(()) } else { Err(format!("{codes:?}")) }
}

fn members_of_the_json_report_are_kept() -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/schema.json");
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let schema: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    compare("json-members.txt", &|frozen| with_members(frozen, &schema))
}

/// The list with new members; an error if one is gone or has another type while the number of the format is the same.
fn with_members(frozen: &str, schema: &Value) -> Result<String, String> {
    let format = format!("format {}", schema["properties"]["format"]["const"]);
    let current = members(schema);
    let mut lines = frozen.lines();
    if lines.next().is_none_or(|before| before == format) {
        let lost: Vec<&str> = lines.filter(|line| !current.contains(*line)).collect();
        if !lost.is_empty() {
            let lost = lost.join("\n");
            return Err(format!(
                "programs rely on these members, so that another format needs another number:\n{lost}"
            ));
        }
    }
    Ok(std::iter::once(format).chain(current).map(|line| line + "\n").collect())
}

/// Each member of each object of the schema, with its type and whether it is always there.
fn members(schema: &Value) -> BTreeSet<String> {
    let definitions = schema["$defs"].as_object().into_iter().flatten();
    let objects = definitions.map(|(name, definition)| (name.as_str(), definition)).chain([("report", schema)]);
    let mut all = BTreeSet::new();
    for (name, object) in objects {
        let is_required = |member: &str| {
            let mut required = object["required"].as_array().into_iter().flatten();
            required.any(|name| name == member)
        };
        for (member, definition) in object["properties"].as_object().into_iter().flatten() {
            if (name, member.as_str()) == ("report", "format") {
                continue;
            }
            let mut definition = definition.clone();
            if let Some(definition) = definition.as_object_mut() {
                definition.remove("description");
            }
            let presence = if is_required(member) { "always" } else { "sometimes" };
            all.insert(format!("{name}.{member} {presence} {definition}"));
        }
    }
    all
}

fn a_lost_or_changed_member_is_found() -> Result<(), String> {
    let schema = |members: &str, format: u32| -> Value {
        let text = format!(
            r#"{{ "required": ["a"], "properties": {{ "format": {{ "const": {format} }}, {members} }}, "$defs": {{}} }}"#
        );
        serde_json::from_str(&text).expect("it is JSON")
    };
    let frozen = with_members("", &schema(r#""a": { "type": "string" }"#, 2))?;
    let changes = [
        (r#""a": { "type": "string", "description": "x" }, "b": { "type": "string" }"#, 2, true),
        (r#""a": { "type": "integer" }"#, 2, false),
        (r#""b": { "type": "string" }"#, 2, false),
        (r#""b": { "type": "string" }"#, 3, true),
    ];
    for (members, format, is_allowed) in changes {
        let found = with_members(&frozen, &schema(members, format));
        if found.is_ok() != is_allowed {
            return Err(format!("{members} in format {format}: {found:?}"));
        }
    }
    Ok(())
}
