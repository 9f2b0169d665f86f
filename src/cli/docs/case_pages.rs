//! The pages about the cases, one for each area.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mcp_conformance::internals::case::{Body, Case};
use mcp_conformance::reference::Fault;

use super::example::{Example, Examples};
use super::markdown::{block, prose};
use super::page::Page;
use super::sdks;
use crate::cli::explain::description;
use crate::cli::fault_command::fault_command;
use crate::cli::list::span;

const FOLDER: &str = "reference/cases";

pub(super) fn pages(cases: &[Case], examples: &Examples) -> Vec<Page> {
    let mut areas: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in cases {
        areas.entry(case.id.split('/').next().unwrap_or(&case.id)).or_default().push(case);
    }
    let mut pages = vec![index(&areas)];
    for (area, cases) in areas {
        let mut text = format!("# Cases: {area}\n");
        for case in cases {
            describe(&mut text, case, examples.get(&case.id));
        }
        pages.push(Page { path: format!("{FOLDER}/{area}.md"), title: area.to_owned(), depth: 1, text });
    }
    pages
}

fn index(areas: &BTreeMap<&str, Vec<&Case>>) -> Page {
    let count: usize = areas.values().map(Vec::len).sum();
    let mut text = format!(
        "# Cases\n\nThe {count} built-in cases: what each sends, what it expects, and what the reference server says \
         with the fault of the case and without it. `mcp-conformance explain NAME` shows the same without the messages.\n\n\
         | area | cases |\n|---|--:|\n"
    );
    for (area, cases) in areas {
        let _ = writeln!(text, "| [{area}]({area}.md) | {} |", cases.len());
    }
    Page { path: format!("{FOLDER}/index.md"), title: "Cases".to_owned(), depth: 0, text }
}

fn describe(text: &mut String, case: &Case, example: Option<&Example>) {
    let Case { id, title, fix, .. } = case;
    let _ = writeln!(text, "\n## `{id}` {{#{id}}}\n\n{}\n", prose(title));
    let mut steps = description(case).into_iter();
    if let Some(first) = steps.next() {
        let _ = writeln!(text, "**What it does.** {}\n", prose(&first));
    }
    for line in steps {
        let (bullet, line) = line.strip_prefix("- ").map_or(("\n", line.as_str()), |line| ("- ", line));
        let _ = writeln!(text, "{bullet}{}", prose(line));
    }
    let _ = writeln!(text, "\n- Revisions: {}", span(case.revisions));
    if !case.needs.capabilities.is_empty() {
        let _ = writeln!(text, "- Required server capabilities: {}", prose(&case.needs.capabilities.join(", ")));
    }
    for requirement in &case.requirements {
        let (area, rule) = (&requirement.area, &requirement.id);
        let _ = writeln!(
            text,
            "- {}: [{rule}](../requirements/{area}.md#{rule}): {}",
            requirement.level,
            prose(&requirement.text)
        );
    }
    text.push('\n');
    if let Some(why) = &case.why {
        let _ = writeln!(text, "**Why.** {}\n", prose(why));
    }
    let _ = writeln!(text, "**How to fix the server.** {}\n", prose(fix));
    text.push_str(&sdks::paragraph(id));
    if let Some(example) = example {
        text.push_str(&example.to_markdown());
    } else if matches!(case.body, Body::Fuzz(_)) {
        text.push_str("A run makes its calls from the tools of the server, so there is no message to show here.\n\n");
    }
    let fault = case.fault.as_ref().and_then(|name| name.parse::<Fault>().ok());
    if let Some(command) = fault.and_then(|fault| fault_command(case, fault)) {
        let _ = write!(text, "See it fail:\n\n{}", block("sh", &command));
    }
}
