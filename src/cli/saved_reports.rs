//! `report`, `diff`, `merge` and `fleet`: work on the JSON reports of earlier runs.

use std::io::Write;
use std::path::Path;

use mcp_conformance::report::{Conclusion, Report, merge};

use super::args::{DiffArgs, FleetArgs, MergeArgs, ReportArgs};
use super::baseline::apply_criteria;
use super::error::CliError;
use super::output::{Output, Unwritten};
use super::report_file::read;
use super::values::{PageFormat, TableFormat};

/// Renders the report of an earlier run; its conclusion is that of the run.
pub(super) fn report(args: &ReportArgs) -> Result<Conclusion, CliError> {
    let mut report = read(&args.file)?;
    apply_criteria(&mut report, &args.criteria)?;
    Output::open(&args.output)?.write(&report, Unwritten::default())?;
    Ok(Conclusion::of(&report))
}

/// Merges the reports of all shards of a run; the conclusion is that of the merged report.
pub(super) fn merge(args: &MergeArgs) -> Result<Conclusion, CliError> {
    let reports: Vec<(String, Report)> =
        args.files.iter().map(|file| Ok((file.display().to_string(), read(file)?))).collect::<Result<_, CliError>>()?;
    let mut report = merge::merge(reports)?;
    apply_criteria(&mut report, &args.criteria)?;
    Output::open(&args.output)?.write(&report, Unwritten::default())?;
    Ok(Conclusion::of(&report))
}

/// Writes the differences between two runs.
pub(super) fn diff(args: &DiffArgs, out: &mut dyn Write) -> Result<Conclusion, CliError> {
    let (old, new) = (read(&args.old)?, read(&args.new)?);
    let diff = mcp_conformance::report::diff::Diff::of(&old, &new);
    match args.format {
        TableFormat::Text => diff.write_text(out)?,
        TableFormat::Json => diff.write_json(out)?,
        TableFormat::Markdown => diff.write_markdown(out)?,
    }
    Ok(if diff.new.is_empty() { Conclusion::Passed } else { Conclusion::Failed })
}

/// Writes which servers violate which requirements.
pub(super) fn fleet(args: &FleetArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let mut fleet = mcp_conformance::report::fleet::Fleet::default();
    // One at a time, as thousands of reports do not fit into memory.
    for file in &args.files {
        fleet.add(&file.display().to_string(), &linked_page(file), &read(file)?);
    }
    match args.format {
        PageFormat::Markdown => fleet.write_markdown(out)?,
        PageFormat::Html => fleet.write_html(out)?,
        PageFormat::Json => fleet.write_json(out)?,
    }
    Ok(())
}

/// What the page of a fleet links to for a report: the HTML report of the same name, if there is one.
fn linked_page(file: &Path) -> String {
    let page = file.with_extension("html");
    if page.is_file() { page.display().to_string() } else { file.display().to_string() }
}
