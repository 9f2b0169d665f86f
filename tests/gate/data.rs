//! Checks of the data: cases, requirements, reasons, and the text that users read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use dprint_plugin_json::configuration::{Configuration, ConfigurationBuilder, TrailingCommaKind};
use dprint_plugin_json::format_text;
use mcp_conformance::internals::case::{Action, Answer, Body, Case, Coverage, Delivery, Reason, Rule, Watch, reasons};
use mcp_conformance::spec::{Catalogue, Level, Requirement, Revision};
use similar::TextDiff;

use crate::support::reference::cases;
use crate::support::{Trial, program_command, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("data/titles-are-unique", titles_are_unique),
        trial("data/every-case-names-a-fault", every_case_names_a_fault),
        trial("data/every-case-has-a-main-requirement-in-each-revision", every_case_has_a_main_requirement),
        trial("data/a-reason-is-for-a-requirement-without-a-case", a_reason_is_for_a_requirement_without_a_case),
        trial("data/every-link-leads-to-its-own-revision", every_link_leads_to_its_own_revision),
        trial("data/every-requirement-has-a-case-or-a-reason", every_requirement_has_a_case_or_a_reason),
        trial(
            "data/no-reason-where-a-similar-requirement-has-a-case",
            no_reason_where_a_similar_requirement_has_a_case,
        ),
        trial("data/the-coverage-document-is-up-to-date", the_coverage_document_is_up_to_date),
        trial("data/case-files-are-formatted", case_files_are_formatted),
        trial("data/every-shape-is-used", every_shape_is_used),
        trial("data/user-visible-text-is-plain", user_visible_text_is_plain),
    ]
}

fn titles_are_unique() -> Result<(), String> {
    let mut known = BTreeSet::new();
    let twice: Vec<&str> =
        cases().iter().map(|case| case.title.as_str()).filter(|title| !known.insert(*title)).collect();
    if twice.is_empty() { Ok(()) } else { Err(format!("used twice: {}", twice.join("; "))) }
}

fn every_case_names_a_fault() -> Result<(), String> {
    let is_not_fuzz = |case: &&std::sync::Arc<Case>| !matches!(case.body, Body::Fuzz(_));
    let named = cases().iter().filter(is_not_fuzz);
    let bare: Vec<&str> = named.filter(|case| case.fault.is_none()).map(|case| case.id.as_str()).collect();
    if bare.is_empty() { Ok(()) } else { Err(format!("without a fault: {}", bare.join(", "))) }
}

fn every_case_has_a_main_requirement() -> Result<(), String> {
    for case in cases() {
        for revision in case.revisions.iter() {
            if case.requirement_in(revision).is_none() {
                return Err(format!("{} has no requirement that {revision} states", case.id));
            }
        }
    }
    Ok(())
}

fn a_reason_is_for_a_requirement_without_a_case() -> Result<(), String> {
    let mut known = BTreeSet::new();
    for (reason, id) in reasons() {
        let reason = reason.as_str();
        if Catalogue::embedded().get(id).is_none() {
            return Err(format!("`{reason}` is given for `{id}`, which is no requirement"));
        }
        if !known.insert(id) {
            return Err(format!("`{id}` has more than one reason"));
        }
        let cites = |case: &&std::sync::Arc<mcp_conformance::internals::case::Case>| {
            case.requirements.iter().any(|requirement| requirement.id == id)
        };
        if let Some(case) = cases().iter().find(cites) {
            return Err(format!("`{reason}` is given for `{id}`, and {} checks it", case.id));
        }
    }
    Ok(())
}

/// The pages of each revision, with the anchors of each: `tests/specification/list-pages.py` makes the list.
type Pages = BTreeMap<String, BTreeMap<String, Vec<String>>>;

fn every_link_leads_to_its_own_revision() -> Result<(), String> {
    let pages: Pages =
        serde_json::from_str(include_str!("../specification/pages.json")).map_err(|error| error.to_string())?;
    let catalogue = Catalogue::embedded();
    let mut wrong = Vec::new();
    for requirement in catalogue.iter().chain(catalogue.own()) {
        for revision in requirement.revisions().iter() {
            let link = requirement.link(revision);
            if let Err(reason) = leads_to(&link, revision, &pages) {
                wrong.push(format!("{} in {revision}: {link} {reason}", requirement.id));
            }
        }
    }
    // The check itself has to tell a page of another revision, a missing page and a missing anchor.
    let planted = [
        "https://modelcontextprotocol.io/specification/2025-06-18/server/tools#capabilities",
        "https://modelcontextprotocol.io/specification/2025-11-25/server/tool#capabilities",
        "https://modelcontextprotocol.io/specification/2025-11-25/server/tools#capability",
        "https://github.com/modelcontextprotocol/modelcontextprotocol/blob/main/schema/2025-06-18/schema.ts",
    ];
    let unseen = planted.iter().filter(|link| leads_to(link, Revision::V2025_11_25, &pages).is_ok());
    wrong.extend(unseen.map(|link| format!("the check accepts {link}")));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Checks that a link of `revision` leads to a page of that revision and to an anchor on it. A proposal (SEP), which states
/// the rules of an extension, belongs to no revision.
fn leads_to(link: &str, revision: Revision, pages: &Pages) -> Result<(), &'static str> {
    const REPOSITORY: &str = "https://github.com/modelcontextprotocol/modelcontextprotocol/blob/";
    let (address, anchor) = link.split_once('#').map_or((link, None), |(address, anchor)| (address, Some(anchor)));
    let own = &pages[revision.as_str()];
    let draft = "ed35f718be83a2e3e1e568f7ba3562b81ed69c40/";
    let page = if let Some(path) = address.strip_prefix("https://modelcontextprotocol.io/specification/") {
        let path = path.strip_prefix(revision.as_str()).and_then(|rest| rest.strip_prefix('/'));
        let path = path.ok_or("is a page of another revision")?;
        own.get(path).or_else(|| own.get(&format!("{path}/index")))
    } else {
        let path = address.strip_prefix(REPOSITORY).ok_or("is no page of the specification")?;
        let schema = format!("main/schema/{revision}/");
        match (path.strip_prefix(draft), path.strip_prefix(&schema)) {
            _ if path.starts_with("main/seps/") => return Ok(()),
            (Some(file), _) if revision == Revision::V2024_10_07 => own.get(file),
            (_, Some(file)) => own.get(file),
            _ => return Err("is a file of another revision"),
        }
    };
    let anchors = page.ok_or("is a page that does not exist")?;
    match anchor {
        Some(anchor) if !anchors.iter().any(|known| known == anchor) => Err("has an anchor that is not on the page"),
        _ => Ok(()),
    }
}

fn every_requirement_has_a_case_or_a_reason() -> Result<(), String> {
    let coverage = Coverage::of_shared(cases());
    let unanswered: Vec<&str> = coverage
        .entries
        .iter()
        .filter(|entry| matches!(entry.answer, Answer::None))
        .map(|entry| entry.requirement.id.as_str())
        .collect();
    if unanswered.is_empty() {
        return Ok(());
    }
    Err(format!("these have neither a case nor a reason: {}", unanswered.join(", ")))
}

/// The requirements that have a reason although a similar one has a case, each with the difference.
const DIFFERENT_FROM_SIMILAR: [(&str, &str); 6] = [
    ("auth-scope-hierarchy", "the similar ones are about invalid tokens, this one about a token with a broader scope"),
    (
        "completion-rate-limit",
        "the similar ones are about responses, this one about their rate, which only a flood of requests shows",
    ),
    (
        "elicit-third-party-credentials",
        "the similar ones are about requests, this one about a login on the page of the server",
    ),
    (
        "errors-no-new-legacy-codes",
        "the similar ones are about codes that are forbidden, this one about when a code was introduced",
    ),
    ("sampling-sensitive-data", "the similar ones are about the form of messages, this one about their meaning"),
    (
        "security-rate-limit",
        "the similar ones are about responses, this one about their rate, which only a flood of requests shows",
    ),
];

/// A MUST has no reason instead of a case where a similar requirement has a case: one of the same area that applies under
/// the same condition over the same transport, and is a MUST or a rule of the schema too. Either a case is possible after
/// all, or the list above says what the difference is. A permission, which nothing violates, is similar to none.
fn no_reason_where_a_similar_requirement_has_a_case() -> Result<(), String> {
    let coverage = Coverage::of_shared(cases());
    let binds = |requirement: &Requirement| matches!(requirement.level, Level::Must | Level::Schema);
    let alike = |one: &Requirement, other: &Requirement| {
        binds(other) && (&one.area, &one.applies_if, one.transport) == (&other.area, &other.applies_if, other.transport)
    };
    let mut excused = BTreeSet::new();
    for entry in &coverage.entries {
        let Answer::Reason(reason) = entry.answer else { continue };
        let requirement = entry.requirement;
        if requirement.level != Level::Must || reason == Reason::Permission {
            continue;
        }
        let similar = coverage.entries.iter().find_map(|other| match &other.answer {
            Answer::Cases(cases) if alike(requirement, other.requirement) => Some((&other.requirement.id, cases)),
            _ => None,
        });
        let Some((similar, cases)) = similar else { continue };
        if !DIFFERENT_FROM_SIMILAR.iter().any(|(id, _)| *id == requirement.id) {
            let (id, reason) = (&requirement.id, reason.as_str());
            return Err(format!(
                "`{id}` is `{reason}`, while the similar `{similar}` is checked by {}",
                cases.join(", ")
            ));
        }
        excused.insert(requirement.id.as_str());
    }
    match DIFFERENT_FROM_SIMILAR.iter().find(|(id, _)| !excused.contains(id)) {
        Some((id, _)) => Err(format!("`{id}` needs no exception any more: remove it from the list")),
        None => Ok(()),
    }
}

/// `cases/COVERAGE.md` is what `coverage --format markdown --all` writes, below a heading.
fn the_coverage_document_is_up_to_date() -> Result<(), String> {
    const HEADING: &str = "# What is covered

Every requirement of the specification that concerns a server, and the cases that check it or the reason why
none does. This file is written by `UPDATE_GOLDEN=1 cargo test --test suite -- data/the-coverage` from what
`mcp-conformance coverage --format markdown --all` prints; do not edit it.

";
    let command = program_command()
        .args(["coverage", "--format", "markdown", "--all"])
        .output()
        .map_err(|error| format!("failed to run coverage: {error}"))?;
    if !command.status.success() {
        return Err(format!("coverage ends with {}:\n{}", command.status, String::from_utf8_lossy(&command.stderr)));
    }
    let actual = format!("{HEADING}{}", String::from_utf8_lossy(&command.stdout));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/COVERAGE.md");
    if updates_golden() {
        return fs::write(&path, actual).map_err(|error| format!("failed to write {}: {error}", path.display()));
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected == actual {
        return Ok(());
    }
    let diff = TextDiff::from_lines(&expected, &actual).unified_diff().context_radius(0).to_string();
    Err(format!("cases/COVERAGE.md is stale (UPDATE_GOLDEN=1 rewrites it):\n{diff}"))
}

/// Whether files that differ from what they should be are rewritten.
fn updates_golden() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1")
}

/// The files below a directory of this package that have one of these extensions, sorted.
fn files_below(directory: &str, extensions: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut pending = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(directory)];
    while let Some(directory) = pending.pop() {
        let entries = fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        for entry in entries {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|one| extensions.iter().any(|extension| one == *extension)) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The layout of JSON files below `cases`: an object is on one line where it fits; a list may be on one line or several, as
/// comments between its items need.
fn layout() -> Configuration {
    ConfigurationBuilder::new()
        .line_width(120)
        .indent_width(2)
        .object_prefer_single_line(true)
        .trailing_commas(TrailingCommaKind::Jsonc)
        .build()
}

fn case_files_are_formatted() -> Result<(), String> {
    let layout = layout();
    let mut differing = Vec::new();
    for path in files_below("cases", &["jsonc", "json"])? {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let formatted = format_text(&path, &text, &layout).map_err(|error| format!("{}: {error}", path.display()))?;
        let Some(formatted) = formatted else { continue };
        if updates_golden() {
            fs::write(&path, formatted).map_err(|error| format!("failed to write {}: {error}", path.display()))?;
        } else {
            let diff = TextDiff::from_lines(&text, &formatted).unified_diff().context_radius(1).to_string();
            differing.push(format!("{}:\n{diff}", path.display()));
        }
    }
    if differing.is_empty() {
        return Ok(());
    }
    let shown = differing.iter().take(3).map(String::as_str).collect::<Vec<_>>().join("\n");
    Err(format!("{} files are not formatted (UPDATE_GOLDEN=1 formats them), among them\n{shown}", differing.len()))
}

/// Each schema in `cases/shapes` is referred to by at least three places, or it belongs into the cases.
fn every_shape_is_used() -> Result<(), String> {
    const MIN_USES: usize = 3;
    let mut texts = String::new();
    for path in files_below("cases", &["jsonc", "json"])? {
        texts += &fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    for path in files_below("cases/shapes", &["json"])? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let uses = texts.matches(&format!("\"shapes/{name}\"")).count();
        if uses < MIN_USES {
            return Err(format!("the shape `{name}` is used {uses} times, of at least {MIN_USES}"));
        }
    }
    Ok(())
}

/// Phrases of a private dialect that this project once had, each with what to write instead. A phrase is found as a
/// sequence of whole words, outside of code spans and paths.
const DIALECT: &[(&str, &str)] = &[
    ("told", "reported, said, shown"),
    ("tells of", "reports"),
    ("tells", "reports, says, shows"),
    ("held against", "checked against, compared with"),
    ("hold against", "check against, compare with"),
    ("holds against", "checks against, compares with"),
    ("stands", "is, appears, means"),
    ("stand", "be, appear, mean"),
    ("stands for", "means, represents"),
    ("beside", "next to, as well as"),
    ("besides", "as well as"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("breach", "violation"),
    ("breaches", "violations"),
    ("walk", "paginate, traverse"),
    ("walks", "paginates, traverses"),
    ("walked", "paginated, traversed"),
    ("spoken", "supported"),
    ("in earnest", "leave it out"),
    ("cut off", "truncated, aborted"),
    ("ended early", "stopped early, with the reason"),
    ("looked at", "checked"),
    ("looks at", "checks"),
    ("turns up", "appears"),
    ("tried out", "tested"),
    ("asked in vain", "requested without a response"),
    ("as it stands", "as it is"),
    ("by our reading", "derived: the text has no keyword"),
    ("willing client", "client that grants what is requested"),
    ("the hunt", "the campaign"),
    ("patience", "timeout"),
    ("afterlife", "shutdown"),
    ("last words", "final output"),
    ("epitaph", "exit status"),
    ("astray", "to another origin"),
    ("straggler", "late response"),
    ("tryout", "hint discovery"),
    ("haste", "priority"),
];

/// Where a phrase is allowed: the beginning of the place, the phrase, and why.
const DIALECT_EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// The words of a text in lower case, without code spans, paths and addresses.
fn words_of(text: &str) -> Vec<String> {
    let outside_code = text.split('`').step_by(2).collect::<Vec<_>>().join(" \u{1} ");
    let words = outside_code.split_whitespace().map(|word| {
        if word.contains(['/', '_', '=', '@', '<']) {
            return "\u{1}".to_owned();
        }
        word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
    });
    words.filter(|word| !word.is_empty()).collect()
}

/// The phrases of the dialect in a text.
fn dialect_in(text: &str) -> Vec<(&'static str, &'static str)> {
    let words = words_of(text);
    let found = DIALECT.iter().filter(|(phrase, _)| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        words.windows(phrase.len()).any(|window| window.iter().zip(&phrase).all(|(word, other)| word == other))
    });
    found.copied().collect()
}

fn messages_of_rules<T>(rules: &[Rule<T>]) -> Vec<String> {
    rules.iter().filter_map(|rule| rule.message.clone()).collect()
}

/// Every string of a case that a user reads.
fn texts_of(case: &Case) -> Vec<String> {
    let mut texts = vec![case.title.clone(), case.fix.clone()];
    texts.extend(case.why.clone());
    match &case.body {
        Body::Passive(passive) => match &passive.watch {
            Watch::Values(values) => texts.extend(messages_of_rules(&values.rules)),
            Watch::Connections(rules) => texts.extend(messages_of_rules(rules)),
        },
        Body::Active(active) => {
            for step in &active.steps {
                let expected = step.action.expected();
                texts.extend(expected.responses().iter().filter_map(|response| response.message.clone()));
                texts.extend(expected.otherwise().and_then(|otherwise| otherwise.message.clone()));
                if let Action::Request { delivery: Delivery::Polled(poll), .. } = &step.action {
                    texts.extend(poll.otherwise.as_ref().and_then(|otherwise| otherwise.message.clone()));
                }
            }
            texts.extend(active.across_steps.iter().filter_map(|comparison| comparison.message.clone()));
        }
        Body::Fuzz(oracle) => texts.push(oracle.rule().to_owned()),
    }
    texts
}

/// The help of the command and of each of its subcommands.
fn help_texts() -> Result<Vec<(String, String)>, String> {
    let help = |arguments: &[&str]| {
        let output = program_command()
            .args(arguments)
            .arg("--help")
            .output()
            .map_err(|error| format!("failed to run --help: {error}"))?;
        Ok::<_, String>(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let whole = help(&[])?;
    let commands = whole.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = commands.take_while(|line| !line.is_empty()).filter_map(|line| {
        // A name is indented by two columns, the rest of its description by more.
        line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?.split_whitespace().next()
    });
    let names: Vec<String> = names.filter(|name| *name != "help").map(str::to_owned).collect();
    if names.is_empty() {
        return Err(format!("no subcommand was found in the help:\n{whole}"));
    }
    let mut texts = vec![("help".to_owned(), whole)];
    for name in names {
        let text = help(&[&name])?;
        texts.push((format!("help of {name}"), text));
    }
    Ok(texts)
}

/// The text of a template: what is outside of tags, expressions, styles and scripts.
fn text_of_template(template: &str) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some(start) = rest.find(['<', '{']) {
        let (before, from) = rest.split_at(start);
        text.push_str(before);
        let end = ["<script", "<style", "{{", "{%", "{#", "<", "{"]
            .iter()
            .zip(["</script>", "</style>", "}}", "%}", "#}", ">", "{"])
            .find(|(opening, _)| from.starts_with(**opening))
            .map_or("", |(_, closing)| closing);
        text.push(' ');
        rest = from.find(end).map_or("", |at| &from[at + end.len()..]);
    }
    text + rest
}

/// The prose of a Markdown document: what is outside of code blocks.
fn prose_of_markdown(text: &str) -> String {
    let mut in_code = false;
    let prose = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    });
    prose.collect::<Vec<_>>().join("\n")
}

fn user_visible_text_is_plain() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let mut texts: Vec<(String, String)> = Vec::new();
    for case in cases() {
        texts.extend(texts_of(case).into_iter().map(|text| (format!("case {}", case.id), text)));
    }
    for requirement in Catalogue::embedded().iter() {
        texts.push((format!("requirement {}", requirement.id), requirement.text.clone()));
    }
    texts.extend(help_texts()?);
    for path in files_below("reports/html", &["html"])? {
        texts.push((path.display().to_string(), text_of_template(&read(&path)?)));
    }
    for name in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        let path = root.join(name);
        if path.exists() {
            texts.push((name.to_owned(), prose_of_markdown(&read(&path)?)));
        }
    }
    for path in files_below("docs", &["md"]).unwrap_or_default() {
        texts.push((path.display().to_string(), prose_of_markdown(&read(&path)?)));
    }
    let mut used = BTreeSet::new();
    let mut complaints = Vec::new();
    for (place, text) in &texts {
        for (phrase, instead) in dialect_in(text) {
            let excused =
                DIALECT_EXCEPTIONS.iter().find(|(prefix, other, _)| place.starts_with(prefix) && *other == phrase);
            match excused {
                Some(exception) => {
                    used.insert(*exception);
                }
                None => complaints.push(format!("{place}: `{phrase}` (instead: {instead})")),
            }
        }
    }
    complaints.extend(
        DIALECT_EXCEPTIONS
            .iter()
            .filter(|exception| !used.contains(*exception))
            .map(|(place, phrase, _)| format!("the exception for `{phrase}` in `{place}` is not used: remove it")),
    );
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
}
