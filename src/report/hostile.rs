//! Injection tests for renderers: puts an attack string into every text of a report that a server or a user could
//! influence.

use serde_json::Value;

use super::Report;

/// An attack on terminals and readers: it clears the screen, sets the window title, reverses text, hides text and
/// opens a script element.
pub const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\nPASS\u{202e}ssap\u{2069}\u{200b}\u{e0041}<script>";

/// Members with a fixed set of values, which no server influences.
pub const FIXED_MEMBERS: [&str; 11] = [
    "kind",
    "outcome",
    "skipped",
    "revision",
    "verdict",
    "level",
    "direction",
    "shutdown",
    "fail-on",
    "shard",
    "fails-for",
];

/// Appends an attack string to every free text of a report.
///
/// # Panics
/// Never: changing its texts keeps a report valid.
pub fn poison(report: &mut Report, attack: &str) {
    let mut value = serde_json::to_value(&*report).expect("a report is JSON");
    for part in ["targets", "summary", "options"] {
        append_to_strings(&mut value[part], attack);
    }
    report.targets = serde_json::from_value(value["targets"].take()).expect("targets");
    report.summary = serde_json::from_value(value["summary"].take()).expect("a summary");
    report.options = serde_json::from_value(value["options"].take()).expect("options");
    report.server.push_str(attack);
    if let Some(comparison) = &mut report.baseline {
        comparison.file.push_str(attack);
        comparison.stale.iter_mut().for_each(|stale| stale.entry.case.push_str(attack));
        comparison.expired.iter_mut().for_each(|entry| entry.requirement.push_str(attack));
        comparison.new.iter_mut().for_each(|entry| entry.tool = Some(attack.to_owned()));
    }
}

fn append_to_strings(value: &mut Value, attack: &str) {
    match value {
        Value::String(text) => text.push_str(attack),
        Value::Array(items) => items.iter_mut().for_each(|item| append_to_strings(item, attack)),
        Value::Object(members) => {
            let open = members.iter_mut().filter(|(name, _)| !FIXED_MEMBERS.contains(&name.as_str()));
            open.for_each(|(_, member)| append_to_strings(member, attack));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
