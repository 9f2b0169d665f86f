//! Baselines: findings that are known and accepted for now, with why, and until when.
//!
//! Owns the file: its closed schema, its reading with every slip told at its place, and its rewriting, which
//! keeps comments. What a run's findings have to do with it is decided where reports are made.

use std::path::Path;
use std::sync::OnceLock;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstRootNode};
use jsonschema::Validator;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::file_schema::explain;
use super::jsonc::Document;
use super::load;
use super::problem::{CaseFault, Flaw, LoadError};
use crate::spec::RevisionSet;
use crate::verdict::Verdict;

/// The closed JSON Schema of baselines, from which editors complete them.
pub const BASELINE_SCHEMA: &str = include_str!("../../reports/baseline-schema.json");

/// What is written for a reason that nobody has given yet.
pub const NO_REASON_YET: &str = "accepted without a reason so far; say here why";

/// The greatest number of faults that are told.
const MAX_FAULTS: usize = 50;

/// A finding that is accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The case that makes it.
    pub case: String,
    /// The requirement that it breaks.
    pub requirement: String,
    /// The tool that it is about; without it, whatever tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The revisions in which it is accepted; without it, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisions: Option<RevisionSet>,
    /// What it was accepted as; without it, a failure or a warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Why.
    pub reason: String,
    /// The last day on which it is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

impl Line {
    /// Whether it is accepted no more on a day, which is written `2027-01-31`.
    #[must_use]
    pub fn is_expired(&self, today: &str) -> bool {
        self.expires.as_deref().is_some_and(|last| last < today)
    }

    /// The revisions that it is about.
    #[must_use]
    pub fn within(&self) -> RevisionSet {
        self.revisions.unwrap_or(RevisionSet::ALL)
    }

    /// Whether it and another one speak of the same finding in some revision.
    fn collides(&self, other: &Self) -> bool {
        let either = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
        self.case == other.case
            && self.requirement == other.requirement
            && either(&self.tool, &other.tool)
            && (self.verdict.is_none() || other.verdict.is_none() || self.verdict == other.verdict)
            && !self.within().intersection(other.within()).is_empty()
    }
}

/// The findings that are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    #[serde(default, rename = "$schema")]
    _schema: Option<String>,
    /// The revisions that the server speaks, where the file says so.
    #[serde(default)]
    pub revisions: Option<RevisionSet>,
    /// What is accepted.
    #[serde(rename = "findings")]
    pub lines: Vec<Line>,
}

/// What becomes of a line when a baseline is rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The line of this number goes.
    Remove(usize),
    /// The line of this number keeps these revisions only.
    Narrow(usize, RevisionSet),
    /// This line comes at the end.
    Add(Line),
}

impl Baseline {
    /// A baseline of these lines.
    #[must_use]
    pub fn of(revisions: Option<RevisionSet>, lines: Vec<Line>) -> Self {
        Self { _schema: None, revisions, lines }
    }

    /// Reads the file; `text` is what stands in it.
    ///
    /// # Errors
    /// When it cannot be read or is not sound: every slip in it, at its place.
    pub fn load(path: &Path) -> Result<(Self, String), LoadError> {
        let name = path.display().to_string();
        let text = load::read(path, &name).map_err(|fault| LoadError { faults: vec![fault] })?;
        Ok((Self::read(&name, &text)?, text))
    }

    /// Understands the text of a baseline.
    ///
    /// # Errors
    /// When it is not sound: every slip in it, at its place.
    pub fn read(file: &str, text: &str) -> Result<Self, LoadError> {
        let of_one = |fault: CaseFault| LoadError { faults: vec![fault] };
        let mut document = Document::read(file, text).map_err(of_one)?;
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
                // Only a set of revisions has a form that the schema does not describe.
                Err(error) => flaws.push(Flaw::at(misspelt(&document.value), error.to_string())),
            }
        }
        Err(located(&document, flaws))
    }

    fn flaws(&self) -> Vec<Flaw> {
        let mut flaws = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let mut tell = |member: &str, message: String| {
                flaws.push(Flaw::at(format!("/findings/{at}/{member}"), message));
            };
            if line.reason.trim().is_empty() {
                tell("reason", "it gives no reason".to_owned());
            }
            if line.revisions.is_some_and(RevisionSet::is_empty) {
                tell("revisions", "it names no revision".to_owned());
            }
            if let Some(day) = &line.expires
                && humantime::parse_rfc3339(&format!("{day}T00:00:00Z")).is_err()
            {
                tell("expires", format!("there is no day {day}"));
            }
            if self.lines[..at].iter().any(|other| other.collides(line)) {
                tell("case", "it says what another line above says".to_owned());
            }
        }
        flaws
    }

    /// The text of a baseline with changes made to it; comments and the order of lines stay.
    ///
    /// # Errors
    /// When the text is no baseline.
    pub fn rewritten(file: &str, text: &str, changes: &[Change]) -> Result<String, LoadError> {
        let broken = |message: &str| LoadError { faults: vec![CaseFault::of_file(file, message)] };
        let root = CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| broken(&error.to_string()))?;
        let lines = root
            .object_value()
            .and_then(|object| object.array_value("findings"))
            .ok_or_else(|| broken("it has no list `findings`"))?;
        let elements: Vec<CstNode> = lines.elements();
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
                Change::Add(line) => {
                    lines.ensure_multiline();
                    let _added = lines.append(input(line));
                }
            }
        }
        if uses_commas && !lines.elements().is_empty() {
            lines.set_trailing_commas(jsonc_parser::cst::TrailingCommaMode::IfMultiline);
        }
        Ok(root.to_string())
    }

    /// The text of a baseline without lines, to be [`rewritten`](Self::rewritten).
    #[must_use]
    pub fn empty_text() -> String {
        "// What is known to be wrong and accepted for now: `mcp-conformance --baseline` holds a run against it.\n\
         // A finding that is not listed fails the run, and so does a line that is not found any more.\n\
         {\n  \"findings\": [],\n}\n"
            .to_owned()
    }
}

fn input(line: &Line) -> CstInputValue {
    let text = |value: &str| CstInputValue::String(value.to_owned());
    let mut members = vec![("case".to_owned(), text(&line.case)), ("requirement".to_owned(), text(&line.requirement))];
    let mut add = |name: &str, value: Option<String>| {
        members.extend(value.map(|value| (name.to_owned(), CstInputValue::String(value))));
    };
    add("tool", line.tool.clone());
    add("revisions", line.revisions.map(RevisionSet::compact));
    add("verdict", line.verdict.map(|verdict| verdict.as_str().to_owned()));
    add("reason", Some(line.reason.clone()));
    add("expires", line.expires.clone());
    CstInputValue::Object(members)
}

fn located(document: &Document<'_>, mut flaws: Vec<Flaw>) -> LoadError {
    flaws.truncate(MAX_FAULTS);
    let mut faults: Vec<CaseFault> = flaws.into_iter().map(|flaw| document.locate(flaw)).collect();
    faults.sort();
    LoadError { faults }
}

fn shape_flaws(value: &Value) -> Vec<Flaw> {
    static CLOSED: OnceLock<(Value, Validator)> = OnceLock::new();
    let (schema, validator) = CLOSED.get_or_init(|| {
        let schema: Value = serde_json::from_str(BASELINE_SCHEMA).expect("the schema is JSON, which is tested");
        let validator = jsonschema::draft202012::new(&schema).expect("the schema compiles, which is tested");
        (schema, validator)
    });
    validator.iter_errors(value).take(MAX_FAULTS).flat_map(|error| explain(schema, &error)).collect()
}

/// Where the first set of revisions stands that is none.
fn misspelt(value: &Value) -> String {
    let is_wrong = |place: &Value| {
        place.get("revisions").and_then(Value::as_str).is_some_and(|text| text.parse::<RevisionSet>().is_err())
    };
    if is_wrong(value) {
        return "/revisions".to_owned();
    }
    let lines = value.get("findings").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let at = lines.iter().position(is_wrong);
    at.map_or_else(String::new, |at| format!("/findings/{at}/revisions"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Revision;

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
        Baseline::read("b.jsonc", text).expect_err("it is not sound").to_string()
    }

    #[test]
    fn a_baseline_is_read_with_what_each_line_says() {
        let baseline = Baseline::read("b.jsonc", TEXT).expect("it is sound");
        let [first, second] = baseline.lines.as_slice() else { panic!("{baseline:?}") };
        assert_eq!((first.within().iter().count(), first.verdict), (4, Some(Verdict::Fail)));
        assert_eq!((second.tool.as_deref(), second.within()), (Some("echo"), RevisionSet::ALL));
        assert!(!second.is_expired("2027-01-31") && second.is_expired("2027-02-01"));
        assert!(!first.is_expired("9999-12-31"));
    }

    #[test]
    fn every_slip_is_told_at_its_place() {
        let text = TEXT.replace("\"tool\"", "\"tol\"").replace("\"fail\"", "\"pass\"").replace("later", "");
        let told = faults(&text);
        assert!(told.contains("b.jsonc:9:18: unknown value `pass`"), "{told}");
        assert!(told.contains("unknown member `tol`") && told.contains("it must not be empty"), "{told}");
        assert!(faults(&TEXT.replace("2027-01-31", "2027-02-30")).contains("there is no day 2027-02-30"));
        assert!(faults(&TEXT.replace("2024-11-05..", "2024-11-06..")).contains("b.jsonc:8:20: `2024-11-06`"));
        assert!(faults(&TEXT.replace("later", " ")).contains("gives no reason"));
        let twice = TEXT.replace("c/d", "a/b").replace("\"s\"", "\"r\"");
        assert!(faults(&twice).contains("it says what another line above says"));
        assert!(faults("[]").contains("expected an object"), "{}", faults("[]"));
        assert!(Baseline::load(Path::new("/no/such/file")).is_err());
    }

    #[test]
    fn lines_of_one_finding_may_stand_beside_each_other_where_they_differ() {
        for other in ["\"tool\": \"else\", ", "\"tool\": \"echo\", \"revisions\": \"2025-06-18\", "] {
            let (at, _) = TEXT.rmatch_indices("    {\"case\"").next().expect("the second line");
            let mut text = TEXT.to_owned();
            let reason = "\"reason\": \"x\"},\n";
            text.insert_str(at, &format!("    {{\"case\": \"c/d\", \"requirement\": \"s\", {other}{reason}"));
            let collides = other.contains("echo");
            assert_eq!(Baseline::read("b.jsonc", &text).is_err(), collides, "{text}");
        }
    }

    #[test]
    fn rewriting_keeps_comments_reasons_and_order() {
        let new = Line {
            case: "e/f".to_owned(),
            requirement: "t".to_owned(),
            tool: None,
            revisions: Some(RevisionSet::default().with(Revision::V2025_06_18)),
            verdict: Some(Verdict::Warn),
            reason: NO_REASON_YET.to_owned(),
            expires: None,
        };
        let kept = "2024-11-05, 2025-06-18".parse().expect("a set");
        let changes = [Change::Narrow(0, kept), Change::Remove(1), Change::Add(new.clone())];
        let text = Baseline::rewritten("b.jsonc", TEXT, &changes).expect("it is a baseline");
        for comment in ["// Why there is this file.", "// This one is Ann's.", "// not a warning"] {
            assert!(text.contains(comment), "{text}");
        }
        let baseline = Baseline::read("b.jsonc", &text).expect("it is sound");
        assert_eq!(baseline.lines.len(), 2);
        assert_eq!(baseline.lines[0].revisions, Some(kept));
        assert_eq!(baseline.lines[0].reason, "known since 1.0");
        assert_eq!(baseline.lines[1], new);
    }

    #[test]
    fn a_new_baseline_is_sound_before_and_after_its_first_line() {
        let empty = Baseline::empty_text();
        assert_eq!(Baseline::read("b.jsonc", &empty).expect("it is sound").lines, []);
        let line = Baseline::read("b.jsonc", TEXT).expect("it is sound").lines.remove(1);
        let text = Baseline::rewritten("b.jsonc", &empty, &[Change::Add(line.clone())]).expect("it is a baseline");
        assert_eq!(Baseline::read("b.jsonc", &text).expect("it is sound").lines, [line], "{text}");
        assert!(text.starts_with("// What is known") && text.ends_with("}\n"), "{text}");
    }
}
