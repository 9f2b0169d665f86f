//! The documentation: its links lead somewhere, its summary has every page, and the tutorial works as written.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use tempfile::TempDir;

use crate::{program, servers, servers_are_required, trial};

mod book;
mod commands;
mod picture;
mod published;

/// A server of the tutorial: its language, its command on the page, the ending that Node.js runs without a build step, what
/// it needs below `tests/servers`, and its finding.
struct Lesson {
    language: &'static str,
    source: &'static str,
    command: &'static str,
    file: &'static str,
    needs: &'static str,
    finding: &'static str,
}

const LESSONS: [Lesson; 2] = [
    Lesson {
        language: "typescript",
        source: "ts",
        command: "node server.ts",
        // The SDK infers all types, so that the file is JavaScript as well, which older versions of Node.js run.
        file: "server.mjs",
        needs: "node_modules/@modelcontextprotocol/server",
        finding: "The server writes text that is not a message to standard output.",
    },
    Lesson {
        language: "python",
        source: "py",
        command: "python server.py",
        file: "server.py",
        needs: ".venv/bin/python",
        finding: "The `data` of an image item is not base64.",
    },
];

pub(crate) fn trials() -> Vec<Trial> {
    // The package leaves the documentation out.
    if !root().join("docs/src").is_dir() {
        return Vec::new();
    }
    let required = servers_are_required();
    let lessons = LESSONS.map(|lesson| {
        let missing = !servers().join(lesson.needs).exists();
        trial(format!("docs/tutorial/{}", lesson.language), move || follow(&lesson))
            .with_ignored_flag(missing && !required)
    });
    let mut trials = vec![
        trial("docs/links-lead-somewhere", book::links_lead_somewhere),
        trial("docs/the-summary-has-every-page", the_summary_has_every_page),
        trial("docs/published-servers-are-those-of-the-baselines", published::page_is_current),
        trial("docs/the-picture-is-that-of-a-run", picture::picture_is_current),
    ];
    trials.extend(lessons);
    trials.extend(commands::trials());
    trials
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs the command of the page on the broken and on the fixed server.
fn follow(lesson: &Lesson) -> Result<(), String> {
    let page = read(&root().join("docs/src/tutorial.md"))?;
    let line = page
        .lines()
        .find(|line| line.starts_with("mcp-conformance ") && line.ends_with(lesson.command))
        .ok_or_else(|| format!("the tutorial has no command that ends with `{}`", lesson.command))?;
    if !page.contains(lesson.finding) {
        return Err(format!("the tutorial does not show `{}`", lesson.finding));
    }
    let options = line.trim_start_matches("mcp-conformance ").trim_end_matches(lesson.command);
    let python = servers().join(".venv/bin/python").display().to_string();
    let mut arguments: Vec<&str> = options.split_whitespace().collect();
    arguments.extend([if lesson.source == "py" { &python } else { "node" }, lesson.file]);
    for (version, code) in [("broken", 1), ("fixed", 0)] {
        let included = format!("{{{{#include ../tutorial/broken.{}}}}}", lesson.source);
        if !page.contains(&included) {
            return Err(format!("the tutorial does not include the server with `{included}`"));
        }
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        let source = read(&root().join(format!("docs/tutorial/{version}.{}", lesson.source)))?;
        fs::write(folder.path().join(lesson.file), source).map_err(|error| error.to_string())?;
        #[cfg(unix)]
        std::os::unix::fs::symlink(servers().join("node_modules"), folder.path().join("node_modules"))
            .map_err(|error| error.to_string())?;
        let output = program(folder.path(), &arguments)?.with_code(code)?;
        if output.out.contains(lesson.finding) != (version == "broken") {
            return Err(format!("{version}: `{}` is unexpected or missing in:\n{}", lesson.finding, output.text));
        }
    }
    Ok(())
}

/// All pages of the book, as paths below the repository, sorted.
fn pages() -> Result<Vec<PathBuf>, String> {
    let mut pages = Vec::new();
    let mut folders = vec![root().join("docs/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))? {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    if pages.len() < 20 { Err(format!("only {} pages were found", pages.len())) } else { Ok(pages) }
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
