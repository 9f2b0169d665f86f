//! A report with hostile text in every place that a server controls.

use mcp_conformance::report::{FIXED_MEMBERS, Report, example};
use serde_json::Value;

/// Members that do not come from the server, besides those with a fixed set of values.
const UNCHANGED: [&str; 2] = ["revisions", "link"];

/// The example report with this text appended to every string that a server controls.
#[must_use]
pub fn poisoned(attack: &str) -> Report {
    let mut report = example();
    let value = serde_json::to_value(&report).expect("a report is JSON");
    let take = |name: &str| {
        let mut part = value[name].clone();
        poison(&mut part, attack);
        part
    };
    report.targets = serde_json::from_value(take("targets")).expect("targets");
    report.summary = serde_json::from_value(take("summary")).expect("a summary");
    report.server.push_str(attack);
    report
}

fn poison(value: &mut Value, attack: &str) {
    match value {
        Value::String(text) => text.push_str(attack),
        Value::Array(items) => items.iter_mut().for_each(|item| poison(item, attack)),
        Value::Object(members) => {
            let is_open = |name: &str| !UNCHANGED.contains(&name) && !FIXED_MEMBERS.contains(&name);
            let changed = members.iter_mut().filter(|(name, _)| is_open(name.as_str()));
            changed.for_each(|(_, member)| poison(member, attack));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
