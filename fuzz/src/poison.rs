//! A report with hostile text wherever a server could put any.

use mcp_conformance::report::{Report, example};
use serde_json::Value;

/// Members whose text is one of a few words, or ours alone.
const KEPT: [&str; 11] = [
    "kind",
    "outcome",
    "skipped",
    "revision",
    "revisions",
    "verdict",
    "level",
    "direction",
    "fail-on",
    "shard",
    "link",
];

/// The example report with this text behind every text in it.
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
            let kept = members.iter_mut().filter(|(name, _)| !KEPT.contains(&name.as_str()));
            kept.for_each(|(_, member)| poison(member, attack));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
