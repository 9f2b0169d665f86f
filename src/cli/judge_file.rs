//! `judge`: judges a recording by the passive cases, and reports like a run.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_conformance::internals::judge::{Reporter, report_options, select_cases};
use mcp_conformance::internals::run::{
    CallPolicy, MAX_LINE_BYTES, RecordingPlan, SavedTranscript, TranscriptReader, judge_recording,
};
use mcp_conformance::report::{Conclusion, NO_CALLS, Report};
use mcp_conformance::{Revisions, Settings};

use super::baseline::BaselineFile;
use super::cases;
use super::error::CliError;
use super::output::{Listeners, Output};
use super::recording_args::JudgeFileArgs;

/// Judges the recording in a file.
pub(super) fn judge_file(args: &JudgeFileArgs) -> Result<Conclusion, CliError> {
    let settings = Settings {
        select: args.select.clone(),
        skip: args.skip.clone(),
        cases: args.cases.clone(),
        fail_on: args.threshold.fail_on(),
        accept: args.threshold.accept.map(Into::into),
        retries: 0,
        fuzz: None,
        revisions: Revisions::All,
        ..Settings::default()
    };
    let selected = select_cases(&settings, &cases::all(args.cases.as_deref())?)?;
    let baseline = BaselineFile::open(&args.baseline, args.cases.as_deref())?;
    let recording = read(&args.file)?;
    let output = Output::open(&args.output)?;
    let settings = Settings { revisions: Revisions::Supported, ..settings };
    let mut options = report_options(&settings, CallPolicy::default());
    NO_CALLS.clone_into(&mut options.calls);
    let listeners = Arc::new(Mutex::new(Listeners::new(output.live(), None)));
    let mut reporter = Reporter::new(options, listeners.clone());
    let stimuli = selected.stimuli;
    let file = args.file.display().to_string();
    let plan = RecordingPlan {
        cases: selected.cases.into_iter().filter(|case| !stimuli.contains(&case.id)).collect::<Vec<Arc<_>>>(),
        revision: args.revision,
        cases_folder: args.cases.clone(),
        file: file.clone(),
    };
    let failed = |source| CliError::Recording { file, source };
    judge_recording(&recording, &plan, &mut reporter).map_err(failed)?;
    let mut applied = Ok(());
    let compare = |report: &mut Report| applied = baseline.map_or(Ok(()), |baseline| baseline.apply(report));
    let report = reporter.finish(&[], compare, settings.accept);
    let unwritten = listeners.lock().unwrap_or_else(PoisonError::into_inner).take_unwritten();
    output.write(&report, unwritten)?;
    applied?;
    Ok(Conclusion::of(&report))
}

/// Reads a recording; `-` is standard input.
fn read(path: &Path) -> Result<SavedTranscript, CliError> {
    let failed = |source: io::Error| CliError::ReadRecording { path: path.to_owned(), source };
    let stream: Box<dyn io::Read> =
        if path.as_os_str() == "-" { Box::new(io::stdin()) } else { Box::new(File::open(path).map_err(failed)?) };
    let mut lines = BufReader::new(stream);
    let mut reader = TranscriptReader::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = lines.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line).map_err(failed)?;
        if length == 0 {
            return Ok(reader.finish());
        }
        reader.read_line(&line).map_err(|error| CliError::RecordingLine { path: path.to_owned(), error })?;
    }
}
