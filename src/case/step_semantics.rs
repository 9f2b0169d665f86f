//! Finds what is wrong with the steps of an active case, and with what belongs to them.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::active::ForEach;
use super::checker::{Checker, each_text, objects, strings, text};
use super::file::ACTIONS;
use super::methods::METHODS;
use super::parse::decode_hex;
use super::placeholder::{Placeholder, UnknownPlaceholder, scan};
use super::problem::UnlocatedDiagnostic;
use crate::json_pointer;
use crate::spec::RevisionSet;

/// The members of a step that apply to some actions only: the member, the actions, and why not to others.
const APPLICABLE: [(&str, &[&str], &str); 12] = [
    (METHODS, &["send", "notify", "raw"], "it sends no message of its own"),
    ("transfer", &["raw"], "it says how a raw line is written, and is a member of `http` itself"),
    ("while-open", &["notify"], "only a notification waits for a request to be open"),
    ("moment", &["notify"], "only a notification is sent while a request is open"),
    ("poll", &["send"], "it repeats a `send`"),
    ("provide-input", &["send"], "it repeats a `send`"),
    ("pipelined", &["send", "retry", "http"], "the step does not wait for a response"),
    ("save", &["send", "retry", "http"], "there is no response to save a value of"),
    ("meta", &["send", "batch", "retry", "http"], "it adds no `_meta`"),
    ("control", &["send", "batch", "raw", "paginate", "retry", "http"], "nothing is served in response to it"),
    ("expect", NOT_SILENT, "there is no response to it"),
    ("otherwise", NOT_SILENT, "there is no response to it"),
];

/// The actions to which there may be a response.
const NOT_SILENT: &[&str] = &["send", "notify", "batch", "raw", "paginate", "retry", "http", "shutdown"];

/// The outcomes of `shutdown`, and of nothing else.
const SHUTDOWN_OUTCOMES: [&str; 3] = ["stdin-closed", "sigterm", "sigkill"];

/// The names under which steps save values.
#[derive(Default)]
struct Saved {
    /// All names so far.
    all: BTreeSet<String>,
    /// Those of requests that are not answered yet.
    pending: Vec<String>,
    /// Those that are available to the next step.
    available: BTreeSet<String>,
}

/// Checks the steps, and the members of a case that apply to steps.
pub(super) fn check_active(checker: &mut Checker<'_>, case: &Map<String, Value>) {
    if case.contains_key("client-capabilities") && !matches!(text(case, "process"), Some("fresh" | "uninitialized")) {
        checker.report_name(
            "/client-capabilities",
            "`client-capabilities` needs a process of the case's own: set `process` to `fresh`",
        );
    }
    if case.contains_key("start") && !matches!(text(case, "process"), Some("fresh" | "uninitialized")) {
        checker.report_name("/start", "`start` needs a process of the case's own: set `process` to `fresh`");
    }
    if case.contains_key("once") && !matches!(text(case, "process"), Some("fresh" | "uninitialized")) {
        checker.report_name("/once", "`once` needs a process of the case's own: set `process` to `fresh`");
    }
    if let Some(declare) = case.get("client-capabilities") {
        checker.check_no_placeholder(declare, "/client-capabilities");
    }
    if let Some(answers) = case.get("client-responses") {
        each_text(answers, "/client-responses", &mut |pointer, on_name, text| {
            for (_, found) in scan(text) {
                match found {
                    Ok(placeholder) if placeholder.is_of_client_response() => {}
                    Ok(placeholder) => {
                        let message = format!("`{placeholder}` is filled in only in what a step sends");
                        checker
                            .flaws
                            .push(UnlocatedDiagnostic { on_name, ..UnlocatedDiagnostic::at(pointer, message) });
                    }
                    Err(unknown) => report_placeholder(checker, &unknown, pointer, on_name),
                }
            }
        });
    }
    let mut names = BTreeSet::new();
    let mut pipelined = BTreeSet::new();
    let mut saved = Saved::default();
    let mut placeholders = BTreeSet::new();
    let mut judges = false;
    for (index, step) in objects(case, "steps") {
        let at = format!("/steps/{index}");
        judges |= step.contains_key("expect");
        check_methods(checker, step, &at);
        check_retry(checker, step, &at, &names);
        check_close(checker, step, &at, &names);
        check_while_open(checker, step, &at, &pipelined);
        check_step(checker, step, &at, &mut saved, &mut placeholders);
        if let Some(name) = text(step, "name")
            && !names.insert(name)
        {
            checker.report(format!("{at}/name"), format!("another step has the name `{name}`"));
        }
        if step.contains_key("send") && step.get("pipelined") == Some(&Value::Bool(true)) {
            pipelined.extend(text(step, "name"));
        }
    }
    check_for_each(checker, case, &placeholders);
    check_page_cursor(checker, case);
    if case.contains_key("steps") && !judges && !case.contains_key("across-steps") {
        checker.report_name("/steps", "the case checks nothing: it has neither `expect` in a step nor `across-steps`");
    }
    for (index, together) in objects(case, "across-steps") {
        let at = format!("/across-steps/{index}");
        if let Some(schema) = together.get("matching") {
            checker.check_schema(schema, &format!("{at}/matching"));
        }
        checker.check_part(together, &at, checker.revisions);
        checker.check_path(together, &at);
        for (position, name) in strings(together, "steps") {
            if !names.contains(name) {
                let flaw =
                    UnlocatedDiagnostic::at(format!("{at}/steps/{position}"), format!("no step is named `{name}`"));
                checker.flaws.push(flaw.nearest(name, names.iter().copied()));
            }
        }
    }
}

/// A step that is made with several methods uses them, and has no name, which would be that of several steps. The first
/// method stands where the file has the placeholder.
fn check_methods(checker: &mut Checker<'_>, step: &Map<String, Value>, at: &str) {
    let Some(first) = step.get(METHODS).and_then(|methods| methods.get(0)).and_then(Value::as_str) else { return };
    if step.contains_key("name") {
        checker.report_name(format!("{at}/name"), "a step with `methods` is several steps, which cannot have one name");
    }
    let mut is_used = false;
    for action in ["send", "notify", "raw"] {
        let Some(message) = step.get(action) else { continue };
        each_text(message, "", &mut |_, _, text| is_used |= text.contains(first));
    }
    if !is_used {
        let message = "the step is the same with each method: it does not use the placeholder `${method}`";
        checker.report_name(format!("{at}/{METHODS}"), message);
    }
}

/// Steps that are repeated for each item use the item.
fn check_for_each(checker: &mut Checker<'_>, case: &Map<String, Value>, placeholders: &BTreeSet<Placeholder>) {
    let Some(written) = case.get("for-each") else { return };
    let item = match (ForEach::deserialize(written), written.as_str()) {
        (Ok(item), _) => item,
        (Err(_), Some(name)) => {
            let message = format!("unknown value `{name}`: expected `tool`, `resource`, `prompt` or an object");
            checker
                .flaws
                .push(UnlocatedDiagnostic::at("/for-each", message).nearest(name, ["tool", "resource", "prompt"]));
            return;
        }
        (Err(_), None) => return,
    };
    let (item, used) = match item {
        ForEach::Tool => ("tool", "tool..."),
        ForEach::Resource => ("resource", "resource"),
        ForEach::Prompt => ("prompt", "prompt..."),
        ForEach::Page(_) => ("page", "page.cursor"),
    };
    let is_used = placeholders.iter().any(|placeholder| match item {
        "tool" => placeholder.is_of_tool(),
        "resource" => *placeholder == Placeholder::Resource,
        "prompt" => placeholder.is_of_prompt(),
        _ => *placeholder == Placeholder::PageCursor,
    });
    if case.contains_key("steps") && !is_used {
        let message = format!("the steps are the same for each {item}: none uses the placeholder `${{{used}}}`");
        checker.report_name("/for-each", message);
    }
}

/// `${page.cursor}` is bound by `for-each` only.
fn check_page_cursor(checker: &mut Checker<'_>, case: &Map<String, Value>) {
    if case.get("for-each").is_some_and(Value::is_object) {
        return;
    }
    let Some(steps) = case.get("steps") else { return };
    each_text(steps, "/steps", &mut |pointer, on_name, text| {
        if scan(text).iter().any(|(_, found)| *found == Ok(Placeholder::PageCursor)) {
            let message = "`${page.cursor}` needs `\"for-each\": {\"page\": METHOD}`";
            checker.flaws.push(UnlocatedDiagnostic { on_name, ..UnlocatedDiagnostic::at(pointer, message) });
        }
    });
}

/// A retry refers to an earlier step.
fn check_retry(checker: &mut Checker<'_>, step: &Map<String, Value>, at: &str, earlier: &BTreeSet<&str>) {
    let of = step.get("retry").and_then(|retry| retry.get("step")).and_then(Value::as_str);
    if let Some(of) = of.filter(|of| !earlier.contains(of)) {
        let flaw = UnlocatedDiagnostic::at(format!("{at}/retry/step"), format!("no earlier step is named `{of}`"));
        checker.flaws.push(flaw.nearest(of, earlier.iter().copied()));
    }
}

/// `close` refers to an earlier step.
fn check_close(checker: &mut Checker<'_>, step: &Map<String, Value>, at: &str, earlier: &BTreeSet<&str>) {
    if let Some(of) = text(step, "close").filter(|of| !earlier.contains(of)) {
        let flaw = UnlocatedDiagnostic::at(format!("{at}/close"), format!("no earlier step is named `{of}`"));
        checker.flaws.push(flaw.nearest(of, earlier.iter().copied()));
    }
}

/// `while-open` refers to an earlier request that is not waited for.
fn check_while_open(checker: &mut Checker<'_>, step: &Map<String, Value>, at: &str, pipelined: &BTreeSet<&str>) {
    if step.contains_key("moment") && !step.contains_key("while-open") {
        checker.report_name(format!("{at}/moment"), "`moment` needs `while-open`, which names the request");
    }
    if let Some(of) = text(step, "while-open").filter(|of| !pipelined.contains(of)) {
        let message = format!("no earlier `send` step that is `pipelined` is named `{of}`");
        let flaw = UnlocatedDiagnostic::at(format!("{at}/while-open"), message);
        checker.flaws.push(flaw.nearest(of, pipelined.iter().copied()));
    }
}

/// Checks a step; the placeholders in it are added to `placeholders`.
fn check_step(
    checker: &mut Checker<'_>,
    step: &Map<String, Value>,
    at: &str,
    saved: &mut Saved,
    placeholders: &mut BTreeSet<Placeholder>,
) {
    let actions: Vec<_> = ACTIONS.into_iter().filter(|action| step.contains_key(*action)).collect();
    match actions.as_slice() {
        [_] => {}
        [] => checker.report(
            at,
            "the step has no action: use one of `send`, `notify`, `batch`, `raw`, `paginate`, `retry`, `http`, `close`, `shutdown` and `wait-ms`",
        ),
        [first, rest @ ..] => {
            for action in rest {
                checker.report_name(
                    format!("{at}/{action}"),
                    format!("the step already has `{first}`: a step has one action"),
                );
            }
        }
    }
    let action = actions.first().copied().unwrap_or_default();
    if !action.is_empty() {
        check_applicable(checker, step, at, action);
    }
    check_repetition(checker, step, at, action);
    if let Some(bytes) = step.get("raw").and_then(Value::as_object) {
        check_bytes(checker, bytes, &format!("{at}/raw"));
    }
    let runs = checker.check_part(step, at, checker.revisions);
    if let Some(otherwise) = step.get("poll").and_then(|poll| poll.get("otherwise")).and_then(Value::as_object) {
        checker.check_part(otherwise, &format!("{at}/poll/otherwise"), runs);
    }
    check_placeholders(checker, step, at, saved, placeholders);
    check_saves(checker, step, at, saved);
    check_expected(checker, step, at, action, runs);
}

/// Checks the members of a step that repeat its request.
fn check_repetition(checker: &mut Checker<'_>, step: &Map<String, Value>, at: &str, action: &str) {
    if step.contains_key("provide-input") {
        for other in ["poll", "pipelined"].into_iter().filter(|other| step.contains_key(*other)) {
            checker.report_name(format!("{at}/provide-input"), format!("it cannot be combined with `{other}`"));
        }
    }
    let call = step.get("http").filter(|_| step.get("pipelined") == Some(&Value::Bool(true)));
    if call.is_some_and(|call| call.get("keep-open") == Some(&Value::Bool(true))) {
        let message = "it cannot be combined with `keep-open`, with which no step waits for the response either";
        checker.report_name(format!("{at}/pipelined"), message);
    }
    let lasts = |call: &Value| {
        call.get("keep-open") == Some(&Value::Bool(true)) || step.get("pipelined") == Some(&Value::Bool(true))
    };
    if step.get("http").is_some_and(|call| call.get("times").is_some() && lasts(call)) {
        checker.report_name(format!("{at}/http/times"), "a request is made again once its response has ended");
    }
    if call.is_some() && step.contains_key("save") {
        checker.report_name(format!("{at}/save"), "an `http` step that is `pipelined` saves no values");
    }
    if let Some(poll) = step.get("poll") {
        if action == "send" && step.get("pipelined") == Some(&Value::Bool(true)) {
            checker.report_name(format!("{at}/poll"), "a step that is `pipelined` does not wait for a response");
        }
        if let Some(until) = poll.get("until") {
            checker.check_schema(until, &format!("{at}/poll/until"));
        }
    }
}

/// Checks that a step has only members that apply to its action.
fn check_applicable(checker: &mut Checker<'_>, step: &Map<String, Value>, at: &str, action: &str) {
    for (name, actions, why) in APPLICABLE {
        if step.contains_key(name) && !actions.contains(&action) {
            checker.report_name(format!("{at}/{name}"), format!("`{name}` does not apply to `{action}`: {why}"));
        }
    }
}

fn check_bytes(checker: &mut Checker<'_>, bytes: &Map<String, Value>, at: &str) {
    let notations = [
        ("hex", text(bytes, "hex").map(|text| decode_hex(text).is_some())),
        ("base64", text(bytes, "base64").map(|text| STANDARD.decode(text).is_ok())),
    ];
    for (name, is_valid) in notations {
        if is_valid == Some(false) {
            checker.report(at, format!("`{name}` is not valid"));
        }
    }
}

fn check_placeholders(
    checker: &mut Checker<'_>,
    step: &Map<String, Value>,
    at: &str,
    saved: &Saved,
    placeholders: &mut BTreeSet<Placeholder>,
) {
    for name in ["send", "notify", "batch", "raw", "paginate", "retry", "http", "meta"] {
        let Some(value) = step.get(name) else { continue };
        let here = format!("{at}/{name}");
        if name == "paginate" || name == "raw" && value.is_object() {
            checker.check_no_placeholder(value, &here);
            continue;
        }
        each_text(value, &here, &mut |pointer, on_name, text| {
            for (_, found) in scan(text) {
                match found {
                    Ok(Placeholder::Saved(name) | Placeholder::Declined(name)) => {
                        check_saved(checker, &name, pointer, on_name, saved);
                    }
                    Ok(placeholder) if placeholder.is_of_client_response() => {
                        let message = format!("`{placeholder}` is filled in only in `client-responses`");
                        checker
                            .flaws
                            .push(UnlocatedDiagnostic { on_name, ..UnlocatedDiagnostic::at(pointer, message) });
                    }
                    Ok(placeholder) => {
                        placeholders.insert(placeholder);
                    }
                    Err(unknown) => report_placeholder(checker, &unknown, pointer, on_name),
                }
            }
        });
    }
}

fn check_saves(checker: &mut Checker<'_>, step: &Map<String, Value>, at: &str, saved: &mut Saved) {
    let pipelined = step.get("pipelined") == Some(&Value::Bool(true));
    if let Some(values) = step.get("save").and_then(Value::as_object) {
        for (name, pointer) in values {
            let here = json_pointer::join(&format!("{at}/save"), name);
            if !saved.all.insert(name.clone()) {
                checker.report_name(&here, format!("an earlier step already saves `{name}`"));
            }
            saved.pending.push(name.clone());
            if let Some(pointer) = pointer.as_str() {
                checker.check_pointer(pointer, here);
            }
        }
    }
    if !pipelined {
        saved.available.extend(saved.pending.drain(..));
    }
}

fn check_saved(checker: &mut Checker<'_>, name: &str, pointer: &str, on_name: bool, saved: &Saved) {
    if saved.available.contains(name) {
        return;
    }
    let message = if saved.all.contains(name) {
        format!("`{name}` is saved by a step that is not yet answered when this is sent")
    } else {
        format!("no earlier step saves `{name}`")
    };
    let flaw = UnlocatedDiagnostic::at(pointer, message).nearest(name, saved.available.iter().map(String::as_str));
    checker.flaws.push(UnlocatedDiagnostic { on_name, ..flaw });
}

fn report_placeholder(checker: &mut Checker<'_>, unknown: &UnknownPlaceholder, pointer: &str, on_name: bool) {
    let mut flaw = UnlocatedDiagnostic { on_name, ..UnlocatedDiagnostic::at(pointer, unknown.to_string()) };
    if let UnknownPlaceholder::Name(name) = unknown {
        flaw = flaw.nearest(name, Placeholder::plain_names());
        flaw.suggestion = flaw.suggestion.map(|name| format!("${{{name}}}"));
    }
    checker.flaws.push(flaw);
}

fn check_expected(checker: &mut Checker<'_>, step: &Map<String, Value>, at: &str, action: &str, runs: RevisionSet) {
    let rows: Vec<_> = objects(step, "expect").collect();
    let empty = step.get("expect").is_none_or(|expect| expect == &Value::Array(Vec::new()));
    if empty && step.contains_key("otherwise") {
        checker.report_name(format!("{at}/otherwise"), "`otherwise` needs `expect`: without it any response is right");
    }
    for (index, row) in &rows {
        let here = format!("{at}/expect/{index}");
        checker.check_part(row, &here, runs);
        for name in ["schema", "exchange"] {
            if let Some(schema) = row.get(name) {
                checker.check_schema(schema, &format!("{here}/{name}"));
            }
        }
        let outcomes: Vec<_> = strings(row, "outcome").collect();
        for (position, outcome) in &outcomes {
            if !action.is_empty() && SHUTDOWN_OUTCOMES.contains(outcome) != (action == "shutdown") {
                checker.report(
                    format!("{here}/outcome/{position}"),
                    format!("`{outcome}` is not an outcome of `{action}`"),
                );
            }
        }
        if row.contains_key("code") && !outcomes.is_empty() && outcomes.iter().all(|(_, outcome)| *outcome != "error") {
            checker.report_name(format!("{here}/code"), "only an `error` has a code, and `outcome` does not list it");
        }
        let fits_all = ["outcome", "code", "schema", "status", "exchange", "revisions"]
            .iter()
            .all(|name| !row.contains_key(*name));
        if fits_all && (index + 1 < rows.len() || step.contains_key("otherwise")) {
            checker.report(&here, "every response matches this entry, so nothing after it is reached");
        }
    }
    if let Some(otherwise) = step.get("otherwise").and_then(Value::as_object) {
        checker.check_part(otherwise, &format!("{at}/otherwise"), runs);
    }
}
