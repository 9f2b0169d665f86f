//! The gate: holds a report against a baseline, and writes the baseline anew where that is asked for.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use mcp_conformance::case::Baseline;
use mcp_conformance::report::{Report, gate};

use super::args::{GateArgs, HoldArgs};
use super::cases;
use super::error::CliError;

/// A baseline that was read, and what decides about it.
#[derive(Debug)]
pub(super) struct Gate<'a> {
    file: &'a Path,
    baseline: Baseline,
    text: String,
    /// The ids of the cases that there are.
    known: BTreeSet<String>,
    update: bool,
}

impl<'a> Gate<'a> {
    /// Reads the baseline that the options name, before anything is started.
    pub(super) fn open(args: &'a GateArgs, own: Option<&Path>) -> Result<Option<Self>, CliError> {
        let Some(file) = &args.baseline else { return Ok(None) };
        Self::read(file, args.update_baseline, own).map(Some)
    }

    fn read(file: &'a Path, update: bool, own: Option<&Path>) -> Result<Self, CliError> {
        if update {
            writable(file).map_err(|source| CliError::WriteBaseline { path: file.to_owned(), source })?;
        }
        let known = cases::all(own)?.into_iter().map(|case| case.id).collect();
        let (baseline, text) = match file.try_exists() {
            Ok(false) if update => (Baseline::default(), Baseline::empty_text()),
            Ok(false) => return Err(CliError::NoBaseline(file.to_owned())),
            Ok(true) | Err(_) => Baseline::load(file).map_err(CliError::Baseline)?,
        };
        Ok(Self { file, baseline, text, known, update })
    }

    /// Accepts what the baseline lists, after writing it anew where that was asked for.
    pub(super) fn hold(mut self, report: &mut Report) -> Result<(), CliError> {
        self.apply(report);
        let Some(held) = report.baseline.as_ref().filter(|_| self.update) else { return Ok(()) };
        let changes = gate::changes(held, &self.baseline);
        let name = self.file.display().to_string();
        let text = Baseline::rewritten(&name, &self.text, &changes).map_err(CliError::Baseline)?;
        self.baseline = Baseline::read(&name, &text).map_err(CliError::Baseline)?;
        replace(self.file, &text).map_err(|source| CliError::WriteBaseline { path: self.file.to_owned(), source })?;
        self.apply(report);
        Ok(())
    }

    fn apply(&self, report: &mut Report) {
        // The fuzzer's findings have ids that no case file gives.
        let is_case = |id: &str| self.known.contains(id) || id.starts_with("fuzz/");
        gate::compare_with_baseline(report, &self.baseline, &self.file.display().to_string(), is_case);
    }
}

/// Holds the report of an earlier run as the options say.
pub(super) fn hold_again(report: &mut Report, args: &HoldArgs) -> Result<(), CliError> {
    if let Some(fail_on) = args.fail_on {
        report.options.fail_on = fail_on.into();
    }
    match &args.baseline {
        Some(file) => Gate::read(file, false, args.cases.as_deref())?.hold(report),
        None => Ok(()),
    }
}

/// The file that is written before it takes the place of another.
fn beside(file: &Path) -> PathBuf {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".new");
    beside.into()
}

/// Whether a file can be replaced, so that a bad path is told before anything runs.
fn writable(file: &Path) -> std::io::Result<()> {
    let beside = beside(file);
    drop(fs::File::create(&beside)?);
    fs::remove_file(beside)
}

/// Writes a file whole or not at all.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let beside = beside(file);
    let mut new = fs::File::create(&beside)?;
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    fs::rename(&beside, file)
}
