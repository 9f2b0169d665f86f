//! Collects what is wrong with the meaning of a case file, and checks what occurs in several of its parts.

use serde_json::{Map, Value};

use super::path_pattern::PathPattern;
use super::placeholder::scan;
use super::problem::UnlocatedDiagnostic;
use super::schema_lint;
use super::shapes::Shapes;
use crate::json_pointer;
use crate::spec::{Catalogue, Revision, RevisionSet};

/// What is wrong with a case so far.
pub(super) struct Checker<'s> {
    pub(super) flaws: Vec<UnlocatedDiagnostic>,
    shapes: &'s Shapes,
    /// The revisions that the case runs in, as far as that is known.
    pub(super) revisions: RevisionSet,
}

impl<'s> Checker<'s> {
    pub(super) fn new(shapes: &'s Shapes) -> Self {
        Self { flaws: Vec::new(), revisions: RevisionSet::ALL, shapes }
    }

    pub(super) fn report(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.flaws.push(UnlocatedDiagnostic::at(pointer, message));
    }

    pub(super) fn report_name(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.flaws.push(UnlocatedDiagnostic::on_name(pointer, message));
    }

    /// The revisions that state a requirement, or `None` when there is no such requirement.
    pub(super) fn requirement(&mut self, id: &str, pointer: &str) -> Option<RevisionSet> {
        let catalogue = Catalogue::embedded();
        let revisions = catalogue.get(id).map(crate::spec::Requirement::revisions);
        if revisions.is_none() {
            let flaw = UnlocatedDiagnostic::at(pointer, format!("unknown requirement `{id}`"));
            self.flaws.push(flaw.nearest(id, catalogue.iter().map(|requirement| requirement.id.as_str())));
        }
        revisions
    }

    /// The member `revisions` of an object, every revision where it has none, `None` where it is wrong.
    pub(super) fn revision_set(&mut self, object: &Map<String, Value>, at: &str) -> Option<RevisionSet> {
        revision_set(object, at, &mut self.flaws)
    }

    /// Checks the members `revisions` and `requirement` of a part of the case; the revisions that it applies in.
    pub(super) fn check_part(&mut self, part: &Map<String, Value>, at: &str, outer: RevisionSet) -> RevisionSet {
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

    pub(super) fn check_schema(&mut self, schema: &Value, pointer: &str) {
        if schema.is_object() {
            self.flaws.extend(schema_lint::flaws(schema, pointer, self.shapes));
        }
        self.check_no_placeholder(schema, pointer);
    }

    /// Reports placeholders where none is filled in.
    pub(super) fn check_no_placeholder(&mut self, value: &Value, pointer: &str) {
        each_text(value, pointer, &mut |pointer, on_name, text| {
            for (_, placeholder) in scan(text).into_iter().filter_map(|(range, found)| Some((range, found.ok()?))) {
                let flaw =
                    UnlocatedDiagnostic::at(pointer, format!("`{placeholder}` is filled in only in what a step sends"));
                self.flaws.push(UnlocatedDiagnostic { on_name, ..flaw });
            }
        });
    }

    pub(super) fn check_path(&mut self, part: &Map<String, Value>, at: &str) {
        if let Some(Err(error)) = text(part, "path").map(str::parse::<PathPattern>) {
            self.report(format!("{at}/path"), error.to_string());
        }
    }

    /// A plain JSON pointer, to one value.
    pub(super) fn check_pointer(&mut self, written: &str, at: String) {
        match written.parse::<PathPattern>() {
            Ok(_) if written.split('/').any(|token| token == "*" || token == "**") => {
                self.report(at, format!("`{written}` matches several values, but only one can be saved"));
            }
            Ok(_) => {}
            Err(error) => self.report(at, error.to_string()),
        }
    }
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

pub(super) fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str()
}

pub(super) fn strings<'a>(
    object: &'a Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    let items = object.get(name).and_then(Value::as_array).into_iter().flatten().enumerate();
    items.filter_map(|(index, item)| Some((index, item.as_str()?)))
}

pub(super) fn objects<'a>(
    object: &'a Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = (usize, &'a Map<String, Value>)> + use<'a> {
    let items = object.get(name).and_then(Value::as_array).into_iter().flatten().enumerate();
    items.filter_map(|(index, item)| Some((index, item.as_object()?)))
}

/// Calls `visit` with each string in a value, names of members included: pointer, whether it is a
/// name, text.
pub(super) fn each_text(value: &Value, pointer: &str, visit: &mut impl FnMut(&str, bool, &str)) {
    match value {
        Value::String(text) => visit(pointer, false, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                each_text(item, &format!("{pointer}/{index}"), visit);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let here = json_pointer::join(pointer, name);
                visit(&here, true, name);
                each_text(member, &here, visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
