//! What is wrong with the meaning of a case file, beyond its shape.
//!
//! Looks at the value as it was parsed and passes over what has not even the right type: the closed
//! schema tells that. So both can tell all that they find in one go.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::checks::{Check, ConnectionRule, Oracle};
use super::fault::Flaw;
use super::place::{Place, escape};
use super::placeholder::{Placeholder, UnknownPlaceholder, scan};
use super::schema;
use crate::spec::{Catalogue, Revision, RevisionSet};

/// What a step may send, by the member that says it.
const ACTIONS: [&str; 9] = ["send", "notify", "batch", "raw", "paginate", "retry", "http", "close", "shutdown"];

/// How a process may end, as outcomes of `shutdown` and of nothing else.
const ENDINGS: [&str; 3] = ["stdin-closed", "sigterm", "sigkill"];

/// The greatest length of a title, in characters.
const MAX_TITLE: usize = 70;

/// Everything that is wrong with the meaning of a case.
///
/// `faults` are the faults that the built-in server knows; none means that they are not asked for.
pub(super) fn flaws(case: &Value, faults: &[&str]) -> Vec<Flaw> {
    let Value::Object(case) = case else { return Vec::new() };
    let mut inspection = Inspection { flaws: Vec::new(), revisions: RevisionSet::ALL };
    inspection.texts(case, faults);
    inspection.bounds(case);
    inspection.kind(case);
    inspection.watching(case);
    inspection.acting(case);
    inspection.flaws
}

struct Inspection {
    flaws: Vec<Flaw>,
    /// The revisions that the case runs in, as far as that is known.
    revisions: RevisionSet,
}

impl Inspection {
    fn tell(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.flaws.push(Flaw::at(pointer, message));
    }

    fn tell_on_name(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.flaws.push(Flaw::on_name(pointer, message));
    }

    fn texts(&mut self, case: &Map<String, Value>, faults: &[&str]) {
        if let Some(title) = text(case, "title") {
            let length = title.chars().count();
            if length > MAX_TITLE {
                self.tell("/title", format!("the title has {length} characters, at most {MAX_TITLE} are allowed"));
            }
            if title.split(|c: char| !c.is_alphabetic()).any(|word| word.eq_ignore_ascii_case("should")) {
                self.tell("/title", "the title says `should`: say what a conforming server does");
            }
        }
        if let Some(fault) = text(case, "fault")
            && !faults.is_empty()
            && !faults.contains(&fault)
        {
            self.flaws.push(
                Flaw::at("/fault", format!("the built-in server has no fault `{fault}`"))
                    .nearest(fault, faults.iter().copied()),
            );
        }
        for name in ["tool", "client-request"] {
            if let Some(schema) = case.get("needs").and_then(|needs| needs.get(name)) {
                self.json_schema(schema, &format!("/needs/{name}"));
            }
        }
    }

    /// The revisions that the case runs in.
    fn bounds(&mut self, case: &Map<String, Value>) {
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
            self.tell("/revisions", format!("the case runs in no revision: its requirements are stated in {stated}"));
            return;
        }
        if !all_known || known.is_empty() {
            self.revisions = given;
            return;
        }
        self.revisions = runs;
        for (pointer, id, revisions) in known {
            if revisions.intersection(runs).is_empty() {
                self.tell(
                    pointer,
                    format!("the requirement `{id}` is stated in none of the case's revisions ({runs})"),
                );
            }
        }
    }

    /// The revisions that state a requirement, or `None` when there is no such requirement.
    fn requirement(&mut self, id: &str, pointer: &str) -> Option<RevisionSet> {
        let catalogue = Catalogue::embedded();
        let revisions = catalogue.get(id).map(crate::spec::Requirement::revisions);
        if revisions.is_none() {
            let flaw = Flaw::at(pointer, format!("unknown requirement `{id}`"));
            self.flaws.push(flaw.nearest(id, catalogue.iter().map(|requirement| requirement.id.as_str())));
        }
        revisions
    }

    /// The member `revisions` of an object, every revision where it has none, `None` where it is wrong.
    fn revision_set(&mut self, object: &Map<String, Value>, at: &str) -> Option<RevisionSet> {
        revision_set(object, at, &mut self.flaws)
    }

    /// The members `revisions` and `requirement` of a part of the case, within its revisions.
    fn in_force(&mut self, part: &Map<String, Value>, at: &str, outer: RevisionSet) -> RevisionSet {
        let Some(set) = self.revision_set(part, at) else { return outer };
        let runs = set.intersection(outer);
        if runs.is_empty() && !outer.is_empty() {
            self.tell(
                format!("{at}/revisions"),
                format!("this is never in force: what it stands in runs in {outer} only"),
            );
            return outer;
        }
        if let Some(id) = text(part, "requirement") {
            let pointer = format!("{at}/requirement");
            if let Some(stated) = self.requirement(id, &pointer)
                && stated.intersection(runs).is_empty()
            {
                self.tell(pointer, format!("the requirement `{id}` is stated in none of the revisions here ({runs})"));
            }
        }
        runs
    }

    /// Whether it watches or acts, and that it does nothing of the other.
    fn kind(&mut self, case: &Map<String, Value>) {
        let has = |name: &str| case.contains_key(name);
        if has("rules") && !has("watch") {
            self.tell_on_name("/rules", "`rules` speaks of nothing without `watch`");
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
                self.tell_on_name(format!("/{name}"), format!("`{name}` has no place in a case that fuzzes"));
            }
            if let Some(name) = text(case, "fuzz")
                && let Err(unknown) = name.parse::<Oracle>()
            {
                let known = Oracle::ALL.iter().map(|oracle| oracle.as_str());
                self.flaws.push(Flaw::at("/fuzz", unknown.to_string()).nearest(name, known));
            }
            return;
        }
        match (has("watch"), has("steps")) {
            (true, true) => self.tell_on_name("/steps", "the case has both `watch` and `steps`: it does either"),
            (false, false) if !has("rules") => self.tell("", "the case has none of `watch`, `steps` and `fuzz`"),
            (true, false) => {
                if !has("rules") {
                    self.tell_on_name("/watch", "`watch` judges nothing without `rules`");
                }
                for name in ["for-each", "process", "client-capabilities", "client-responses", "across-steps"]
                    .into_iter()
                    .filter(|name| has(name))
                {
                    self.tell_on_name(format!("/{name}"), format!("`{name}` speaks of steps, and the case watches"));
                }
            }
            (false, _) if has("provoked-by") => {
                self.tell_on_name(
                    "/provoked-by",
                    "`provoked-by` is for a case that watches, and this one sends messages itself",
                );
            }
            (false, _) => {}
        }
    }

    fn watching(&mut self, case: &Map<String, Value>) {
        let watch = case.get("watch").and_then(Value::as_object);
        let what = watch.and_then(|watch| text(watch, "kind")).unwrap_or_default();
        let connection = what == "connection";
        if let Some(watch) = watch {
            self.place(watch, "/watch");
            if let Some(filter) = watch.get("matching") {
                self.json_schema(filter, "/watch/matching");
            }
            for name in ["path", "matching"].into_iter().filter(|name| connection && watch.contains_key(*name)) {
                self.tell_on_name(
                    format!("/watch/{name}"),
                    format!("`{name}` picks nothing from a connection as a whole"),
                );
            }
            if matches!(what, "line" | "message" | "connection") && watch.contains_key("methods") {
                self.tell_on_name(
                    "/watch/methods",
                    format!("`methods` selects messages by method, and `{what}` has none"),
                );
            }
        }
        for (index, rule) in objects(case, "rules") {
            let at = format!("/rules/{index}");
            self.in_force(rule, &at, self.revisions);
            match (rule.get("schema"), rule.get("check")) {
                (Some(_), Some(_)) => self.tell(&at, "the rule has both `schema` and `check`: it has either"),
                (None, None) => self.tell(&at, "the rule has neither `schema` nor `check`"),
                (Some(_), None) if connection => {
                    self.tell_on_name(format!("{at}/schema"), "a connection as a whole fits no schema: name a `check`");
                }
                (Some(schema), None) if accepts_anything(schema) => {
                    self.tell(format!("{at}/schema"), "the schema accepts everything, so the rule cannot be broken");
                }
                _ => {}
            }
            if let Some(schema) = rule.get("schema") {
                self.json_schema(schema, &format!("{at}/schema"));
            }
            match rule.get("check") {
                Some(Value::String(name)) => self.check(name, format!("{at}/check"), connection),
                Some(Value::Object(rule)) => self.connection_rule(rule, &format!("{at}/check"), connection),
                _ => {}
            }
        }
    }

    fn check(&mut self, name: &str, pointer: String, connection: bool) {
        match name.parse::<Check>() {
            Ok(check) if check.is_of_connection() == connection => {}
            Ok(check) if check.is_of_connection() => {
                self.tell(pointer, format!("the check `{name}` is of a connection: watch `connection`"));
            }
            Ok(_) => self.tell(pointer, format!("the check `{name}` is of a value, not of a connection")),
            Err(unknown) if ConnectionRule::NAMES.contains(&name) => {
                self.tell(pointer, format!("{unknown}: the rule of this name has parameters"));
            }
            Err(unknown) => {
                self.flaws.push(Flaw::at(pointer, unknown.to_string()).nearest(name, Check::names(connection)));
            }
        }
    }

    /// A rule with parameters; the closed schema tells what is wrong with their types.
    fn connection_rule(&mut self, rule: &Map<String, Value>, at: &str, connection: bool) {
        for (name, parameters) in rule {
            let at = format!("{at}/{}", escape(name));
            if ConnectionRule::NAMES.contains(&name.as_str()) && !connection {
                self.tell_on_name(at, format!("the check `{name}` is of a connection: watch `connection`"));
                continue;
            }
            let Value::Object(parameters) = parameters else { continue };
            for member in ["path", "per"] {
                if let Some(Err(error)) = text(parameters, member).map(str::parse::<Place>) {
                    self.tell(format!("{at}/{member}"), error.to_string());
                }
            }
            for member in ["notification", "request"] {
                let equal = parameters.get("equal").and_then(|equal| equal.get(member)).and_then(Value::as_str);
                if let Some(Err(error)) = equal.map(str::parse::<Place>) {
                    self.tell(format!("{at}/equal/{member}"), error.to_string());
                }
            }
            if let Some(schema) = parameters.get("matching") {
                self.json_schema(schema, &format!("{at}/matching"));
            }
        }
    }

    fn acting(&mut self, case: &Map<String, Value>) {
        if case.contains_key("client-capabilities") && !matches!(text(case, "process"), Some("fresh" | "uninitialized"))
        {
            self.tell_on_name(
                "/client-capabilities",
                "`client-capabilities` asks for a process of the case's own: set `process` to `fresh`",
            );
        }
        if let Some(declare) = case.get("client-capabilities") {
            self.not_filled(declare, "/client-capabilities");
        }
        if let Some(answers) = case.get("client-responses") {
            each_text(answers, "/client-responses", &mut |pointer, on_name, text| {
                for (_, found) in scan(text) {
                    match found {
                        Ok(placeholder) if placeholder.is_of_client_request() => {}
                        Ok(placeholder) => {
                            let message = format!("`{placeholder}` is not filled in here, only in what a step sends");
                            self.flaws.push(Flaw { on_name, ..Flaw::at(pointer, message) });
                        }
                        Err(unknown) => self.unknown_placeholder(&unknown, pointer, on_name),
                    }
                }
            });
        }
        let mut names = BTreeSet::new();
        let mut saved = Saved::default();
        let (mut judges, mut of_tool) = (false, false);
        for (index, step) in objects(case, "steps") {
            let at = format!("/steps/{index}");
            judges |= step.contains_key("expect");
            self.retry(step, &at, &names);
            self.close(step, &at, &names);
            of_tool |= self.step(step, &at, &mut saved);
            if let Some(name) = text(step, "name")
                && !names.insert(name)
            {
                self.tell(format!("{at}/name"), format!("another step is named `{name}` too"));
            }
        }
        if case.contains_key("for-each") && case.contains_key("steps") && !of_tool {
            self.tell_on_name(
                "/for-each",
                "the steps are the same for each tool: none holds a placeholder `${tool...}`",
            );
        }
        if case.contains_key("steps") && !judges && !case.contains_key("across-steps") {
            self.tell_on_name(
                "/steps",
                "the case judges nothing: it has neither `expect` in a step nor `across-steps`",
            );
        }
        for (index, together) in objects(case, "across-steps") {
            let at = format!("/across-steps/{index}");
            self.in_force(together, &at, self.revisions);
            self.place(together, &at);
            for (position, name) in strings(together, "steps") {
                if !names.contains(name) {
                    let flaw = Flaw::at(format!("{at}/steps/{position}"), format!("no step is named `{name}`"));
                    self.flaws.push(flaw.nearest(name, names.iter().copied()));
                }
            }
        }
    }

    /// A retry is one of an earlier step.
    fn retry(&mut self, step: &Map<String, Value>, at: &str, earlier: &BTreeSet<&str>) {
        let of = step.get("retry").and_then(|retry| retry.get("step")).and_then(Value::as_str);
        if let Some(of) = of.filter(|of| !earlier.contains(of)) {
            let flaw = Flaw::at(format!("{at}/retry/step"), format!("no earlier step is named `{of}`"));
            self.flaws.push(flaw.nearest(of, earlier.iter().copied()));
        }
    }

    /// What is closed is an earlier step.
    fn close(&mut self, step: &Map<String, Value>, at: &str, earlier: &BTreeSet<&str>) {
        if let Some(of) = text(step, "close").filter(|of| !earlier.contains(of)) {
            let flaw = Flaw::at(format!("{at}/close"), format!("no earlier step is named `{of}`"));
            self.flaws.push(flaw.nearest(of, earlier.iter().copied()));
        }
    }

    /// Inspects a step; whether it holds a placeholder of a tool.
    fn step(&mut self, step: &Map<String, Value>, at: &str, saved: &mut Saved) -> bool {
        let actions: Vec<_> = ACTIONS.into_iter().filter(|action| step.contains_key(*action)).collect();
        match actions.as_slice() {
            [_] => {}
            [] => self.tell(
                at,
                "the step sends nothing: it has one of `send`, `notify`, `batch`, `raw`, `paginate`, `retry`, `http`, `close` and `shutdown`",
            ),
            [first, rest @ ..] => {
                for action in rest {
                    self.tell_on_name(
                        format!("{at}/{action}"),
                        format!("the step has `{first}` already: one step sends one thing"),
                    );
                }
            }
        }
        let action = actions.first().copied().unwrap_or_default();
        let answered = !matches!(action, "notify" | "shutdown" | "close");
        for (name, why) in [
            ("control", "nothing is served in answer to it"),
            ("save", "no response comes that could hold a value"),
            ("pipelined", "nothing is waited for"),
        ] {
            if step.contains_key(name) && !answered {
                self.tell_on_name(format!("{at}/{name}"), format!("`{name}` says nothing of a `{action}`: {why}"));
            }
        }
        if let Some(poll) = step.get("poll") {
            if action != "send" {
                self.tell_on_name(
                    format!("{at}/poll"),
                    format!("`poll` says nothing of a `{action}`: it repeats a `send`"),
                );
            } else if step.get("pipelined") == Some(&Value::Bool(true)) {
                self.tell_on_name(format!("{at}/poll"), "a step that is `pipelined` has no answer to go by");
            }
            if let Some(until) = poll.get("until") {
                self.json_schema(until, &format!("{at}/poll/until"));
            }
        }
        if step.contains_key("meta") && matches!(action, "raw" | "shutdown" | "close") {
            self.tell_on_name(
                format!("{at}/meta"),
                format!("`meta` says nothing of a `{action}`: nothing is filled in"),
            );
        }
        let runs = self.in_force(step, at, self.revisions);
        if let Some(otherwise) = step.get("poll").and_then(|poll| poll.get("otherwise")).and_then(Value::as_object) {
            self.in_force(otherwise, &format!("{at}/poll/otherwise"), runs);
        }

        let mut of_tool = false;
        for name in ["send", "notify", "batch", "raw", "paginate", "retry", "http", "meta"] {
            let Some(value) = step.get(name) else { continue };
            let here = format!("{at}/{name}");
            if name == "paginate" {
                self.not_filled(value, &here);
                continue;
            }
            each_text(value, &here, &mut |pointer, on_name, text| {
                for (_, found) in scan(text) {
                    match found {
                        Ok(Placeholder::Saved(name) | Placeholder::Declined(name)) => {
                            self.use_of_saved(&name, pointer, on_name, saved);
                        }
                        Ok(placeholder) if placeholder.is_of_client_request() => {
                            let message = format!("`{placeholder}` is filled in in `client-responses` only");
                            self.flaws.push(Flaw { on_name, ..Flaw::at(pointer, message) });
                        }
                        Ok(placeholder) => of_tool |= placeholder.is_of_tool(),
                        Err(unknown) => self.unknown_placeholder(&unknown, pointer, on_name),
                    }
                }
            });
        }
        let pipelined = step.get("pipelined") == Some(&Value::Bool(true));
        if let Some(values) = step.get("save").and_then(Value::as_object) {
            for (name, pointer) in values {
                let here = format!("{at}/save/{}", escape(name));
                if !saved.all.insert(name.clone()) {
                    self.tell_on_name(&here, format!("an earlier step saves `{name}` already"));
                }
                saved.waiting.push(name.clone());
                if let Some(pointer) = pointer.as_str() {
                    self.pointer(pointer, here);
                }
            }
        }
        if !pipelined {
            saved.known.extend(saved.waiting.drain(..));
        }
        self.rows(step, at, action, runs);
        of_tool
    }

    fn use_of_saved(&mut self, name: &str, pointer: &str, on_name: bool, saved: &Saved) {
        if saved.known.contains(name) {
            return;
        }
        let message = if saved.all.contains(name) {
            format!("`{name}` is saved by a step that was not answered yet when this is sent")
        } else {
            format!("no earlier step saves `{name}`")
        };
        let flaw = Flaw::at(pointer, message).nearest(name, saved.known.iter().map(String::as_str));
        self.flaws.push(Flaw { on_name, ..flaw });
    }

    fn unknown_placeholder(&mut self, unknown: &UnknownPlaceholder, pointer: &str, on_name: bool) {
        let mut flaw = Flaw { on_name, ..Flaw::at(pointer, unknown.to_string()) };
        if let UnknownPlaceholder::Name(name) = unknown {
            flaw = flaw.nearest(name, Placeholder::plain_names());
            flaw.suggestion = flaw.suggestion.map(|name| format!("${{{name}}}"));
        }
        self.flaws.push(flaw);
    }

    fn rows(&mut self, step: &Map<String, Value>, at: &str, action: &str, runs: RevisionSet) {
        let rows: Vec<_> = objects(step, "expect").collect();
        let empty = step.get("expect").is_none_or(|expect| expect == &Value::Array(Vec::new()));
        if empty && step.contains_key("otherwise") {
            self.tell_on_name(
                format!("{at}/otherwise"),
                "`otherwise` needs rows in `expect`: without them any answer does",
            );
        }
        for (index, row) in &rows {
            let here = format!("{at}/expect/{index}");
            self.in_force(row, &here, runs);
            for name in ["schema", "exchange"] {
                if let Some(schema) = row.get(name) {
                    self.json_schema(schema, &format!("{here}/{name}"));
                }
            }
            let outcomes: Vec<_> = strings(row, "outcome").collect();
            for (position, outcome) in &outcomes {
                if !action.is_empty() && ENDINGS.contains(outcome) != (action == "shutdown") {
                    self.tell(format!("{here}/outcome/{position}"), format!("`{outcome}` never comes of a `{action}`"));
                }
            }
            if row.contains_key("code")
                && !outcomes.is_empty()
                && outcomes.iter().all(|(_, outcome)| *outcome != "error")
            {
                self.tell_on_name(format!("{here}/code"), "only an `error` has a code, and `outcome` does not name it");
            }
            let fits_all = ["outcome", "code", "schema", "status", "exchange", "revisions"]
                .iter()
                .all(|name| !row.contains_key(*name));
            if fits_all && (index + 1 < rows.len() || step.contains_key("otherwise")) {
                self.tell(&here, "every answer fits this row, so nothing after it is ever reached");
            }
        }
        if let Some(otherwise) = step.get("otherwise").and_then(Value::as_object) {
            self.in_force(otherwise, &format!("{at}/otherwise"), runs);
        }
    }

    fn json_schema(&mut self, schema: &Value, pointer: &str) {
        if schema.is_object() {
            self.flaws.extend(schema::flaws(schema, pointer));
        }
        self.not_filled(schema, pointer);
    }

    /// Tells of placeholders where none is filled in.
    fn not_filled(&mut self, value: &Value, pointer: &str) {
        each_text(value, pointer, &mut |pointer, on_name, text| {
            for (_, placeholder) in scan(text).into_iter().filter_map(|(range, found)| Some((range, found.ok()?))) {
                let flaw =
                    Flaw::at(pointer, format!("`{placeholder}` is not filled in here, only in what a step sends"));
                self.flaws.push(Flaw { on_name, ..flaw });
            }
        });
    }

    fn place(&mut self, part: &Map<String, Value>, at: &str) {
        if let Some(Err(error)) = text(part, "path").map(str::parse::<Place>) {
            self.tell(format!("{at}/path"), error.to_string());
        }
    }

    /// A plain JSON pointer, to one value.
    fn pointer(&mut self, written: &str, at: String) {
        match written.parse::<Place>() {
            Ok(_) if written.split('/').any(|token| token == "*" || token == "**") => {
                self.tell(at, format!("`{written}` leads to several values, and one is saved"));
            }
            Ok(_) => {}
            Err(error) => self.tell(at, error.to_string()),
        }
    }
}

/// The names that steps save.
#[derive(Default)]
struct Saved {
    /// All so far.
    all: BTreeSet<String>,
    /// Those of steps that were not waited for.
    waiting: Vec<String>,
    /// Those that are there when the next step is sent.
    known: BTreeSet<String>,
}

/// The member `revisions` of an object, every revision where it has none; nothing where it cannot be read, which is told.
pub(super) fn revision_set(object: &Map<String, Value>, at: &str, flaws: &mut Vec<Flaw>) -> Option<RevisionSet> {
    let Some(written) = object.get("revisions") else { return Some(RevisionSet::ALL) };
    let written = written.as_str()?;
    let pointer = format!("{at}/revisions");
    if written.split(',').any(|part| part.trim().is_empty()) {
        flaws.push(Flaw::at(pointer, "the set of revisions has an empty part"));
        return None;
    }
    match written.parse::<RevisionSet>() {
        Ok(set) if set.is_empty() => {
            flaws.push(Flaw::at(pointer, format!("`{written}` holds no revision: it begins after its end")));
            None
        }
        Ok(set) => Some(set),
        Err(unknown) => {
            let flaw = Flaw::at(pointer, unknown.to_string());
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

/// Calls `look` with each string in a value, names of members included: pointer, whether it is a
/// name, text.
fn each_text(value: &Value, pointer: &str, look: &mut impl FnMut(&str, bool, &str)) {
    match value {
        Value::String(text) => look(pointer, false, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                each_text(item, &format!("{pointer}/{index}"), look);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let here = format!("{pointer}/{}", escape(name));
                look(&here, true, name);
                each_text(member, &here, look);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
