//! The report of a server that would like to be read as something else: every text of a report that a server,
//! or anybody, could have a hand in, carries an attack. What renders a report is held against it.

use serde_json::Value;

use super::Report;

/// What a hostile server would like a terminal to obey: a cleared screen, a forged title, a turned line, text
/// that nobody sees, and the beginning of a script.
pub const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\nPASS\u{202e}ssap\u{2069}\u{200b}\u{e0041}<script>";

/// Words of ours that a report is read by; no text of a server gets there.
const KEPT: [&str; 10] =
    ["kind", "outcome", "skipped", "revision", "verdict", "level", "direction", "shutdown", "fail-on", "shard"];

/// Puts a text into every text of a report but the words that it is read by.
///
/// # Panics
/// Never: a report is JSON, and stays one of its form whatever its texts are.
pub fn poison(report: &mut Report, attack: &str) {
    let mut value = serde_json::to_value(&*report).expect("a report is JSON");
    for part in ["targets", "summary", "options"] {
        spoil(&mut value[part], attack);
    }
    report.targets = serde_json::from_value(value["targets"].take()).expect("targets");
    report.summary = serde_json::from_value(value["summary"].take()).expect("a summary");
    report.options = serde_json::from_value(value["options"].take()).expect("options");
    report.server.push_str(attack);
    if let Some(held) = &mut report.baseline {
        held.file.push_str(attack);
        held.stale.iter_mut().for_each(|stale| stale.line.case.push_str(attack));
        held.expired.iter_mut().for_each(|line| line.requirement.push_str(attack));
        held.new.iter_mut().for_each(|line| line.tool = Some(attack.to_owned()));
    }
}

fn spoil(value: &mut Value, attack: &str) {
    match value {
        Value::String(text) => text.push_str(attack),
        Value::Array(items) => items.iter_mut().for_each(|item| spoil(item, attack)),
        Value::Object(members) => {
            let open = members.iter_mut().filter(|(name, _)| !KEPT.contains(&name.as_str()));
            open.for_each(|(_, member)| spoil(member, attack));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
