//! The documentation: its links lead somewhere, its summary has every page, and its figures are current.

use crate::support::pages::{pages, read, root};
use crate::support::{Trial, trial};
use mcp_conformance::report::Conclusion;
use mcp_conformance::verdict::Verdict;
use std::path::PathBuf;

mod book;
mod picture;
mod published;

pub(crate) fn trials() -> Vec<Trial> {
    // The package leaves the documentation out, apart from files that other tests read.
    if !root().join("docs/src/SUMMARY.md").is_file() {
        return Vec::new();
    }
    vec![
        trial("docs/links-lead-somewhere", book::links_lead_somewhere),
        trial("docs/verdicts-and-exit-codes-are-explained-alike", verdicts_and_exit_codes_are_explained_alike),
        trial("docs/the-summary-has-every-page", the_summary_has_every_page),
        trial("docs/published-servers-are-those-of-the-baselines", published::page_is_current),
        trial("docs/the-picture-is-that-of-a-run", picture::picture_is_current),
    ]
}

/// The lines of a Markdown page outside of its fences.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The targets of the links of a page.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in prose(text).flat_map(|line| line.split("](").skip(1)) {
        found.extend(part.split_once(')').map(|(target, _)| target.to_owned()));
    }
    found
}

/// Each table of verdicts or exit codes has the texts of the program, and no other row.
fn verdicts_and_exit_codes_are_explained_alike() -> Result<(), String> {
    let codes = Conclusion::ALL.map(|conclusion| format!("| {} | {} |", conclusion.code(), conclusion.meaning()));
    let order = [Verdict::Pass, Verdict::Fail, Verdict::Warn, Verdict::Skip, Verdict::Error];
    let verdicts = order.map(|verdict| format!("| `{}` | {} |", verdict.as_str(), verdict.meaning()));
    let tables: [(&str, &str, &[String]); 4] = [
        ("README.md", "| exit code | meaning |", &codes),
        ("README.md", "| verdict | meaning |", &verdicts),
        ("docs/src/reference/exit-codes.md", "| code | meaning |", &codes),
        ("docs/src/reference/what-is-judged.md", "| verdict | meaning |", &verdicts),
    ];
    let mut wrong = Vec::new();
    for (page, head, expected) in tables {
        let text = read(&root().join(page))?;
        let rows: Vec<&str> =
            text.lines().skip_while(|line| *line != head).skip(2).take_while(|line| line.starts_with('|')).collect();
        if rows != expected {
            wrong.push(format!("{page} has {rows:#?} below `{head}`, expected {expected:#?}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn the_summary_has_every_page() -> Result<(), String> {
    let summary = root().join("docs/src/SUMMARY.md");
    let listed: Vec<PathBuf> =
        targets(&read(&summary)?).iter().map(|target| root().join("docs/src").join(target)).collect();
    let unlisted: Vec<String> = pages()?
        .into_iter()
        .filter(|page| *page != summary && !listed.contains(page))
        .map(|page| page.display().to_string())
        .collect();
    if unlisted.is_empty() { Ok(()) } else { Err(format!("not in SUMMARY.md:\n{}", unlisted.join("\n"))) }
}
