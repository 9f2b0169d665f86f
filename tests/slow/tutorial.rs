//! The tutorial works as written.

use std::fs;

use tempfile::TempDir;

use super::installed::{servers, servers_are_required};
use crate::support::pages::{read, root};
use crate::support::{Trial, program, trial};

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
    let required = servers_are_required();
    LESSONS
        .map(|lesson| {
            let missing = !servers().join(lesson.needs).exists();
            trial(format!("docs/tutorial/{}", lesson.language), move || follow(&lesson))
                .with_ignored_flag(missing && !required)
        })
        .into()
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
