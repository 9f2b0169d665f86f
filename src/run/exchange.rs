//! Carries out the steps of an acting case on a session.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::bindings::{Bindings, Unfilled, candidates};
use super::discovery::MAX_PAGES;
use super::http_steps::OpenResponses;
use super::inventory::Inventory;
use super::plan::Plan;
use super::retry::{self, Served};
use super::session::{Session, shutdown_grace_for};
use crate::case::{Act, Case, Outcome, Placeholder, Poll, Step, fill, fill_text};
use crate::check::Pass;
use crate::client::Waited;
use crate::transcript::{Entry, Event, Mark, Transcript, without_limited};
use crate::wire::{Frame, Id};

/// How long an answer is waited for that a server may well not give, once later requests are answered.
const SETTLE: Duration = Duration::from_millis(25);

/// The same where nothing was sent after it that could have been answered.
const SETTLE_ALONE: Duration = Duration::from_millis(250);

/// The longest that is waited for it, however slow the server is.
const SETTLE_LONGEST: Duration = Duration::from_secs(1);

/// How long is waited at first before a request is repeated that is polled with, and how long at most. The
/// interval that a server suggests is meant for work that takes its time; a case gives it a second.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Requests in a row without an answer after which a session is given up.
pub(super) const GIVEN_UP: usize = 2;

/// Carries out a case; what was recorded, pass by pass, or why it does not apply.
pub(super) async fn carry_out(
    case: &Case,
    body: &Act,
    session: &mut Session,
    inventory: &Inventory,
    plan: &Plan,
    new_pass: &mut (impl FnMut() -> usize + Send),
) -> Result<Vec<Pass>, Unfilled> {
    let tools = candidates(case, body, inventory, session)?;
    let opener = opener(body);
    let mut passes = Vec::new();
    for tool in tools {
        let asked = opener.as_ref().zip(tool.as_ref()).map(|(opener, bound)| (opener.clone(), bound.tool.name.clone()));
        if asked.as_ref().is_some_and(|asked| session.fruitless_requests.contains(asked)) {
            continue;
        }
        let number = new_pass();
        let label = tool.as_ref().map(|bound| format!("tool {}", bound.tool.name)).unwrap_or_default();
        let mut bindings = Bindings::new(case, inventory, tool, plan.seed);
        let from = session.connection.len();
        let offered = inventory.listed_names();
        let mut pass = Pass { label, number, transcript: Transcript::default(), offered, trouble: None, void: None };
        session.replies.begin(&body.client_responses);
        let outcome = walk_steps(body, session, &mut bindings, plan, number).await;
        let answered = session.replies.end();
        pass.transcript = session.transcript_from(from);
        // What was sent again to a server that is asked too much is judged by what came of it in the end.
        pass.transcript.entries = without_limited(&pass.transcript.entries);
        pass.void = void(case, body, &pass.transcript, answered);
        let saved = body.steps.first().is_some_and(|step| step.save.keys().all(|name| bindings.has_saved(name)));
        session.fruitless_requests.extend(asked.filter(|_| !saved));
        match outcome {
            Ok(()) => {}
            // A value that an earlier step had to yield is trouble; one that the server lacks is no case.
            Err(unfilled) if pass.transcript.entries.iter().all(|entry| !is_ours(entry)) => {
                return Err(unfilled);
            }
            Err(Unfilled(reason)) => pass.trouble = Some(reason),
        }
        passes.push(pass);
        if session.connection.is_closed() || session.unanswered >= GIVEN_UP {
            break;
        }
    }
    if passes.is_empty() {
        return Err(Unfilled("no tool answers with what the case needs".to_owned()));
    }
    Ok(passes)
}

/// Whether an entry is of something that we sent.
fn is_ours(entry: &Entry) -> bool {
    entry.sent().is_some() || matches!(&entry.event, Event::HttpRequest(request) if request.mark.is_some())
}

/// Why a pass proves nothing: the server did not ask for what the case is about, or for something that
/// cannot be answered as the case wants it.
fn void(case: &Case, body: &Act, record: &Transcript, answered: bool) -> Option<String> {
    let asked = case.needs.client_request.as_ref().filter(|_| !body.client_responses.is_empty())?;
    if !record.asked().iter().any(|request| asked.fits(request)) {
        return Some("this time the server did not ask the client for such a thing".to_owned());
    }
    (!answered).then(|| "what the server asks for cannot be answered in the way of the case".to_owned())
}

/// What a case begins with that has to find something out of each tool: what one case has asked a tool in
/// vain, the next need not ask again.
fn opener(body: &Act) -> Option<String> {
    let first = body.steps.first().filter(|step| !step.save.is_empty() && body.for_each.is_some())?;
    Some(format!("{}{:?}", first.send.as_ref()?, first.save))
}

async fn walk_steps(
    body: &Act,
    session: &mut Session,
    bindings: &mut Bindings<'_>,
    plan: &Plan,
    number: usize,
) -> Result<(), Unfilled> {
    // Requests that were sent on without waiting, and whether anything was answered after them.
    let mut open: Vec<(usize, Id)> = Vec::new();
    let mut unsure: Vec<(usize, Option<Id>)> = Vec::new();
    let mut served_after = false;
    let mut awaited = false;
    let mut pace = Duration::ZERO;
    // What was answered, by the name of its step.
    let mut served: BTreeMap<&str, Served> = BTreeMap::new();
    let mut opened = OpenResponses::default();
    for (index, step) in body.steps.iter().enumerate() {
        if step.revisions.is_some_and(|revisions| !revisions.contains(session.revision)) {
            continue;
        }
        let mark = Mark { pass: number, step: index };
        if let Some(method) = &step.paginate {
            walk(session, method, mark, plan).await;
            served_after = true;
        } else if let Some(call) = &step.http {
            let limit = patience(session, plan);
            opened.send(step, call, session, bindings, mark, limit).await?;
        } else if let Some(name) = &step.close {
            if let Some(at) = body.steps.iter().position(|step| step.name.as_ref() == Some(name)) {
                opened.close(at);
            }
        } else if let (Some(message), Some(poll)) = (&step.send, &step.poll) {
            let waited = send_until(message, poll, step, session, bindings, mark, plan).await?;
            served_after |= matches!(waited, Waited::Came(_));
            keep(step, &waited, bindings);
        } else if step.send.is_some() || step.retry.is_some() {
            let Some(message) = request_of(step, session, bindings, &served, plan).await? else { continue };
            let meta = step.meta.as_ref().map(|meta| filled(meta, bindings, session)).transpose()?;
            let message = session.complete(&message, true, meta.as_ref());
            let from = session.connection.len();
            session.send(&message, Some(mark)).await;
            let id = message.get("id").cloned().unwrap_or(Value::Null);
            if step.pipelined && may_be_silent(step) {
                served_after = false;
                unsure.push((from, Some(id)));
            } else if step.pipelined {
                open.push((from, id));
            } else {
                let asked = Instant::now();
                let waited = session.wait_for_response(from, &id, patience(session, plan)).await;
                if matches!(waited, Waited::Came(_)) {
                    served_after = true;
                    pace = pace.max(asked.elapsed());
                }
                keep(step, &waited, bindings);
                if let (Some(name), Waited::Came(response)) = (&step.name, waited) {
                    served.insert(name, Served { request: message, response });
                }
            }
        } else {
            let from = session.connection.len();
            let before = unsure.len();
            send_unawaited(step, session, bindings, mark, &mut unsure, from).await?;
            if !unsure.is_empty() {
                served_after = false;
            }
            // Where silence is what tells, it is waited for longer, also when later requests are answered.
            let is_judged = !step.expect.is_empty() || step.otherwise.is_some();
            awaited |= unsure.len() > before && is_judged && !may_be_silent(step);
            if step.shutdown.is_some() {
                let grace = shutdown_grace_for(plan.shutdown_grace, &session.connection);
                session.connection.end(grace).await;
            }
        }
        if session.connection.is_closed() || session.unanswered >= GIVEN_UP {
            return Ok(());
        }
    }
    for (from, id) in open {
        let limit = patience(session, plan);
        session.wait_for_response(from, &id, limit).await;
    }
    // What a server is given follows its own pace: on a busy machine both are slower.
    let limit = if served_after && !awaited { SETTLE } else { SETTLE_ALONE }.max(SETTLE_LONGEST.min(pace * 4));
    let until = Instant::now() + limit;
    for (from, id) in unsure {
        let wanted = |message: &Value| {
            message.get("method").is_none()
                && match message.get("id") {
                    None | Some(Value::Null) => true,
                    Some(got) => id.as_ref() == Some(got),
                }
        };
        let in_place = session.connection.answers_in_place();
        session
            .connection
            .wait(from, until.saturating_duration_since(Instant::now()), |entries| {
                let mut received = entries.iter().filter_map(|entry| entry.received());
                let came = received.any(|value| crate::transcript::messages(value).any(wanted));
                (came || in_place && is_over(entries)).then_some(())
            })
            .await;
    }
    opened.close_all();
    Ok(())
}

/// Sends a request again and again until a result fits, anything but a result comes, or a bound is met.
async fn send_until(
    message: &Value,
    poll: &Poll,
    step: &Step,
    session: &mut Session,
    bindings: &Bindings<'_>,
    mark: Mark,
    plan: &Plan,
) -> Result<Waited<Value>, Unfilled> {
    let until = Instant::now() + Duration::from_millis(poll.timeout_ms);
    let mut pause = SHORTEST_PAUSE;
    let mut sent = 0;
    loop {
        let filled_in = filled(message, bindings, session)?;
        let meta = step.meta.as_ref().map(|meta| filled(meta, bindings, session)).transpose()?;
        let request = session.complete(&filled_in, true, meta.as_ref());
        let from = session.connection.len();
        session.send(&request, Some(mark)).await;
        sent += 1;
        let id = request.get("id").cloned().unwrap_or(Value::Null);
        let waited = session.wait_for_response(from, &id, patience(session, plan)).await;
        let Waited::Came(response) = &waited else { return Ok(waited) };
        if poll.until.fits(response) || response.get("result").is_none() {
            return Ok(waited);
        }
        let over = sent >= poll.max_attempts || Instant::now() + pause > until;
        if over && poll.otherwise.is_some() {
            return Ok(waited);
        }
        if over {
            return Err(Unfilled("what was polled for did not come in the time that the case gives it".to_owned()));
        }
        tokio::time::sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// The request that a step makes; nothing if it is a retry that the server did not ask for often enough.
async fn request_of(
    step: &Step,
    session: &mut Session,
    bindings: &Bindings<'_>,
    served: &BTreeMap<&str, Served>,
    plan: &Plan,
) -> Result<Option<Value>, Unfilled> {
    if let Some(message) = &step.send {
        return filled(message, bindings, session).map(Some);
    }
    let Some(retry) = &step.retry else { return Ok(None) };
    let Some(mut last) = served.get(retry.step.as_str()).cloned() else {
        return Err(Unfilled("the request that is to be made again was not answered".to_owned()));
    };
    let differing = retry.params.as_ref().map(|params| filled(params, bindings, session)).transpose()?;
    for _ in 1..retry.rounds.unwrap_or(1) {
        let again = retry::of_case(&last, retry, differing.as_ref(), &session.replies)?;
        let request = session.complete(&again, true, step.meta.as_ref());
        let from = session.connection.len();
        session.send(&request, None).await;
        let Waited::Came(response) = session.wait_for_response(from, &request["id"], patience(session, plan)).await
        else {
            return Ok(None);
        };
        last = Served { request, response };
        if !last.asks() {
            return Ok(None);
        }
    }
    retry::of_case(&last, retry, differing.as_ref(), &session.replies).map(Some)
}

/// Whether the HTTP answer to the first of these messages has ended: then nothing more comes of it, unless the
/// server is asked too much and the message is sent again.
fn is_over(entries: &[Arc<Entry>]) -> bool {
    let Some(message) = entries.first() else { return false };
    let entries = without_limited(entries);
    let carries = |entry: &Arc<Entry>| match &entry.event {
        Event::HttpRequest(request) if request.carries.as_ref().is_some_and(|own| Arc::ptr_eq(own, message)) => {
            Some(request.number)
        }
        _ => None,
    };
    let number = entries.iter().find_map(carries);
    number.is_some()
        && entries.iter().any(|entry| matches!(&entry.event, Event::HttpEnd(end) if Some(end.number) == number))
}

/// Whether a step that is not waited for reckons with silence: then later requests tell that the
/// server had its chance.
fn may_be_silent(step: &Step) -> bool {
    step.expect.iter().any(|row| row.outcome.contains(&Outcome::NoResponse))
}

/// How long an answer is waited for: more while the process starts, less once a request has gone unanswered.
fn patience(session: &Session, plan: &Plan) -> Duration {
    if session.unanswered > 0 {
        plan.timeout.min(Duration::from_secs(2))
    } else if session.connection.first_line().is_none() {
        plan.timeout + session.startup_allowance
    } else {
        plan.timeout
    }
}

fn filled(value: &Value, bindings: &Bindings<'_>, session: &mut Session) -> Result<Value, Unfilled> {
    fill(value, &mut |placeholder: &Placeholder| bindings.value(placeholder, session))
}

/// Sends what is not waited for: a raw line, a notification or a batch.
async fn send_unawaited(
    step: &Step,
    session: &mut Session,
    bindings: &Bindings<'_>,
    mark: Mark,
    unsure: &mut Vec<(usize, Option<Id>)>,
    from: usize,
) -> Result<(), Unfilled> {
    if let Some(message) = &step.notify {
        let message = filled(message, bindings, session)?;
        let message = session.complete(&message, false, None);
        session.send(&message, Some(mark)).await;
        unsure.push((from, None));
    } else if let Some(messages) = &step.batch {
        let mut batch = Vec::new();
        for message in messages {
            let message = filled(message, bindings, session)?;
            let is_request =
                !message.get("method").and_then(Value::as_str).unwrap_or_default().starts_with("notifications/");
            let message = session.complete(&message, is_request, step.meta.as_ref());
            unsure.push((from, message.get("id").cloned()));
            batch.push(message);
        }
        session.send(&Value::Array(batch), Some(mark)).await;
    } else if let Some(line) = &step.raw {
        let line = fill_text(line, &mut |placeholder: &Placeholder| bindings.value(placeholder, session))?;
        // A damaged line is kept in part only where a server wrote it.
        let mut frame = Frame::parse(line.as_bytes());
        frame.raw = line.as_bytes().to_vec();
        unsure.push((from, frame.json().and_then(|value| value.get("id")).cloned()));
        session.send_frame(frame, Some(mark)).await;
    }
    Ok(())
}

/// Keeps what later steps need of an answer.
fn keep(step: &Step, waited: &Waited<Value>, bindings: &mut Bindings<'_>) {
    let Waited::Came(response) = waited else { return };
    for (name, pointer) in &step.save {
        if let Some(value) = response.pointer(pointer) {
            bindings.save(name, value.clone());
        }
    }
}

/// Reads the pages of a list to the end.
async fn walk(session: &mut Session, method: &str, mark: Mark, plan: &Plan) {
    let mut cursors: Vec<Value> = Vec::new();
    let mut params = serde_json::json!({});
    for _ in 0..MAX_PAGES {
        let message = session.complete(&serde_json::json!({ "method": method, "params": params }), true, None);
        let from = session.connection.len();
        session.send(&message, Some(mark)).await;
        let Waited::Came(response) = session.wait_for_response(from, &message["id"], patience(session, plan)).await
        else {
            return;
        };
        let Some(cursor) = response.pointer("/result/nextCursor").filter(|cursor| cursor.is_string()) else { return };
        if cursors.contains(cursor) {
            return;
        }
        cursors.push(cursor.clone());
        params = serde_json::json!({ "cursor": cursor });
    }
}
