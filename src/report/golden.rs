//! Golden files of the rendered example report in `reports/golden/`; `UPDATE_GOLDEN=1` rewrites them.

use std::fs;
use std::path::Path;

use similar::TextDiff;

/// Compares rendered output with the golden file of that name.
pub(super) fn compare(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, actual).expect("the golden folder can be written");
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected != actual {
        let diff = TextDiff::from_lines(&expected, actual);
        panic!("{name} differs from the golden file (UPDATE_GOLDEN=1 rewrites it)\n{}", diff.unified_diff());
    }
}

/// The text of a Markdown page outside its fences and code spans, as `CommonMark` defines them.
pub(super) fn outside_code(text: &str) -> String {
    let mut left = String::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            // A `<details>` line is HTML, where a backtick is an ordinary character.
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
