//! The summary of a revision for the report: its server, its tools and hints, the processes, and why it stopped early.

use std::time::Duration;

use serde_json::Value;

use super::target_state::Target;
use crate::check::{milliseconds, stderr_of};
use crate::context::ClosedConnection;
use crate::event::{FuzzSummary, Launch, Problem, ProblemKind, TargetSummary, ToolNote};
use crate::inventory::{FirstCallOutcome, HintResult, Inventory, MAX_TOOLS};
use crate::limits::{MAX_PROBLEM_STDERR, MAX_PROCESS_STDERR, MAX_SUMMARY_STDERR};
use crate::run::cases::case_run::RATE_LIMITED;
use crate::run::cases::case_session::ClosedSession;
use crate::text::last_bytes;
use crate::transcript::{self, SetAside};

/// What a summary says of the sessions. Their transcripts take much memory, and are not needed for it.
pub(super) struct SessionSummary {
    launches: Vec<Launch>,
    /// The end of the output of all processes.
    stderr: String,
    /// Whether the server rejected requests because of its rate limit.
    is_rate_limited: bool,
    /// What the connections went through that changes no verdict.
    notes: Vec<String>,
}

impl SessionSummary {
    pub(super) fn of(sessions: &[ClosedSession]) -> Self {
        Self {
            launches: sessions
                .iter()
                .filter(|session| !session.borrowed)
                .map(|session| launch(&session.ended))
                .collect(),
            stderr: last_bytes(&stderr(sessions), MAX_SUMMARY_STDERR).to_owned(),
            is_rate_limited: sessions.iter().any(|session| session.ended.limited > 0),
            notes: connection_notes(sessions),
        }
    }
}

/// The summary of a target; `opening` is the result that opened its main session.
pub(super) fn summarize(
    target: &Target,
    opening: Option<&Value>,
    inventory: &Inventory,
    sessions: &SessionSummary,
    fuzz: Option<FuzzSummary>,
) -> TargetSummary {
    let member = |pointer: &str| opening.and_then(|opening| opening.pointer(pointer)).cloned();
    TargetSummary {
        revision: target.revision,
        server_info: member("/serverInfo").or_else(|| member("/_meta/io.modelcontextprotocol~1serverInfo")),
        capabilities: member("/capabilities"),
        tools: tool_notes(inventory),
        hints: inventory.hint_results.iter().map(HintResult::note).collect(),
        launches: sessions.launches.clone(),
        stderr: sessions.stderr.clone(),
        stopped_early: target.stop_reason(),
        notes: target
            .context
            .has_one_session
            .then(|| ONE_SESSION.to_owned())
            .into_iter()
            .chain(sessions.notes.clone())
            .collect(),
        fuzz,
        totals: target.totals(),
    }
}

/// Why the judgement of a target is incomplete, if so.
pub(super) fn stop_problem(target: &Target, sessions: &SessionSummary) -> Option<Problem> {
    let (reason, hint) = if sessions.is_rate_limited {
        (
            format!("{RATE_LIMITED}, so the judgement is incomplete"),
            "lower the rate with --max-rate (requests per second), or raise the server's limit for the run",
        )
    } else if let Some(refusal) = target.known_session_refusal() {
        let count = target.totals().error;
        (
            format!(
                "{refusal} (cases that could not be judged: {count}; revisions that are refused for the same reason are \
                 not judged at all)"
            ),
            "let the server open a session for each client; judge a revision that is missing alone, with --revision, \
             after a restart",
        )
    } else {
        (
            target.stop_reason()?,
            "run with -v to see every message up to that point; give a slow server more time with --timeout",
        )
    };
    Some(Problem {
        kind: ProblemKind::Stopped,
        message: format!("in {}: {reason}", target.revision),
        hint: hint.to_owned(),
        stderr: last_bytes(&sessions.stderr, MAX_PROBLEM_STDERR).to_owned(),
        evidence: Vec::new(),
    })
}

/// What the server's rate limit cost: `limited` responses had status 429, and after `pauses` requests were made again.
fn rate_limit_note(limited: usize, pauses: usize, waited: Duration) -> Option<String> {
    if pauses > 0 {
        let times = if pauses == 1 { "once".to_owned() } else { format!("{pauses} times") };
        let seconds = waited.as_secs_f64();
        Some(format!(
            "the server asked the client to slow down {times}; requests waited {seconds:.1} s for it, those of all \
             connections added up, and were made again (a lower rate with --max-rate needs no refusals)"
        ))
    } else {
        let requests = if limited == 1 { "1 request".to_owned() } else { format!("{limited} requests") };
        (limited > 0).then(|| format!("the server refused {requests} for its rate limit (status 429)"))
    }
}

/// What a server that serves one session at a time means for a run.
const ONE_SESSION: &str = "the server serves one session at a time: a session ends, or is refused, because of another one; so the \
                           cases ran one after the other, which takes longer";

/// What a client has to put up with, and what it costs: requests that were made again, pauses, and streams that it did
/// without.
fn connection_notes(sessions: &[ClosedSession]) -> Vec<String> {
    let (mut ended, mut closed, mut unread, mut limited) = (0_usize, 0_usize, 0, 0);
    for entry in sessions.iter().flat_map(|session| &session.ended.entries) {
        match &entry.event {
            transcript::Event::HttpEnd(end) => match end.set_aside {
                Some(SetAside::SessionEnded) => ended += 1,
                Some(SetAside::ConnectionClosed) => closed += 1,
                Some(SetAside::BodyUnread) => unread += 1,
                Some(SetAside::SessionRenewal) | None => {}
            },
            transcript::Event::HttpHead(head) if head.status == 429 => limited += 1,
            _ => {}
        }
    }
    // The first of the two attempts at each of these requests counts with it.
    let closed = closed.saturating_sub(unread);
    let of = |count: usize, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    let mut notes = Vec::new();
    if ended > 0 {
        notes.push(format!(
            "the server had ended the session of {} (status 404); the client opened a new session, and made the request \
             again",
            of(ended, "request")
        ));
    }
    if closed > 0 {
        notes.push(format!(
            "the server closed the connection under {}, which the client made again on another connection; a server that \
             means to close one after a response announces it by `Connection: close`",
            of(closed, "request")
        ));
    }
    if unread > 0 {
        notes.push(format!(
            "the server closed the connection, twice each, before it had read {}; a client loses the answer to what it is \
             still sending, so read a body that you refuse to its end, or a while longer",
            of(unread, "large request")
        ));
    }
    let costs = || sessions.iter().map(|session| session.ended.costs);
    let (pauses, waited) = (costs().map(|costs| costs.pauses).sum(), costs().map(|costs| costs.waited).sum());
    notes.extend(rate_limit_note(limited, pauses, waited));
    if costs().any(|costs| costs.without_get_stream) {
        let note = "the server answers no request while a GET stream is open, so the client opened none beside the \
                    one of http/get-holds-up-posts; what the server sends on such streams was not seen";
        notes.push(note.to_owned());
    }
    notes
}

/// The output of all processes.
fn stderr(sessions: &[ClosedSession]) -> String {
    sessions.iter().map(|session| stderr_of(&session.ended.entries, MAX_PROCESS_STDERR)).collect()
}

fn tool_notes(inventory: &Inventory) -> Vec<ToolNote> {
    let tools = inventory.tools.iter();
    let note = format!("the list has more than {MAX_TOOLS} tools, and no others are used");
    let unused = |name: &String| ToolNote { name: name.clone(), called: false, note: Some(note.clone()) };
    let further = inventory.further_tools.iter().map(unused);
    tools
        .map(|tool| {
            let note = match (&tool.exclusion, tool.first_call) {
                (Some(reason), _) => Some(reason.clone()),
                (None, Some((FirstCallOutcome::Unanswered, _))) => Some(
                    "its call was not answered within four fifths of the timeout (--timeout), so the cases did not use it"
                        .to_owned(),
                ),
                (None, Some((FirstCallOutcome::Ended, _))) => {
                    Some("the server exited before it answered the call".to_owned())
                }
                (None, Some((FirstCallOutcome::Failed, _))) => Some("its plain call failed".to_owned()),
                (None, Some((FirstCallOutcome::MissingClientFeature, _))) => Some(
                    "it requires something that the client lacks: a capability, a visited page, or a call as a task"
                        .to_owned(),
                ),
                (None, Some((FirstCallOutcome::Served, _))) => None,
                (None, None) => Some("discovery ended before it was called".to_owned()),
            };
            ToolNote { name: tool.name.clone(), called: tool.first_call.is_some(), note }
        })
        .chain(further)
        .collect()
}

fn launch(ended: &ClosedConnection) -> Launch {
    let count =
        |wanted: fn(&transcript::Event) -> bool| ended.entries.iter().filter(|entry| wanted(&entry.event)).count();
    Launch {
        purpose: if ended.without_package_runner {
            format!("{}, without the package runner", ended.purpose)
        } else {
            ended.purpose.clone()
        },
        startup_ms: ended.startup.map(milliseconds),
        shutdown: Some(ended.step.as_str().to_owned()),
        sent: count(|event| matches!(event, transcript::Event::Sent { .. })),
        received: count(|event| matches!(event, transcript::Event::Received(_))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_is_said_with_what_it_cost() {
        assert_eq!(rate_limit_note(0, 0, Duration::ZERO), None);
        let note = |limited, pauses, millis| rate_limit_note(limited, pauses, Duration::from_millis(millis));
        assert_eq!(note(2, 0, 0).as_deref(), Some("the server refused 2 requests for its rate limit (status 429)"));
        let three = note(3, 3, 4_250).expect("a note");
        assert!(three.contains("slow down 3 times; requests waited 4.2 s"), "{three}");
        assert!(note(0, 1, 1_000).is_some_and(|note| note.contains("slow down once; requests waited 1.0 s")));
    }
}
