//! The report formats, written by the program for a server that tries to inject markup.

use std::fs;

use tempfile::TempDir;

use crate::support::formats::{FORMATS, check, check_formats, read};
use crate::support::{PROGRAM, Trial, program, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("formats/one-run-writes-every-format", one_run_writes_every_format),
        trial("formats/a-stored-report-is-rendered-again", a_stored_report_is_rendered_again),
        trial("formats/another-format-is-rejected", another_format_is_rejected),
        trial("formats/only-the-report-is-on-standard-output", only_the_report_is_on_standard_output),
    ]
}

/// Judges a server with hostile text wherever possible, in a new folder.
fn hostile_run() -> Result<TempDir, String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let outputs: Vec<String> = FORMATS.iter().map(|(format, file)| format!("--report={format}={file}")).collect();
    let mut args = vec!["--quiet", "--revision", "2025-11-25", "--fuzz", "off", "--report", "json=r.json"];
    args.extend(outputs.iter().map(String::as_str));
    args.extend(["--", PROGRAM, "serve", "--fault", "hostile-text", "--fault", "image-data-url"]);
    program(folder.path(), &args)?.with_code(1)?;
    Ok(folder)
}

fn one_run_writes_every_format() -> Result<(), String> {
    let folder = hostile_run()?;
    let results = check_formats(folder.path())?;
    check("something was judged", results > 100)?;
    let markdown = read(folder.path(), "r.md")?;
    check("Markdown lists the violated requirement", markdown.contains("content-image"))
}

fn a_stored_report_is_rendered_again() -> Result<(), String> {
    let folder = hostile_run()?;
    let folder = folder.path();
    for (format, file) in FORMATS {
        let output = format!("{format}=again");
        program(folder, &["report", "r.json", "--quiet", "--report", &output])?.with_code(1)?;
        // --quiet also applies to text that is written to a file.
        check(&format!("{format} is the same again"), read(folder, file)? == read(folder, "again")?)?;
    }
    program(folder, &["report", "r.json", "--quiet", "--report", "json=again"])?.with_code(1)?;
    check("the report itself is the same again", read(folder, "r.json")? == read(folder, "again")?)?;
    program(folder, &["report", "r.json", "--quiet", "--fail-on", "never"])?
        .with_code(0)?
        .shows("REPORT ONLY: ")
        .map(drop)
}

fn another_format_is_rejected() -> Result<(), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).map_err(|error| error.to_string());
    write("new.json", "{\"format\": 99}")?;
    write("none.json", "[]")?;
    let run = |args: &[&str]| program(folder.path(), args)?.with_code(2);
    run(&["report", "new.json"])?.shows("the report has format 99")?.shows("run again")?;
    run(&["report", "none.json"])?.shows("--report json=FILE writes one")?;
    run(&["report", "missing.json"])?.shows("failed to read the report missing.json")?;
    run(&["merge", "none.json"])?;
    run(&["diff", "none.json", "new.json"])?;
    run(&["fleet", "new.json"]).map(drop)
}

fn only_the_report_is_on_standard_output() -> Result<(), String> {
    let folder = hostile_run()?;
    for (format, start) in [("junit", "<?xml"), ("sarif", "{"), ("github", "::"), ("tap", "TAP version 13\n")] {
        let ran = program(folder.path(), &["report", "r.json", "--quiet", "--report", format])?.with_code(1)?;
        check(&format!("{format} is the only output"), ran.out.starts_with(start) && !ran.out.contains("\nFAIL: "))?;
        ran.shows("--- stderr\nFAIL: ")?;
    }
    Ok(())
}
