//! Baseline files: their closed schema, parsing with located errors, and rewriting that keeps comments.
//!
//! Comparing the findings of a run with a baseline is up to the report.

use std::path::Path;
use std::sync::OnceLock;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstRootNode};
use jsonschema::Validator;
use serde_json::Value;

use super::file_schema::explain;
use super::jsonc::Document;
use super::load;
use super::problem::{Diagnostic, LoadError, UnlocatedDiagnostic};
use crate::baseline::{Baseline, BaselineEntry, Change};
use crate::spec::RevisionSet;

/// The closed JSON Schema of baselines, for editors and for validation.
pub(crate) const BASELINE_SCHEMA: &str = include_str!("../../reports/baseline-schema.json");

/// The maximum number of errors that are reported.
const MAX_FAULTS: usize = 50;

impl Baseline {
    /// Reads a baseline file; also returns its text.
    ///
    /// # Errors
    /// When the file cannot be read or is invalid: every error with its location.
    pub fn load(path: &Path) -> Result<(Self, String), LoadError> {
        let name = path.display().to_string();
        let text = load::read(path, &name).map_err(|fault| LoadError { faults: vec![fault] })?;
        Ok((Self::read(&name, &text)?, text))
    }

    /// Parses the text of a baseline.
    ///
    /// # Errors
    /// When the text is invalid: every error with its location.
    pub fn read(file: &str, text: &str) -> Result<Self, LoadError> {
        let single = |fault: Diagnostic| LoadError { faults: vec![fault] };
        let mut document = Document::read(file, text).map_err(single)?;
        let mut flaws = std::mem::take(&mut document.flaws);
        flaws.extend(shape_flaws(&document.value));
        if flaws.is_empty() {
            match serde_json::from_value::<Self>(document.value.clone()) {
                Ok(baseline) => {
                    let flaws = baseline.flaws();
                    if flaws.is_empty() {
                        return Ok(baseline);
                    }
                    return Err(located(&document, flaws));
                }
                // The schema describes everything but the syntax of revision sets.
                Err(error) => {
                    flaws.push(UnlocatedDiagnostic::at(invalid_revisions(&document.value), error.to_string()));
                }
            }
        }
        Err(located(&document, flaws))
    }

    fn flaws(&self) -> Vec<UnlocatedDiagnostic> {
        let mut flaws = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let mut report = |member: &str, message: String| {
                flaws.push(UnlocatedDiagnostic::at(format!("/findings/{at}/{member}"), message));
            };
            if entry.reason.trim().is_empty() {
                report("reason", "the reason is empty".to_owned());
            }
            if entry.revisions.is_some_and(RevisionSet::is_empty) {
                report("revisions", "the set names no revision".to_owned());
            }
            if let Some(day) = &entry.expires
                && humantime::parse_rfc3339(&format!("{day}T00:00:00Z")).is_err()
            {
                report("expires", format!("{day} is not a valid date"));
            }
            if self.entries[..at].iter().any(|other| other.collides(entry)) {
                report("case", "an entry above already accepts this finding".to_owned());
            }
        }
        flaws
    }

    /// Applies changes to the text of a baseline, keeping comments and the order of entries.
    ///
    /// # Errors
    /// When the text is not a baseline.
    pub fn rewritten(file: &str, text: &str, changes: &[Change]) -> Result<String, LoadError> {
        let invalid = |message: &str| LoadError { faults: vec![Diagnostic::of_file(file, message)] };
        let root = CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| invalid(&error.to_string()))?;
        let entries = root
            .object_value()
            .and_then(|object| object.array_value("findings"))
            .ok_or_else(|| invalid("the list `findings` is missing"))?;
        let elements: Vec<CstNode> = entries.elements();
        let uses_commas = elements.last().is_none_or(|last| last.trailing_comma().is_some());
        for change in changes {
            match change {
                Change::Remove(at) => {
                    if let Some(element) = elements.get(*at) {
                        element.clone().remove();
                    }
                }
                Change::Narrow(at, revisions) => {
                    let object = elements.get(*at).and_then(CstNode::as_object);
                    let value = CstInputValue::String(revisions.compact());
                    match object.as_ref().and_then(|object| object.get("revisions")) {
                        Some(member) => member.set_value(value),
                        None => {
                            let _added = object.map(|object| object.insert(2, "revisions", value));
                        }
                    }
                }
                Change::Add(entry) => {
                    entries.ensure_multiline();
                    let _added = entries.append(input(entry));
                }
            }
        }
        if uses_commas && !entries.elements().is_empty() {
            entries.set_trailing_commas(jsonc_parser::cst::TrailingCommaMode::IfMultiline);
        }
        Ok(root.to_string())
    }

    /// The text of an empty baseline, a starting point for [`rewritten`](Self::rewritten).
    #[must_use]
    pub fn empty_text() -> String {
        "// Findings that are accepted for now. `mcp-conformance --baseline` compares a run with this file:\n\
         // a finding that is not listed fails the run, and so does an entry whose finding is no longer made.\n\
         {\n  \"findings\": [],\n}\n"
            .to_owned()
    }
}

fn input(entry: &BaselineEntry) -> CstInputValue {
    let text = |value: &str| CstInputValue::String(value.to_owned());
    let mut members =
        vec![("case".to_owned(), text(&entry.case)), ("requirement".to_owned(), text(&entry.requirement))];
    let mut add = |name: &str, value: Option<String>| {
        members.extend(value.map(|value| (name.to_owned(), CstInputValue::String(value))));
    };
    add("tool", entry.tool.clone());
    add("revisions", entry.revisions.map(RevisionSet::compact));
    add("verdict", entry.verdict.map(|verdict| verdict.as_str().to_owned()));
    add("reason", Some(entry.reason.clone()));
    add("expires", entry.expires.clone());
    if entry.flaky {
        members.push(("flaky".to_owned(), CstInputValue::Bool(true)));
    }
    CstInputValue::Object(members)
}

fn located(document: &Document<'_>, mut flaws: Vec<UnlocatedDiagnostic>) -> LoadError {
    flaws.truncate(MAX_FAULTS);
    let mut faults: Vec<Diagnostic> = flaws.into_iter().map(|flaw| document.locate(flaw)).collect();
    faults.sort();
    LoadError { faults }
}

fn shape_flaws(value: &Value) -> Vec<UnlocatedDiagnostic> {
    static CLOSED: OnceLock<(Value, Validator)> = OnceLock::new();
    let (schema, validator) = CLOSED.get_or_init(|| {
        let schema: Value = serde_json::from_str(BASELINE_SCHEMA).expect("the schema is JSON, which is tested");
        let validator = jsonschema::draft202012::new(&schema).expect("the schema compiles, which is tested");
        (schema, validator)
    });
    validator.iter_errors(value).take(MAX_FAULTS).flat_map(|error| explain(schema, &error)).collect()
}

/// The location of the first invalid revision set.
fn invalid_revisions(value: &Value) -> String {
    let is_invalid = |place: &Value| {
        place.get("revisions").and_then(Value::as_str).is_some_and(|text| text.parse::<RevisionSet>().is_err())
    };
    if is_invalid(value) {
        return "/revisions".to_owned();
    }
    let entries = value.get("findings").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let at = entries.iter().position(is_invalid);
    at.map_or_else(String::new, |at| format!("/findings/{at}/revisions"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::NO_REASON_YET;
    use crate::spec::Revision;
    use crate::verdict::Verdict;

    const TEXT: &str = r#"// Why there is this file.
{
  "findings": [
    // This one is Ann's.
    {
      "case": "a/b",
      "requirement": "r",
      "revisions": "2024-11-05..2025-11-25",
      "verdict": "fail", // not a warning
      "reason": "known since 1.0",
    },
    {"case": "c/d", "requirement": "s", "tool": "echo", "reason": "later", "expires": "2027-01-31"},
  ],
}
"#;

    fn faults(text: &str) -> String {
        Baseline::read("b.jsonc", text).expect_err("it is invalid").to_string()
    }

    #[test]
    fn a_baseline_is_parsed_with_all_its_members() {
        let baseline = Baseline::read("b.jsonc", TEXT).expect("it is valid");
        let [first, second] = baseline.entries.as_slice() else { panic!("{baseline:?}") };
        assert_eq!((first.within().iter().count(), first.verdict), (4, Some(Verdict::Fail)));
        assert_eq!((second.tool.as_deref(), second.within()), (Some("echo"), RevisionSet::ALL));
        assert!(!second.is_expired("2027-01-31") && second.is_expired("2027-02-01"));
        assert!(!first.is_expired("9999-12-31"));
    }

    #[test]
    fn every_error_is_reported_with_its_location() {
        let text = TEXT.replace("\"tool\"", "\"tol\"").replace("\"fail\"", "\"pass\"").replace("later", "");
        let message = faults(&text);
        assert!(message.contains("b.jsonc:9:18: unknown value `pass`"), "{message}");
        assert!(message.contains("unknown member `tol`") && message.contains("it must not be empty"), "{message}");
        assert!(faults(&TEXT.replace("2027-01-31", "2027-02-30")).contains("2027-02-30 is not a valid date"));
        assert!(faults(&TEXT.replace("2024-11-05..", "2024-11-06..")).contains("b.jsonc:8:20: `2024-11-06`"));
        assert!(faults(&TEXT.replace("later", " ")).contains("the reason is empty"));
        let twice = TEXT.replace("c/d", "a/b").replace("\"s\"", "\"r\"");
        assert!(faults(&twice).contains("an entry above already accepts this finding"));
        assert!(faults("[]").contains("expected an object"), "{}", faults("[]"));
        assert!(Baseline::load(Path::new("/no/such/file")).is_err());
    }

    #[test]
    fn entries_of_one_finding_are_allowed_if_they_do_not_overlap() {
        for other in ["\"tool\": \"else\", ", "\"tool\": \"echo\", \"revisions\": \"2025-06-18\", "] {
            let (at, _) = TEXT.rmatch_indices("    {\"case\"").next().expect("the second entry");
            let mut text = TEXT.to_owned();
            let reason = "\"reason\": \"x\"},\n";
            text.insert_str(at, &format!("    {{\"case\": \"c/d\", \"requirement\": \"s\", {other}{reason}"));
            let collides = other.contains("echo");
            assert_eq!(Baseline::read("b.jsonc", &text).is_err(), collides, "{text}");
        }
    }

    #[test]
    fn rewriting_keeps_comments_reasons_and_order() {
        let new = BaselineEntry {
            case: "e/f".to_owned(),
            requirement: "t".to_owned(),
            tool: None,
            revisions: Some(RevisionSet::default().with(Revision::V2025_06_18)),
            verdict: Some(Verdict::Warn),
            reason: NO_REASON_YET.to_owned(),
            expires: None,
            flaky: false,
        };
        let kept = "2024-11-05, 2025-06-18".parse().expect("a set");
        let changes = [Change::Narrow(0, kept), Change::Remove(1), Change::Add(new.clone())];
        let text = Baseline::rewritten("b.jsonc", TEXT, &changes).expect("it is a baseline");
        for comment in ["// Why there is this file.", "// This one is Ann's.", "// not a warning"] {
            assert!(text.contains(comment), "{text}");
        }
        let baseline = Baseline::read("b.jsonc", &text).expect("it is valid");
        assert_eq!(baseline.entries.len(), 2);
        assert_eq!(baseline.entries[0].revisions, Some(kept));
        assert_eq!(baseline.entries[0].reason, "known since 1.0");
        assert_eq!(baseline.entries[1], new);
    }

    #[test]
    fn a_new_baseline_is_valid_before_and_after_its_first_entry() {
        let empty = Baseline::empty_text();
        assert_eq!(Baseline::read("b.jsonc", &empty).expect("it is valid").entries, []);
        let entry = Baseline::read("b.jsonc", TEXT).expect("it is valid").entries.remove(1);
        let text = Baseline::rewritten("b.jsonc", &empty, &[Change::Add(entry.clone())]).expect("it is a baseline");
        assert_eq!(Baseline::read("b.jsonc", &text).expect("it is valid").entries, [entry], "{text}");
        assert!(text.starts_with("// Findings that") && text.ends_with("}\n"), "{text}");
    }
}
