//! Finds what is wrong with what a passive case watches, and with its rules.

use serde_json::{Map, Value};

use super::checker::{Checker, objects, text};
use super::checks::{Check, ConnectionRule};
use super::path_pattern::PathPattern;
use super::problem::UnlocatedDiagnostic;
use crate::json_pointer;

/// Checks `watch` and `rules`.
pub(super) fn check_passive(checker: &mut Checker<'_>, case: &Map<String, Value>) {
    let watch = case.get("watch").and_then(Value::as_object);
    let what = watch.and_then(|watch| text(watch, "kind")).unwrap_or_default();
    let connection = what == "connection";
    if let Some(watch) = watch {
        checker.check_path(watch, "/watch");
        if let Some(filter) = watch.get("matching") {
            checker.check_schema(filter, "/watch/matching");
        }
        for name in ["path", "matching"].into_iter().filter(|name| connection && watch.contains_key(*name)) {
            checker
                .report_name(format!("/watch/{name}"), format!("`{name}` does not apply to a connection as a whole"));
        }
        if matches!(what, "line" | "message" | "connection") && watch.contains_key("methods") {
            checker.report_name("/watch/methods", format!("`methods` does not apply to `{what}`"));
        }
    }
    for (index, rule) in objects(case, "rules") {
        let at = format!("/rules/{index}");
        checker.check_part(rule, &at, checker.revisions);
        match (rule.get("schema"), rule.get("check")) {
            (Some(_), Some(_)) => checker.report(&at, "the rule has both `schema` and `check`: use one of them"),
            (None, None) => checker.report(&at, "the rule has neither `schema` nor `check`"),
            (Some(_), None) if connection => {
                checker.report_name(
                    format!("{at}/schema"),
                    "a rule for a connection as a whole needs a `check`, not a schema",
                );
            }
            (Some(schema), None) if accepts_anything(schema) => {
                checker.report(format!("{at}/schema"), "the schema accepts everything, so the rule cannot be violated");
            }
            _ => {}
        }
        if let Some(schema) = rule.get("schema") {
            checker.check_schema(schema, &format!("{at}/schema"));
        }
        match rule.get("check") {
            Some(Value::String(name)) => check_name(checker, name, format!("{at}/check"), connection),
            Some(Value::Object(rule)) => check_connection_rule(checker, rule, &format!("{at}/check"), connection),
            _ => {}
        }
    }
}

fn check_name(checker: &mut Checker<'_>, name: &str, pointer: String, connection: bool) {
    match name.parse::<Check>() {
        Ok(check) if check.is_of_connection() == connection => {}
        Ok(check) if check.is_of_connection() => {
            checker
                .report(pointer, format!("the check `{name}` is for a connection: set `watch.kind` to `connection`"));
        }
        Ok(_) => checker.report(pointer, format!("the check `{name}` is for a value, not for a connection")),
        Err(unknown) if ConnectionRule::NAMES.contains(&name) => {
            checker.report(pointer, format!("{unknown}: the rule of this name has parameters"));
        }
        Err(unknown) => {
            checker
                .flaws
                .push(UnlocatedDiagnostic::at(pointer, unknown.to_string()).nearest(name, Check::names(connection)));
        }
    }
}

/// A rule with parameters, whose types the closed schema checks.
fn check_connection_rule(checker: &mut Checker<'_>, rule: &Map<String, Value>, at: &str, connection: bool) {
    for (name, parameters) in rule {
        let at = json_pointer::join(at, name);
        if ConnectionRule::NAMES.contains(&name.as_str()) && !connection {
            checker
                .report_name(at, format!("the check `{name}` is for a connection: set `watch.kind` to `connection`"));
            continue;
        }
        let Value::Object(parameters) = parameters else { continue };
        for member in ["path", "per"] {
            if let Some(Err(error)) = text(parameters, member).map(str::parse::<PathPattern>) {
                checker.report(format!("{at}/{member}"), error.to_string());
            }
        }
        for member in ["notification", "request"] {
            let equal = parameters.get("equal").and_then(|equal| equal.get(member)).and_then(Value::as_str);
            if let Some(Err(error)) = equal.map(str::parse::<PathPattern>) {
                checker.report(format!("{at}/equal/{member}"), error.to_string());
            }
        }
        if let Some(schema) = parameters.get("matching") {
            checker.check_schema(schema, &format!("{at}/matching"));
        }
    }
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
