//! The baseline file: compares a report with it, and rewrites it on request.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use mcp_conformance::internals::baseline::Baseline;
use mcp_conformance::internals::judge;
use mcp_conformance::report::{Report, baseline_comparison};

use super::args::SavedReportCriteria;
use super::cases;
use super::error::CliError;
use super::report_args::BaselineArgs;

/// A baseline that was read from its file.
#[derive(Debug)]
pub(super) struct BaselineFile<'a> {
    file: &'a Path,
    baseline: Baseline,
    text: String,
    /// The ids of all cases.
    known: BTreeSet<String>,
    update: bool,
}

impl<'a> BaselineFile<'a> {
    /// Reads the baseline that the options name, if any. `cases` is the folder of the user's cases.
    pub(super) fn open(args: &'a BaselineArgs, cases: Option<&Path>) -> Result<Option<Self>, CliError> {
        let Some(file) = &args.baseline else { return Ok(None) };
        Self::read(file, args.update_baseline, cases).map(Some)
    }

    fn read(file: &'a Path, update: bool, cases: Option<&Path>) -> Result<Self, CliError> {
        if update {
            check_replaceable(file).map_err(|source| CliError::WriteBaseline { path: file.to_owned(), source })?;
        }
        let known = cases::all(cases)?.into_iter().map(|case| case.id).collect();
        let (baseline, text) = match file.try_exists() {
            Ok(false) if update => (Baseline::default(), Baseline::empty_text()),
            Ok(false) => return Err(CliError::MissingBaseline(file.to_owned())),
            Ok(true) | Err(_) => Baseline::load(file).map_err(CliError::Baseline)?,
        };
        Ok(Self { file, baseline, text, known, update })
    }

    /// Accepts the findings that the baseline lists, after rewriting it if requested.
    pub(super) fn apply(mut self, report: &mut Report) -> Result<(), CliError> {
        self.compare(report);
        let Some(comparison) = report.baseline.as_ref().filter(|_| self.update) else { return Ok(()) };
        let changes = baseline_comparison::changes(comparison, &self.baseline);
        let name = self.file.display().to_string();
        let text = Baseline::rewritten(&name, &self.text, &changes).map_err(CliError::Baseline)?;
        self.baseline = Baseline::read(&name, &text).map_err(CliError::Baseline)?;
        replace(self.file, &text).map_err(|source| CliError::WriteBaseline { path: self.file.to_owned(), source })?;
        self.compare(report);
        Ok(())
    }

    fn compare(&self, report: &mut Report) {
        let file = self.file.display().to_string();
        judge::compare_with_baseline(report, &self.baseline, &file, |id| self.known.contains(id));
    }
}

/// Applies the criteria of the options to the report of an earlier run.
pub(super) fn apply_criteria(report: &mut Report, args: &SavedReportCriteria) -> Result<(), CliError> {
    if let Some(fail_on) = args.fail_on {
        report.options.fail_on = fail_on.into();
    }
    let baseline =
        args.baseline.as_ref().map(|file| BaselineFile::read(file, false, args.cases.as_deref())).transpose()?;
    let mut applied = Ok(());
    let compare = |report: &mut Report| applied = baseline.map_or(Ok(()), |baseline| baseline.apply(report));
    judge::apply_criteria(report, compare, args.accept.map(Into::into));
    applied
}

/// The temporary file that replaces another.
fn temporary(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Checks that a file can be replaced, so that a bad path is reported before the run.
fn check_replaceable(file: &Path) -> std::io::Result<()> {
    let temporary = temporary(file);
    drop(fs::File::create(&temporary)?);
    fs::remove_file(temporary)
}

/// Replaces a file, completely or not at all.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let temporary = temporary(file);
    let mut new = fs::File::create(&temporary)?;
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    fs::rename(&temporary, file)
}
