//! `hints`: tries a server out and writes what it found as a file that an author commits.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use mcp_conformance::case::{Ask, Hint};
use mcp_conformance::report::Conclusion;
use mcp_conformance::report::visible::{is_treacherous, visible};
use mcp_conformance::run::{DiscoveredHint, DiscoveredHints, Plan, discover_hints, side_by_side};
use mcp_conformance::spec::{Revision, RevisionSet};
use serde_json::{Value, json};

use super::args::HintsArgs;
use super::command::written;
use super::error::CliError;
use super::http::Named;
use super::judge::{SHUTDOWN_GRACE, calls, refuse_misplaced_word, revisions, until_stopped};
use super::{cases, replay};

/// Tries the server of the command line out and writes the hints.
pub(super) fn hints(args: &HintsArgs) -> Result<Conclusion, CliError> {
    refuse_misplaced_word(&args.server, std::env::args())?;
    let named = Named { http: &args.http, server: &args.server, env: &args.env, cwd: args.cwd.as_ref() };
    let launcher = named.launcher()?;
    let plan = Plan {
        revisions: revisions(&args.revision)?,
        cases: cases::all(None)?.into_iter().map(Arc::new).collect(),
        calls: calls(args.safe, args.call_destructive, &launcher),
        launcher,
        hints: Vec::new(),
        timeout: args.timeout,
        startup_timeout: args.startup_timeout,
        shutdown_grace: SHUTDOWN_GRACE,
        jobs: side_by_side(),
        seed: 0,
        fuzz: None,
        retries: 0,
        show_wire: false,
        replay_prefix: String::new(),
        replay_suffix: String::new(),
    };
    // Opened before anything is started; a file that is there may hold an author's own hints.
    let file = args.output.as_ref().map(|path| {
        let created = File::create_new(path);
        created.map_err(|source| CliError::Create { path: path.clone(), source }).map(|file| (file, path))
    });
    let file = file.transpose()?;
    let tried = until_stopped(|stop| discover_hints(plan, stop))?;
    let tried = tried.map_err(|problem| {
        if let Some((_, path)) = &file {
            // What was created for nothing is not left behind; that it cannot be removed changes nothing.
            drop(std::fs::remove_file(path));
        }
        CliError::Untried { message: problem.message, hint: problem.hint }
    })?;
    let text = text(&tried, &replay::suffix(&args.http, &args.server));
    tell(&tried);
    match file {
        None => written(|out| Ok(out.write_all(text.as_bytes())?)),
        Some((mut file, path)) => {
            file.write_all(text.as_bytes()).map_err(|source| CliError::Lost {
                what: path.display().to_string(),
                source,
                conclusion: Conclusion::Passed,
            })?;
            Ok(Conclusion::Passed)
        }
    }
}

/// Says on standard error what came of it.
fn tell(tried: &DiscoveredHints) {
    let mut said = String::new();
    let requirements: usize = tried.found.iter().map(|found| found.hint.purposes.len()).sum();
    let mut say = |line: String| {
        let _infallible = writeln!(said, "{line}");
    };
    say(format!("tried out in {}: {} hints, for {requirements} requirements", tried.revisions, tried.found.len()));
    for (tool, reason) in &tried.not_called {
        say(format!("not called: {}, as {}", visible(tool), visible(reason)));
    }
    // A closed standard error is no reason to lose the hints.
    drop(io::stderr().lock().write_all(said.as_bytes()));
}

/// The hints as the text of a file.
fn text(tried: &DiscoveredHints, command: &str) -> String {
    let mut text = String::new();
    let mut line = |line: String| {
        let _infallible = writeln!(text, "{line}");
    };
    line(format!("// What shows what in this server, tried out by: mcp-conformance hints{}", visible(command)));
    line(
        "// A run with --hints follows them: `for` names the requirements that an answer shows. Mend the arguments"
            .to_owned(),
    );
    line("// where others show more, and take out what is of no use.".to_owned());
    line("{".to_owned());
    line("  \"hints\": [".to_owned());
    for found in &tried.found {
        if !found.contents.is_empty() {
            line(format!("    // {}", found.contents.join(", ")));
        }
        line("    {".to_owned());
        for (name, value) in members(found) {
            match (&value, spaced(&value)) {
                (Value::Array(items), short) if short.len() > 90 => {
                    line(format!("      {}: [", json!(name)));
                    for item in items {
                        line(format!("        {},", escaped(&spaced(item))));
                    }
                    line("      ],".to_owned());
                }
                (_, short) => line(format!("      {}: {},", json!(name), escaped(&short))),
            }
        }
        line("    },".to_owned());
    }
    line("  ],".to_owned());
    line("}".to_owned());
    text
}

/// The members of a hint, in the order in which they are written.
fn members(found: &DiscoveredHint) -> Vec<(&'static str, Value)> {
    let Hint { purposes, revisions, ask } = &found.hint;
    let mut members = Vec::new();
    if !purposes.is_empty() {
        members.push(("for", json!(purposes)));
    }
    if *revisions != RevisionSet::ALL {
        members.push(("revisions", json!(range(*revisions))));
    }
    match ask {
        Ask::Call { tool, arguments } => {
            members.push(("call", json!(tool)));
            members.push(("arguments", Value::Object(arguments.clone())));
        }
        Ask::Read { uri } => members.push(("read", json!(uri))),
        Ask::Get { prompt, arguments } => {
            members.push(("get", json!(prompt)));
            if !arguments.is_empty() {
                members.push(("arguments", Value::Object(arguments.clone())));
            }
        }
    }
    members
}

/// A set of revisions, as a range where it is one.
fn range(revisions: RevisionSet) -> String {
    let ends = revisions.iter().next().zip(revisions.iter().last());
    let open = |last: Revision| if last == Revision::V2026_07_28 { String::new() } else { last.to_string() };
    match ends.map(|(first, last)| format!("{first}..{}", open(last))) {
        Some(range) if revisions.iter().count() > 1 && range.parse() == Ok(revisions) => range,
        _ => revisions.to_string(),
    }
}

/// A value as JSON on one line, with spaces for the eye.
fn spaced(value: &Value) -> String {
    let join = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Array(items) => format!("[{}]", join(items.iter().map(spaced).collect())),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{}: {}", json!(name), spaced(value)));
            format!("{{{}}}", join(members.collect()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// A text of JSON in which nothing acts on a terminal or an editor; it reads back as the same.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if is_treacherous(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _infallible = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(character);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use mcp_conformance::case::understand_hints;

    use super::*;

    fn found(purposes: &[&str], revisions: &str, ask: Ask, contents: &[&'static str]) -> DiscoveredHint {
        DiscoveredHint {
            hint: Hint {
                purposes: purposes.iter().map(|id| (*id).to_owned()).collect(),
                revisions: revisions.parse().expect("a set"),
                ask,
            },
            contents: held.to_vec(),
        }
    }

    #[test]
    fn what_is_written_reads_back_as_the_same() {
        let arguments = json!({"text": "a\u{202e}b\u{1b}[2J\"\\ é\n", "n": [1, 2.5]});
        let arguments = arguments.as_object().expect("an object").clone();
        let long = ["tool-name-string", "tool-name-unique", "image-data-base64", "tools-call-unknown-tool-error"];
        let known: Vec<&str> = mcp_conformance::spec::Catalogue::embedded().iter().map(|one| one.id.as_str()).collect();
        let long: Vec<&str> =
            long.into_iter().filter(|id| known.contains(id)).chain(known.iter().take(4).copied()).collect();
        let mut purposes = long.clone();
        purposes.dedup();
        let tried = DiscoveredHints {
            found: vec![
                found(
                    &purposes,
                    "2024-10-07..",
                    Ask::Call { tool: "a".to_owned(), arguments: arguments.clone() },
                    &["image"],
                ),
                found(&[], "2025-03-26..2025-11-25", Ask::Read { uri: "file:///x".to_owned() }, &[]),
                found(
                    &[],
                    "2024-11-05, 2025-06-18",
                    Ask::Get { prompt: "p".to_owned(), arguments: serde_json::Map::new() },
                    &[],
                ),
            ],
            ..DiscoveredHints::default()
        };
        let text = text(&tried, " -- ./server 'a\nb'");
        assert!(!text.chars().any(|c| c != '\n' && c.is_control()) && !text.contains('\u{202e}'), "{text}");
        assert!(text.contains("// image\n") && text.contains("\"2025-03-26..2025-11-25\""), "{text}");
        let read = understand_hints("h", &text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let written: Vec<Hint> = tried.found.into_iter().map(|found| found.hint).collect();
        assert_eq!(read, written);
    }
}
