//! Reads case files, the embedded ones and a directory of the user's, and reports every problem in them.
//!
//! It alone reads files, within limits on their number and size, and enters no directory twice.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::file::CaseFile;
use super::file_schema::{self, FileKind};
use super::jsonc::{Document, position};
use super::methods;
use super::model::{Case, Source};
use super::parse;
use super::problem::{Diagnostic, LoadError, UnlocatedDiagnostic};
use super::schema_lint;
use super::semantics;
use super::shapes::{self, Shapes};
use super::stimuli::{BadStimulus, bad_stimuli};

/// The largest case file that is read, in bytes (1 MiB).
pub(crate) const MAX_FILE_BYTES: usize = 1024 * 1024;

/// The largest number of case files that are read from a directory.
pub(crate) const MAX_FILES: usize = 10_000;

/// The largest number of directory entries, of whatever kind, that are read.
const MAX_ENTRIES: usize = 10 * MAX_FILES;

/// The member that names the stimuli of a passive case.
const PROVOKED_BY: &str = "\"provoked-by\"";

/// The extension of a case file.
const CASE_EXTENSION: &str = "jsonc";

/// The extension of a shape.
const SHAPE_EXTENSION: &str = "json";

/// The path below `cases/` and the text of each embedded case and shape, sorted by path.
static EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded_cases.rs"));

/// The text of a case or a shape, not yet parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseText {
    /// The id that its path gives it.
    pub id: String,
    /// The name of the file in messages.
    pub file: String,
    /// Where it comes from.
    pub source: Source,
    /// The text.
    pub text: String,
}

/// Which cases are checked before they are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// All but the embedded ones, which the tests of this crate check.
    Embedded,
    /// Every case.
    Nothing,
}

/// Loads the embedded cases, and those of a directory in addition, sorted by id.
///
/// `faults` are the names of the faults that the reference server knows; with none of them given, the
/// faults of cases are not checked.
///
/// # Errors
/// When a file cannot be read or a case is invalid; every problem in every file is reported.
pub fn load(directory: Option<&Path>, faults: &[&str]) -> Result<Vec<Case>, LoadError> {
    let mut texts = read_embedded();
    let mut unread = Vec::new();
    if let Some(directory) = directory {
        read_directory(directory, &mut texts, &mut unread);
    }
    match parse_cases(texts, faults, Trust::Embedded) {
        Ok(cases) if unread.is_empty() => Ok(cases),
        Ok(_) => Err(LoadError { faults: unread }),
        Err(mut error) => {
            error.faults.extend(unread);
            error.faults.sort();
            Err(error)
        }
    }
}

/// Parses the texts of cases and shapes; the cases are sorted by id.
///
/// # Errors
/// When a case or shape is invalid, or an id is used twice; every problem in every text is reported.
pub fn parse_cases(texts: Vec<CaseText>, faults: &[&str], trust: Trust) -> Result<Vec<Case>, LoadError> {
    let mut cases = Vec::with_capacity(texts.len());
    let mut problems = Vec::new();
    let mut taken: HashMap<String, String> = HashMap::with_capacity(texts.len());
    let mut passive = HashMap::new();
    for text in &texts {
        if text.text.contains(PROVOKED_BY) {
            passive.insert(text.id.clone(), (text.file.clone(), text.text.clone()));
        }
        problems.extend(problem_of_id(text, &taken));
        taken.entry(text.id.clone()).or_insert_with(|| text.file.clone());
    }
    let (shapes, texts): (Vec<_>, Vec<_>) = texts.into_iter().partition(|text| text.id.starts_with(shapes::PREFIX));
    let shapes = parse_shapes(&shapes, &mut problems);
    for text in texts {
        match parse_one(text, faults, trust, &shapes) {
            Ok(case) => cases.push(case),
            Err(found) => problems.extend(found),
        }
    }
    cases.sort_by(|a, b| a.id.cmp(&b.id));
    // While a file is invalid, the case that a stimulus names may be missing for that reason alone.
    if problems.is_empty() {
        problems.extend(bad_stimuli(&cases).into_iter().map(|bad| stimulus_problem(bad, &passive)));
    }
    if problems.is_empty() {
        return Ok(cases);
    }
    problems.sort();
    Err(LoadError { faults: problems })
}

/// Parses the files of shapes; what is wrong with them is added to `problems`.
pub(super) fn parse_shapes(texts: &[CaseText], problems: &mut Vec<Diagnostic>) -> Shapes {
    let mut shapes = Shapes::default();
    let mut documents = Vec::new();
    for text in texts {
        let name = text.id.strip_prefix(shapes::PREFIX).unwrap_or(&text.id);
        match Document::read(&text.file, &text.text) {
            Ok(document) => {
                shapes.insert(name, document.value.clone());
                documents.push((name, document));
            }
            Err(problem) => problems.push(problem),
        }
    }
    for (name, document) in documents {
        let mut flaws = document.flaws.clone();
        if let Some(circle) = shapes.circle(name) {
            flaws.push(UnlocatedDiagnostic::at("", format!("the shape refers to itself: {}", circle.join(" -> "))));
        } else {
            flaws.extend(schema_lint::flaws(&document.value, "", &shapes));
        }
        problems.extend(document.locate_all(flaws));
    }
    shapes
}

/// A problem of a stimulus, at the place where the file names it.
fn stimulus_problem(bad: BadStimulus, files: &HashMap<String, (String, String)>) -> Diagnostic {
    let (file, text) = files.get(&bad.case).map_or(("", ""), |(file, text)| (file.as_str(), text.as_str()));
    let list = text.find(PROVOKED_BY).unwrap_or(0);
    let offset = text[list..].find(&format!("\"{}\"", bad.name)).map_or(list, |at| list + at);
    let (line, column) = position(text, offset);
    Diagnostic {
        line,
        column,
        pointer: "/provoked-by".to_owned(),
        suggestion: bad.suggestion,
        ..Diagnostic::of_file(file, bad.message)
    }
}

fn problem_of_id(text: &CaseText, taken: &HashMap<String, String>) -> Option<Diagnostic> {
    let fits = |segment: &str| {
        !segment.is_empty()
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    let CaseText { id, file, .. } = text;
    if let Some(other) = taken.get(id) {
        return Some(Diagnostic::of_file(file, format!("the id `{id}` is already used by {other}")));
    }
    (!id.split('/').all(fits)).then(|| {
        Diagnostic::of_file(
            file,
            format!("the id `{id}` has other characters than letters, digits, `-`, `_` and `.` between slashes: rename the file"),
        )
    })
}

fn parse_one(text: CaseText, faults: &[&str], trust: Trust, shapes: &Shapes) -> Result<Case, Vec<Diagnostic>> {
    let CaseText { id, file, source, text } = text;
    let document = Document::read(&file, &text).map_err(|problem| vec![problem])?;
    let trusted = trust == Trust::Embedded && source == Source::Embedded;
    let flaws = if trusted { Vec::new() } else { flaws(&document, faults, shapes) };
    if !flaws.is_empty() {
        return Err(document.locate_all(flaws));
    }
    let mut value = methods::written_out(&document.value);
    if text.contains(shapes::PREFIX) {
        shapes.bundle_case(value.to_mut());
    }
    let case = CaseFile::deserialize(value.as_ref())
        .map_err(|error| error.to_string())
        .and_then(|file| parse::case(id, source, file).ok_or_else(|| "the case contradicts itself".to_owned()));
    case.map_err(|message| {
        // A trusted case that is invalid after all is reported like any other.
        let mut flaws = if trusted { self::flaws(&document, faults, shapes) } else { Vec::new() };
        if flaws.is_empty() {
            flaws.push(UnlocatedDiagnostic::at("", message));
        }
        document.locate_all(flaws)
    })
}

/// Everything that is wrong with a file that is JSON.
fn flaws(document: &Document, faults: &[&str], shapes: &Shapes) -> Vec<UnlocatedDiagnostic> {
    let mut flaws = document.flaws.clone();
    flaws.extend(semantics::flaws(&methods::with_first(&document.value), faults, shapes));
    flaws.extend(file_schema::flaws(FileKind::Case, &document.value, &flaws));
    let mut seen = HashSet::new();
    flaws.retain(|flaw| seen.insert((flaw.pointer.clone(), flaw.message.clone())));
    flaws
}

/// The texts of the embedded cases and shapes.
#[must_use]
pub fn read_embedded() -> Vec<CaseText> {
    let embedded = |(path, text): &(&str, &str)| {
        let id = id_of(Path::new(path))?;
        Some(CaseText { id, file: format!("cases/{path}"), source: Source::Embedded, text: (*text).to_owned() })
    };
    EMBEDDED.iter().filter_map(embedded).collect()
}

/// The id of a case or shape by its path below the directory of cases.
fn id_of(path: &Path) -> Option<String> {
    if path.extension()? != CASE_EXTENSION && !is_shape(path) {
        return None;
    }
    let stem = path.with_extension("");
    let segments: Vec<_> = stem.iter().map(|segment| segment.to_string_lossy()).collect();
    Some(segments.join("/"))
}

/// Whether a path below the directory of cases is that of a shape.
fn is_shape(path: &Path) -> bool {
    path.starts_with(shapes::PREFIX) && path.extension().is_some_and(|extension| extension == SHAPE_EXTENSION)
}

/// Reads every case and shape below a directory, except hidden entries.
///
/// The texts are added to `texts`, and what could not be read to `faults`.
pub(crate) fn read_directory(directory: &Path, texts: &mut Vec<CaseText>, faults: &mut Vec<Diagnostic>) {
    let files = match list(directory) {
        Ok(files) => files,
        Err(fault) => return faults.push(fault),
    };
    let is_case = |path: &PathBuf| path.extension().is_some_and(|extension| extension == CASE_EXTENSION);
    if !files.iter().any(is_case) {
        let message = format!("no case file is below this directory: the extension of a case is .{CASE_EXTENSION}");
        return faults.push(Diagnostic::of_file(directory.display().to_string(), message));
    }
    for path in files {
        let file = path.display().to_string();
        let below = path.strip_prefix(directory).unwrap_or(&path);
        let Some(id) = id_of(below) else { continue };
        match read(&path, &file) {
            Ok(text) => texts.push(CaseText { id, file, source: Source::File(path), text }),
            Err(fault) => faults.push(fault),
        }
    }
}

/// The case and shape files below a directory, sorted. Links to directories are followed, but no directory is entered
/// twice, so that a cycle of links ends.
fn list(root: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let unreadable = |path: &Path, error: &io::Error| {
        Diagnostic::of_file(path.display().to_string(), format!("failed to read the directory: {error}"))
    };
    let mut files = Vec::new();
    let mut entered = HashSet::new();
    let mut entries = 0;
    let mut waiting = vec![root.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        let real = fs::canonicalize(&directory).map_err(|error| unreadable(&directory, &error))?;
        if !entered.insert(real) {
            continue;
        }
        for entry in fs::read_dir(&directory).map_err(|error| unreadable(&directory, &error))? {
            let path = entry.map_err(|error| unreadable(&directory, &error))?.path();
            entries += 1;
            if files.len() >= MAX_FILES || entries > MAX_ENTRIES {
                let message = format!(
                    "the directory has more than {MAX_FILES} case files or {MAX_ENTRIES} entries: name a smaller one"
                );
                return Err(Diagnostic::of_file(root.display().to_string(), message));
            }
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else if id_of(path.strip_prefix(root).unwrap_or(&path)).is_some() {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The text of a file within the limit.
pub(super) fn read(path: &Path, file: &str) -> Result<String, Diagnostic> {
    let fault = |message: String| Diagnostic::of_file(file, message);
    let failed = |error: io::Error| fault(format!("failed to read the file: {error}"));
    // Opening a pipe would wait for someone to write into it.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(fault("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    let bound = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX) + 1;
    File::open(path).map_err(failed)?.take(bound).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(fault(format!("it is larger than {MAX_FILE_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(&error.as_bytes()[..good]);
        let (line, column) = position(&text, good);
        Diagnostic { line, column, ..fault("it is not valid UTF-8 from here on".to_owned()) }
    })
}

/// Parses a value as a case file, for tests of other modules.
#[cfg(test)]
pub(super) fn case_of(id: &str, value: &serde_json::Value) -> Case {
    let file = CaseFile::deserialize(value).expect("the value is a case file");
    parse::case(id.to_owned(), Source::Embedded, file).expect("the case is valid")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::active::{Action, Delivery, InputResponses, Process, RawLine, RequestState};
    use super::super::expected::Outcome;
    use super::super::jsonc::MAX_PROBLEMS_PER_FILE;
    use super::super::model::Body;
    use super::super::passive::{Methods, ValueRule, Watch, WatchKind};
    use super::super::placeholder::Placeholder;
    use super::*;
    use crate::spec::Revision;
    use crate::verdict::Verdict;

    const PASSIVE: &str = r#"// A passive case.
{
  "$schema": "../../schema.json",
  "title": "The items of a tool list are objects with a name",
  "requirements": ["tool-name-string"],
  "tags": ["shape"],
  "why": "A client calls a tool by its name.",
  "fix": "Give each tool a name.",
  "fault": "tool-name-number",
  "provoked-by": ["tools/call/unknown-tool", "logging"],
  "watch": {"kind": "result", "methods": ["tools/list"], "path": "/tools/*", "matching": {"type": "object"}},
  "rules": [
    {"schema": {"required": ["name"], "properties": {"name": {"type": "string"}}}, "message": "A tool has no name."},
    {"schema": {"properties": {"title": {"type": "string"}}}, "revisions": "2025-06-18..", "verdict": "warn"},
    {"check": "tool-known"},
  ],
}
"#;

    const STIMULUS: &str = r#"{
  "title": "The server answers a ping",
  "requirements": ["jsonrpc-result-id-echo"],
  "fix": "Answer the ping.",
  "steps": [{"send": {"method": "ping"}, "expect": [{"outcome": ["result"]}]}],
}
"#;

    const CONNECTION: &str = r#"{
  "title": "Every request is answered once",
  "requirements": ["jsonrpc-result-id-echo"],
  "fix": "Write one response for each request.",
  "watch": {"kind": "connection"},
  "rules": [{"check": "answered-once"}],
}
"#;

    const ACTIVE: &str = r#"{
  "title": "A call of an unknown tool is rejected",
  "requirements": ["tools-call-unknown-tool-must-error", "tools-call-unknown-tool-error"],
  "fix": "Answer with an error.",
  "needs": {"capabilities": ["tools", "!tools.listChanged"], "tool": {"required": ["inputSchema"]}},
  "for-each": "tool",
  "process": "fresh",
  "client-capabilities": {"roots": {}},
  "steps": [
    {
      "name": "first",
      "send": {"method": "tools/call", "params": {"name": "${tool}", "arguments": "${tool.arguments}"}},
      "control": true,
      "save": {"text": "/result/content/0/text"},
    },
    {"notify": {"method": "x/${unknown-method}"}, "revisions": "2025-06-18.."},
    {"batch": [{"method": "ping"}], "meta": {"a": "${random}"}, "revisions": "2025-03-26"},
    {"raw": "{\"id\": ${id}, \"_meta\": ${meta}, \"x\": \"${saved.text}"},
    {"name": "all", "paginate": "tools/list"},
    {
      "send": {"method": "tools/call", "params": {"name": "${unknown-tool}", "x": "${text.5000}"}},
      "meta": false,
      "expect": [
        {"outcome": ["error"], "code": [-32602]},
        {"outcome": ["tool-error"], "verdict": "warn", "message": "It is rejected as a failed call.", "revisions": "2024-11-05.."},
        {"schema": {"required": ["error"]}},
      ],
      "otherwise": {"verdict": "fail", "message": "It is served."},
    },
    {"raw": {"hex": "7b ff"}},
    {"wait-ms": 200},
    {"send": {"method": "ping"}, "pipelined": true},
    {"shutdown": "sigterm", "expect": [{"outcome": ["stdin-closed", "sigterm"]}]},
  ],
  "across-steps": [{"check": "same", "steps": ["first", "all"], "path": "/result/*"}],
}
"#;

    fn text(id: &str, text: &str) -> CaseText {
        let file = format!("own/{id}.jsonc");
        CaseText { id: id.to_owned(), source: Source::File(PathBuf::from(&file)), file, text: text.to_owned() }
    }

    fn loaded(written: &str) -> Case {
        // The cases that `PASSIVE` names as its stimuli.
        let stimuli = ["tools/call/unknown-tool", "logging/one"].map(|id| text(id, STIMULUS));
        let texts = [vec![text("tools/x", written)], stimuli.to_vec()].concat();
        let cases = parse_cases(texts, &["tool-name-number"], Trust::Nothing).unwrap_or_else(|error| panic!("{error}"));
        cases.into_iter().find(|case| case.id == "tools/x").expect("it is among them")
    }

    fn reported(written: &str) -> Vec<String> {
        let faults = ["tool-name-number", "tools-object"];
        match parse_cases(vec![text("tools/x", written)], &faults, Trust::Nothing) {
            Ok(_) => Vec::new(),
            Err(error) => error.faults.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_passive_case_is_loaded() {
        let case = loaded(PASSIVE);
        assert_eq!((case.id.as_str(), case.area()), ("tools/x", "tools"));
        assert_eq!(case.revisions, crate::spec::RevisionSet::ALL);
        let Body::Passive(passive) = &case.body else { panic!("it is passive") };
        assert_eq!(passive.provoked_by, ["tools/call/unknown-tool", "logging"]);
        let Watch::Values(values) = &passive.watch else { panic!("it watches values") };
        assert_eq!(values.kind, WatchKind::Result(Methods::new(vec!["tools/list".to_owned()])));
        assert_eq!(values.path.as_ref().map(super::super::PathPattern::as_str), Some("/tools/*"));
        let rules = &values.rules;
        let ValueRule::Schema(pattern) = &rules[0].check else { panic!("the first rule is a schema") };
        assert!(pattern.fits(&serde_json::json!({"name": "a"})));
        assert!(!pattern.fits(&serde_json::json!({"name": 1})));
        assert_eq!(rules[1].verdict, Some(Verdict::Warn));
        assert!(case.placeholders().is_empty());
        let Body::Passive(passive) = loaded(CONNECTION).body else { panic!("it is passive") };
        assert!(matches!(passive.watch, Watch::Connections(rules) if rules.len() == 1));
    }

    #[test]
    fn an_active_case_is_loaded() {
        let case = loaded(ACTIVE);
        let Body::Active(act) = &case.body else { panic!("it is active") };
        assert_eq!(act.process, Process::Fresh);
        assert_eq!(act.steps[5].action.expected().responses()[0].outcome, [Outcome::Error]);
        assert!(
            matches!(&act.steps[6].action, Action::Raw { line: RawLine::Bytes(bytes), .. } if *bytes == [0x7b, 0xff])
        );
        assert!(matches!(&act.steps[7].action, Action::Wait(time) if time.as_millis() == 200));
        assert!(matches!(&act.steps[8].action, Action::Request { delivery: Delivery::Pipelined, .. }));
        let placeholders = case.placeholders();
        for placeholder in [
            Placeholder::Tool,
            Placeholder::Random,
            Placeholder::Meta,
            Placeholder::Text(5000),
            Placeholder::Saved("text".to_owned()),
        ] {
            assert!(placeholders.contains(&placeholder), "{placeholder}");
        }
    }

    #[test]
    fn a_case_may_respond_to_requests_and_retry() {
        let case = loaded(
            r#"{
  "title": "An altered state is rejected",
  "requirements": ["mrtr-state-integrity"],
  "fix": "Reject it.",
  "needs": {"client-request": {"properties": {"method": {"const": "roots/list"}}}},
  "client-responses": {"roots/list": [{"result": {"roots": []}}, {"error": {"code": -1, "message": "${client-request.count}"}}]},
  "steps": [
    {"name": "ask", "send": {"method": "tools/call", "params": {"name": "${tool}"}}},
    {
      "retry": {"step": "ask", "request-state": "altered", "params": {"arguments": "${tool.arguments.alternative}"}, "rounds": 2},
      "expect": [{"outcome": ["error", "input-required"]}],
    },
  ],
}"#,
        );
        let Body::Active(act) = &case.body else { panic!("it is active") };
        assert_eq!(act.client_responses["roots/list"].len(), 2);
        let Action::Retry { retry, .. } = &act.steps[1].action else { panic!("it retries") };
        assert_eq!(
            (retry.input_responses, retry.request_state, retry.rounds),
            (InputResponses::All, RequestState::Altered, Some(2))
        );
        assert!(case.placeholders().contains(&Placeholder::ToolArgumentsAlternative));
        assert!(
            case.needs.client_request.expect("it names a question").fits(&serde_json::json!({"method": "roots/list"}))
        );
    }

    #[test]
    fn mistakes_in_client_responses_and_retries_are_reported() {
        let case = |rest: &str| {
            reported(&format!(
                "{{\n\"title\": \"x\", \"requirements\": [\"mrtr-state-integrity\"], \"fix\": \"y\",\n{rest}\n}}"
            ))
        };
        let steps = r#""steps": [{"name": "a", "send": {"method": "x"}, "expect": [{"outcome": ["error"]}]}]"#;
        let of_responses =
            case(&format!(r#""client-responses": {{"roots/list": [{{"result": {{"a": "${{tool}}"}}}}]}}, {steps}"#));
        assert_eq!(of_responses.len(), 1, "{of_responses:?}");
        assert!(of_responses[0].ends_with("`${tool}` is filled in only in what a step sends"), "{of_responses:?}");
        let of_step =
            case(r#""steps": [{"send": {"method": "${client-request.tool}"}, "expect": [{"outcome": ["error"]}]}]"#);
        assert!(
            of_step[0].ends_with("`${client-request.tool}` is filled in only in `client-responses`"),
            "{of_step:?}"
        );
        let of_retry = case(
            r#""steps": [{"name": "first", "send": {"method": "x"}}, {"retry": {"step": "frist"}, "expect": [{"outcome": ["error"]}]}]"#,
        );
        assert!(of_retry[0].ends_with("no earlier step is named `frist` (did you mean `first`?)"), "{of_retry:?}");
    }

    #[test]
    fn the_main_requirement_is_the_first_that_the_revision_states() {
        let case = loaded(ACTIVE);
        let main = |revision| case.requirement_in(revision).map(|requirement| requirement.id.as_str());
        assert_eq!(main(Revision::V2024_10_07), Some("tools-call-unknown-tool-must-error"));
        assert_eq!(main(Revision::V2025_06_18), Some("tools-call-unknown-tool-error"));
        let named = case.requirement_for(Some("tool-name-string"), Revision::V2025_06_18);
        assert_eq!(named.map(|requirement| requirement.id.as_str()), Some("tool-name-string"));
    }

    /// A passive case with these lines between its fourth and its last.
    fn passive(lines: &str) -> String {
        format!("{{\n\"title\": \"x\",\n\"requirements\": [\"tool-name-string\"],\n\"fix\": \"y\",\n{lines}\n}}")
    }

    /// An active case with these steps, the first of which is on line 6.
    fn active(steps: &str) -> String {
        passive(&format!("\"steps\": [\n{steps}\n]"))
    }

    /// The part of a passive case that watches results.
    const WATCH: &str = r#""watch": {"kind": "result"}"#;

    /// A rule for them.
    const RULES: &str = r#""rules": [{"check": "tool-known"}]"#;

    /// The expected response of a step.
    const EXPECT: &str = r#""expect": [{"outcome": ["error"]}]"#;

    /// Checks that exactly this problem is reported for each text.
    fn assert_reported(table: &[(String, &str)]) {
        let mut wrong = Vec::new();
        for (written, expected) in table {
            let (got, expected) = (reported(written).join("\n"), format!("own/tools/x.jsonc:{expected}"));
            if got != expected {
                wrong.push(format!("{written}\nexpected {expected}\ngot      {got}\n"));
            }
        }
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }

    #[test]
    fn mistakes_in_the_syntax_and_the_form_are_reported() {
        let both = format!("{WATCH}, {RULES}");
        assert_reported(&[
            // The text.
            ("{\n \"title\": x }".to_owned(), "2:11: unexpected word"),
            (passive(&format!("{both},\n\"title\": \"z\"")), "6:1: the member `title` is repeated"),
            // The shape.
            ("[]".to_owned(), "1:1: expected an object, found an array"),
            (passive(&format!("{both},\n\"whi\": \"z\"")), "6:1: unknown member `whi` (did you mean `why`?)"),
            (passive(&format!("{both},\n\"tags\": \"z\"")), "6:9: expected an array, found a string"),
            (passive(&format!("{both},\n\"why\": \"\"")), "6:8: it must not be empty"),
            (passive(&format!("{both},\n\"tags\": [\"a\", \"a\"]")), "6:9: an item is repeated"),
            (passive(&format!("{both},\n\"tags\": [\"a b\"]")), "6:10: invalid value; expected: A name."),
            (
                format!("{{\"title\": \"x\", \"requirements\": [\"tool-name-string\"],\n{both}}}"),
                "1:1: the member `fix` is missing",
            ),
            (
                passive(&format!("\"watch\": {{\"kind\": \"reslt\"}}, {RULES}")),
                "5:19: unknown value `reslt`: expected one of `line`, `message`, `response`, `result`, `error`, `request`, `client-request`, `notification`, `exchange`, `connection` (did you mean `result`?)",
            ),
            (
                active(&format!("{{\"send\": {{}}, {EXPECT}, \"meta\": true}}")),
                "6:58: invalid value; expected: `false` sends a stateless request without `_meta`; an object replaces it.",
            ),
        ]);
    }

    #[test]
    fn mistakes_in_the_description_and_the_revisions_are_reported() {
        let both = format!("{WATCH}, {RULES}");
        assert_reported(&[
            // What it says of itself.
            (
                passive(&both).replace("\"x\"", &format!("\"{}\"", "x".repeat(71))),
                "2:10: the title has 71 characters; at most 70 are allowed",
            ),
            (
                passive(&both).replace("\"x\"", "\"A server Should answer\""),
                "2:10: the title contains `should`: state what a conforming server does",
            ),
            (
                passive(&both).replace("tool-name-string", "tool-name-strin"),
                "3:18: unknown requirement `tool-name-strin` (did you mean `tool-name-string`?)",
            ),
            (
                passive(&format!("{both},\n\"fault\": \"tool-object\"")),
                "6:10: the reference server has no fault `tool-object` (did you mean `tools-object`?)",
            ),
            (
                passive(&format!("{both},\n\"needs\": {{\"tool\": {{\"typ\": 1}}}}")),
                "6:20: the keyword `typ` checks nothing here (did you mean `type`?)",
            ),
            // The revisions.
            (
                passive(&format!("{both},\n\"revisions\": \"2024-10-07\""))
                    .replace("tool-name-string", "tool-name-charset"),
                "6:14: the case runs in no revision: its requirements are stated in 2025-11-25, 2026-07-28",
            ),
            (
                passive(&format!("{both},\n\"revisions\": \"..2025-06-18\""))
                    .replace("[\"", "[\"tool-name-charset\", \""),
                "3:18: the requirement `tool-name-charset` is not stated in the revisions of the case (2024-10-07, 2024-11-05, 2025-03-26, 2025-06-18)",
            ),
            (
                passive(&format!("{both},\n\"revisions\": \"2025-06-19\"")),
                "6:14: `2025-06-19` is not a revision; use 2024-10-07, 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 or 2026-07-28 (did you mean `2025-06-18`?)",
            ),
            (
                passive(&format!("{both},\n\"revisions\": \"2025-06-18..2024-11-05\"")),
                "6:14: `2025-06-18..2024-11-05` is empty: it begins after its end",
            ),
            (
                passive(&format!("{both},\n\"revisions\": \"2025-06-18,\"")),
                "6:14: the set of revisions has an empty part",
            ),
            (
                passive(&format!(
                    "\"revisions\": \"2025-06-18\", {WATCH}, \"rules\": [\n{{\"check\": \"tool-known\", \"revisions\": \"2024-11-05\"}}]"
                )),
                "6:38: this never applies: it is within something that runs in 2025-06-18 only",
            ),
            (
                passive(&format!(
                    "{WATCH}, \"rules\": [\n{{\"check\": \"tool-known\", \"revisions\": \"2024-11-05\", \"requirement\": \"tool-name-charset\"}}]"
                )),
                "6:67: the requirement `tool-name-charset` is not stated in the revisions here (2024-11-05)",
            ),
        ]);
    }

    #[test]
    fn mistakes_in_the_kind_and_the_watched_values_are_reported() {
        let both = format!("{WATCH}, {RULES}");
        assert_reported(&[
            // What it does.
            (passive("\"why\": \"z\""), "1:1: the case has none of `watch`, `steps` and `fuzz`"),
            (passive(RULES), "5:1: `rules` needs `watch`"),
            (passive(WATCH), "5:1: `watch` needs `rules`"),
            (
                passive(&format!("{both},\n\"steps\": [{{\"raw\": \"\", {EXPECT}}}]")),
                "6:1: the case has both `watch` and `steps`: a case is either passive or active",
            ),
            (
                passive(&format!("{both},\n\"process\": \"fresh\"")),
                "6:1: `process` applies to steps, and a passive case has none",
            ),
            (
                passive(&format!("\"provoked-by\": [\"a\"], \"steps\": [{{\"raw\": \"\", {EXPECT}}}]")),
                "5:1: `provoked-by` applies to passive cases only",
            ),
            (
                passive(&format!("\"provoked-by\": [\"a b\"], {both}")),
                "5:17: invalid value; expected: The id of a case, or an area.",
            ),
            // What it watches.
            (
                passive(&format!("\"watch\": {{\"kind\": \"result\", \"path\": \"tools\"}}, {RULES}")),
                "5:37: the path `tools` does not begin with `/`",
            ),
            (
                passive(r#""watch": {"kind": "line", "methods": ["ping"]}, "rules": [{"schema": {"type": "object"}}]"#),
                "5:27: `methods` does not apply to `line`",
            ),
            (
                passive(
                    "\"watch\": {\"kind\": \"connection\", \"path\": \"/a\"}, \"rules\": [{\"check\": \"answered-once\"}]",
                ),
                "5:33: `path` does not apply to a connection as a whole",
            ),
            (
                passive(&format!("{WATCH}, \"rules\": [\n{{\"message\": \"z\"}}]")),
                "6:1: the rule has neither `schema` nor `check`",
            ),
            (
                passive(&format!(
                    "{WATCH}, \"rules\": [\n{{\"check\": \"tool-known\", \"schema\": {{\"type\": \"string\"}}}}]"
                )),
                "6:1: the rule has both `schema` and `check`: use one of them",
            ),
            (
                passive(&format!("{WATCH}, \"rules\": [\n{{\"check\": \"json-shema\"}}]")),
                "6:11: unknown check `json-shema` (did you mean `json-schema`?)",
            ),
            (
                passive(&format!("{WATCH}, \"rules\": [\n{{\"check\": \"answered-once\"}}]")),
                "6:11: the check `answered-once` is for a connection: set `watch.kind` to `connection`",
            ),
            (
                passive("\"watch\": {\"kind\": \"connection\"}, \"rules\": [\n{\"check\": \"tool-known\"}]"),
                "6:11: the check `tool-known` is for a value, not for a connection",
            ),
            (
                passive("\"watch\": {\"kind\": \"connection\"}, \"rules\": [\n{\"schema\": {\"type\": \"object\"}}]"),
                "6:2: a rule for a connection as a whole needs a `check`, not a schema",
            ),
            (
                passive(&format!("{WATCH}, \"rules\": [\n{{\"schema\": {{\"title\": \"z\"}}}}]")),
                "6:12: the schema accepts everything, so the rule cannot be violated",
            ),
            (
                passive(&format!("{WATCH}, \"rules\": [\n{{\"schema\": {{\"pattern\": \"a(\"}}}}]")),
                "6:24: invalid regular expression `a(`",
            ),
            (
                passive(&format!("{WATCH}, \"rules\": [\n{{\"schema\": {{\"$ref\": \"shapes/nmae\"}}}}]")),
                "6:21: unknown shape `nmae`",
            ),
            (
                passive(&format!("{WATCH}, \"rules\": [\n{{\"schema\": {{\"const\": \"${{tool}}\"}}}}]")),
                "6:22: `${tool}` is filled in only in what a step sends",
            ),
        ]);
    }

    #[test]
    fn mistakes_in_steps_are_reported() {
        assert_reported(&[
            // What it sends.
            (
                active(&format!("{{{EXPECT}}}")),
                "6:1: the step has no action: use one of `send`, `notify`, `batch`, `raw`, `paginate`, `retry`, `http`, `close`, `shutdown` and `wait-ms`",
            ),
            (
                active(&format!("{{\"send\": {{}}, \"raw\": \"\", {EXPECT}}}")),
                "6:14: the step already has `send`: a step has one action",
            ),
            (
                active(&format!("{{\"raw\": \"\", \"poll\": {{\"until\": true}}, {EXPECT}}}")),
                "6:13: `poll` does not apply to `raw`: it repeats a `send`",
            ),
            (
                active(&format!("{{\"send\": {{}}, \"pipelined\": true, \"poll\": {{\"until\": true}}, {EXPECT}}}")),
                "6:33: a step that is `pipelined` does not wait for a response",
            ),
            (
                active(&format!("{{\"wait-ms\": 9000}}, {{\"raw\": \"\", {EXPECT}}}")),
                "6:13: invalid value; expected: Waits this many milliseconds before the next step.",
            ),
            (
                active(&format!("{{\"wait-ms\": 9, {EXPECT}}}")),
                "6:16: `expect` does not apply to `wait-ms`: there is no response to it",
            ),
            (active(&format!("{{\"raw\": {{\"hex\": \"7b f\"}}, {EXPECT}}}")), "6:9: `hex` is not valid"),
            (
                active(&format!("{{\"raw\": {{\"base64\": \"${{tool}}\"}}, {EXPECT}}}")),
                "6:9: `base64` is not valid\nown/tools/x.jsonc:6:20: `${tool}` is filled in only in what a step sends",
            ),
            (
                active(&format!("{{\"raw\": \"\", \"pipelined\": true, {EXPECT}}}")),
                "6:13: `pipelined` does not apply to `raw`: the step does not wait for a response",
            ),
            (
                active(&format!("{{\"raw\": \"${{page.cursor}}\", {EXPECT}}}")),
                "6:9: `${page.cursor}` needs `\"for-each\": {\"page\": METHOD}`",
            ),
            (
                passive(&format!("\"for-each\": \"tol\", \"steps\": [{{\"raw\": \"\", {EXPECT}}}]")),
                "5:13: unknown value `tol`: expected `tool`, `resource`, `prompt` or an object (did you mean `tool`?)",
            ),
            (
                passive(&format!(
                    "\"for-each\": {{\"page\": \"tools/list\"}}, \"steps\": [{{\"raw\": \"\", {EXPECT}}}]"
                )),
                "5:1: the steps are the same for each page: none uses the placeholder `${page.cursor}`",
            ),
            (
                active("{\"send\": {\"method\": \"ping\"}}"),
                "5:1: the case checks nothing: it has neither `expect` in a step nor `across-steps`",
            ),
            (
                active(&format!("{{\"send\": {{\"method\": \"${{tol}}\"}}, {EXPECT}}}")),
                "6:21: unknown placeholder `${tol}` (did you mean `${tool}`?)",
            ),
            (
                active(&format!("{{\"send\": {{\"${{text.x}}\": 1}}, {EXPECT}}}")),
                "6:11: the length in `${text.x}` is not a number up to 1000000",
            ),
            (active(&format!("{{\"raw\": \"${{id\", {EXPECT}}}")), "6:9: `${` is not followed by `}`"),
            (
                active(&format!(
                    "{{\"raw\": \"${{saved.a}}\", {EXPECT}}},\n{{\"send\": {{}}, \"save\": {{\"a\": \"/b\"}}}}"
                )),
                "6:9: no earlier step saves `a`",
            ),
            (
                active(&format!(
                    "{{\"send\": {{}}, \"save\": {{\"a\": \"/b\"}}, \"pipelined\": true}},\n{{\"raw\": \"${{saved.a}}\", {EXPECT}}}"
                )),
                "7:9: `a` is saved by a step that is not yet answered when this is sent",
            ),
            (
                active(&format!("{{\"send\": {{}}, \"save\": {{\"a\": \"/b/*\"}}, {EXPECT}}}")),
                "6:28: `/b/*` matches several values, but only one can be saved",
            ),
            (
                active(&format!("{{\"notify\": {{}}, \"control\": true, {EXPECT}}}")),
                "6:16: `control` does not apply to `notify`: nothing is served in response to it",
            ),
            (
                active(&format!(
                    "{{\"pipelined\": true, \"http\": {{\"method\": \"GET\", \"keep-open\": true}}, {EXPECT}}}"
                )),
                "6:2: it cannot be combined with `keep-open`, with which no step waits for the response either",
            ),
            (
                active(&format!(
                    "{{\"pipelined\": true, \"http\": {{\"method\": \"GET\"}}, \"save\": {{\"a\": \"/status\"}}, {EXPECT}}}"
                )),
                "6:48: an `http` step that is `pipelined` saves no values",
            ),
            (
                active(&format!("{{\"raw\": \"\", \"meta\": false, {EXPECT}}}")),
                "6:13: `meta` does not apply to `raw`: it adds no `_meta`",
            ),
            (
                active(&format!("{{\"name\": \"a\", \"raw\": \"\", {EXPECT}}},\n{{\"name\": \"a\", \"raw\": \"\"}}")),
                "7:10: another step has the name `a`",
            ),
            (
                passive(&format!("\"for-each\": \"tool\", \"steps\": [{{\"raw\": \"\", {EXPECT}}}]")),
                "5:1: the steps are the same for each tool: none uses the placeholder `${tool...}`",
            ),
            (
                passive(&format!("\"client-capabilities\": {{}}, \"steps\": [{{\"raw\": \"\", {EXPECT}}}]")),
                "5:1: `client-capabilities` needs a process of the case's own: set `process` to `fresh`",
            ),
            (
                passive(&format!("\"once\": true, \"steps\": [{{\"raw\": \"\", {EXPECT}}}]")),
                "5:1: `once` needs a process of the case's own: set `process` to `fresh`",
            ),
        ]);
    }

    #[test]
    fn mistakes_in_expected_responses_are_reported() {
        assert_reported(&[
            // What may come back.
            (
                active("{\"raw\": \"\", \"expect\": [{\"outcome\": [\"eror\"]}]}"),
                "6:37: unknown value `eror`: expected one of `result`, `success`, `tool-error`, `input-required`, `error`, `malformed`, `no-response`, `http-error`, `closed`, `stdin-closed`, `sigterm`, `sigkill` (did you mean `error`?)",
            ),
            (
                active("{\"raw\": \"\", \"expect\": [{\"outcome\": [\"sigterm\"]}]}"),
                "6:37: `sigterm` is not an outcome of `raw`",
            ),
            (
                active("{\"raw\": \"\", \"expect\": [{\"outcome\": [\"result\"], \"code\": [1]}]}"),
                "6:48: only an `error` has a code, and `outcome` does not list it",
            ),
            (active("{\"raw\": \"\", \"expect\": [{\"code\": [1.5]}]}"), "6:34: expected an integer, found a number"),
            (
                active("{\"raw\": \"\", \"expect\": [{\"message\": \"z\"}, {\"outcome\": [\"error\"]}]}"),
                "6:24: every response matches this entry, so nothing after it is reached",
            ),
            (
                passive(
                    "\"across-steps\": [{\"check\": \"same\", \"steps\": [\"a\", \"b\"]}],\n\"steps\": [{\"name\": \"a\", \"raw\": \"\", \"otherwise\": {\"message\": \"z\"}}, {\"name\": \"b\", \"raw\": \"\"}]",
                ),
                "6:36: `otherwise` needs `expect`: without it any response is right",
            ),
            // What holds of several steps.
            (
                passive(
                    "\"across-steps\": [{\"check\": \"same\", \"steps\": [\"first\", \"frist\"]}],\n\"steps\": [{\"name\": \"first\", \"raw\": \"\"}]",
                ),
                "5:55: no step is named `frist` (did you mean `first`?)",
            ),
            (
                passive(
                    "\"across-steps\": [{\"check\": \"same\", \"steps\": [\"a\"]}],\n\"steps\": [{\"name\": \"a\", \"raw\": \"\"}]",
                ),
                "5:45: it has fewer than 2 items",
            ),
        ]);
    }

    #[test]
    fn all_problems_of_all_files_are_reported_in_order() {
        let invalid = passive(
            "\"whi\": 1,\n\"watch\": {\"kind\": \"reslt\"},\n\"rules\": [{\"check\": \"x\"}, {}],\n\"fault\": 5",
        );
        let texts = vec![text("b/x", &invalid), text("a/y", "{"), text("a/z", PASSIVE)];
        let error = parse_cases(texts, &[], Trust::Nothing).expect_err("one of them is invalid");
        let places: Vec<_> =
            error.faults.iter().map(|fault| format!("{}:{}:{}", fault.file, fault.line, fault.column)).collect();
        assert_eq!(
            places,
            [
                "own/a/y.jsonc:1:1",
                "own/b/x.jsonc:5:1",
                "own/b/x.jsonc:6:19",
                "own/b/x.jsonc:7:21",
                "own/b/x.jsonc:7:27",
                "own/b/x.jsonc:8:10",
            ],
            "{error}"
        );
        assert_eq!(error.to_string().lines().count(), 6);
    }

    #[test]
    fn a_file_of_nothing_but_mistakes_is_checked_in_bounded_time() {
        let many = |item: &str| vec![item; MAX_FILE_BYTES / item.len() / 16].join(",");
        for invalid in [
            passive(&format!("\"tags\": [{}]", many("1"))),
            passive(&format!("\"rules\": [{}]", many("{}"))),
            active(&many("{\"raw\":\"${x}\"}")),
            passive(&format!("\"needs\": {{\"tool\": {}{}}}", "{\"not\":".repeat(110), "}".repeat(110))),
            passive(&format!("\"watch\": {}1{}", "{\"where\":".repeat(50_000), "}".repeat(50_000))),
        ] {
            assert!((1..=MAX_PROBLEMS_PER_FILE + 1).contains(&reported(&invalid).len()));
        }
    }

    #[test]
    fn an_id_is_unique_and_of_plain_characters() {
        let embedded =
            CaseText { source: Source::Embedded, file: "cases/a/b.jsonc".to_owned(), ..text("a/b", CONNECTION) };
        let error =
            parse_cases(vec![embedded, text("a/b", CONNECTION), text("a b/ü", CONNECTION)], &[], Trust::Embedded)
                .expect_err("two ids are wrong");
        assert_eq!(
            error.to_string(),
            "own/a b/ü.jsonc: the id `a b/ü` has other characters than letters, digits, `-`, `_` and `.` between slashes: rename the file\n\
             own/a/b.jsonc: the id `a/b` is already used by cases/a/b.jsonc"
        );
    }

    #[test]
    fn an_invalid_trusted_case_is_reported() {
        let invalid = passive("\"watch\": {\"kind\": \"reslt\"}, \"rules\": [{\"check\": \"tool-known\"}]");
        let embedded = CaseText { source: Source::Embedded, ..text("a/b", &invalid) };
        let error = parse_cases(vec![embedded], &[], Trust::Embedded).expect_err("it is invalid");
        assert_eq!(error.faults[0].suggestion.as_deref(), Some("result"));
    }

    #[test]
    fn the_embedded_cases_are_valid() {
        if let Err(error) = parse_cases(read_embedded(), &[], Trust::Nothing) {
            panic!("{error}");
        }
    }

    #[test]
    fn a_directory_is_read_with_links_and_shapes_but_without_hidden_entries() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        fs::create_dir_all(root.join("mine/deep")).expect("made");
        fs::create_dir_all(root.join(".git")).expect("made");
        fs::write(root.join("mine/deep/one.jsonc"), CONNECTION).expect("written");
        fs::write(root.join(".git/two.jsonc"), "{").expect("written");
        fs::write(root.join("mine/notes.txt"), "{").expect("written");
        fs::create_dir(root.join("shapes")).expect("made");
        fs::write(root.join("shapes/name.json"), r#"{"type": "object", "required": ["name"]}"#).expect("written");
        let referring = PASSIVE.replace(r#"{"check": "tool-known"}"#, r#"{"schema": {"$ref": "shapes/name"}}"#);
        fs::write(root.join("mine/four.jsonc"), referring.replace("Give each tool", "Give every tool"))
            .expect("written");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root, root.join("mine/loop")).expect("linked");
            std::os::unix::fs::symlink(root.join("mine/deep/one.jsonc"), root.join("mine/three.jsonc"))
                .expect("linked");
        }
        let (mut texts, mut faults) = (Vec::new(), Vec::new());
        read_directory(root, &mut texts, &mut faults);
        assert_eq!(faults, []);
        let ids: Vec<_> = texts.iter().map(|text| text.id.as_str()).collect();
        let linked: &[&str] = if cfg!(unix) { &["mine/three"] } else { &[] };
        assert_eq!(ids, [&["mine/deep/one", "mine/four"], linked, &["shapes/name"]].concat());
        let cases = load(Some(root), &[]).expect("they load");
        assert!(cases.iter().any(|case| case.id == "mine/deep/one" && matches!(case.source, Source::File(_))));
        let case = cases.iter().find(|case| case.id == "mine/four").expect("it is loaded");
        let Body::Passive(passive) = &case.body else { panic!("it is passive") };
        let Watch::Values(values) = &passive.watch else { panic!("it watches values") };
        let ValueRule::Schema(schema) = &values.rules[2].check else { panic!("the last rule is a schema") };
        assert!(schema.fits(&serde_json::json!({"name": 5})) && !schema.fits(&serde_json::json!({})));
    }

    #[test]
    fn unreadable_and_invalid_files_are_reported_together() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        fs::write(root.join("a.jsonc"), vec![b' '; MAX_FILE_BYTES + 1]).expect("written");
        fs::write(root.join("b.jsonc"), b"{\n \"title\": \"\xe9\"}").expect("written");
        fs::write(root.join("c.jsonc"), "{").expect("written");
        let error = load(Some(root), &[]).expect_err("all are invalid").to_string();
        let reported: Vec<_> = error.lines().map(|line| line.rsplit_once('/').map_or(line, |(_, end)| end)).collect();
        assert_eq!(
            reported,
            [
                "a.jsonc: it is larger than 1048576 bytes",
                "b.jsonc:2:12: it is not valid UTF-8 from here on",
                "c.jsonc:1:1: unterminated object",
            ]
        );
    }

    #[test]
    fn an_empty_or_missing_directory_is_reported() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = load(Some(directory.path()), &[]).expect_err("it is empty").to_string();
        assert!(error.ends_with("no case file is below this directory: the extension of a case is .jsonc"), "{error}");
        let error = load(Some(&directory.path().join("missing")), &[]).expect_err("it is missing").to_string();
        assert!(error.contains("missing: failed to read the directory: "), "{error}");
    }
}
