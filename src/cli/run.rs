//! Makes a run: on a runtime, until it ends or a signal arrives, and leaves no process behind.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use mcp_conformance::event::Sink;
use mcp_conformance::internals::judge::{PreparedRun, block_on_and_end_processes};
use mcp_conformance::internals::run::Stop;
use mcp_conformance::report::Report;
use tokio::sync::watch;

use super::error::CliError;
use super::output::{Listeners, Output, TranscriptFile, Unwritten};
use super::report_args::OutputArgs;
use super::values::Color;

/// Makes a run to its end, or until a signal, and returns its report, and what could not be written meanwhile. `baseline`
/// compares the report with the known findings. No process that the run started is left then.
pub(super) fn run_to_end(
    run: PreparedRun,
    output: &Output,
    transcript: Option<TranscriptFile>,
    baseline: impl FnOnce(&mut Report),
) -> Result<(Report, Unwritten), CliError> {
    let run = run.saving_transcript(transcript.is_some());
    let listeners = Arc::new(Mutex::new(Listeners::new(output.live(), transcript)));
    let sink: Arc<Mutex<dyn Sink>> = listeners.clone();
    let (report, handled) = block_on_until_signal(|stop| run.run(sink, stop, baseline))?;
    let mut unwritten = listeners.lock().unwrap_or_else(PoisonError::into_inner).take_unwritten();
    unwritten.live = unwritten.live.or(handled.err());
    Ok((report, unwritten))
}

/// Makes a run that prints nothing, and returns its report.
pub(super) fn run_quietly(run: PreparedRun) -> Result<Report, CliError> {
    let quiet = OutputArgs {
        report: Vec::new(),
        sarif_file: None,
        compare: None,
        color: Color::Never,
        quiet: true,
        verbose: false,
    };
    let (report, _) = run_to_end(run, &Output::open(&quiet)?, None, |_| {})?;
    Ok(report)
}

/// Runs work that starts processes to its end, or until a signal stops it. No process that it started is left then.
pub(super) fn block_on_until_signal<Work: Future>(work: impl FnOnce(Stop) -> Work) -> Result<Work::Output, CliError> {
    let (cancel, cancelled) = watch::channel(false);
    let result = block_on_and_end_processes(async {
        let signals = tokio::spawn(cancel_on_signal(cancel));
        let result = work(cancelled).await;
        signals.abort();
        result
    })?;
    Ok(result)
}

/// Cancels the run on each signal that asks the program to end.
async fn cancel_on_signal(cancel: watch::Sender<bool>) {
    loop {
        if termination_signal().await.is_err() {
            // Signals cannot be received, so the run goes on to its end. Dropping the sender would cancel it.
            std::future::pending::<()>().await;
        }
        // Whether the user can read this does not matter to the cancellation.
        drop(writeln!(io::stderr(), "stopping the server and reporting the results so far"));
        cancel.send_replace(true);
    }
}

#[cfg(unix)]
async fn termination_signal() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}

#[cfg(not(unix))]
async fn termination_signal() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
