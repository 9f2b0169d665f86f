//! Examples of cases on the wire: what the reference server says with the fault of a case, and without it.
//!
//! Each case is run twice in this process, as the command that `explain` prints would. An example that shows no finding
//! is an error, so that no page shows anything that did not happen.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use mcp_conformance::event::{Event, Sink};
use mcp_conformance::internals::case::{Case, SelectedCases};
use mcp_conformance::internals::judge::plan_of_selected;
use mcp_conformance::internals::run::run;
use mcp_conformance::reference::{Fault, FaultSet, binds_every_address, serve_http, serve_http_protected};
use mcp_conformance::report::visible::{excerpt, visible};
use mcp_conformance::verdict::{Direction, Evidence, Finding};
use mcp_conformance::{JudgeError, Revisions, Server, Settings};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::markdown::{block, prose};
use super::wire::{Item, conforming, difference, exchange, message, shortened};
use crate::cli::error::CliError;
use crate::cli::fault_command::{Demonstration, TOKEN};

/// The time limits of a request, each tried until an example has its finding: most need no time, and a busy machine
/// much of it.
const TIMEOUTS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(10)];
/// The number of runs at a time for each processor: most of a run is waiting.
const RUNS_PER_PROCESSOR: usize = 4;
/// The greatest length of a message, in characters.
const MAX_MESSAGE_CHARS: usize = 700;

/// What a case looks like on the wire.
pub(super) struct Example {
    fault: Fault,
    sent: Vec<String>,
    /// What a conforming server says, and one with the fault; equal members are left out if `is_shortened`.
    conforming: Vec<String>,
    faulty: Vec<String>,
    is_shortened: bool,
    expected: String,
    actual: String,
}

/// The examples of the cases, by case.
pub(super) type Examples = BTreeMap<String, Example>;

/// The examples of all cases that name a fault of the reference server.
pub(super) fn of_all(cases: &[Case]) -> Result<Examples, CliError> {
    let shown: Vec<(&Case, Fault, Demonstration)> = cases
        .iter()
        .filter_map(|case| {
            let fault = case.fault.as_ref()?.parse::<Fault>().ok()?;
            Some((case, fault, Demonstration::of(case, fault)?))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::new());
    let work = || {
        while let Some((case, fault, demonstration)) = shown.get(next.fetch_add(1, Ordering::Relaxed)) {
            let example = of_case(case, cases, *fault, demonstration);
            made.lock().unwrap_or_else(PoisonError::into_inner).push((case.id.clone(), example));
        }
    };
    let runs = thread::available_parallelism().map_or(1, NonZero::get) * RUNS_PER_PROCESSOR;
    thread::scope(|scope| {
        for _ in 0..runs {
            scope.spawn(work);
        }
    });
    let made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.into_iter().map(|(case, example)| Ok((case, example?))).collect()
}

fn of_case(case: &Case, cases: &[Case], fault: Fault, demonstration: &Demonstration) -> Result<Example, CliError> {
    for timeout in TIMEOUTS {
        let run = |faults| record(case, cases, demonstration, faults, timeout);
        let Some(finding) = run(FaultSet::from(fault))?.findings.into_iter().next() else { continue };
        return Ok(Example::of(fault, &finding, &run(FaultSet::none())?.wire));
    }
    Err(CliError::NoExample { case: case.id.clone(), fault: fault.to_string() })
}

/// What a run shows.
#[derive(Default)]
struct Record {
    wire: Vec<Item>,
    findings: Vec<Finding>,
}

struct Recorder {
    case: String,
    record: Arc<Mutex<Record>>,
}

impl Sink for Recorder {
    fn on(&mut self, event: &Event) -> io::Result<()> {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Wire { connection, evidence } => record.wire.push((connection.clone(), evidence.clone())),
            Event::CaseFinished(result) if result.case == self.case => {
                record.findings.extend(result.findings.iter().cloned());
            }
            _ => {}
        }
        Ok(())
    }
}

/// Runs a case in this process against the reference server with these faults.
fn record(
    case: &Case,
    cases: &[Case],
    demonstration: &Demonstration,
    faults: FaultSet,
    timeout: Duration,
) -> Result<Record, CliError> {
    let Demonstration { revision, path, token, second_token, foreign_token, .. } = demonstration;
    let settings = Settings {
        revisions: Revisions::Named(vec![*revision]),
        timeout,
        shutdown_grace: Duration::from_millis(300),
        retries: 0,
        fuzz: None,
        ..Settings::default()
    };
    let selected = SelectedCases::with_stimuli(&[case], cases);
    let record: Arc<Mutex<Record>> = Arc::default();
    let sink: Arc<Mutex<dyn Sink>> =
        Arc::new(Mutex::new(Recorder { case: case.id.clone(), record: Arc::clone(&record) }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(JudgeError::Runtime)?;
    runtime.block_on(async {
        let server = match path {
            None => Server::reference(faults.iter()),
            Some(path) => {
                let host = if binds_every_address(&faults) { "0.0.0.0:0" } else { "127.0.0.1:0" };
                let listener = TcpListener::bind(host).await.map_err(CliError::Serve)?;
                let port = listener.local_addr().map_err(CliError::Serve)?.port();
                let faults = Arc::new(faults);
                // The server ends with its runtime.
                match token {
                    Some(_) => tokio::spawn(serve_http_protected(listener, faults, TOKEN.to_owned())),
                    None => tokio::spawn(serve_http(listener, faults)),
                };
                let mut server = Server::http(format!("http://127.0.0.1:{port}/{path}"))
                    .further_bearer_tokens(second_token.clone(), foreign_token.clone());
                if let Some(token) = token {
                    server = server.header("Authorization", format!("Bearer {token}"));
                }
                server.into()
            }
        };
        let mut plan = plan_of_selected(&server, &settings, selected)?;
        plan.show_wire = true;
        let (_running, stop) = watch::channel(false);
        run(plan, sink, stop).await.map_err(CliError::Serve)?;
        Ok::<(), CliError>(())
    })?;
    runtime.shutdown_background();
    Ok(std::mem::take(&mut *record.lock().unwrap_or_else(PoisonError::into_inner)))
}

impl Example {
    fn of(fault: Fault, finding: &Finding, wire: &[Item]) -> Self {
        let (sent, answers) = exchange(&finding.evidence);
        let conforming = conforming(wire, &sent, &answers);
        // Of two messages only the difference is shown, of one all that there is room for.
        let difference = match (conforming.as_slice(), answers.as_slice()) {
            ([ours], [theirs]) => message(ours)
                .zip(message(theirs))
                .map(|(mut ours, mut theirs)| {
                    for message in [&mut ours, &mut theirs].into_iter().filter_map(|message| message.as_object_mut()) {
                        message.shift_remove("id");
                    }
                    difference(&ours, &theirs)
                })
                .filter(|(ours, theirs)| ours != theirs),
            _ => None,
        };
        let texts = |items: &[&Evidence]| items.iter().map(|item| text(item)).collect::<Vec<_>>();
        let line = |value: &Value| vec![excerpt(&format!("<-- {}", shortened(value.clone())), MAX_MESSAGE_CHARS, 0)];
        let is_shortened = difference.is_some();
        let (conforming, faulty) = match &difference {
            Some((ours, theirs)) => (line(ours), line(theirs)),
            None => (texts(&conforming), texts(&answers)),
        };
        Self {
            fault,
            sent: texts(&sent),
            conforming,
            faulty,
            is_shortened,
            expected: excerpt(&finding.expected, MAX_MESSAGE_CHARS, 0),
            actual: excerpt(&finding.actual, MAX_MESSAGE_CHARS, 0),
        }
    }

    /// The example as a part of a page.
    pub(super) fn to_markdown(&self) -> String {
        let mut text = String::new();
        if !self.sent.is_empty() {
            let _ = write!(text, "**On the wire.** The client sends:\n\n{}\n", block("text", &self.sent.join("\n")));
        }
        let part = if self.is_shortened { ", without what both servers answer" } else { "" };
        if self.conforming.is_empty() {
            text.push_str("No message of a conforming server corresponds to that of a faulty one.\n\n");
        } else {
            let lines = block("text", &self.conforming.join("\n"));
            let _ = write!(text, "A conforming server{part}:\n\n{lines}\n");
        }
        let _ =
            write!(text, "A server with the fault `{}` ({}){part}:\n\n", self.fault, prose(self.fault.description()));
        let faulty = if self.faulty.is_empty() { "(no message)".to_owned() } else { self.faulty.join("\n") };
        let _ = writeln!(text, "{}", block("text", &faulty));
        let _ = write!(text, "- Expected: {}\n- Found: {}\n\n", prose(&self.expected), prose(&self.actual));
        text
    }
}

/// A message or an event as lines with a mark for its direction.
fn text(item: &Evidence) -> String {
    let mark = match item.direction {
        Direction::Sent => "-->",
        Direction::Received => "<--",
        Direction::Stderr | Direction::Event => "   ",
    };
    let lines = item.text.lines().map(|line| excerpt(&visible(line), MAX_MESSAGE_CHARS, item.omitted));
    format!("{mark} {}", lines.collect::<Vec<_>>().join("\n    "))
}
