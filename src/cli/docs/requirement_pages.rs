//! The pages about the requirements, one for each area of the catalogue.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mcp_conformance::internals::case::{Case, reason_in_detail};
use mcp_conformance::spec::{Catalogue, Requirement, Transport};

use super::markdown::prose;
use super::page::Page;
use super::sdks;
use crate::cli::list::span;

const FOLDER: &str = "reference/requirements";

pub(super) fn pages(cases: &[Case]) -> Vec<Page> {
    let mut areas: BTreeMap<&str, Vec<&Requirement>> = BTreeMap::new();
    for requirement in Catalogue::embedded().iter().chain(Catalogue::embedded().own()) {
        areas.entry(&requirement.area).or_default().push(requirement);
    }
    let mut pages = vec![index(&areas)];
    for (area, requirements) in areas {
        let mut text = format!("# Requirements: {area}\n");
        for requirement in requirements {
            describe(&mut text, requirement, cases);
        }
        pages.push(Page { path: format!("{FOLDER}/{area}.md"), title: area.to_owned(), depth: 1, text });
    }
    pages
}

fn index(areas: &BTreeMap<&str, Vec<&Requirement>>) -> Page {
    let count: usize = areas.values().map(Vec::len).sum();
    let mut text = format!(
        "# Requirements\n\nThe {count} rules for servers, in the words of this project, with their level, their revisions and \
         the pages that state them. Those of the area [robustness](robustness.md) are this project's own. `mcp-conformance explain NAME` shows the same.\n\n\
         | area | requirements |\n|---|--:|\n"
    );
    for (area, requirements) in areas {
        let _ = writeln!(text, "| [{area}]({area}.md) | {} |", requirements.len());
    }
    Page { path: format!("{FOLDER}/index.md"), title: "Requirements".to_owned(), depth: 0, text }
}

fn describe(text: &mut String, requirement: &Requirement, cases: &[Case]) {
    let Requirement { id, level, derived, applies_if, transport, .. } = requirement;
    let _ = writeln!(text, "\n## `{id}` {{#{id}}}\n\n{}\n", prose(&requirement.text));
    let is_own = Catalogue::embedded().own().any(|own| own.id == *id);
    let inferred = if is_own {
        " (a rule of this project, which no revision states)"
    } else if *derived {
        " (inferred: the specification uses no keyword)"
    } else {
        ""
    };
    let transport = match transport {
        Transport::Any => "",
        Transport::Stdio => ", over standard input and output only",
        Transport::Http => ", over HTTP only",
    };
    let _ = writeln!(text, "- **{level}**{inferred}, in {}{transport}", span(requirement.revisions()));
    if !applies_if.is_empty() && applies_if != "always" {
        let _ = writeln!(text, "- Applies if: {}", prose(applies_if));
    }
    let links: Vec<String> = requirement
        .revisions()
        .iter()
        .map(|revision| format!("[{revision}]({})", requirement.link(revision)))
        .collect();
    let _ = writeln!(text, "- Specification: {}", links.join(", "));
    let checking: Vec<&Case> =
        cases.iter().filter(|case| case.requirements.iter().any(|known| known.id == *id)).collect();
    for case in &checking {
        let area = case.id.split('/').next().unwrap_or_default();
        let _ = writeln!(text, "- Case: [{}](../cases/{area}.md#{}): {}", case.id, case.id, prose(&case.title));
    }
    text.push('\n');
    if checking.is_empty() {
        let reason = reason_in_detail(id).unwrap_or("No case checks it yet.");
        let _ = writeln!(text, "**Why no case checks it.** {}\n", prose(reason));
    }
    paragraphs(text, "Why it matters", checking.iter().filter_map(|case| case.why.as_deref()));
    paragraphs(text, "How to fix the server", checking.iter().map(|case| case.fix.as_str()));
    // The same SDK often deviates in several cases of a requirement.
    let mut in_sdks: Vec<String> = checking.iter().map(|case| sdks::paragraph(&case.id)).collect();
    in_sdks.sort_by_key(|paragraph| std::cmp::Reverse(paragraph.len()));
    text.push_str(in_sdks.first().map_or("", String::as_str));
}

/// Each different text as a paragraph, the first with a title.
fn paragraphs<'a>(text: &mut String, title: &str, paragraphs: impl Iterator<Item = &'a str>) {
    let mut written: Vec<&str> = Vec::new();
    for paragraph in paragraphs {
        if written.contains(&paragraph) {
            continue;
        }
        let title = if written.is_empty() { format!("**{title}.** ") } else { String::new() };
        let _ = writeln!(text, "{title}{}\n", prose(paragraph));
        written.push(paragraph);
    }
}
