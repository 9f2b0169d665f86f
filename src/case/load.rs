//! Reads case files, the embedded ones and a directory of the user's, and tells every fault in them.
//!
//! Alone in this module to touch the disk, and within bounds: in the number of files, in their size
//! and in how often a directory is entered.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use super::fault::{CaseFault, Flaw, LoadError};
use super::inspect;
use super::jsonc::{Document, position};
use super::loaded::{Case, Source};
use super::model::CaseFile;
use super::shape::{self, Form};
use super::stimuli::{BadStimulus, bad_stimuli};

/// The largest case file that is read, in bytes (1 MiB).
pub const MAX_FILE_BYTES: usize = 1024 * 1024;

/// The greatest number of case files that are read from a directory.
pub const MAX_FILES: usize = 10_000;

/// The greatest number of entries, of whatever kind, that are looked at in a directory.
const MAX_ENTRIES: usize = 10 * MAX_FILES;

/// The greatest number of faults that are told of one file; of more, their number is told.
const MAX_FAULTS: usize = 200;

/// The member that names the stimuli of a passive case.
const PROVOKED_BY: &str = "\"provoked-by\"";

/// The ending of a case file.
const ENDING: &str = "jsonc";

static CASES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/cases");

/// The text of a case, not yet understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseText {
    /// The id that its path gives it.
    pub id: String,
    /// The file by the name that faults show.
    pub file: String,
    /// Where it comes from.
    pub source: Source,
    /// The text.
    pub text: String,
}

/// What is looked into before a case is believed to be whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Embedded cases are taken at their word, since the suite has proved them; all others are proved.
    Embedded,
    /// Every case is proved.
    Nothing,
}

/// Loads the embedded cases, and those of a directory beside them, sorted by id.
///
/// `faults` are the names of the faults that the built-in server knows; with none of them given, the
/// faults that cases name are not checked.
///
/// # Errors
/// When a file cannot be read or a case has a fault; every fault in every file is told.
pub fn load(directory: Option<&Path>, faults: &[&str]) -> Result<Vec<Case>, LoadError> {
    let mut texts = read_embedded();
    let mut unread = Vec::new();
    if let Some(directory) = directory {
        read_directory(directory, &mut texts, &mut unread);
    }
    match understand(texts, faults, Trust::Embedded) {
        Ok(cases) if unread.is_empty() => Ok(cases),
        Ok(_) => Err(LoadError { faults: unread }),
        Err(mut error) => {
            error.faults.extend(unread);
            error.faults.sort();
            Err(error)
        }
    }
}

/// Understands the texts of cases, sorted by id.
///
/// # Errors
/// When a case has a fault or an id is used twice; every fault in every text is told.
pub fn understand(texts: Vec<CaseText>, faults: &[&str], trust: Trust) -> Result<Vec<Case>, LoadError> {
    let mut cases = Vec::with_capacity(texts.len());
    let mut told = Vec::new();
    let mut taken: HashMap<String, String> = HashMap::with_capacity(texts.len());
    let mut passive = HashMap::new();
    for text in texts {
        if text.text.contains(PROVOKED_BY) {
            passive.insert(text.id.clone(), (text.file.clone(), text.text.clone()));
        }
        told.extend(fault_of_id(&text, &taken));
        taken.entry(text.id.clone()).or_insert_with(|| text.file.clone());
        match understand_one(text, faults, trust) {
            Ok(case) => cases.push(case),
            Err(faults) => told.extend(faults),
        }
    }
    cases.sort_by(|a, b| a.id.cmp(&b.id));
    // Where a file is broken, what it would have named cannot be known.
    if told.is_empty() {
        told.extend(bad_stimuli(&cases).into_iter().map(|bad| stimulus_fault(bad, &passive)));
    }
    if told.is_empty() {
        return Ok(cases);
    }
    told.sort();
    Err(LoadError { faults: told })
}

/// A fault of a stimulus at the place where the file names it.
fn stimulus_fault(bad: BadStimulus, files: &HashMap<String, (String, String)>) -> CaseFault {
    let (file, text) = files.get(&bad.case).map_or(("", ""), |(file, text)| (file.as_str(), text.as_str()));
    let list = text.find(PROVOKED_BY).unwrap_or(0);
    let offset = text[list..].find(&format!("\"{}\"", bad.name)).map_or(list, |at| list + at);
    let (line, column) = position(text, offset);
    CaseFault {
        line,
        column,
        pointer: "/provoked-by".to_owned(),
        suggestion: bad.suggestion,
        ..CaseFault::of_file(file, bad.message)
    }
}

fn fault_of_id(text: &CaseText, taken: &HashMap<String, String>) -> Option<CaseFault> {
    let fits = |segment: &str| {
        !segment.is_empty()
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    let CaseText { id, file, .. } = text;
    if let Some(other) = taken.get(id) {
        return Some(CaseFault::of_file(file, format!("the id `{id}` is taken by {other}")));
    }
    (!id.split('/').all(fits)).then(|| {
        CaseFault::of_file(
            file,
            format!("the id `{id}` is not of letters, digits, `-`, `_` and `.` between slashes: rename the file"),
        )
    })
}

fn understand_one(text: CaseText, faults: &[&str], trust: Trust) -> Result<Case, Vec<CaseFault>> {
    let CaseText { id, file, source, text } = text;
    let document = Document::read(&file, &text).map_err(|fault| vec![fault])?;
    let trusted = trust == Trust::Embedded && source == Source::Embedded;
    let flaws = if trusted { Vec::new() } else { flaws(&document, faults) };
    if !flaws.is_empty() {
        return Err(locate(&document, flaws));
    }
    let case = CaseFile::deserialize(&document.value)
        .map_err(|error| error.to_string())
        .and_then(|case| Case::of(id, source, case).ok_or_else(|| "the case does not hold together".to_owned()));
    case.map_err(|message| {
        // A trusted case that is not whole after all is told as any other would be.
        let mut flaws = if trusted { self::flaws(&document, faults) } else { Vec::new() };
        if flaws.is_empty() {
            flaws.push(Flaw::at("", message));
        }
        locate(&document, flaws)
    })
}

/// Gives the flaws of a file their places. A file with very many is no case at all, and each place takes
/// a look through the text.
pub(super) fn locate(document: &Document, mut flaws: Vec<Flaw>) -> Vec<CaseFault> {
    let found = flaws.len();
    flaws.truncate(MAX_FAULTS);
    let mut faults: Vec<_> = flaws.into_iter().map(|flaw| document.locate(flaw)).collect();
    if found > MAX_FAULTS {
        let message = format!("the file has {found} faults, of which {MAX_FAULTS} are told");
        faults.push(document.locate(Flaw::at("", message)));
    }
    faults
}

/// Everything that is wrong with a case that parsed.
fn flaws(document: &Document, faults: &[&str]) -> Vec<Flaw> {
    let mut flaws = document.flaws.clone();
    flaws.extend(inspect::flaws(&document.value, faults));
    flaws.extend(shape::flaws(Form::Case, &document.value, &flaws));
    let mut seen = HashSet::new();
    flaws.retain(|flaw| seen.insert((flaw.pointer.clone(), flaw.message.clone())));
    flaws
}

/// The texts of the embedded cases.
#[must_use]
pub fn read_embedded() -> Vec<CaseText> {
    let mut texts = Vec::new();
    collect_embedded(&CASES, &mut texts);
    texts
}

fn collect_embedded(directory: &Dir<'static>, texts: &mut Vec<CaseText>) {
    for file in directory.files() {
        if let (Some(id), Some(text)) = (id_of(file.path()), file.contents_utf8()) {
            let file = format!("cases/{id}.{ENDING}");
            texts.push(CaseText { id, file, source: Source::Embedded, text: text.to_owned() });
        }
    }
    directory.dirs().for_each(|inner| collect_embedded(inner, texts));
}

/// The id that a path below the directory of cases gives, if it is that of a case file.
fn id_of(path: &Path) -> Option<String> {
    if path.extension()? != ENDING {
        return None;
    }
    let stem = path.with_extension("");
    let segments: Vec<_> = stem.iter().map(|segment| segment.to_string_lossy()).collect();
    Some(segments.join("/"))
}

/// Reads every case file below a directory; hidden entries are left out.
///
/// What was read is added to `texts`, what could not be to `faults`.
pub fn read_directory(directory: &Path, texts: &mut Vec<CaseText>, faults: &mut Vec<CaseFault>) {
    let files = match list(directory) {
        Ok(files) => files,
        Err(fault) => return faults.push(fault),
    };
    if files.is_empty() {
        let message = format!("no case file stands below this directory: a case ends in .{ENDING}");
        return faults.push(CaseFault::of_file(directory.display().to_string(), message));
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

/// The case files below a directory, sorted. A link to a directory is followed, but no directory is
/// entered twice, so that a loop of links ends.
fn list(root: &Path) -> Result<Vec<PathBuf>, CaseFault> {
    let unreadable = |path: &Path, error: &io::Error| {
        CaseFault::of_file(path.display().to_string(), format!("failed to read the directory: {error}"))
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
                    "holds more than {MAX_FILES} case files or {MAX_ENTRIES} entries: name a smaller directory"
                );
                return Err(CaseFault::of_file(root.display().to_string(), message));
            }
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|ending| ending == ENDING) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The text of a file within the bound.
pub(super) fn read(path: &Path, file: &str) -> Result<String, CaseFault> {
    let fault = |message: String| CaseFault::of_file(file, message);
    let failed = |error: io::Error| fault(format!("failed to read the file: {error}"));
    // Opening a pipe would wait for someone to write into it.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(fault("it is no regular file".to_owned()));
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
        CaseFault { line, column, ..fault("it is not UTF-8 from here on".to_owned()) }
    })
}

/// Reads a value as a case file is read, for tests of other modules.
#[cfg(test)]
pub(super) fn case_of(id: &str, value: &serde_json::Value) -> Case {
    let file = CaseFile::deserialize(value).expect("the value is a case file");
    Case::of(id.to_owned(), Source::Embedded, file).expect("the case holds together")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::asking::{InputResponses, RequestState};
    use super::super::loaded::Body;
    use super::super::model::{Outcome, Process, WatchKind};
    use super::super::placeholder::Placeholder;
    use super::*;
    use crate::spec::Revision;
    use crate::verdict::Verdict;

    const WATCHING: &str = r#"// What a watching case looks like.
{
  "$schema": "../../schema.json",
  "title": "The items of a tool list are objects with a name",
  "requirements": ["tool-name-string"],
  "tags": ["shape"],
  "why": "A client calls a tool by its name.",
  "fix": "Give each tool a name.",
  "fault": "tool-name-number",
  "watch": {"kind": "result", "methods": ["tools/list"], "path": "/tools/*", "matching": {"type": "object"}},
  "rules": [
    {"schema": {"required": ["name"], "properties": {"name": {"type": "string"}}}, "message": "A tool has no name."},
    {"schema": {"properties": {"title": {"type": "string"}}}, "revisions": "2025-06-18..", "verdict": "warn"},
    {"check": "tool-known"},
  ],
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

    const ACTING: &str = r#"{
  "title": "A call of an unknown tool is refused",
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
    {"raw": "{\"id\": ${id}, \"_meta\": ${meta}, \"x\": \"${saved.text}", "pipelined": true},
    {"name": "all", "paginate": "tools/list"},
    {
      "send": {"method": "tools/call", "params": {"name": "${unknown-tool}", "x": "${text.5000}"}},
      "meta": false,
      "expect": [
        {"outcome": ["error"], "code": [-32602]},
        {"outcome": ["tool-error"], "verdict": "warn", "message": "It is refused as a failed call.", "revisions": "2024-11-05.."},
        {"schema": {"required": ["error"]}},
      ],
      "otherwise": {"verdict": "fail", "message": "It is served."},
    },
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
        let mut cases = understand(vec![text("tools/x", written)], &["tool-name-number"], Trust::Nothing)
            .unwrap_or_else(|error| panic!("{error}"));
        cases.remove(0)
    }

    fn told(written: &str) -> Vec<String> {
        let faults = ["tool-name-number", "tools-object"];
        match understand(vec![text("tools/x", written)], &faults, Trust::Nothing) {
            Ok(_) => Vec::new(),
            Err(error) => error.faults.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_watching_case_is_loaded() {
        let case = loaded(WATCHING);
        assert_eq!((case.id.as_str(), case.area()), ("tools/x", "tools"));
        assert_eq!(case.revisions, crate::spec::RevisionSet::ALL);
        let Body::Watch { watch, rules, .. } = &case.body else { panic!("it watches") };
        assert_eq!(watch.kind, WatchKind::Result);
        assert_eq!(watch.path.as_ref().map(super::super::Place::as_str), Some("/tools/*"));
        let pattern = rules[0].schema.as_ref().expect("the first rule is a schema");
        assert!(pattern.fits(&serde_json::json!({"name": "a"})));
        assert!(!pattern.fits(&serde_json::json!({"name": 1})));
        assert_eq!(rules[1].verdict, Some(Verdict::Warn));
        assert!(case.placeholders().is_empty());
        assert!(matches!(loaded(CONNECTION).body, Body::Watch { .. }));
    }

    #[test]
    fn an_acting_case_is_loaded() {
        let case = loaded(ACTING);
        let Body::Act(act) = &case.body else { panic!("it acts") };
        assert_eq!(act.process, Process::Fresh);
        assert_eq!(act.steps[5].expect[0].outcome, [Outcome::Error]);
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
    fn a_case_says_how_it_answers_and_comes_back() {
        let case = loaded(
            r#"{
  "title": "A state that was altered is refused",
  "requirements": ["mrtr-state-integrity"],
  "fix": "Refuse it.",
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
        let Body::Act(act) = &case.body else { panic!("it acts") };
        assert_eq!(act.client_responses["roots/list"].len(), 2);
        let retry = act.steps[1].retry.as_ref().expect("it comes back");
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
    fn a_fault_of_how_it_answers_is_told_at_its_place() {
        let case = |rest: &str| {
            told(&format!(
                "{{\n\"title\": \"x\", \"requirements\": [\"mrtr-state-integrity\"], \"fix\": \"y\",\n{rest}\n}}"
            ))
        };
        let steps = r#""steps": [{"name": "a", "send": {"method": "x"}, "expect": [{"outcome": ["error"]}]}]"#;
        let of_answers =
            case(&format!(r#""client-responses": {{"roots/list": [{{"result": {{"a": "${{tool}}"}}}}]}}, {steps}"#));
        assert_eq!(of_answers.len(), 1, "{of_answers:?}");
        assert!(
            of_answers[0].ends_with("`${tool}` is not filled in here, only in what a step sends"),
            "{of_answers:?}"
        );
        let of_step =
            case(r#""steps": [{"send": {"method": "${client-request.tool}"}, "expect": [{"outcome": ["error"]}]}]"#);
        assert!(
            of_step[0].ends_with("`${client-request.tool}` is filled in in `client-responses` only"),
            "{of_step:?}"
        );
        let of_retry = case(
            r#""steps": [{"name": "first", "send": {"method": "x"}}, {"retry": {"step": "frist"}, "expect": [{"outcome": ["error"]}]}]"#,
        );
        assert!(of_retry[0].ends_with("no earlier step is named `frist` (did you mean `first`?)"), "{of_retry:?}");
    }

    #[test]
    fn the_chief_requirement_is_the_first_that_the_revision_states() {
        let case = loaded(ACTING);
        let chief = |revision| case.requirement_in(revision).map(|requirement| requirement.id.as_str());
        assert_eq!(chief(Revision::V2024_10_07), Some("tools-call-unknown-tool-must-error"));
        assert_eq!(chief(Revision::V2025_06_18), Some("tools-call-unknown-tool-error"));
        let named = case.requirement_for(Some("tool-name-string"), Revision::V2025_06_18);
        assert_eq!(named.map(|requirement| requirement.id.as_str()), Some("tool-name-string"));
    }

    /// A watching case with these lines between its fourth and its last.
    fn watching(lines: &str) -> String {
        format!("{{\n\"title\": \"x\",\n\"requirements\": [\"tool-name-string\"],\n\"fix\": \"y\",\n{lines}\n}}")
    }

    /// An acting case of these steps, the first of which stands on line 6.
    fn acting(steps: &str) -> String {
        watching(&format!("\"steps\": [\n{steps}\n]"))
    }

    /// A part of a watching case that watches results.
    const WATCH: &str = r#""watch": {"kind": "result"}"#;

    /// What holds of them.
    const MUST: &str = r#""rules": [{"check": "tool-known"}]"#;

    /// What may come back to a step.
    const EXPECT: &str = r#""expect": [{"outcome": ["error"]}]"#;

    /// Holds each text against the one fault that it has.
    fn hold(table: &[(String, &str)]) {
        let mut wrong = Vec::new();
        for (written, expected) in table {
            let (got, expected) = (told(written).join("\n"), format!("own/tools/x.jsonc:{expected}"));
            if got != expected {
                wrong.push(format!("{written}\nexpected {expected}\ngot      {got}\n"));
            }
        }
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }

    #[test]
    fn a_fault_of_the_text_and_its_shape_is_told_at_its_place() {
        let both = format!("{WATCH}, {MUST}");
        hold(&[
            // The text.
            ("{\n \"title\": x }".to_owned(), "2:11: unexpected word"),
            (watching(&format!("{both},\n\"title\": \"z\"")), "6:1: the member `title` stands here twice"),
            // The shape.
            ("[]".to_owned(), "1:1: expected an object, found an array"),
            (watching(&format!("{both},\n\"whi\": \"z\"")), "6:1: unknown member `whi` (did you mean `why`?)"),
            (watching(&format!("{both},\n\"tags\": \"z\"")), "6:9: expected an array, found a string"),
            (watching(&format!("{both},\n\"why\": \"\"")), "6:8: it is empty"),
            (watching(&format!("{both},\n\"tags\": [\"a\", \"a\"]")), "6:9: an item stands here twice"),
            (watching(&format!("{both},\n\"tags\": [\"a b\"]")), "6:10: it does not fit what stands here: A word."),
            (
                format!("{{\"title\": \"x\", \"requirements\": [\"tool-name-string\"],\n{both}}}"),
                "1:1: the member `mend` is missing",
            ),
            (
                watching(&format!("\"watch\": {{\"kind\": \"reslt\"}}, {MUST}")),
                "5:19: unknown word `reslt`: here stands one of `line`, `message`, `response`, `result`, `error`, `request`, `asked`, `notification`, `exchange`, `connection` (did you mean `result`?)",
            ),
            (
                acting(&format!("{{\"send\": {{}}, {EXPECT}, \"meta\": true}}")),
                "6:53: it does not fit what stands here: `false` sends a stateless request without `_meta`; an object replaces it.",
            ),
        ]);
    }

    #[test]
    fn a_fault_of_what_it_says_of_itself_and_its_revisions_is_told_at_its_place() {
        let both = format!("{WATCH}, {MUST}");
        hold(&[
            // What it says of itself.
            (
                watching(&both).replace("\"x\"", &format!("\"{}\"", "x".repeat(71))),
                "2:10: the title has 71 characters, at most 70 are allowed",
            ),
            (
                watching(&both).replace("\"x\"", "\"A server Should answer\""),
                "2:10: the title says `should`: say what a conforming server does",
            ),
            (
                watching(&both).replace("tool-name-string", "tool-name-strin"),
                "3:18: unknown requirement `tool-name-strin` (did you mean `tool-name-string`?)",
            ),
            (
                watching(&format!("{both},\n\"fault\": \"tool-object\"")),
                "6:10: the built-in server has no fault `tool-object` (did you mean `tools-object`?)",
            ),
            (
                watching(&format!("{both},\n\"needs\": {{\"tool\": {{\"typ\": 1}}}}")),
                "6:20: the keyword `typ` checks nothing here (did you mean `type`?)",
            ),
            // The revisions.
            (
                watching(&format!("{both},\n\"revisions\": \"2024-10-07\""))
                    .replace("tool-name-string", "tool-name-charset"),
                "6:14: the case runs in no revision: its requirements are stated in 2025-11-25, 2026-07-28",
            ),
            (
                watching(&format!("{both},\n\"revisions\": \"..2025-06-18\""))
                    .replace("[\"", "[\"tool-name-charset\", \""),
                "3:18: the requirement `tool-name-charset` is stated in none of the case's revisions (2024-10-07, 2024-11-05, 2025-03-26, 2025-06-18)",
            ),
            (
                watching(&format!("{both},\n\"revisions\": \"2025-06-19\"")),
                "6:14: `2025-06-19` is no revision; the revisions are 2024-10-07, 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28 (did you mean `2025-06-18`?)",
            ),
            (
                watching(&format!("{both},\n\"revisions\": \"2025-06-18..2024-11-05\"")),
                "6:14: `2025-06-18..2024-11-05` holds no revision: it begins after its end",
            ),
            (
                watching(&format!("{both},\n\"revisions\": \"2025-06-18,\"")),
                "6:14: the set of revisions has an empty part",
            ),
            (
                watching(&format!(
                    "\"revisions\": \"2025-06-18\", {WATCH}, \"rules\": [\n{{\"check\": \"tool-known\", \"revisions\": \"2024-11-05\"}}]"
                )),
                "6:38: this is never in force: what it stands in runs in 2025-06-18 only",
            ),
            (
                watching(&format!(
                    "{WATCH}, \"rules\": [\n{{\"check\": \"tool-known\", \"revisions\": \"2024-11-05\", \"requirement\": \"tool-name-charset\"}}]"
                )),
                "6:67: the requirement `tool-name-charset` is stated in none of the revisions here (2024-11-05)",
            ),
        ]);
    }

    #[test]
    fn a_fault_of_what_it_does_and_watches_is_told_at_its_place() {
        let both = format!("{WATCH}, {MUST}");
        hold(&[
            // What it does.
            (watching("\"why\": \"z\""), "1:1: the case has none of `watch`, `steps` and `fuzz`"),
            (watching(MUST), "5:1: `must` speaks of nothing without `watch`"),
            (watching(WATCH), "5:1: `watch` judges nothing without `must`"),
            (
                watching(&format!("{both},\n\"steps\": [{{\"raw\": \"\", {EXPECT}}}]")),
                "6:1: the case has both `watch` and `steps`: it does either",
            ),
            (
                watching(&format!("{both},\n\"process\": \"fresh\"")),
                "6:1: `process` speaks of steps, and the case watches",
            ),
            // What it watches.
            (
                watching(&format!("\"watch\": {{\"kind\": \"result\", \"path\": \"tools\"}}, {MUST}")),
                "5:35: the place `tools` does not begin with `/`",
            ),
            (
                watching(
                    r#""watch": {"kind": "line", "methods": ["ping"]}, "rules": [{"schema": {"type": "object"}}]"#,
                ),
                "5:27: `of` picks messages by method, and `line` has none",
            ),
            (
                watching(
                    "\"watch\": {\"kind\": \"connection\", \"path\": \"/a\"}, \"rules\": [{\"check\": \"answered-once\"}]",
                ),
                "5:33: `at` picks nothing from a connection as a whole",
            ),
            (
                watching(&format!("{WATCH}, \"rules\": [\n{{\"message\": \"z\"}}]")),
                "6:1: the rule has neither `schema` nor `check`",
            ),
            (
                watching(&format!(
                    "{WATCH}, \"rules\": [\n{{\"check\": \"tool-known\", \"schema\": {{\"type\": \"string\"}}}}]"
                )),
                "6:1: the rule has both `schema` and `check`: it has either",
            ),
            (
                watching(&format!("{WATCH}, \"rules\": [\n{{\"check\": \"json-shema\"}}]")),
                "6:11: unknown check `json-shema` (did you mean `json-schema`?)",
            ),
            (
                watching(&format!("{WATCH}, \"rules\": [\n{{\"check\": \"answered-once\"}}]")),
                "6:11: the check `answered-once` is of a connection: watch `connection`",
            ),
            (
                watching("\"watch\": {\"kind\": \"connection\"}, \"rules\": [\n{\"check\": \"tool-known\"}]"),
                "6:11: the check `tool-known` is of a value, not of a connection",
            ),
            (
                watching("\"watch\": {\"kind\": \"connection\"}, \"rules\": [\n{\"schema\": {\"type\": \"object\"}}]"),
                "6:2: a connection as a whole fits no schema: name a `check`",
            ),
            (
                watching(&format!("{WATCH}, \"rules\": [\n{{\"schema\": {{\"title\": \"z\"}}}}]")),
                "6:12: the schema accepts everything, so the rule cannot be broken",
            ),
            (
                watching(&format!("{WATCH}, \"rules\": [\n{{\"schema\": {{\"pattern\": \"a(\"}}}}]")),
                "6:24: bad regular expression `a(`",
            ),
            (
                watching(&format!("{WATCH}, \"rules\": [\n{{\"schema\": {{\"const\": \"${{tool}}\"}}}}]")),
                "6:22: `${tool}` is not filled in here, only in what a step sends",
            ),
        ]);
    }

    #[test]
    fn a_fault_of_what_it_sends_is_told_at_its_place() {
        hold(&[
            // What it sends.
            (
                acting(&format!("{{{EXPECT}}}")),
                "6:1: the step sends nothing: it has one of `send`, `notify`, `batch`, `raw`, `walk`, `retry`, `http`, `close` and `shutdown`",
            ),
            (
                acting(&format!("{{\"send\": {{}}, \"raw\": \"\", {EXPECT}}}")),
                "6:14: the step has `send` already: one step sends one thing",
            ),
            (
                acting(&format!("{{\"raw\": \"\", \"poll\": {{\"until\": true}}, {EXPECT}}}")),
                "6:13: `poll` says nothing of a `raw`: it repeats a `send`",
            ),
            (
                acting(&format!("{{\"send\": {{}}, \"pipelined\": true, \"poll\": {{\"until\": true}}, {EXPECT}}}")),
                "6:33: a step that is `pipelined` has no answer to go by",
            ),
            (
                acting("{\"send\": {\"method\": \"ping\"}}"),
                "5:1: the case judges nothing: it has neither `expect` in a step nor `finally`",
            ),
            (
                acting(&format!("{{\"send\": {{\"method\": \"${{tol}}\"}}, {EXPECT}}}")),
                "6:21: unknown placeholder `${tol}` (did you mean `${tool}`?)",
            ),
            (
                acting(&format!("{{\"send\": {{\"${{text.x}}\": 1}}, {EXPECT}}}")),
                "6:11: the length in `${text.x}` is no number up to 1000000",
            ),
            (acting(&format!("{{\"raw\": \"${{id\", {EXPECT}}}")), "6:9: `${` opens a placeholder that no `}` closes"),
            (
                acting(&format!(
                    "{{\"raw\": \"${{saved.a}}\", {EXPECT}}},\n{{\"raw\": \"\", \"save\": {{\"a\": \"/b\"}}}}"
                )),
                "6:9: no earlier step saves `a`",
            ),
            (
                acting(&format!(
                    "{{\"raw\": \"\", \"save\": {{\"a\": \"/b\"}}, \"pipelined\": true}},\n{{\"raw\": \"${{saved.a}}\", {EXPECT}}}"
                )),
                "7:9: `a` is saved by a step that was not answered yet when this is sent",
            ),
            (
                acting(&format!("{{\"raw\": \"\", \"save\": {{\"a\": \"/b/*\"}}, {EXPECT}}}")),
                "6:27: `/b/*` leads to several values, and one is saved",
            ),
            (
                acting(&format!("{{\"notify\": {{}}, \"control\": true, {EXPECT}}}")),
                "6:16: `control` says nothing of a `notify`: nothing is served in answer to it",
            ),
            (
                acting(&format!("{{\"raw\": \"\", \"meta\": false, {EXPECT}}}")),
                "6:13: `meta` says nothing of a `raw`: nothing is filled in",
            ),
            (
                acting(&format!("{{\"name\": \"a\", \"raw\": \"\", {EXPECT}}},\n{{\"name\": \"a\", \"raw\": \"\"}}")),
                "7:10: another step is named `a` too",
            ),
            (
                watching(&format!("\"for-each\": \"tool\", \"steps\": [{{\"raw\": \"\", {EXPECT}}}]")),
                "5:1: the steps are the same for each tool: none holds a placeholder `${tool...}`",
            ),
            (
                watching(&format!("\"client-capabilities\": {{}}, \"steps\": [{{\"raw\": \"\", {EXPECT}}}]")),
                "5:1: `declare` asks for a process of the case's own: set `process` to `fresh`",
            ),
        ]);
    }

    #[test]
    fn a_fault_of_what_comes_back_is_told_at_its_place() {
        hold(&[
            // What may come back.
            (
                acting("{\"raw\": \"\", \"expect\": [{\"outcome\": [\"eror\"]}]}"),
                "6:32: unknown word `eror`: here stands one of `result`, `success`, `tool-error`, `input-required`, `error`, `malformed`, `no-response`, `http-error`, `closed`, `stdin-closed`, `sigterm`, `sigkill` (did you mean `error`?)",
            ),
            (
                acting("{\"raw\": \"\", \"expect\": [{\"outcome\": [\"sigterm\"]}]}"),
                "6:32: `sigterm` never comes of a `raw`",
            ),
            (
                acting("{\"raw\": \"\", \"expect\": [{\"outcome\": [\"result\"], \"code\": [1]}]}"),
                "6:43: only an `error` has a code, and `is` does not name it",
            ),
            (acting("{\"raw\": \"\", \"expect\": [{\"code\": [1.5]}]}"), "6:34: expected an integer, found a number"),
            (
                acting("{\"raw\": \"\", \"expect\": [{\"message\": \"z\"}, {\"outcome\": [\"error\"]}]}"),
                "6:24: every answer fits this row, so nothing after it is ever reached",
            ),
            (
                watching(
                    "\"across-steps\": [{\"check\": \"same\", \"steps\": [\"a\", \"b\"]}],\n\"steps\": [{\"name\": \"a\", \"raw\": \"\", \"otherwise\": {\"message\": \"z\"}}, {\"name\": \"b\", \"raw\": \"\"}]",
                ),
                "6:36: `otherwise` needs rows in `expect`: without them any answer does",
            ),
            // What holds of several steps.
            (
                watching(
                    "\"across-steps\": [{\"check\": \"same\", \"steps\": [\"first\", \"frist\"]}],\n\"steps\": [{\"name\": \"first\", \"raw\": \"\"}]",
                ),
                "5:47: no step is named `frist` (did you mean `first`?)",
            ),
            (
                watching(
                    "\"across-steps\": [{\"check\": \"same\", \"steps\": [\"a\"]}],\n\"steps\": [{\"name\": \"a\", \"raw\": \"\"}]",
                ),
                "5:37: it has fewer than 2 items",
            ),
        ]);
    }

    #[test]
    fn all_faults_of_all_files_are_told_in_order() {
        let bad = watching(
            "\"whi\": 1,\n\"watch\": {\"kind\": \"reslt\"},\n\"rules\": [{\"check\": \"x\"}, {}],\n\"fault\": 5",
        );
        let texts = vec![text("b/x", &bad), text("a/y", "{"), text("a/z", WATCHING)];
        let error = understand(texts, &[], Trust::Nothing).expect_err("two of them are broken");
        let places: Vec<_> =
            error.faults.iter().map(|fault| format!("{}:{}:{}", fault.file, fault.line, fault.column)).collect();
        assert_eq!(
            places,
            [
                "own/a/y.jsonc:1:1",
                "own/b/x.jsonc:5:1",
                "own/b/x.jsonc:6:19",
                "own/b/x.jsonc:7:20",
                "own/b/x.jsonc:7:26",
                "own/b/x.jsonc:8:10",
            ],
            "{error}"
        );
        assert_eq!(error.to_string().lines().count(), 6);
    }

    #[test]
    fn a_file_of_nothing_but_faults_is_told_in_bounded_time() {
        let many = |item: &str| vec![item; MAX_FILE_BYTES / item.len() / 16].join(",");
        for broken in [
            watching(&format!("\"tags\": [{}]", many("1"))),
            watching(&format!("\"rules\": [{}]", many("{}"))),
            acting(&many("{\"raw\":\"${x}\"}")),
            watching(&format!("\"needs\": {{\"tool\": {}{}}}", "{\"not\":".repeat(110), "}".repeat(110))),
            watching(&format!("\"watch\": {}1{}", "{\"where\":".repeat(50_000), "}".repeat(50_000))),
        ] {
            assert!((1..=MAX_FAULTS + 1).contains(&told(&broken).len()));
        }
    }

    #[test]
    fn an_id_is_used_once_and_is_plain() {
        let embedded =
            CaseText { source: Source::Embedded, file: "cases/a/b.jsonc".to_owned(), ..text("a/b", CONNECTION) };
        let error =
            understand(vec![embedded, text("a/b", CONNECTION), text("a b/ü", CONNECTION)], &[], Trust::Embedded)
                .expect_err("two ids are wrong");
        assert_eq!(
            error.to_string(),
            "own/a b/ü.jsonc: the id `a b/ü` is not of letters, digits, `-`, `_` and `.` between slashes: rename the file\n\
             own/a/b.jsonc: the id `a/b` is taken by cases/a/b.jsonc"
        );
    }

    #[test]
    fn a_trusted_case_that_is_broken_is_told_all_the_same() {
        let broken = watching("\"watch\": {\"kind\": \"reslt\"}, \"rules\": [{\"check\": \"tool-known\"}]");
        let embedded = CaseText { source: Source::Embedded, ..text("a/b", &broken) };
        let error = understand(vec![embedded], &[], Trust::Embedded).expect_err("it is broken");
        assert_eq!(error.faults[0].suggestion.as_deref(), Some("result"));
    }

    #[test]
    fn the_embedded_cases_are_whole() {
        if let Err(error) = understand(read_embedded(), &[], Trust::Nothing) {
            panic!("{error}");
        }
    }

    #[test]
    fn a_directory_is_read_with_its_links_and_without_what_is_hidden() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        fs::create_dir_all(root.join("mine/deep")).expect("made");
        fs::create_dir_all(root.join(".git")).expect("made");
        fs::write(root.join("mine/deep/one.jsonc"), CONNECTION).expect("written");
        fs::write(root.join(".git/two.jsonc"), "{").expect("written");
        fs::write(root.join("mine/notes.txt"), "{").expect("written");
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
        assert_eq!(ids, if cfg!(unix) { vec!["mine/deep/one", "mine/three"] } else { vec!["mine/deep/one"] });
        let cases = load(Some(root), &[]).expect("they load");
        assert!(cases.iter().any(|case| case.id == "mine/deep/one" && matches!(case.source, Source::File(_))));
    }

    #[test]
    fn what_cannot_be_read_is_told_beside_what_is_broken() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        fs::write(root.join("a.jsonc"), vec![b' '; MAX_FILE_BYTES + 1]).expect("written");
        fs::write(root.join("b.jsonc"), b"{\n \"title\": \"\xe9\"}").expect("written");
        fs::write(root.join("c.jsonc"), "{").expect("written");
        let error = load(Some(root), &[]).expect_err("all are broken").to_string();
        let told: Vec<_> = error.lines().map(|line| line.rsplit_once('/').map_or(line, |(_, end)| end)).collect();
        assert_eq!(
            told,
            [
                "a.jsonc: it is larger than 1048576 bytes",
                "b.jsonc:2:12: it is not UTF-8 from here on",
                "c.jsonc:1:1: unterminated object",
            ]
        );
    }

    #[test]
    fn a_directory_without_cases_or_none_at_all_is_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = load(Some(directory.path()), &[]).expect_err("it is empty").to_string();
        assert!(error.ends_with("no case file stands below this directory: a case ends in .jsonc"), "{error}");
        let error = load(Some(&directory.path().join("missing")), &[]).expect_err("it is missing").to_string();
        assert!(error.contains("missing: failed to read the directory: "), "{error}");
    }
}
