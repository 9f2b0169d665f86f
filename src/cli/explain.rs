//! `explain`: what a case does or a requirement says, why, and how to fix a server that violates it.

use std::io::{self, Write};

use mcp_conformance::JudgeError;
use mcp_conformance::internals::case::{
    Action, Body, Case, Delivery, ForEach, HttpCall, LineTransfer, Locale, Moment, Process, RawLine, Selection,
    Shutdown, Source, StandardError, Start, Step, Watch, WatchKind, not_observable, reason_in_detail,
};
use mcp_conformance::reference::Fault;
use mcp_conformance::report::layout::wrap;
use mcp_conformance::report::visible::{excerpt, visible};
use mcp_conformance::spec::{Catalogue, Requirement, Transport, book_address, case_page, requirement_page};
use serde_json::Value;

use super::args::ExplainArgs;
use super::cases;
use super::error::CliError;
use super::fault_command::fault_command;
use super::list::span;

/// The width of a paragraph in columns.
const WIDTH: usize = 100;
/// The number of names that are suggested in place of an unknown one.
const MAX_SUGGESTIONS: usize = 3;

/// Explains the cases and requirements that the arguments name.
pub(super) fn explain(args: &ExplainArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let cases = cases::all(args.cases.as_deref())?;
    for (index, name) in args.names.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        explain_named(&cases, name, out)?;
    }
    Ok(())
}

/// Explains the case or the requirement of that name, or every case that a glob matches.
fn explain_named(cases: &[Case], name: &str, out: &mut dyn Write) -> Result<(), CliError> {
    if !name.contains('*') {
        return explain_exactly(cases, name, out);
    }
    let selection = Selection { select: vec![name.to_owned()], skip: Vec::new() };
    for (index, case) in selection.of(cases).map_err(JudgeError::from)?.into_iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        explain_case(case, out)?;
    }
    Ok(())
}

/// Explains the case or the requirement of that name.
fn explain_exactly(cases: &[Case], given: &str, out: &mut dyn Write) -> Result<(), CliError> {
    let name = given.trim_end_matches(".jsonc");
    if let Some(case) = cases.iter().find(|case| case.id == name) {
        return Ok(explain_case(case, out)?);
    }
    if let Some(requirement) = Catalogue::embedded().get(name) {
        return Ok(explain_requirement(requirement, cases, out)?);
    }
    let known = cases.iter().map(|case| case.id.as_str()).chain(Catalogue::embedded().iter().map(|r| r.id.as_str()));
    Err(CliError::UnknownName { name: given.to_owned(), nearest: nearest(name, known) })
}

fn explain_case(case: &Case, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", visible(&case.id))?;
    prose(&case.title, 2, out)?;
    section("What it does", out)?;
    for line in description(case) {
        prose(&line, 2, out)?;
    }
    writeln!(out, "  Revisions: {}", span(case.revisions))?;
    if !case.needs.capabilities.is_empty() {
        prose(&format!("Required server capabilities: {}", case.needs.capabilities.join(", ")), 2, out)?;
    }
    if let Some(why) = &case.why {
        section("Why", out)?;
        prose(why, 2, out)?;
    }
    section(if case.requirements.len() == 1 { "Requirement" } else { "Requirements" }, out)?;
    for requirement in &case.requirements {
        rule(requirement, out)?;
        let applying = requirement.revisions().intersection(case.revisions);
        if let Some(newest) = applying.iter().last() {
            writeln!(out, "    {}", requirement.link(newest))?;
        }
    }
    section("How to fix the server", out)?;
    prose(&case.fix, 2, out)?;
    // The faults of the fuzz cases depend on arguments, and only the tests of this package have them.
    if let Some(fault) = case.fault.as_ref().and_then(|name| name.parse::<Fault>().ok()) {
        section("See it fail", out)?;
        prose(&format!("The reference server has the fault `{fault}`: {}.", fault.description()), 2, out)?;
        if let Some(command) = fault_command(case, fault) {
            writeln!(out, "  {command}")?;
        }
    }
    section("Run only this case", out)?;
    writeln!(out, "  mcp-conformance --select {} -- <SERVER>", visible(&case.id))?;
    // A case of the user's has no page.
    if case.source == Source::Embedded { in_the_book(&case_page(&case.id), "its messages", out) } else { Ok(()) }
}

/// Names the page of the book that says more, by its address if that is known.
fn in_the_book(page: &str, what: &str, out: &mut dyn Write) -> io::Result<()> {
    section(&format!("In the book, with {what}"), out)?;
    writeln!(out, "  {}", book_address(page).as_deref().unwrap_or(page))
}

fn explain_requirement(requirement: &Requirement, cases: &[Case], out: &mut dyn Write) -> io::Result<()> {
    rule_head(requirement, 0, out)?;
    prose(&requirement.text, 2, out)?;
    writeln!(out)?;
    let transport = match requirement.transport {
        Transport::Any => "all",
        Transport::Stdio => "stdio only",
        Transport::Http => "HTTP only",
    };
    writeln!(out, "  transports  {transport}")?;
    if !requirement.applies_if.is_empty() {
        writeln!(out, "  applies if  {}", requirement.applies_if)?;
    }
    section("Sources", out)?;
    for revision in requirement.revisions().iter() {
        writeln!(out, "  {revision}  {}", requirement.link(revision))?;
        if revision.is_draft() {
            writeln!(
                out,
                "              (a draft: it has no page of its own, only files in the history of the repository)"
            )?;
        }
    }
    section("Cases that check it", out)?;
    let checking: Vec<&Case> =
        cases.iter().filter(|case| case.requirements.iter().any(|known| known.id == requirement.id)).collect();
    if checking.is_empty() {
        writeln!(out, "  none")?;
        if let Some(reason) = reason_in_detail(&requirement.id) {
            section("Why no case checks it", out)?;
            prose(reason, 2, out)?;
        }
        if let Some(detail) = not_observable(&requirement.id) {
            section("Why it matters", out)?;
            prose(&detail.why, 2, out)?;
            section("How to fix the server", out)?;
            prose(&detail.fix, 2, out)?;
        }
        return in_the_book(&requirement_page(requirement), "every rule of its area", out);
    }
    for case in &checking {
        writeln!(out, "  {}  {}", visible(&case.id), visible(&case.title))?;
    }
    paragraphs("Why it matters", checking.iter().filter_map(|case| case.why.as_deref()), out)?;
    paragraphs("How to fix the server", checking.iter().map(|case| case.fix.as_str()), out)?;
    in_the_book(&requirement_page(requirement), "every rule of its area", out)
}

/// A section with each different text as a paragraph; nothing if there is none.
fn paragraphs<'a>(title: &str, texts: impl Iterator<Item = &'a str>, out: &mut dyn Write) -> io::Result<()> {
    let mut written: Vec<&str> = Vec::new();
    for text in texts {
        if written.is_empty() {
            section(title, out)?;
        }
        if !written.contains(&text) {
            prose(text, 2, out)?;
            written.push(text);
        }
    }
    Ok(())
}

fn section(title: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{title}")
}

fn prose(text: &str, indent: usize, out: &mut dyn Write) -> io::Result<()> {
    for line in wrap(&visible(text), WIDTH - indent) {
        writeln!(out, "{:indent$}{line}", "")?;
    }
    Ok(())
}

fn rule(requirement: &Requirement, out: &mut dyn Write) -> io::Result<()> {
    rule_head(requirement, 2, out)?;
    prose(&requirement.text, 4, out)
}

fn rule_head(requirement: &Requirement, indent: usize, out: &mut dyn Write) -> io::Result<()> {
    let inferred = if requirement.derived { " (inferred: the specification uses no keyword)" } else { "" };
    writeln!(
        out,
        "{:indent$}{}  {}{inferred}  in {}",
        "",
        requirement.id,
        requirement.level,
        span(requirement.revisions())
    )
}

/// What a case does, in lines.
pub(super) fn description(case: &Case) -> Vec<String> {
    match &case.body {
        Body::Passive(passive) => {
            let (what, count) = match &passive.watch {
                Watch::Connections(rules) => ("each connection as a whole".to_owned(), rules.len()),
                Watch::Values(values) => (watched_values(&values.kind), values.rules.len()),
            };
            let rules = if count == 1 { "one rule".to_owned() } else { format!("{count} rules") };
            let mut lines = vec![format!("Checks {what} in the run against {rules}. It sends nothing itself.")];
            if !passive.provoked_by.is_empty() {
                let names = passive.provoked_by.join(", ");
                lines.push(format!("Messages of these cases are checked as well as those of discovery: {names}."));
            }
            lines
        }
        Body::Active(act) => {
            let own = format!("In a new process{}", start_description(act.start));
            let process = match act.process {
                Process::Shared => "In the session that most cases share".to_owned(),
                Process::Disposable => "In a session that it may damage".to_owned(),
                Process::Fresh => own,
                Process::Uninitialized => format!("{own}, as the first messages"),
            };
            let each = match &act.for_each {
                None => String::new(),
                Some(ForEach::Tool) => ", for each tool that may be called".to_owned(),
                Some(ForEach::Resource) => ", for each listed resource".to_owned(),
                Some(ForEach::Prompt) => ", for each listed prompt".to_owned(),
                Some(ForEach::Page(method)) => format!(", for each page of {method} after the first"),
            };
            let mut lines = vec![format!("{process}{each}, it:")];
            lines.extend(act.steps.iter().map(|step| format!("- {}", step_description(step))));
            if !act.client_responses.is_empty() {
                let methods: Vec<&str> = act.client_responses.keys().map(String::as_str).collect();
                lines.push(format!(
                    "It answers requests of the server ({}) with responses of its own.",
                    methods.join(", ")
                ));
            }
            lines
        }
        Body::Fuzz(oracle) => {
            vec![format!(
                "Judges the responses to generated calls of each tool that may be called. The rule: {}",
                oracle.rule()
            )]
        }
    }
}

/// How a process is started, after "In a new process".
fn start_description(start: Start) -> String {
    let mut parts = Vec::new();
    if start.locale == Locale::None {
        parts.push("whose environment names no locale");
    }
    if start.standard_error == StandardError::Closed {
        parts.push("whose standard error nobody reads");
    }
    if parts.is_empty() { String::new() } else { format!(" {}", parts.join(" and ")) }
}

/// Describes the values that a passive case checks.
fn watched_values(kind: &WatchKind) -> String {
    let what = match kind {
        WatchKind::Line => "every line that the server writes",
        WatchKind::Message => "every message",
        WatchKind::Response(_) => "every response",
        WatchKind::Result(_) => "every result",
        WatchKind::Error(_) => "every error",
        WatchKind::ClientRequest(_) => "everything that the server requests from the client",
        WatchKind::Request(_) => "every request from the server",
        WatchKind::Notification(_) => "every notification",
        WatchKind::Exchange(_) => "every HTTP exchange",
    };
    match kind.methods().as_slice() {
        [] => what.to_owned(),
        methods => format!("{what} ({})", methods.join(", ")),
    }
}

/// Describes what a step does.
fn step_description(step: &Step) -> String {
    let member = |message: &Value, name| {
        message.get(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let method_of =
        |message: &Value| member(message, "method").unwrap_or_else(|| "a message without a method".to_owned());
    let params_of = |message: &Value| {
        member(message, "params").map_or_else(String::new, |p| format!(" with {}", excerpt(&p, 160, 0)))
    };
    let action = match &step.action {
        Action::Request { message, .. } => format!("sends the request {}{}", method_of(message), params_of(message)),
        Action::Notification { message, while_open, .. } => {
            let late = while_open.as_ref().is_some_and(|open| open.moment == Moment::ShortlyBeforeResponse);
            let when = if late { " shortly before the response is expected" } else { "" };
            format!("sends the notification {}{}{when}", method_of(message), params_of(message))
        }
        Action::Batch { messages, .. } => format!("sends a batch of {} messages", messages.len()),
        Action::Raw { line: RawLine::Text(line), transfer, .. } => {
            let how = if *transfer == LineTransfer::InPieces { ", byte by byte" } else { "" };
            format!("writes the line {}{how}", excerpt(line, 160, 0))
        }
        Action::Raw { line: RawLine::Bytes(bytes), .. } => {
            format!("writes a line of {} bytes: {}", bytes.len(), bytes.escape_ascii())
        }
        Action::Paginate { method, .. } => format!("reads every page of {method}"),
        Action::Retry { retry, .. } => {
            format!("repeats the request of step `{}` with the input that its result requested", retry.step)
        }
        Action::Http { call, .. } => format!("sends the HTTP request {}", http_description(call)),
        Action::Close { step } => format!("ends the reading of the response to step `{step}`"),
        Action::Shutdown { how: Shutdown::StdinClosed, .. } => {
            "closes the server's input and waits for the server to exit".to_owned()
        }
        Action::Shutdown { how: Shutdown::Sigterm, .. } => {
            "closes the server's input, sends SIGTERM if the server keeps running, and waits for it to exit".to_owned()
        }
        Action::Shutdown { how: Shutdown::SigtermFirst, .. } => {
            "sends SIGTERM while the server's input is open, and waits for the server to exit".to_owned()
        }
        Action::Wait(duration) => format!("waits {} ms", duration.as_millis()),
    };
    let mut remarks = Vec::new();
    if step.action.expected().is_control() {
        remarks.push("control request: it has to succeed".to_owned());
    }
    match &step.action {
        Action::Request { delivery: Delivery::Polled(poll), .. } => {
            remarks.push(format!("repeated up to {} times, until the expected response arrives", poll.max_attempts));
        }
        Action::Request { delivery: Delivery::WithInput, .. } => {
            remarks.push("repeated with the input that its result requests".to_owned());
        }
        Action::Request { delivery: Delivery::Pipelined, .. }
        | Action::Retry { pipelined: true, .. }
        | Action::Http { pipelined: true, .. } => {
            remarks.push("without waiting for the response".to_owned());
        }
        _ => {}
    }
    if let Some(revisions) = step.revisions {
        remarks.push(format!("only in {}", span(revisions)));
    }
    if remarks.is_empty() { action } else { format!("{action} ({})", remarks.join("; ")) }
}

/// Describes the HTTP request of a step.
fn http_description(http: &HttpCall) -> String {
    let path = http.path.as_ref().map(|path| format!(" {}", visible(path))).unwrap_or_default();
    let body = match &http.body {
        Some(Value::String(body)) => format!(" with the body {}", excerpt(body, 160, 0)),
        Some(body) => format!(" with {}", excerpt(&body.to_string(), 160, 0)),
        None => String::new(),
    };
    let headers = http.replaced().map(|(name, values)| match values.as_slice() {
        [] => format!(", without {name}"),
        values => format!(", {name}: {}", values.join(" and ")),
    });
    let (headers, transfer) = (headers.collect::<String>(), http.transfer_text());
    format!("{}{path}{body}{headers}{transfer}{}", http.method, http.repetition_text())
}

/// The known names that are most similar to an unknown one.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    const MIN_SIMILARITY: f64 = 0.6;
    let lower = name.to_lowercase();
    let mut similar: Vec<(f64, &str)> = known
        .map(|candidate| {
            let similarity = strsim::normalized_damerau_levenshtein(&lower, candidate);
            // An unfinished name is as good as a misspelt one.
            let part = if lower.len() > 2 && candidate.contains(&lower) { 0.75 } else { 0.0 };
            (similarity.max(part), candidate)
        })
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .collect();
    similar.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    similar.into_iter().take(MAX_SUGGESTIONS).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use mcp_conformance::internals::case::{Expected, Meta, SavedPointers};

    use super::*;

    fn explained(name: &str) -> Result<String, CliError> {
        let mut bytes = Vec::new();
        explain(&ExplainArgs { names: vec![name.to_owned()], cases: None }, &mut bytes)?;
        Ok(String::from_utf8(bytes).expect("UTF-8"))
    }

    #[test]
    fn every_case_and_every_requirement_can_be_explained() {
        let cases = cases::all(None).expect("the built-in cases load");
        for name in cases.iter().map(|case| &case.id).chain(Catalogue::embedded().iter().map(|r| &r.id)) {
            let mut bytes = Vec::new();
            explain_exactly(&cases, name, &mut bytes).expect("it is known");
            let text = String::from_utf8(bytes).expect("UTF-8");
            assert!(text.starts_with(name.as_str()) && text.contains("https://"), "{name}: {text}");
        }
    }

    #[test]
    fn the_page_of_the_book_is_named() {
        for (name, page) in [
            ("tools/call/unknown-tool", "reference/cases/tools.html#tools/call/unknown-tool\n"),
            ("stdio-stdout-only-messages", "reference/requirements/stdio.html#stdio-stdout-only-messages\n"),
        ] {
            let text = explained(name).expect("it is known");
            assert!(text.ends_with(page), "{text}");
        }
    }

    #[test]
    fn a_requirement_is_shown_with_its_level_its_sources_and_its_cases() {
        let text = explained("stdio-stdout-only-messages").expect("it is known");
        assert!(text.contains("MUST") && text.contains("2024-11-05.."), "{text}");
        assert!(text.contains("https://modelcontextprotocol.io/"), "{text}");
        assert!(text.contains("Cases that check it"), "{text}");
    }

    #[test]
    fn a_requirement_is_shown_with_why_it_matters_and_how_to_fix_a_violation() {
        let text = explained("stdio-stdout-only-messages").expect("it is known");
        assert!(text.contains("\nWhy it matters\n  ") && text.contains("\nHow to fix the server\n  "), "{text}");
        assert!(!text.contains("Why no case checks it"), "{text}");
    }

    #[test]
    fn a_requirement_without_a_case_is_shown_with_its_own_reason() {
        let text = explained("security-rate-limit").expect("it is known");
        assert!(text.contains("\nWhy no case checks it\n  The specification names no rate"), "{text}");
        assert!(text.contains("\nWhy it matters\n  A model in a loop"), "{text}");
        assert!(text.contains("\nHow to fix the server\n  Limit calls by client"), "{text}");
        let text = explained("pagination-page-size").expect("it is known");
        assert!(text.contains("It permits something"), "{text}");
    }

    #[test]
    fn for_an_unknown_name_similar_ones_are_suggested() {
        let error = explained("stdio-stdout-only-mesages").expect_err("it is unknown");
        assert!(error.to_string().contains("did you mean `stdio-stdout-only-messages`"), "{error}");
        let error = explained("zzzzzz").expect_err("it is unknown");
        assert!(error.to_string().contains("--list"), "{error}");
    }

    #[test]
    fn steps_are_described() {
        let step = Step {
            name: None,
            revisions: Some("2025-06-18..".parse().expect("a set of revisions")),
            action: Action::Request {
                message: serde_json::json!({"method": "tools/call", "params": {"name": "x"}}),
                meta: Meta::AsRequired,
                delivery: Delivery::Awaited,
                save: SavedPointers::new(),
                expected: Expected::Served,
            },
        };
        assert_eq!(
            step_description(&step),
            "sends the request tools/call with {\"name\":\"x\"} (control request: it has to succeed; only in 2025-06-18..)"
        );
    }
}
