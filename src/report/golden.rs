//! Fixed renders of the example report: `reports/golden/`, rewritten by `UPDATE_GOLDEN=1`.

use std::fs;
use std::path::Path;

use serde_json::Value;
use similar::TextDiff;

use super::Report;
use crate::event::RunSummary;

/// Holds a render against the file of that name.
pub(super) fn compare(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, actual).expect("the golden folder can be written");
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected != actual {
        let diff = TextDiff::from_lines(&expected, actual);
        panic!("{name} drifted (UPDATE_GOLDEN=1 rewrites it)\n{}", diff.unified_diff());
    }
}

/// Puts a text into every text of a report that a server, or anybody, could have a hand in.
pub(super) fn poison(report: &mut Report, nasty: &str) {
    let mut targets = serde_json::to_value(&report.targets).expect("a report is JSON");
    let mut summary = serde_json::to_value(&report.summary).expect("a report is JSON");
    spoil(&mut targets, nasty);
    spoil(&mut summary, nasty);
    report.targets = serde_json::from_value(targets).expect("targets");
    report.summary = serde_json::from_value::<Option<RunSummary>>(summary).expect("a summary");
    report.server = nasty.to_owned();
    if let Some(held) = &mut report.baseline {
        held.file.push_str(nasty);
        held.stale.iter_mut().for_each(|stale| stale.line.case.push_str(nasty));
        held.expired.iter_mut().for_each(|line| line.requirement.push_str(nasty));
        held.new.iter_mut().for_each(|line| line.tool = Some(nasty.to_owned()));
    }
}

fn spoil(value: &mut Value, nasty: &str) {
    // Words of ours, which a server has no say in.
    const KEPT: [&str; 8] = ["kind", "outcome", "skipped", "revision", "verdict", "level", "direction", "shutdown"];
    match value {
        Value::String(text) => text.push_str(nasty),
        Value::Array(items) => items.iter_mut().for_each(|item| spoil(item, nasty)),
        Value::Object(members) => {
            let named = members.iter_mut().filter(|(name, _)| !KEPT.contains(&name.as_str()));
            named.for_each(|(_, member)| spoil(member, nasty));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What is left of a page where its fences and code spans are taken out, as `CommonMark` takes them.
pub(super) fn outside_code(text: &str) -> String {
    let mut left = String::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            // The head of a fold is HTML, where a backtick is a character like any other.
            None if line.starts_with("<details>") => left.extend([line, "\n"]),
            Some(open) if ticks.len() >= open.len() && line == ticks => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 && !line[ticks.len()..].contains('`') => fence = Some(ticks),
            None => {
                let mut rest = line;
                while let Some(at) = rest.find('`') {
                    left.push_str(&rest[..at]);
                    let run = rest[at..].len() - rest[at..].trim_start_matches('`').len();
                    let after = &rest[at + run..];
                    let mut from = 0;
                    let end = loop {
                        let Some(next) = after[from..].find('`').map(|next| next + from) else { break None };
                        let length = after[next..].len() - after[next..].trim_start_matches('`').len();
                        if length == run {
                            break Some(next + length);
                        }
                        from = next + length;
                    };
                    rest = end.map_or("", |end| &after[end..]);
                    assert!(end.is_some(), "a code span is not closed: {line}");
                }
                left.push_str(rest);
                left.push('\n');
            }
        }
    }
    assert_eq!(fence, None, "a fence is not closed");
    left
}
