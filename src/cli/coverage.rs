//! `coverage`: which requirements of the specification have cases, by area and by revision.

use std::io::{self, Write};

use mcp_conformance::internals::case::{Answer, Count, Counts, Coverage, Entry, Reason, reason_in_detail};
use mcp_conformance::report::layout::{display_width, padded, wrap};
use mcp_conformance::report::visible::visible;
use mcp_conformance::spec::{Level, Revision};
use serde_json::{Map, Value, json};

use super::args::CoverageArgs;
use super::cases;
use super::error::CliError;
use super::values::TableFormat;

/// The line width of prose, in columns.
const WIDTH: usize = 100;
const LEVELS: [Level; 4] = [Level::Must, Level::Schema, Level::Should, Level::May];
const HEAD: [&str; 9] = ["area", "MUST", "SCHEMA", "SHOULD", "MAY", "all", "by a case", "by a reason", "no case yet"];
const LEGEND: &str = "The column of a level shows how many of its requirements have a case or a documented reason for having none, out of how many.";

/// Writes the coverage in the requested format.
pub(super) fn coverage(args: &CoverageArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let cases = cases::all(args.cases.as_deref())?;
    let mut coverage = Coverage::of(&cases);
    let areas = coverage.areas();
    if let Some(unknown) = args.area.iter().find(|area| !areas.contains_key(area.as_str())) {
        let known = areas.keys().map(|area| (*area).to_owned()).collect();
        return Err(CliError::UnknownArea { name: unknown.clone(), known });
    }
    if !args.area.is_empty() {
        coverage.entries.retain(|entry| args.area.contains(&entry.requirement.area));
    }
    let named: Vec<&Entry<'_>> =
        coverage.entries.iter().filter(|entry| args.all || (args.uncovered && entry.answer == Answer::None)).collect();
    match args.format {
        TableFormat::Text => text(&coverage, &named, out)?,
        TableFormat::Markdown => markdown(&coverage, &named, out)?,
        TableFormat::Json => json_report(&coverage, args.uncovered, out)?,
    }
    Ok(())
}

/// The row of an area or of the total.
fn row(name: &str, counts: &Counts) -> [String; 9] {
    let Count { all, by_case, by_reason } = counts.total;
    let level = |level| {
        let count = counts.of(level);
        if count.all == 0 { "-".to_owned() } else { format!("{}/{}", count.by_case + count.by_reason, count.all) }
    };
    let [must, schema, should, may] = LEVELS.map(level);
    let unanswered = counts.total.unanswered();
    let [all, by_case, by_reason, unanswered] = [all, by_case, by_reason, unanswered].map(|count| count.to_string());
    [name.to_owned(), must, schema, should, may, all, by_case, by_reason, unanswered]
}

/// The same table by revision.
fn rows_by_revision(coverage: &Coverage<'_>) -> Vec<[String; 9]> {
    coverage.revisions().iter().map(|(revision, counts)| row(revision.as_str(), counts)).collect()
}

fn rows(coverage: &Coverage<'_>) -> Vec<[String; 9]> {
    let areas = coverage.areas();
    let mut rows: Vec<_> = areas.iter().map(|(name, counts)| row(name, counts)).collect();
    rows.push(row("all areas", &coverage.total()));
    rows
}

/// Writes a table and an empty line.
fn table(first_column: &str, rows: &[[String; 9]], out: &mut dyn Write) -> io::Result<()> {
    let mut head = HEAD.map(str::to_owned);
    first_column.clone_into(&mut head[0]);
    let width = |column: usize| {
        let cells = rows.iter().chain([&head]).map(|row| display_width(&row[column]));
        cells.max().unwrap_or_default()
    };
    for row in [&head].into_iter().chain(rows) {
        write!(out, "{}", padded(&row[0], width(0)))?;
        for (column, cell) in row.iter().enumerate().skip(1) {
            write!(out, "  {cell:>0$}", width(column))?;
        }
        writeln!(out)?;
    }
    writeln!(out)
}

fn text(coverage: &Coverage<'_>, named: &[&Entry<'_>], out: &mut dyn Write) -> io::Result<()> {
    table("area", &rows(coverage), out)?;
    table("revision", &rows_by_revision(coverage), out)?;
    for line in wrap(LEGEND, WIDTH) {
        writeln!(out, "{line}")?;
    }
    for entry in named {
        let requirement = entry.requirement;
        writeln!(out)?;
        writeln!(out, "{}  {}, {}", requirement.id, requirement.level, requirement.area)?;
        for line in wrap(&requirement.text, WIDTH - 2) {
            writeln!(out, "  {line}")?;
        }
        for line in wrap(&answer(entry), WIDTH - 2) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// The coverage of a requirement, in words.
fn answer(entry: &Entry<'_>) -> String {
    match &entry.answer {
        Answer::Cases(cases) => {
            let cases: Vec<_> = cases.iter().map(|id| visible(id)).collect();
            format!("Checked by {}.", cases.join(", "))
        }
        Answer::Reason(reason) => format!("No case: {}. {}", reason.as_str(), detail(entry, *reason)),
        Answer::None => "No case yet.".to_owned(),
    }
}

/// Why no case checks a requirement, in detail.
fn detail(entry: &Entry<'_>, reason: Reason) -> &'static str {
    reason_in_detail(&entry.requirement.id).unwrap_or(reason.meaning())
}

fn markdown(coverage: &Coverage<'_>, named: &[&Entry<'_>], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "| {} |", HEAD.join(" | "))?;
    writeln!(out, "|---|{}", "--:|".repeat(HEAD.len() - 1))?;
    for row in rows(coverage) {
        writeln!(out, "| {} |", row.join(" | "))?;
    }
    writeln!(out, "\n| revision | {} |", HEAD[1..].join(" | "))?;
    writeln!(out, "|---|{}", "--:|".repeat(HEAD.len() - 1))?;
    for row in rows_by_revision(coverage) {
        writeln!(out, "| {} |", row.join(" | "))?;
    }
    writeln!(out, "\n{LEGEND}")?;
    if !named.is_empty() {
        writeln!(out, "\n| requirement | level | area | answer |\n|---|---|---|---|")?;
    }
    for entry in named {
        let requirement = entry.requirement;
        let answer = match &entry.answer {
            Answer::Cases(cases) => {
                let cases: Vec<String> = cases.iter().map(|id| format!("`{}`", visible(id))).collect();
                cases.join(" ")
            }
            Answer::Reason(reason @ Reason::NotObservable) => {
                format!("{}: {}", reason.as_str(), detail(entry, *reason))
            }
            Answer::Reason(reason) => reason.as_str().to_owned(),
            Answer::None => "no case yet".to_owned(),
        };
        writeln!(out, "| {} | {} | {} | {answer} |", requirement.id, requirement.level, requirement.area)?;
    }
    Ok(())
}

fn json_count(count: Count) -> Value {
    json!({
        "all": count.all,
        "byCase": count.by_case,
        "byReason": count.by_reason,
        "uncovered": count.unanswered(),
    })
}

fn json_counts(counts: &Counts) -> Value {
    let levels: Map<String, Value> =
        LEVELS.into_iter().map(|level| (level.to_string(), json_count(counts.of(level)))).collect();
    json!({ "total": json_count(counts.total), "levels": levels })
}

/// Writes every requirement, or only those that are not covered.
fn json_report(coverage: &Coverage<'_>, uncovered: bool, out: &mut dyn Write) -> io::Result<()> {
    let areas: Map<String, Value> =
        coverage.areas().iter().map(|(name, counts)| ((*name).to_owned(), json_counts(counts))).collect();
    let revisions: Map<String, Value> =
        coverage.revisions().iter().map(|(revision, counts)| (revision.to_string(), json_counts(counts))).collect();
    let requirements: Vec<Value> = coverage
        .entries
        .iter()
        .filter(|entry| !uncovered || entry.answer == Answer::None)
        .map(|entry| {
            let requirement = entry.requirement;
            let revisions: Vec<&str> = requirement.revisions().iter().map(Revision::as_str).collect();
            let (cases, reason) = match &entry.answer {
                Answer::Cases(cases) => (cases.as_slice(), None),
                Answer::Reason(reason) => (&[][..], Some(reason.as_str())),
                Answer::None => (&[][..], None),
            };
            json!({
                "id": requirement.id,
                "area": requirement.area,
                "level": requirement.level,
                "derived": requirement.derived,
                "revisions": revisions,
                "text": requirement.text,
                "cases": cases,
                "reason": reason,
            })
        })
        .collect();
    let report = json!({ "all": json_counts(&coverage.total()), "areas": areas, "revisions": revisions, "requirements": requirements });
    serde_json::to_writer_pretty(&mut *out, &report)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: TableFormat, change: impl FnOnce(&mut CoverageArgs)) -> String {
        let mut args = CoverageArgs { format, uncovered: false, all: false, area: Vec::new(), cases: None };
        change(&mut args);
        let mut bytes = Vec::new();
        coverage(&args, &mut bytes).expect("it can be written");
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn the_table_has_a_row_for_each_area_and_a_total() {
        let text = written(TableFormat::Text, |_| {});
        let rows: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
        let cases = cases::all(None).expect("they are embedded");
        assert_eq!(rows.len(), Coverage::of(&cases).areas().len() + 2, "{text}");
        assert!(rows.last().is_some_and(|row| row.starts_with("all areas")), "{text}");
        let width = rows[0].chars().count();
        assert!(rows.iter().all(|row| row.chars().count() == width), "{text}");
    }

    #[test]
    fn one_area_can_be_requested() {
        let text = written(TableFormat::Text, |args| {
            args.area = vec!["tools-call".to_owned()];
            args.all = true;
        });
        assert!(text.contains("Checked by tools/call/"), "{text}");
        assert!(!text.contains("\nresources "), "{text}");
    }

    #[test]
    fn an_unknown_area_is_an_error() {
        let args = CoverageArgs {
            format: TableFormat::Text,
            uncovered: false,
            all: false,
            area: vec!["nowhere".to_owned()],
            cases: None,
        };
        let error = coverage(&args, &mut Vec::new()).expect_err("there is no such area");
        assert!(error.to_string().contains("unknown area `nowhere`"), "{error}");
    }

    #[test]
    fn the_json_format_has_every_requirement() {
        let report: Value = serde_json::from_str(&written(TableFormat::Json, |_| {})).expect("JSON");
        let listed = report["requirements"].as_array().map(Vec::len);
        assert_eq!(report["all"]["total"]["all"].as_u64().and_then(|all| usize::try_from(all).ok()), listed);
        let open: Value =
            serde_json::from_str(&written(TableFormat::Json, |args| args.uncovered = true)).expect("JSON");
        let uncovered = open["requirements"].as_array().map(Vec::len);
        assert_eq!(open["all"]["total"]["uncovered"].as_u64().and_then(|all| usize::try_from(all).ok()), uncovered);
    }

    #[test]
    fn the_markdown_format_has_tables() {
        let text = written(TableFormat::Markdown, |args| args.all = true);
        assert!(text.starts_with("| area | MUST |"), "{text}");
        assert!(text.contains("`tools/call/unknown-tool`"), "{text}");
    }
}
