//! The problems of a run that could not judge: the server is not available, or cannot be opened in any revision.

use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;

use super::start_failure::start_failure;
use crate::check::{evidence, stderr_of};
use crate::context::{Context, HostError};
use crate::event::{Problem, ProblemKind};
use crate::plan::Revisions;
use crate::session::{OpeningFailure, RejectedOpening};
use crate::spec::{Era, Revision, Transport};
use crate::text::first_chars;
use crate::transcript;

/// Why an HTTP server that the client starts is not available.
pub(super) async fn host_problem(context: &Context, host_error: HostError) -> Problem {
    let has_ended = matches!(host_error, HostError::Ended(_));
    let (message, hint) = match host_error {
        HostError::NotStarted(error) => {
            (error.to_string(), "check that the path exists and is executable; a script needs its interpreter named")
        }
        HostError::AddressInUse => (
            "something else already listens at the address of the server, and would be judged instead".to_owned(),
            "stop what listens there, or choose another port in --url and in the command; to judge what listens there, give its URL without a command, as in `mcp-conformance http://127.0.0.1:3000/mcp`",
        ),
        HostError::Ended(status) => (
            format!("the server exited before it listened ({status})"),
            "run the command by hand and see what it prints; it may lack an argument, a variable or a folder",
        ),
        HostError::NotListening => (
            format!("the server does not listen at the address within {:.0?}", context.plan.startup_timeout),
            "does the command listen on the host and the port of --url? give a slow server more time with --startup-timeout",
        ),
        HostError::TooManyRestarts => {
            ("the server ended too often".to_owned(), "run it by hand and see what it prints")
        }
    };
    let mut problem = Problem {
        kind: ProblemKind::NotAServer,
        message,
        hint: hint.to_owned(),
        stderr: context.host_output().await,
        evidence: Vec::new(),
    };
    if has_ended {
        add_start_failure(&mut problem, None);
    }
    problem
}

/// The problem that revisions selected by name are not supported: a CI gate must not take them for judged.
pub(super) fn unsupported_revisions(selected: &Revisions, supported: &[Revision]) -> Option<Problem> {
    let Revisions::Named(named) = selected else { return None };
    let unsupported: Vec<&str> =
        named.iter().filter(|revision| !supported.contains(revision)).map(|r| r.as_str()).collect();
    (!unsupported.is_empty()).then(|| Problem {
        kind: ProblemKind::NothingToJudge,
        message: format!("the server does not support {}, which was selected", unsupported.join(" and ")),
        hint: "omit that --revision, or omit them all to judge every revision that the server supports".to_owned(),
        stderr: String::new(),
        evidence: Vec::new(),
    })
}

/// Why no revision could be judged.
pub(super) async fn opening_problem(context: &Context, rejected: Vec<(Revision, RejectedOpening)>) -> Problem {
    let has_ended = most_informative(&rejected).is_some_and(|(_, one)| one.reason.is_end());
    let is_elsewhere = context.plan.transport() == Transport::Http && !(has_ended && context.shares_own_process());
    let (message, hint) = explain(&rejected, context.plan.startup_timeout, is_elsewhere);
    // A handshake server answers unknown requests with an error, which proves nothing if handshake revisions were
    // tried as well.
    let only_stateless = rejected.iter().all(|(revision, _)| revision.era() == Era::Stateless);
    let understands_mcp = rejected.iter().any(|(_, rejected)| match rejected.reason {
        OpeningFailure::Other(_) => true,
        OpeningFailure::Error(_) => only_stateless,
        _ => false,
    });
    let mut problem = Problem {
        kind: if understands_mcp { ProblemKind::NothingToJudge } else { ProblemKind::NotAServer },
        message,
        hint,
        stderr: String::new(),
        evidence: Vec::new(),
    };
    // The attempts are alike; show the one of the newest handshake revision.
    let mut rejected: Vec<_> =
        rejected.into_iter().filter_map(|(revision, r)| Some((revision, r.connection?))).collect();
    rejected.sort_by_key(|(revision, _)| (revision.era() == Era::Stateless, std::cmp::Reverse(*revision)));
    let mut endings = JoinSet::new();
    for (at, (_, connection)) in rejected.into_iter().enumerate() {
        let context = context.clone();
        endings.spawn(async move { (at, context.close(connection, "probe".to_owned()).await) });
    }
    let mut ended = endings.join_all().await;
    ended.sort_by_key(|(at, _)| *at);
    if let Some((_, ended)) = ended.into_iter().next() {
        let is_http = context.plan.transport() == Transport::Http;
        problem.stderr = if is_http { context.host_output().await } else { stderr_of(&ended.entries, 4_000) };
        problem.evidence = ended
            .entries
            .iter()
            .filter(|entry| !matches!(entry.event, transcript::Event::Stderr(_)))
            .take(8)
            .map(|entry| evidence(entry))
            .collect();
        if has_ended {
            let status = ended.entries.iter().find_map(|entry| match &entry.event {
                transcript::Event::Exited { status } => Some(status.as_str()),
                _ => None,
            });
            add_start_failure(&mut problem, status);
        }
    }
    problem
}

/// Adds to the problem that a server ended how it ended, and what its standard error says about the cause.
fn add_start_failure(problem: &mut Problem, status: Option<&str>) {
    if let Some(status) = status {
        problem.message = format!("{} ({status})", problem.message);
    }
    if let Some(failure) = start_failure(&problem.stderr) {
        problem.message = format!("{}: {}", problem.message, failure.line);
        if let Some(hint) = failure.hint {
            hint.clone_into(&mut problem.hint);
        }
    }
}

/// Explains why a server could not be opened in any revision: one sentence and a hint.
///
/// The hints for a server elsewhere do not speak of its command.
fn explain(rejected: &[(Revision, RejectedOpening)], startup: Duration, is_elsewhere: bool) -> (String, String) {
    let Some((revision, rejected)) = most_informative(rejected) else {
        return ("no revision was tried".to_owned(), "select a revision with --revision".to_owned());
    };
    let (message, hint) = describe(*revision, rejected, startup);
    let hint = if is_elsewhere { over_http(&rejected.reason).map_or(hint, str::to_owned) } else { hint };
    (message, hint)
}

/// The attempt that says most about the server.
fn most_informative(rejected: &[(Revision, RejectedOpening)]) -> Option<&(Revision, RejectedOpening)> {
    let handshake = rejected.iter().filter(|(revision, _)| revision.era() == Era::Handshake);
    handshake.max_by_key(|(_, rejected)| information(rejected)).or(rejected.first())
}

/// How much an attempt says about the server, compared with other attempts.
fn information(rejected: &RejectedOpening) -> u8 {
    match &rejected.reason {
        OpeningFailure::NotStarted(_) => 10,
        OpeningFailure::CutOff => 9,
        OpeningFailure::Unreadable(_) => 8,
        OpeningFailure::Echo => 7,
        OpeningFailure::Http(failure) => failure.weight + 1,
        OpeningFailure::Unusable(_) => 6,
        OpeningFailure::Other(_) => 5,
        OpeningFailure::Error(_) | OpeningFailure::Unanswered => 4,
        OpeningFailure::Ended => 3,
        OpeningFailure::Silent | OpeningFailure::Idle(_) if wrote_noise(rejected) => 2,
        OpeningFailure::Idle(_) => 1,
        // It may have been aborted because another attempt timed out.
        OpeningFailure::Silent => 0,
    }
}

/// Why an attempt to open a server failed: one sentence, and a hint that suits standard streams.
fn describe(revision: Revision, rejected: &RejectedOpening, startup: Duration) -> (String, String) {
    let shown = |value: &Value| first_chars(&value.to_string(), 200).to_owned();
    match &rejected.reason {
        OpeningFailure::NotStarted(error) => (
            error.to_string(),
            "check that the path exists and is executable; a script needs its interpreter named, as in `node server.js`"
                .to_owned(),
        ),
        OpeningFailure::Ended => (
            "the server exited before it answered the first message".to_owned(),
            "run the command by hand and see what it prints; it may lack an argument, a variable (--env K=V) or a folder (--cwd)"
                .to_owned(),
        ),
        OpeningFailure::CutOff => (
            "the server exceeded the output limit before it answered the first message, and was stopped".to_owned(),
            "write only messages to stdout, one per line; banners and logs belong on stderr".to_owned(),
        ),
        OpeningFailure::Unreadable(damage) => (
            format!("the server answers the first message with a line that {}", damage.describe()),
            "write only messages to stdout, one per line, and keep the first response small".to_owned(),
        ),
        OpeningFailure::Unanswered => (
            format!("the server does not answer `initialize` in {revision}, although it sends other messages"),
            "answer every `initialize`, with the requested revision or with another one".to_owned(),
        ),
        OpeningFailure::Silent => explain_silence(None, wrote_noise(rejected), startup),
        OpeningFailure::Idle(idle) => explain_silence(Some(*idle), wrote_noise(rejected), startup),
        OpeningFailure::Http(failure) if failure.protected => {
            (format!("the server requires a token: {}", failure.description), failure.hint.to_owned())
        }
        OpeningFailure::Http(failure) => {
            (format!("no MCP server answers at the address: {}", failure.description), failure.hint.to_owned())
        }
        OpeningFailure::Echo => (
            "the program echoes its input, so it is not an MCP server".to_owned(),
            "pass the command that starts the server, with its arguments".to_owned(),
        ),
        OpeningFailure::Error(error) if revision.era() == Era::Stateless => (
            format!("the server does not support {revision}: it answers server/discover with {}", shown(error)),
            "omit --revision to judge the revisions that it supports".to_owned(),
        ),
        OpeningFailure::Error(error) => (
            format!("the server rejects `initialize` in {revision}: {}", shown(error)),
            "answer `initialize` with a supported revision, even if the client requested another one".to_owned(),
        ),
        OpeningFailure::Unusable(result) => (
            format!("the server answers the opening request with an unusable result: {}", shown(result)),
            "the result of `initialize` has protocolVersion, capabilities and serverInfo".to_owned(),
        ),
        OpeningFailure::Other(version) => (
            format!("the server supports {}, none of the selected revisions", shown(&version.as_str().into())),
            "omit --revision to judge the revisions that it supports".to_owned(),
        ),
    }
}

/// Why a server that did not answer could not be opened. `idle` is how long it was idle, unless it was busy until the
/// startup timeout; `noise` says whether it wrote anything.
fn explain_silence(idle: Option<Duration>, noise: bool, startup: Duration) -> (String, String) {
    match (idle, noise) {
        (Some(idle), true) => (
            format!("the server wrote something, but no JSON-RPC response, and was then idle for {idle:.0?}"),
            "write only messages to stdout, one per line; banners and logs belong on stderr".to_owned(),
        ),
        (None, true) => (
            format!("the server wrote something, but no JSON-RPC response within {startup:.0?}"),
            "write only messages to stdout, one per line; banners and logs belong on stderr".to_owned(),
        ),
        (Some(idle), false) => (
            format!("the server did not answer the first message, and was idle for {idle:.0?}"),
            format!(
                "is it a stdio server? one that listens on a port prints nothing here; if it waits for a \
                 network or another service, raise --startup-timeout ({startup:.0?} now), a sixth of which it may be idle"
            ),
        ),
        (None, false) => (
            format!("the server did not answer the first message within {startup:.0?}"),
            "is it a stdio server? one that listens on a port prints nothing here; give a slow server more time with --startup-timeout"
                .to_owned(),
        ),
    }
}

/// The hint to use instead of one about standard streams.
fn over_http(reason: &OpeningFailure) -> Option<&'static str> {
    match reason {
        OpeningFailure::Ended => Some("see what the server prints, and the proxy in front of it if there is one"),
        OpeningFailure::CutOff | OpeningFailure::Unreadable(_) => {
            Some("is the address right? the response to a request is one JSON message, or an event stream that ends")
        }
        OpeningFailure::Silent => Some(
            "is the address right, http:// or https:// included? give a slow server more time with --startup-timeout",
        ),
        OpeningFailure::Echo => Some("is the address right? it returns requests instead of answering them"),
        _ => None,
    }
}

fn wrote_noise(rejected: &RejectedOpening) -> bool {
    rejected.connection.as_ref().is_some_and(|connection| connection.first_line().is_some())
}
