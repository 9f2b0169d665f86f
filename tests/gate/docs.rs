//! The documentation: its links lead somewhere, its summary has every page, and its figures are current.

use crate::support::pages::{pages, read, root};
use crate::support::{Trial, trial};
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
