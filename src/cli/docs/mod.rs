//! `docs`: the pages of the book about every requirement, case and option, as Markdown.
//!
//! Writes files and prints their lines for the summary of the book. The pages are made of the catalogue, the cases, the
//! options and runs of the reference server, so that they are not part of the sources.

mod case_pages;
mod command_line;
mod example;
mod markdown;
mod page;
mod requirement_pages;
mod sdks;
mod wire;

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use mcp_conformance::internals::case::Case;

use super::args::DocsArgs;
use super::cases;
use super::error::CliError;
use example::Examples;
use page::Page;

/// Writes the pages below a folder and their summary to `out`.
pub(super) fn docs(args: &DocsArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let cases = cases::all(None)?;
    let examples = if args.without_examples { Examples::new() } else { example::of_all(&cases)? };
    let pages = pages(&cases, &examples);
    for page in &pages {
        let path = args.output.join(&page.path);
        write(&path, &page.text).map_err(|source| CliError::WritePage { path, source })?;
    }
    for Page { path, title, depth, .. } in &pages {
        writeln!(out, "{:indent$}- [{title}]({path})", "", indent = depth * 2)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

fn pages(cases: &[Case], examples: &Examples) -> Vec<Page> {
    let mut pages = vec![command_line::page()];
    pages.extend(requirement_pages::pages(cases));
    pages.extend(case_pages::pages(cases, examples));
    pages
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_conformance::spec::{Catalogue, case_page, requirement_page};

    /// The file and the anchor of a page, as the summary and a heading name them.
    fn place(page: &str) -> (String, String) {
        let (file, anchor) = page.split_once('#').expect("a page has an anchor");
        (file.replace(".html", ".md"), format!(" {{#{anchor}}}\n"))
    }

    #[test]
    fn every_case_and_requirement_is_at_its_address() {
        let cases = cases::all(None).expect("the built-in cases load");
        let pages = pages(&cases, &Examples::new());
        let catalogue = Catalogue::embedded();
        let requirements = catalogue.iter().chain(catalogue.own()).map(requirement_page);
        let addresses = cases.iter().map(|case| case_page(&case.id)).chain(requirements);
        for address in addresses {
            let (file, heading) = place(&address);
            let page = pages.iter().find(|page| page.path == file).unwrap_or_else(|| panic!("no page {file}"));
            assert_eq!(page.text.matches(&heading).count(), 1, "{address}");
        }
    }

    #[test]
    fn the_summary_lists_every_file_that_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let args = DocsArgs { output: folder.path().to_owned(), without_examples: true };
        let mut summary = Vec::new();
        docs(&args, &mut summary).expect("the pages are written");
        let summary = String::from_utf8(summary).expect("UTF-8");
        let listed: Vec<&str> = summary.lines().filter_map(|line| line.split_once("](")?.1.strip_suffix(')')).collect();
        assert!(listed.len() > 50, "{summary}");
        for path in listed {
            assert!(fs::metadata(folder.path().join(path)).is_ok_and(|file| file.len() > 100), "{path}");
        }
    }
}
