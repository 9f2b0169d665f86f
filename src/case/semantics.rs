//! Finds what is wrong with the meaning of a case file.
//!
//! Works on the JSON value and passes over what has the wrong type, which the schema of case files reports. So all
//! that is wrong with a file is reported in one go.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::checks::{Check, ConnectionRule, Oracle};
use super::model::ForEach;
use super::parse::decode_hex;
use super::path_pattern::{PathPattern, escape};
use super::placeholder::{Placeholder, UnknownPlaceholder, scan};
use super::problem::UnlocatedDiagnostic;
use super::schema_lint;
use super::shapes::Shapes;
use crate::spec::{Catalogue, Revision, RevisionSet};

/// The members that name the action of a step.
pub(super) const ACTIONS: [&str; 10] =
    ["send", "notify", "batch", "raw", "paginate", "retry", "http", "close", "shutdown", "wait-ms"];

/// The members of a step that apply to some actions only: the member, the actions, and why not to others.
const APPLICABLE: [(&str, &[&str], &str); 7] = [
    ("poll", &["send"], "it repeats a `send`"),
    ("pipelined", &["send", "retry"], "the step does not wait for a response"),
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

/// The greatest length of a title, in characters.
const MAX_TITLE_CHARS: usize = 70;

/// Everything that is wrong with the meaning of a case.
///
/// `faults` are the faults that the reference server knows; with none of them given, those of cases are not checked.
pub(super) fn flaws(case: &Value, faults: &[&str], shapes: &Shapes) -> Vec<UnlocatedDiagnostic> {
    let Value::Object(case) = case else { return Vec::new() };
    let mut checker = Checker { flaws: Vec::new(), revisions: RevisionSet::ALL, shapes };
    checker.check_description(case, faults);
    checker.check_revisions(case);
    checker.check_kind(case);
    checker.check_passive(case);
    checker.check_active(case);
    checker.flaws
}

struct Checker<'s> {
    flaws: Vec<UnlocatedDiagnostic>,
    shapes: &'s Shapes,
    /// The revisions that the case runs in, as far as that is known.
    revisions: RevisionSet,
}

impl Checker<'_> {
    fn report(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.flaws.push(UnlocatedDiagnostic::at(pointer, message));
    }

    fn report_name(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.flaws.push(UnlocatedDiagnostic::on_name(pointer, message));
    }

    fn check_description(&mut self, case: &Map<String, Value>, faults: &[&str]) {
        if let Some(title) = text(case, "title") {
            let length = title.chars().count();
            if length > MAX_TITLE_CHARS {
                self.report(
                    "/title",
                    format!("the title has {length} characters; at most {MAX_TITLE_CHARS} are allowed"),
                );
            }
            if title.split(|c: char| !c.is_alphabetic()).any(|word| word.eq_ignore_ascii_case("should")) {
                self.report("/title", "the title contains `should`: state what a conforming server does");
            }
        }
        if let Some(fault) = text(case, "fault")
            && !faults.is_empty()
            && !faults.contains(&fault)
        {
            self.flaws.push(
                UnlocatedDiagnostic::at("/fault", format!("the reference server has no fault `{fault}`"))
                    .nearest(fault, faults.iter().copied()),
            );
        }
        for name in ["tool", "client-request"] {
            if let Some(schema) = case.get("needs").and_then(|needs| needs.get(name)) {
                self.check_schema(schema, &format!("/needs/{name}"));
            }
        }
    }

    /// Determines the revisions that the case runs in.
    fn check_revisions(&mut self, case: &Map<String, Value>) {
        let given = self.revision_set(case, "");
        let mut stated = RevisionSet::default();
        let mut all_known = true;
        let mut known = Vec::new();
        for (index, id) in strings(case, "requirements") {
            let pointer = format!("/requirements/{index}");
            match self.requirement(id, &pointer) {
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
            self.report("/revisions", format!("the case runs in no revision: its requirements are stated in {stated}"));
            return;
        }
        if !all_known || known.is_empty() {
            self.revisions = given;
            return;
        }
        self.revisions = runs;
        for (pointer, id, revisions) in known {
            if revisions.intersection(runs).is_empty() {
                self.report(
                    pointer,
                    format!("the requirement `{id}` is not stated in the revisions of the case ({runs})"),
                );
            }
        }
    }

    /// The revisions that state a requirement, or `None` when there is no such requirement.
    fn requirement(&mut self, id: &str, pointer: &str) -> Option<RevisionSet> {
        let catalogue = Catalogue::embedded();
        let revisions = catalogue.get(id).map(crate::spec::Requirement::revisions);
        if revisions.is_none() {
            let flaw = UnlocatedDiagnostic::at(pointer, format!("unknown requirement `{id}`"));
            self.flaws.push(flaw.nearest(id, catalogue.iter().map(|requirement| requirement.id.as_str())));
        }
        revisions
    }

    /// The member `revisions` of an object, every revision where it has none, `None` where it is wrong.
    fn revision_set(&mut self, object: &Map<String, Value>, at: &str) -> Option<RevisionSet> {
        revision_set(object, at, &mut self.flaws)
    }

    /// Checks the members `revisions` and `requirement` of a part of the case; the revisions that it applies in.
    fn check_part(&mut self, part: &Map<String, Value>, at: &str, outer: RevisionSet) -> RevisionSet {
        let Some(set) = self.revision_set(part, at) else { return outer };
        let runs = set.intersection(outer);
        if runs.is_empty() && !outer.is_empty() {
            self.report(
                format!("{at}/revisions"),
                format!("this never applies: it is within something that runs in {outer} only"),
            );
            return outer;
        }
        if let Some(id) = text(part, "requirement") {
            let pointer = format!("{at}/requirement");
            if let Some(stated) = self.requirement(id, &pointer)
                && stated.intersection(runs).is_empty()
            {
                self.report(pointer, format!("the requirement `{id}` is not stated in the revisions here ({runs})"));
            }
        }
        runs
    }

    /// Checks that the case is of one kind, and has nothing of another.
    fn check_kind(&mut self, case: &Map<String, Value>) {
        let has = |name: &str| case.contains_key(name);
        if has("rules") && !has("watch") {
            self.report_name("/rules", "`rules` needs `watch`");
        }
        if has("fuzz") {
            let foreign = [
                "watch",
                "rules",
                "provoked-by",
                "steps",
                "for-each",
                "process",
                "client-capabilities",
                "across-steps",
                "needs",
            ];
            for name in foreign.into_iter().filter(|name| has(name)) {
                self.report_name(format!("/{name}"), format!("`{name}` does not apply to a fuzz case"));
            }
            if let Some(name) = text(case, "fuzz")
                && let Err(unknown) = name.parse::<Oracle>()
            {
                let known = Oracle::ALL.iter().map(|oracle| oracle.as_str());
                self.flaws.push(UnlocatedDiagnostic::at("/fuzz", unknown.to_string()).nearest(name, known));
            }
            return;
        }
        if has("provoked-by") && has("steps") {
            self.report_name("/provoked-by", "`provoked-by` applies to passive cases only");
        }
        match (has("watch"), has("steps")) {
            (true, true) => {
                self.report_name("/steps", "the case has both `watch` and `steps`: a case is either passive or active");
            }
            (false, false) if !has("rules") => self.report("", "the case has none of `watch`, `steps` and `fuzz`"),
            (true, false) => {
                if !has("rules") {
                    self.report_name("/watch", "`watch` needs `rules`");
                }
                for name in ["for-each", "process", "client-capabilities", "client-responses", "across-steps"]
                    .into_iter()
                    .filter(|name| has(name))
                {
                    self.report_name(
                        format!("/{name}"),
                        format!("`{name}` applies to steps, and a passive case has none"),
                    );
                }
            }
            (false, _) => {}
        }
    }

    fn check_passive(&mut self, case: &Map<String, Value>) {
        let watch = case.get("watch").and_then(Value::as_object);
        let what = watch.and_then(|watch| text(watch, "kind")).unwrap_or_default();
        let connection = what == "connection";
        if let Some(watch) = watch {
            self.check_path(watch, "/watch");
            if let Some(filter) = watch.get("matching") {
                self.check_schema(filter, "/watch/matching");
            }
            for name in ["path", "matching"].into_iter().filter(|name| connection && watch.contains_key(*name)) {
                self.report_name(
                    format!("/watch/{name}"),
                    format!("`{name}` does not apply to a connection as a whole"),
                );
            }
            if matches!(what, "line" | "message" | "connection") && watch.contains_key("methods") {
                self.report_name("/watch/methods", format!("`methods` does not apply to `{what}`"));
            }
        }
        for (index, rule) in objects(case, "rules") {
            let at = format!("/rules/{index}");
            self.check_part(rule, &at, self.revisions);
            match (rule.get("schema"), rule.get("check")) {
                (Some(_), Some(_)) => self.report(&at, "the rule has both `schema` and `check`: use one of them"),
                (None, None) => self.report(&at, "the rule has neither `schema` nor `check`"),
                (Some(_), None) if connection => {
                    self.report_name(
                        format!("{at}/schema"),
                        "a rule for a connection as a whole needs a `check`, not a schema",
                    );
                }
                (Some(schema), None) if accepts_anything(schema) => {
                    self.report(
                        format!("{at}/schema"),
                        "the schema accepts everything, so the rule cannot be violated",
                    );
                }
                _ => {}
            }
            if let Some(schema) = rule.get("schema") {
                self.check_schema(schema, &format!("{at}/schema"));
            }
            match rule.get("check") {
                Some(Value::String(name)) => self.check_name(name, format!("{at}/check"), connection),
                Some(Value::Object(rule)) => self.check_connection_rule(rule, &format!("{at}/check"), connection),
                _ => {}
            }
        }
    }

    fn check_name(&mut self, name: &str, pointer: String, connection: bool) {
        match name.parse::<Check>() {
            Ok(check) if check.is_of_connection() == connection => {}
            Ok(check) if check.is_of_connection() => {
                self.report(
                    pointer,
                    format!("the check `{name}` is for a connection: set `watch.kind` to `connection`"),
                );
            }
            Ok(_) => self.report(pointer, format!("the check `{name}` is for a value, not for a connection")),
            Err(unknown) if ConnectionRule::NAMES.contains(&name) => {
                self.report(pointer, format!("{unknown}: the rule of this name has parameters"));
            }
            Err(unknown) => {
                self.flaws.push(
                    UnlocatedDiagnostic::at(pointer, unknown.to_string()).nearest(name, Check::names(connection)),
                );
            }
        }
    }

    /// A rule with parameters, whose types the closed schema checks.
    fn check_connection_rule(&mut self, rule: &Map<String, Value>, at: &str, connection: bool) {
        for (name, parameters) in rule {
            let at = format!("{at}/{}", escape(name));
            if ConnectionRule::NAMES.contains(&name.as_str()) && !connection {
                self.report_name(
                    at,
                    format!("the check `{name}` is for a connection: set `watch.kind` to `connection`"),
                );
                continue;
            }
            let Value::Object(parameters) = parameters else { continue };
            for member in ["path", "per"] {
                if let Some(Err(error)) = text(parameters, member).map(str::parse::<PathPattern>) {
                    self.report(format!("{at}/{member}"), error.to_string());
                }
            }
            for member in ["notification", "request"] {
                let equal = parameters.get("equal").and_then(|equal| equal.get(member)).and_then(Value::as_str);
                if let Some(Err(error)) = equal.map(str::parse::<PathPattern>) {
                    self.report(format!("{at}/equal/{member}"), error.to_string());
                }
            }
            if let Some(schema) = parameters.get("matching") {
                self.check_schema(schema, &format!("{at}/matching"));
            }
        }
    }

    fn check_active(&mut self, case: &Map<String, Value>) {
        if case.contains_key("client-capabilities") && !matches!(text(case, "process"), Some("fresh" | "uninitialized"))
        {
            self.report_name(
                "/client-capabilities",
                "`client-capabilities` needs a process of the case's own: set `process` to `fresh`",
            );
        }
        if let Some(declare) = case.get("client-capabilities") {
            self.check_no_placeholder(declare, "/client-capabilities");
        }
        if let Some(answers) = case.get("client-responses") {
            each_text(answers, "/client-responses", &mut |pointer, on_name, text| {
                for (_, found) in scan(text) {
                    match found {
                        Ok(placeholder) if placeholder.is_of_client_request() => {}
                        Ok(placeholder) => {
                            let message = format!("`{placeholder}` is filled in only in what a step sends");
                            self.flaws
                                .push(UnlocatedDiagnostic { on_name, ..UnlocatedDiagnostic::at(pointer, message) });
                        }
                        Err(unknown) => self.report_placeholder(&unknown, pointer, on_name),
                    }
                }
            });
        }
        let mut names = BTreeSet::new();
        let mut saved = Saved::default();
        let mut placeholders = BTreeSet::new();
        let mut judges = false;
        for (index, step) in objects(case, "steps") {
            let at = format!("/steps/{index}");
            judges |= step.contains_key("expect");
            self.check_retry(step, &at, &names);
            self.check_close(step, &at, &names);
            self.check_step(step, &at, &mut saved, &mut placeholders);
            if let Some(name) = text(step, "name")
                && !names.insert(name)
            {
                self.report(format!("{at}/name"), format!("another step has the name `{name}`"));
            }
        }
        self.check_for_each(case, &placeholders);
        self.check_page_cursor(case);
        if case.contains_key("steps") && !judges && !case.contains_key("across-steps") {
            self.report_name("/steps", "the case checks nothing: it has neither `expect` in a step nor `across-steps`");
        }
        for (index, together) in objects(case, "across-steps") {
            let at = format!("/across-steps/{index}");
            self.check_part(together, &at, self.revisions);
            self.check_path(together, &at);
            for (position, name) in strings(together, "steps") {
                if !names.contains(name) {
                    let flaw =
                        UnlocatedDiagnostic::at(format!("{at}/steps/{position}"), format!("no step is named `{name}`"));
                    self.flaws.push(flaw.nearest(name, names.iter().copied()));
                }
            }
        }
    }

    /// Steps that are repeated for each item use the item.
    fn check_for_each(&mut self, case: &Map<String, Value>, placeholders: &BTreeSet<Placeholder>) {
        let Some(written) = case.get("for-each") else { return };
        let item = match (ForEach::deserialize(written), written.as_str()) {
            (Ok(item), _) => item,
            (Err(_), Some(name)) => {
                let message = format!("unknown value `{name}`: expected `tool`, `resource`, `prompt` or an object");
                self.flaws
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
            self.report_name("/for-each", message);
        }
    }

    /// `${page.cursor}` is bound by `for-each` only.
    fn check_page_cursor(&mut self, case: &Map<String, Value>) {
        if case.get("for-each").is_some_and(Value::is_object) {
            return;
        }
        let Some(steps) = case.get("steps") else { return };
        each_text(steps, "/steps", &mut |pointer, on_name, text| {
            if scan(text).iter().any(|(_, found)| *found == Ok(Placeholder::PageCursor)) {
                let message = "`${page.cursor}` needs `\"for-each\": {\"page\": METHOD}`";
                self.flaws.push(UnlocatedDiagnostic { on_name, ..UnlocatedDiagnostic::at(pointer, message) });
            }
        });
    }

    /// A retry refers to an earlier step.
    fn check_retry(&mut self, step: &Map<String, Value>, at: &str, earlier: &BTreeSet<&str>) {
        let of = step.get("retry").and_then(|retry| retry.get("step")).and_then(Value::as_str);
        if let Some(of) = of.filter(|of| !earlier.contains(of)) {
            let flaw = UnlocatedDiagnostic::at(format!("{at}/retry/step"), format!("no earlier step is named `{of}`"));
            self.flaws.push(flaw.nearest(of, earlier.iter().copied()));
        }
    }

    /// `close` refers to an earlier step.
    fn check_close(&mut self, step: &Map<String, Value>, at: &str, earlier: &BTreeSet<&str>) {
        if let Some(of) = text(step, "close").filter(|of| !earlier.contains(of)) {
            let flaw = UnlocatedDiagnostic::at(format!("{at}/close"), format!("no earlier step is named `{of}`"));
            self.flaws.push(flaw.nearest(of, earlier.iter().copied()));
        }
    }

    /// Checks a step; the placeholders in it are added to `placeholders`.
    fn check_step(
        &mut self,
        step: &Map<String, Value>,
        at: &str,
        saved: &mut Saved,
        placeholders: &mut BTreeSet<Placeholder>,
    ) {
        let actions: Vec<_> = ACTIONS.into_iter().filter(|action| step.contains_key(*action)).collect();
        match actions.as_slice() {
            [_] => {}
            [] => self.report(
                at,
                "the step has no action: use one of `send`, `notify`, `batch`, `raw`, `paginate`, `retry`, `http`, `close`, `shutdown` and `wait-ms`",
            ),
            [first, rest @ ..] => {
                for action in rest {
                    self.report_name(
                        format!("{at}/{action}"),
                        format!("the step already has `{first}`: a step has one action"),
                    );
                }
            }
        }
        let action = actions.first().copied().unwrap_or_default();
        if !action.is_empty() {
            self.check_applicable(step, at, action);
        }
        if let Some(poll) = step.get("poll") {
            if action == "send" && step.get("pipelined") == Some(&Value::Bool(true)) {
                self.report_name(format!("{at}/poll"), "a step that is `pipelined` does not wait for a response");
            }
            if let Some(until) = poll.get("until") {
                self.check_schema(until, &format!("{at}/poll/until"));
            }
        }
        if let Some(bytes) = step.get("raw").and_then(Value::as_object) {
            self.check_bytes(bytes, &format!("{at}/raw"));
        }
        let runs = self.check_part(step, at, self.revisions);
        if let Some(otherwise) = step.get("poll").and_then(|poll| poll.get("otherwise")).and_then(Value::as_object) {
            self.check_part(otherwise, &format!("{at}/poll/otherwise"), runs);
        }
        self.check_placeholders(step, at, saved, placeholders);
        self.check_saves(step, at, saved);
        self.check_expected(step, at, action, runs);
    }

    /// Checks that a step has only members that apply to its action.
    fn check_applicable(&mut self, step: &Map<String, Value>, at: &str, action: &str) {
        for (name, actions, why) in APPLICABLE {
            if step.contains_key(name) && !actions.contains(&action) {
                self.report_name(format!("{at}/{name}"), format!("`{name}` does not apply to `{action}`: {why}"));
            }
        }
    }

    fn check_bytes(&mut self, bytes: &Map<String, Value>, at: &str) {
        let notations = [
            ("hex", text(bytes, "hex").map(|text| decode_hex(text).is_some())),
            ("base64", text(bytes, "base64").map(|text| STANDARD.decode(text).is_ok())),
        ];
        for (name, is_valid) in notations {
            if is_valid == Some(false) {
                self.report(at, format!("`{name}` is not valid"));
            }
        }
    }

    fn check_placeholders(
        &mut self,
        step: &Map<String, Value>,
        at: &str,
        saved: &Saved,
        placeholders: &mut BTreeSet<Placeholder>,
    ) {
        for name in ["send", "notify", "batch", "raw", "paginate", "retry", "http", "meta"] {
            let Some(value) = step.get(name) else { continue };
            let here = format!("{at}/{name}");
            if name == "paginate" || name == "raw" && value.is_object() {
                self.check_no_placeholder(value, &here);
                continue;
            }
            each_text(value, &here, &mut |pointer, on_name, text| {
                for (_, found) in scan(text) {
                    match found {
                        Ok(Placeholder::Saved(name) | Placeholder::Declined(name)) => {
                            self.check_saved(&name, pointer, on_name, saved);
                        }
                        Ok(placeholder) if placeholder.is_of_client_request() => {
                            let message = format!("`{placeholder}` is filled in only in `client-responses`");
                            self.flaws
                                .push(UnlocatedDiagnostic { on_name, ..UnlocatedDiagnostic::at(pointer, message) });
                        }
                        Ok(placeholder) => {
                            placeholders.insert(placeholder);
                        }
                        Err(unknown) => self.report_placeholder(&unknown, pointer, on_name),
                    }
                }
            });
        }
    }

    fn check_saves(&mut self, step: &Map<String, Value>, at: &str, saved: &mut Saved) {
        let pipelined = step.get("pipelined") == Some(&Value::Bool(true));
        if let Some(values) = step.get("save").and_then(Value::as_object) {
            for (name, pointer) in values {
                let here = format!("{at}/save/{}", escape(name));
                if !saved.all.insert(name.clone()) {
                    self.report_name(&here, format!("an earlier step already saves `{name}`"));
                }
                saved.pending.push(name.clone());
                if let Some(pointer) = pointer.as_str() {
                    self.check_pointer(pointer, here);
                }
            }
        }
        if !pipelined {
            saved.available.extend(saved.pending.drain(..));
        }
    }

    fn check_saved(&mut self, name: &str, pointer: &str, on_name: bool, saved: &Saved) {
        if saved.available.contains(name) {
            return;
        }
        let message = if saved.all.contains(name) {
            format!("`{name}` is saved by a step that is not yet answered when this is sent")
        } else {
            format!("no earlier step saves `{name}`")
        };
        let flaw = UnlocatedDiagnostic::at(pointer, message).nearest(name, saved.available.iter().map(String::as_str));
        self.flaws.push(UnlocatedDiagnostic { on_name, ..flaw });
    }

    fn report_placeholder(&mut self, unknown: &UnknownPlaceholder, pointer: &str, on_name: bool) {
        let mut flaw = UnlocatedDiagnostic { on_name, ..UnlocatedDiagnostic::at(pointer, unknown.to_string()) };
        if let UnknownPlaceholder::Name(name) = unknown {
            flaw = flaw.nearest(name, Placeholder::plain_names());
            flaw.suggestion = flaw.suggestion.map(|name| format!("${{{name}}}"));
        }
        self.flaws.push(flaw);
    }

    fn check_expected(&mut self, step: &Map<String, Value>, at: &str, action: &str, runs: RevisionSet) {
        let rows: Vec<_> = objects(step, "expect").collect();
        let empty = step.get("expect").is_none_or(|expect| expect == &Value::Array(Vec::new()));
        if empty && step.contains_key("otherwise") {
            self.report_name(format!("{at}/otherwise"), "`otherwise` needs `expect`: without it any response is right");
        }
        for (index, row) in &rows {
            let here = format!("{at}/expect/{index}");
            self.check_part(row, &here, runs);
            for name in ["schema", "exchange"] {
                if let Some(schema) = row.get(name) {
                    self.check_schema(schema, &format!("{here}/{name}"));
                }
            }
            let outcomes: Vec<_> = strings(row, "outcome").collect();
            for (position, outcome) in &outcomes {
                if !action.is_empty() && SHUTDOWN_OUTCOMES.contains(outcome) != (action == "shutdown") {
                    self.report(
                        format!("{here}/outcome/{position}"),
                        format!("`{outcome}` is not an outcome of `{action}`"),
                    );
                }
            }
            if row.contains_key("code")
                && !outcomes.is_empty()
                && outcomes.iter().all(|(_, outcome)| *outcome != "error")
            {
                self.report_name(format!("{here}/code"), "only an `error` has a code, and `outcome` does not list it");
            }
            let fits_all = ["outcome", "code", "schema", "status", "exchange", "revisions"]
                .iter()
                .all(|name| !row.contains_key(*name));
            if fits_all && (index + 1 < rows.len() || step.contains_key("otherwise")) {
                self.report(&here, "every response matches this entry, so nothing after it is reached");
            }
        }
        if let Some(otherwise) = step.get("otherwise").and_then(Value::as_object) {
            self.check_part(otherwise, &format!("{at}/otherwise"), runs);
        }
    }

    fn check_schema(&mut self, schema: &Value, pointer: &str) {
        if schema.is_object() {
            self.flaws.extend(schema_lint::flaws(schema, pointer, self.shapes));
        }
        self.check_no_placeholder(schema, pointer);
    }

    /// Reports placeholders where none is filled in.
    fn check_no_placeholder(&mut self, value: &Value, pointer: &str) {
        each_text(value, pointer, &mut |pointer, on_name, text| {
            for (_, placeholder) in scan(text).into_iter().filter_map(|(range, found)| Some((range, found.ok()?))) {
                let flaw =
                    UnlocatedDiagnostic::at(pointer, format!("`{placeholder}` is filled in only in what a step sends"));
                self.flaws.push(UnlocatedDiagnostic { on_name, ..flaw });
            }
        });
    }

    fn check_path(&mut self, part: &Map<String, Value>, at: &str) {
        if let Some(Err(error)) = text(part, "path").map(str::parse::<PathPattern>) {
            self.report(format!("{at}/path"), error.to_string());
        }
    }

    /// A plain JSON pointer, to one value.
    fn check_pointer(&mut self, written: &str, at: String) {
        match written.parse::<PathPattern>() {
            Ok(_) if written.split('/').any(|token| token == "*" || token == "**") => {
                self.report(at, format!("`{written}` matches several values, but only one can be saved"));
            }
            Ok(_) => {}
            Err(error) => self.report(at, error.to_string()),
        }
    }
}

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

/// The member `revisions` of an object, every revision where it has none; nothing where it is invalid, which is reported.
pub(super) fn revision_set(
    object: &Map<String, Value>,
    at: &str,
    flaws: &mut Vec<UnlocatedDiagnostic>,
) -> Option<RevisionSet> {
    let Some(written) = object.get("revisions") else { return Some(RevisionSet::ALL) };
    let written = written.as_str()?;
    let pointer = format!("{at}/revisions");
    if written.split(',').any(|part| part.trim().is_empty()) {
        flaws.push(UnlocatedDiagnostic::at(pointer, "the set of revisions has an empty part"));
        return None;
    }
    match written.parse::<RevisionSet>() {
        Ok(set) if set.is_empty() => {
            flaws.push(UnlocatedDiagnostic::at(pointer, format!("`{written}` is empty: it begins after its end")));
            None
        }
        Ok(set) => Some(set),
        Err(unknown) => {
            let flaw = UnlocatedDiagnostic::at(pointer, unknown.to_string());
            flaws.push(flaw.nearest(&unknown.0, Revision::ALL.iter().map(|revision| revision.as_str())));
            None
        }
    }
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str()
}

fn strings<'a>(object: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    let items = object.get(name).and_then(Value::as_array).into_iter().flatten().enumerate();
    items.filter_map(|(index, item)| Some((index, item.as_str()?)))
}

fn objects<'a>(
    object: &'a Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = (usize, &'a Map<String, Value>)> + use<'a> {
    let items = object.get(name).and_then(Value::as_array).into_iter().flatten().enumerate();
    items.filter_map(|(index, item)| Some((index, item.as_object()?)))
}

fn accepts_anything(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(keywords) => keywords
            .keys()
            .all(|keyword| matches!(keyword.as_str(), "$comment" | "title" | "description" | "$schema" | "$id")),
        _ => false,
    }
}

/// Calls `visit` with each string in a value, names of members included: pointer, whether it is a
/// name, text.
fn each_text(value: &Value, pointer: &str, visit: &mut impl FnMut(&str, bool, &str)) {
    match value {
        Value::String(text) => visit(pointer, false, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                each_text(item, &format!("{pointer}/{index}"), visit);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let here = format!("{pointer}/{}", escape(name));
                visit(&here, true, name);
                each_text(member, &here, visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
