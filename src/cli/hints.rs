//! `hints`: tries out a server and writes a hint file, which its author can edit and commit.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};

use mcp_conformance::internals::case::{Hint, HintRequest};
use mcp_conformance::internals::judge::plan;
use mcp_conformance::internals::run::{DiscoveredHint, DiscoveredHints, discover_hints};
use mcp_conformance::report::Conclusion;
use mcp_conformance::report::visible::{is_control_or_invisible, visible};
use mcp_conformance::spec::{Revision, RevisionSet};
use serde_json::{Value, json};

use super::args::HintsArgs;
use super::error::CliError;
use super::run::block_on_until_signal;
use super::server_check;
use super::stdout::print;

/// Tries out the server of the command line and writes the hints.
pub(super) fn hints(args: &HintsArgs, line: &[OsString]) -> Result<Conclusion, CliError> {
    let look = &args.look;
    server_check::find_mistake(&look.server, line, look.connection.process.cwd.as_deref())?;
    let server = look.connection.server(&look.server)?;
    let plan = plan(&server, &look.settings()?)?;
    let server_command = plan.reproduce_suffix.clone();
    // Opened before the server is started; an existing file may contain an author's own hints.
    let file = args.output.as_ref().map(|path| {
        let created = File::create_new(path);
        created.map_err(|source| CliError::Create { path: path.clone(), source }).map(|file| (file, path))
    });
    let file = file.transpose()?;
    let discovered = block_on_until_signal(|stop| discover_hints(plan, stop))?;
    let discovered = discovered.map_err(|problem| {
        if let Some((_, path)) = &file {
            // An empty file is of no use; failing to remove it changes nothing about the error.
            drop(std::fs::remove_file(path));
        }
        CliError::HintDiscovery { message: problem.message, hint: problem.hint }
    })?;
    let text = hint_file(&discovered, &server_command);
    print_summary(&discovered);
    match file {
        None => print(|out| Ok(out.write_all(text.as_bytes())?)),
        Some((mut file, path)) => {
            file.write_all(text.as_bytes()).map_err(|source| CliError::Write {
                what: path.display().to_string(),
                source,
                conclusion: Conclusion::Passed,
            })?;
            Ok(Conclusion::Passed)
        }
    }
}

/// Prints a summary on standard error.
fn print_summary(discovered: &DiscoveredHints) {
    let mut text = String::new();
    let requirements: usize = discovered.found.iter().map(|found| found.hint.purposes.len()).sum();
    let mut add = |line: String| {
        let _infallible = writeln!(text, "{line}");
    };
    add(format!("tried in {}: {} hints for {requirements} requirements", discovered.revisions, discovered.found.len()));
    for (tool, reason) in &discovered.not_called {
        add(format!("not called: {}, because {}", visible(tool), visible(reason)));
    }
    // A closed standard error must not lose the hints.
    drop(io::stderr().lock().write_all(text.as_bytes()));
}

/// The text of the hint file.
fn hint_file(discovered: &DiscoveredHints, server_command: &str) -> String {
    let mut text = String::new();
    let mut line = |line: String| {
        let _infallible = writeln!(text, "{line}");
    };
    line(format!(
        "// Requests that show more of this server, written by: mcp-conformance hints{}",
        visible(server_command)
    ));
    line(
        "// A run with --hints sends them; `for` lists the requirements that can be checked in their responses."
            .to_owned(),
    );
    line("// Edit the arguments where others show more, and remove what is not useful.".to_owned());
    line("{".to_owned());
    line("  \"hints\": [".to_owned());
    for found in &discovered.found {
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

/// The members of a hint, in the order of the file.
fn members(found: &DiscoveredHint) -> Vec<(&'static str, Value)> {
    let Hint { purposes, revisions, request } = &found.hint;
    let mut members = Vec::new();
    if !purposes.is_empty() {
        members.push(("for", json!(purposes)));
    }
    if *revisions != RevisionSet::ALL {
        members.push(("revisions", json!(range(*revisions))));
    }
    match request {
        HintRequest::Call { tool, arguments } => {
            members.push(("call", json!(tool)));
            members.push(("arguments", Value::Object(arguments.clone())));
        }
        HintRequest::Read { uri } => members.push(("read", json!(uri))),
        HintRequest::Get { prompt, arguments } => {
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

/// A value as JSON on one line, with spaces after commas and colons.
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

/// JSON with characters escaped that would affect a terminal or an editor; it parses to the same value.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if is_control_or_invisible(character) {
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
    use mcp_conformance::internals::case::parse_hints;

    use super::*;

    fn found(purposes: &[&str], revisions: &str, request: HintRequest, contents: &[&'static str]) -> DiscoveredHint {
        DiscoveredHint {
            hint: Hint {
                purposes: purposes.iter().map(|id| (*id).to_owned()).collect(),
                revisions: revisions.parse().expect("a set"),
                request,
            },
            contents: contents.to_vec(),
        }
    }

    #[test]
    fn a_written_hint_file_reads_back_as_the_same() {
        let arguments = json!({"text": "a\u{202e}b\u{1b}[2J\"\\ é\n", "n": [1, 2.5]});
        let arguments = arguments.as_object().expect("an object").clone();
        let long = ["tool-name-string", "tool-name-unique", "image-data-base64", "tools-call-unknown-tool-error"];
        let known: Vec<&str> = mcp_conformance::spec::Catalogue::embedded().iter().map(|one| one.id.as_str()).collect();
        let long: Vec<&str> =
            long.into_iter().filter(|id| known.contains(id)).chain(known.iter().take(4).copied()).collect();
        let mut purposes = long.clone();
        purposes.dedup();
        let discovered = DiscoveredHints {
            found: vec![
                found(
                    &purposes,
                    "2024-10-07..",
                    HintRequest::Call { tool: "a".to_owned(), arguments: arguments.clone() },
                    &["image"],
                ),
                found(&[], "2025-03-26..2025-11-25", HintRequest::Read { uri: "file:///x".to_owned() }, &[]),
                found(
                    &[],
                    "2024-11-05, 2025-06-18",
                    HintRequest::Get { prompt: "p".to_owned(), arguments: serde_json::Map::new() },
                    &[],
                ),
            ],
            ..DiscoveredHints::default()
        };
        let text = hint_file(&discovered, " -- ./server 'a\nb'");
        assert!(!text.chars().any(|c| c != '\n' && c.is_control()) && !text.contains('\u{202e}'), "{text}");
        assert!(text.contains("// image\n") && text.contains("\"2025-03-26..2025-11-25\""), "{text}");
        let read = parse_hints("h", &text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let written: Vec<Hint> = discovered.found.into_iter().map(|found| found.hint).collect();
        assert_eq!(read, written);
    }
}
