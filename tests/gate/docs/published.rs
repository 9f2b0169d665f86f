//! The page about published servers, and the figures of README: both are generated from the baselines, which the trials
//! `real/` keep true.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use mcp_conformance::internals::baseline::{Baseline, BaselineEntry};
use mcp_conformance::verdict::Verdict;

use crate::support::pages::{read, root};

const PAGE: &str = "docs/src/published-servers.md";

const HEADING: &str = "# What it finds on published servers

The project judges these servers before each change, in all revisions that they support. Each finding was checked by hand
against the messages on the wire and the text of the specification, and is listed in `tests/baselines/` with its reason; the
tests fail if one is missing or new. Versions are those in `tests/servers/`. This page is written by
`UPDATE_GOLDEN=1 cargo test --test suite -- docs/published` from these files; do not edit it.

";

/// What the first line of a baseline says about its server.
const SUBJECT: &str = "// Findings for a real server: ";

/// A server with its findings.
struct Judged {
    /// Its name and version, and what it is built on.
    subject: String,
    /// Whether it is a package that others publish.
    is_published: bool,
    entries: Vec<BaselineEntry>,
}

impl Judged {
    /// The violated requirements of one level, each with the reason of its first entry.
    fn violated(&self, verdict: Verdict) -> BTreeMap<&str, &str> {
        let mut found = BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| entry.verdict == Some(verdict)) {
            found.entry(entry.requirement.as_str()).or_insert(entry.reason.as_str());
        }
        found
    }
}

fn judged() -> Result<Vec<Judged>, String> {
    let folder = root().join("tests/baselines");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    let mut servers = Vec::new();
    for path in paths {
        let (baseline, _) = Baseline::load(&path).map_err(|error| error.to_string())?;
        let text = read(&path)?;
        let first = text.lines().next().and_then(|line| line.strip_prefix(SUBJECT));
        let subject = first.ok_or_else(|| format!("{}: the first line is not `{SUBJECT}…`", path.display()))?;
        let subject = subject.trim_end_matches('.').to_owned();
        servers.push(Judged { is_published: !subject.contains("tests/servers"), subject, entries: baseline.entries });
    }
    Ok(servers)
}

/// The sentence of README.
fn summary(servers: &[Judged]) -> String {
    let published: Vec<_> = servers.iter().filter(|server| server.is_published).collect();
    let packages: BTreeSet<_> = published.iter().filter_map(|server| server.subject.split(' ').next()).collect();
    let distinct =
        |verdict| published.iter().flat_map(|server| server.violated(verdict).into_keys()).collect::<BTreeSet<_>>();
    let failing = published.iter().filter(|server| !server.violated(Verdict::Fail).is_empty()).count();
    format!(
        "{} published packages in {} setups: {failing} violate a MUST, with {} different requirements of that level and {} of a lower one",
        packages.len(),
        published.len(),
        distinct(Verdict::Fail).len(),
        distinct(Verdict::Warn).len(),
    )
}

fn page(servers: &[Judged]) -> String {
    let mut text = format!("{HEADING}These are {}.\n\n", summary(servers));
    text.push_str("| server | MUST violated | warnings |\n|---|--:|--:|\n");
    for server in servers {
        let (fail, warn) = (server.violated(Verdict::Fail).len(), server.violated(Verdict::Warn).len());
        let _ = writeln!(text, "| {} | {fail} | {warn} |", server.subject);
    }
    text.push_str(
        "\nMost of these are made by the SDK below the server, see [Is it me or my SDK?](guides/me-or-my-sdk.md).\n",
    );
    for server in servers {
        let _ = writeln!(text, "\n## {}\n", server.subject);
        let fails = server.violated(Verdict::Fail);
        for (requirement, reason) in &fails {
            let _ = writeln!(text, "- `{requirement}`: {reason}");
        }
        let warned = server.violated(Verdict::Warn).into_keys().map(|name| format!("`{name}`")).collect::<Vec<_>>();
        let _ = writeln!(text, "- Warnings: {}", if warned.is_empty() { "none".to_owned() } else { warned.join(", ") });
    }
    text
}

/// The page and the sentence of README are what the baselines say.
pub(super) fn page_is_current() -> Result<(), String> {
    let servers = judged()?;
    if servers.iter().filter(|server| server.is_published).count() < 10 {
        return Err("fewer than ten published servers were found".to_owned());
    }
    let (expected, path) = (page(&servers), root().join(PAGE));
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, &expected).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if read(&path)? != expected {
        return Err(format!("{PAGE} is stale: UPDATE_GOLDEN=1 rewrites it"));
    }
    let sentence = summary(&servers);
    let readme = read(&root().join("README.md"))?.split_whitespace().collect::<Vec<_>>().join(" ");
    if readme.contains(&sentence) { Ok(()) } else { Err(format!("README.md does not say: {sentence}")) }
}
