//! The files that `init` writes, with comments that say what each setting does.

use std::ffi::OsString;
use std::fmt::Write as _;

use mcp_conformance::report::visible::{is_control_or_invisible, visible};
use mcp_conformance::spec::Revision;

use super::server::ServerArgs;

/// How many names of tools a comment lists.
const MAX_LISTED_TOOLS: usize = 12;

/// What `init` saw of a server.
#[derive(Debug)]
pub(super) struct ServerDescription {
    /// Its name.
    pub(super) name: Option<String>,
    /// Its version.
    pub(super) version: Option<String>,
    /// The revisions that it supports, oldest first.
    pub(super) revisions: Vec<Revision>,
    /// Its tools, and whether each is annotated as read-only.
    pub(super) tools: Vec<(String, bool)>,
}

/// The keys that stand in the file as comments, with their meaning.
const OPTIONS: [(&str, &str); 8] = [
    ("Cases to leave out, by id, area or tag (`mcp-conformance --list` shows them).", "skip = [\"resources/*\"]"),
    (
        "Call only tools annotated `readOnlyHint: true`. Without this, tools without annotations are called too.",
        "safe = true",
    ),
    ("Number of generated calls for each tool, or \"off\".", "fuzz = 200"),
    ("Time limit of a request.", "timeout = \"5s\""),
    (
        "Working example calls, which show more of the server; `mcp-conformance hints --output mcp-hints.jsonc` writes them.",
        "hints = \"mcp-hints.jsonc\"",
    ),
    (
        "Known findings that do not fail the run; `mcp-conformance --update-baseline` writes them.",
        "baseline = \"mcp-baseline.jsonc\"",
    ),
    ("Warnings fail the run too.", "strict = true"),
    ("Reports to write.", "report = [\"json=mcp-conformance.json\", \"html=mcp-conformance.html\"]"),
];

/// The text of the configuration file.
pub(super) fn configuration(
    description: Option<&ServerDescription>,
    connection: &ServerArgs,
    server: &[OsString],
) -> String {
    let mut text = String::new();
    let mut line = |line: &str| {
        let _infallible = writeln!(text, "{line}");
    };
    line("# Settings of mcp-conformance for this project; `mcp-conformance` alone uses them.");
    line("#");
    line("# A key has the name of an option, which `mcp-conformance --help` describes; an option on the command line");
    line("# replaces the key. Relative paths begin in the folder of this file.");
    if let Some(description) = description {
        line("");
        for comment in comments(description) {
            line(&format!("# {comment}"));
        }
    }
    line("");
    let revisions = description.map_or(&[][..], |description| &description.revisions);
    let listed: Vec<String> = revisions.iter().map(|revision| quoted(revision.as_str())).collect();
    let listed = if listed.is_empty() { quoted("latest") } else { listed.join(", ") };
    line("# Revisions to judge; without this key, every released one that the server supports.");
    line(&format!("# revision = [{listed}]"));
    for (meaning, key) in OPTIONS {
        line("");
        line(&format!("# {meaning}"));
        line(&format!("# {key}"));
    }
    line("");
    for entry in server_table(connection, server) {
        line(&entry);
    }
    line("");
    line("# More settings for `mcp-conformance --profile nightly`, which replace those above.");
    line("[profile.nightly]");
    line("fuzz = 2000");
    line("fuzz-revisions = \"all\"");
    text
}

/// What was seen of the server.
fn comments(description: &ServerDescription) -> Vec<String> {
    let ServerDescription { name, version, revisions, tools } = description;
    let name = name.as_deref().map_or_else(|| "The server".to_owned(), |name| visible(name).into_owned());
    let version = version.as_deref().map_or_else(String::new, |version| format!(" {}", visible(version)));
    let revisions: Vec<&str> = revisions.iter().map(|revision| revision.as_str()).collect();
    let mut comments = vec![format!("{name}{version} supports {}.", revisions.join(", "))];
    let others: Vec<&str> = tools.iter().filter(|(_, read_only)| !read_only).map(|(tool, _)| tool.as_str()).collect();
    comments.push(match (tools.len(), others.len()) {
        (0, _) => "It has no tools.".to_owned(),
        (all, 0) => format!("It has {all} tools, all annotated `readOnlyHint: true`."),
        (all, some) => {
            let listed: Vec<String> =
                others.iter().take(MAX_LISTED_TOOLS).map(|tool| visible(tool).into_owned()).collect();
            let more = if some > MAX_LISTED_TOOLS { ", ..." } else { "" };
            format!("It has {all} tools; {some} not annotated `readOnlyHint: true`: {}{more}.", listed.join(", "))
        }
    });
    comments
}

/// The table of the server.
fn server_table(connection: &ServerArgs, server: &[OsString]) -> Vec<String> {
    let mut lines = vec!["[server]".to_owned()];
    let (url, words) = match (&connection.http.url, server) {
        (None, [url]) if super::server::is_url(url) => (Some(url.to_string_lossy().into_owned()), &[][..]),
        (url, words) => (url.clone(), words),
    };
    let command: Vec<String> = words.iter().map(|word| quoted(&word.to_string_lossy())).collect();
    if !command.is_empty() {
        lines.push(format!("command = [{}]", command.join(", ")));
    } else if url.is_none() {
        lines.push("# The program and each of its arguments, or a URL.".to_owned());
        lines.push("command = [\"./my-server\"]".to_owned());
        lines.push("# url = \"http://localhost:3000/mcp\"".to_owned());
    }
    if url.is_none() || !command.is_empty() {
        // A value may be a secret, so it is taken from the environment.
        let variable = |name: &OsString| {
            let name = name.to_string_lossy().into_owned();
            format!("{} = {}", quoted(&name), quoted(&format!("${{{name}}}")))
        };
        let env: Vec<String> = connection.process.env.iter().map(|(name, _)| variable(name)).collect();
        if env.is_empty() {
            lines.push("# env = { API_KEY = \"${API_KEY}\" }".to_owned());
        } else {
            lines.push(format!("env = {{ {} }}", env.join(", ")));
        }
        if let Some(cwd) = &connection.process.cwd {
            lines.push(format!("cwd = {}", quoted(&cwd.to_string_lossy())));
        }
    }
    if let Some(url) = url {
        lines.push(format!("url = {}", quoted(&url)));
        let headers: Vec<String> = connection
            .http
            .header
            .iter()
            .filter_map(|header| header.name())
            .map(|name| {
                let variable: String = name
                    .chars()
                    .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
                    .collect();
                format!("{} = {}", quoted(name), quoted(&format!("${{{variable}}}")))
            })
            .collect();
        if !headers.is_empty() {
            lines.push(format!("header = {{ {} }}", headers.join(", ")));
        }
        for (name, variable) in [
            ("bearer-env", &connection.http.bearer_env),
            ("second-bearer-env", &connection.http.second_bearer_env),
            ("foreign-bearer-env", &connection.http.foreign_bearer_env),
        ] {
            lines.extend(variable.iter().map(|variable| format!("{name} = {}", quoted(variable))));
        }
        if connection.http.insecure {
            lines.push("insecure = true".to_owned());
        }
    }
    lines
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            other if is_control_or_invisible(other) => {
                let _infallible = write!(quoted, "\\U{:08X}", u32::from(other));
            }
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

/// The workflow of GitHub Actions.
pub(super) fn github_workflow() -> &'static str {
    "\
# Judges the server of mcp-conformance.toml on each push and pull request.
name: MCP conformance

on:
  push:
    branches: [main]
  pull_request:

permissions:
  contents: read
  # For the comment on a pull request.
  pull-requests: write

jobs:
  conformance:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    steps:
      - uses: actions/checkout@v5
        with:
          persist-credentials: false
      # Build your server here. A new case can make it fail, so pin a commit of mcp-conformance.
      - uses: OWNER/mcp-conformance@COMMIT
        with:
          # Builds that commit; without this, the release of its version is installed.
          version: source
          comment: true
"
}

/// The pipeline of GitLab CI.
pub(super) fn gitlab_pipeline() -> &'static str {
    "\
# Judges the server of mcp-conformance.toml.
mcp-conformance:
  stage: test
  # The image needs what your server needs, too.
  image: rust:1
  script:
    # A new case can make the server fail, so pin a commit of mcp-conformance.
    - cargo install --locked --git https://github.com/OWNER/mcp-conformance --rev COMMIT
    - mcp-conformance --report junit=mcp-conformance.xml
  artifacts:
    when: always
    reports:
      junit: mcp-conformance.xml
"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_string_stays_on_its_line() {
        assert_eq!(quoted("a \"b\" \\ \n\u{202e}é"), "\"a \\\"b\\\" \\\\ \\U0000000A\\U0000202Eé\"");
    }
}
