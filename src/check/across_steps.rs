//! Judges the rules about several steps of an active case together.

use serde_json::Value;

use super::client_request::undeclared;
use super::evidence::evidence_of;
use super::execution::Execution;
use super::judgement::{Judgement, SHORTENED, add_finding, requirement_and_verdict};
use super::rate;
use crate::case::{AcrossSteps, Action, Active, Case, Comparison, PathPattern};
use crate::line_diff::unified;
use crate::spec::Revision;
use crate::transcript::{Event, StepId, input_requests};
use crate::verdict::{Finding, Verdict};
use crate::wire::MessageKind;

/// What violates a comparison.
struct Difference {
    actual: String,
    diff: Option<String>,
    positions: Vec<usize>,
}

/// Judges the comparisons of a case and adds their findings. The execution may have a repetition on another connection.
pub(super) fn judge_comparisons(
    case: &Case,
    body: &Active,
    revision: Revision,
    executions: (&Execution, Option<&Execution>),
    judged: &mut Judgement,
) {
    let mut with_values = 0;
    for together in &body.across_steps {
        with_values += usize::from(judge_comparison(case, body, together, revision, executions, judged));
    }
    // One comparison with values is evidence: a tool without `structuredContent` still has its `content` compared.
    if with_values == 0 && !body.across_steps.is_empty() {
        judged.withdraw_pass(Verdict::Skip, "the responses have no values to compare");
    }
}

/// Judges one comparison and adds its finding; `false` if there were no values to compare.
fn judge_comparison(
    case: &Case,
    body: &Active,
    together: &AcrossSteps,
    revision: Revision,
    (execution, repetition): (&Execution, Option<&Execution>),
    judged: &mut Judgement,
) -> bool {
    let found = match together.check {
        Comparison::NoServerRequests | Comparison::ClientRequestsDeclared => {
            server_request(body, together, revision, execution)
        }
        Comparison::LogLevelRespected => log_below_level(body, together, revision, execution, judged),
        Comparison::FewServerRequests => many_server_requests(execution),
        Comparison::QuietBetween => frequent_notification(body, together, revision, execution),
        Comparison::ChangesAnnouncedOnly => announced_without_change(body, together, revision, execution),
        _ => match values_to_compare(body, together, revision, execution, judged) {
            Some(Compared { values, .. }) if values.iter().all(Vec::is_empty) => return false,
            Some(compared) => difference_of(together, compared),
            None => None,
        },
    };
    let Some(difference) = found else { return true };
    let values = |of: &Execution| {
        let steps = together.steps.iter();
        let lists = steps.map(|name| values_of_step(body, name, together.path.as_ref(), revision, of, &mut Vec::new()));
        lists.collect::<Option<Vec<_>>>().map(|lists| sorted(&lists.concat()))
    };
    if repetition.is_some_and(|later| values(later).is_some_and(|later| Some(later) == values(execution))) {
        judged.withdraw_pass(Verdict::Skip, "two later connections list the same, so the list changed since discovery");
        return true;
    }
    let Some((requirement, verdict)) =
        requirement_and_verdict(case, revision, together.requirement.as_deref(), together.verdict)
    else {
        return true;
    };
    if execution.transcript.entries.iter().any(|entry| entry.is_shortened()) {
        judged.withdraw_pass(Verdict::Error, SHORTENED);
        return true;
    }
    judged.verdict = judged.verdict.join(verdict);
    add_finding(
        &mut judged.findings,
        Finding {
            message: together
                .message
                .clone()
                .unwrap_or_else(|| format!("the responses are not consistent: {}", case.title)),
            expected: case.title.clone(),
            actual: difference.actual,
            diff: difference.diff,
            subjects: execution.subjects(),
            evidence: evidence_of(&execution.transcript.entries, &difference.positions),
            fix: case.fix.clone(),
            ..Finding::new(requirement, revision, verdict)
        },
    );
    true
}

/// The values of several steps, and where in the transcript they are.
struct Compared {
    values: Vec<Vec<Value>>,
    positions: Vec<usize>,
}

/// The values of several steps; `None` if a step has no response with values, which is judged here.
fn values_to_compare(
    body: &Active,
    together: &AcrossSteps,
    revision: Revision,
    execution: &Execution,
    judged: &mut Judgement,
) -> Option<Compared> {
    let mut positions = Vec::new();
    if let Some(schema) = &together.matching {
        let responses = |name| values_of_step(body, name, None, revision, execution, &mut Vec::new());
        let mut all = together.steps.iter().flat_map(|name| responses(name).unwrap_or_default());
        if !all.all(|response| schema.fits(&response)) {
            return Some(Compared { values: Vec::new(), positions });
        }
    }
    let steps = needed_steps(body, together, execution);
    let values: Vec<Option<Vec<Value>>> = steps
        .iter()
        .map(|name| values_of_step(body, name, together.path.as_ref(), revision, execution, &mut positions))
        .collect();
    let Some(mut values) = values.into_iter().collect::<Option<Vec<_>>>() else {
        // A step with expectations of its own has been judged by them; without, nothing is proved.
        let is_judged_by_step = body.steps.iter().any(|step| {
            step.name.as_ref().is_some_and(|name| together.steps.contains(name))
                && !step.action.expected().responses().is_empty()
        });
        if !is_judged_by_step {
            judged
                .withdraw_pass(Verdict::Error, "the server did not answer one of the compared requests with a result");
        }
        return None;
    };
    if steps.len() < together.steps.len() && violating_pair(Comparison::SameSet, &values).is_some() {
        judged.withdraw_pass(Verdict::Error, "the last of the compared requests was not made");
        return None;
    }
    if together.check == Comparison::SameSetAsShared {
        let paginating =
            body.steps.iter().find(|step| step.name.as_ref().is_some_and(|name| together.steps.contains(name)));
        let list = match paginating.map(|step| &step.action) {
            Some(Action::Paginate { method, .. }) => method,
            _ => "tools/list",
        };
        let Some(names) = execution.discovered_lists.get(list) else {
            judged.withdraw_pass(Verdict::Skip, format!("discovery did not read {list} to its end"));
            return None;
        };
        // Discovery keeps no names that are no strings, which other cases report.
        for listed in &mut values {
            listed.retain(Value::is_string);
        }
        values.insert(0, names.iter().map(|name| Value::from(name.as_str())).collect());
    }
    Some(Compared { values, positions })
}

/// The steps of a comparison without one that was not carried out because nothing depends on it: whether the first and the
/// last step have the same values matters only if those between them differ.
fn needed_steps<'a>(body: &Active, together: &'a AcrossSteps, execution: &Execution) -> &'a [String] {
    let step_of = |event: &Event| match event {
        Event::Sent { step_id, .. } => *step_id,
        Event::HttpRequest(request) => request.step_id,
        _ => None,
    };
    let is_sent = |name: &String| {
        let steps = execution.transcript.entries.iter().filter_map(|entry| step_of(&entry.event));
        steps.filter_map(|step_id| body.steps.get(step_id.step)).any(|step| step.name.as_ref() == Some(name))
    };
    match together.steps.split_last() {
        Some((last, others)) if together.check == Comparison::SameSetBetween && others.len() > 1 && !is_sent(last) => {
            others
        }
        _ => &together.steps,
    }
}

/// What makes the values of several steps violate a comparison.
fn difference_of(together: &AcrossSteps, Compared { values, positions }: Compared) -> Option<Difference> {
    let (first, other) = violating_pair(together.check, &values)?;
    let (before, after) = (lines(first, together.check), lines(other, together.check));
    let old: Vec<&str> = before.iter().map(String::as_str).collect();
    let new: Vec<&str> = after.iter().map(String::as_str).collect();
    let text = unified(&old, &new, ("first", "other"));
    Some(Difference {
        actual: format!("{} values, compared with {}", first.len(), other.len()),
        diff: (before != after).then_some(text),
        positions,
    })
}

/// The values of two steps that violate a comparison.
fn violating_pair(comparison: Comparison, values: &[Vec<Value>]) -> Option<(&Vec<Value>, &Vec<Value>)> {
    let (first, rest) = values.split_first()?;
    let pair_where =
        |violates: &dyn Fn(&Vec<Value>) -> bool| rest.iter().find(|other| violates(other)).map(|other| (first, other));
    match comparison {
        Comparison::Same => pair_where(&|other| first != other),
        Comparison::SameSet | Comparison::SameSetAsShared => pair_where(&|other| sorted(first) != sorted(other)),
        Comparison::SameSetBetween => {
            let last = rest.last()?;
            // A list that changed in the meantime proves nothing.
            if sorted(first) == sorted(last) { pair_where(&|other| sorted(first) != sorted(other)) } else { None }
        }
        Comparison::SameOrder => pair_where(&|other| sorted(first) == sorted(other) && first != other),
        Comparison::Differ => pair_where(&|other| !first.is_empty() && first == other),
        Comparison::Disjoint => pair_where(&|other| first.iter().any(|value| other.contains(value))),
        Comparison::NoServerRequests
        | Comparison::ClientRequestsDeclared
        | Comparison::LogLevelRespected
        | Comparison::QuietBetween
        | Comparison::ChangesAnnouncedOnly
        | Comparison::FewServerRequests => None,
    }
}

/// The requests of the server in an execution, if they are more than a loop makes that ends by itself.
fn many_server_requests(execution: &Execution) -> Option<Difference> {
    const MAX_REQUESTS: usize = 20;
    let count = execution.transcript.requests_to_client().len();
    let entries = &execution.transcript.entries;
    let received = (0..entries.len()).filter(|at| entries[*at].received().is_some());
    (count > MAX_REQUESTS).then(|| Difference {
        actual: format!("the server sends the client {count} requests"),
        diff: None,
        positions: received.take(4).collect(),
    })
}

/// Finds a kind of notification that comes more often than once a second after the response to the first of two steps
/// and before the request of the second.
fn frequent_notification(
    body: &Active,
    together: &AcrossSteps,
    revision: Revision,
    execution: &Execution,
) -> Option<Difference> {
    let record = &execution.transcript;
    let mut spans = together.steps.iter().filter_map(|name| span_of_step(body, name, revision, execution));
    let ((_, from), (to, _)) = (spans.next()?, spans.next()?);
    let found = rate::frequent_notification(record, from, to)?;
    Some(Difference { actual: found.actual, diff: None, positions: found.positions })
}

/// Finds the announcements that a list changed, if one follows each request for it but the last, and the results are the
/// same.
fn announced_without_change(
    body: &Active,
    together: &AcrossSteps,
    revision: Revision,
    execution: &Execution,
) -> Option<Difference> {
    let entries = &execution.transcript.entries;
    let spans = together.steps.iter().map(|name| span_of_step(body, name, revision, execution));
    let spans: Vec<(usize, usize)> = spans.collect::<Option<_>>()?;
    let result = |(_, answered): &(usize, usize)| entries[*answered].received()?.get("result");
    let first = result(spans.first()?)?;
    if spans.iter().any(|span| result(span) != Some(first)) {
        return None;
    }
    let method = entries[spans.first()?.0].sent()?.get("method")?.as_str()?;
    let announcement = format!("notifications/{method}_changed");
    let is_announced = |at: &usize| {
        let method = entries[*at].received().and_then(|message| message.get("method"));
        method.is_some_and(|method| *method == announcement.as_str())
    };
    let following = spans.windows(2).map(|pair| (pair[0].0..pair[1].0).find(is_announced));
    let positions: Vec<usize> = following.collect::<Option<_>>()?;
    (!positions.is_empty()).then(|| Difference {
        actual: format!("{announcement} after each {method}, with the same result"),
        diff: None,
        positions,
    })
}

/// The positions of the request and of the response of a step, if it has a response.
fn span_of_step(body: &Active, name: &str, revision: Revision, execution: &Execution) -> Option<(usize, usize)> {
    let record = &execution.transcript;
    let step = body.steps.iter().position(|step| {
        step.name.as_deref() == Some(name) && step.revisions.is_none_or(|revisions| revisions.contains(revision))
    })?;
    let step_id = StepId { execution: execution.number, step };
    let exchange = record.exchanges().into_iter().find(|exchange| {
        matches!(&record.entries[exchange.sent].event, Event::Sent { step_id: Some(own), .. } if *own == step_id)
    })?;
    Some((exchange.sent, exchange.responses.first()?.0))
}

/// Finds a request of the server that is not allowed, from the first of several steps to the last response.
fn server_request(
    body: &Active,
    together: &AcrossSteps,
    revision: Revision,
    execution: &Execution,
) -> Option<Difference> {
    let steps: Vec<usize> = body
        .steps
        .iter()
        .enumerate()
        .filter(|(_, step)| step.name.as_ref().is_some_and(|name| together.steps.contains(name)))
        .filter(|(_, step)| step.revisions.is_none_or(|revisions| revisions.contains(revision)))
        .map(|(at, _)| at)
        .collect();
    let record = &execution.transcript;
    let is_of_steps = |at: usize| {
        matches!(&record.entries[at].event, Event::Sent { step_id: Some(step_id), .. }
            if step_id.execution == execution.number && steps.contains(&step_id.step))
    };
    let from = (0..record.entries.len()).find(|at| is_of_steps(*at))?;
    let answered = record
        .exchanges()
        .iter()
        .filter(|e| is_of_steps(e.sent))
        .filter_map(|e| e.responses.first().map(|r| r.0))
        .max();
    let to = answered.unwrap_or(record.entries.len());
    let to = if together.check == Comparison::ClientRequestsDeclared { (to + 1).min(record.entries.len()) } else { to };
    (from..to).find_map(|at| {
        let message = record.entries[at].received()?;
        let actual = match (together.check, MessageKind::of(message)) {
            (Comparison::ClientRequestsDeclared, MessageKind::Request { method, .. }) => {
                let missing = undeclared(message, &record.session_parameters.client_capabilities)?;
                format!("the server sends {method}, although the client did not declare {missing}")
            }
            (Comparison::ClientRequestsDeclared, _) => {
                let mut requests = message.get("result").into_iter().flat_map(input_requests);
                let missing =
                    requests.find_map(|(_, one)| undeclared(one, &record.session_parameters.client_capabilities))?;
                format!("the result requests input, although the client did not declare {missing}")
            }
            (_, MessageKind::Request { method, .. }) if method != "ping" => format!("the server sends {method}"),
            _ => return None,
        };
        Some(Difference { actual, diff: None, positions: vec![from, at] })
    })
}

/// Finds a log message below the level that the second of two steps sets, which is the highest. If the server logs
/// nothing at the first step, nothing is proved.
fn log_below_level(
    body: &Active,
    together: &AcrossSteps,
    revision: Revision,
    execution: &Execution,
    judged: &mut Judgement,
) -> Option<Difference> {
    let record = &execution.transcript;
    let mut spans = together.steps.iter().filter_map(|name| span_of_step(body, name, revision, execution));
    let (loud, quiet) = (spans.next()?, spans.next()?);
    let messages = |(from, to): (usize, usize)| {
        (from..to).filter_map(|at| Some((at, record.entries[at].received()?))).filter(|(_, message)| {
            message.get("method").is_some_and(|method| method == "notifications/message")
                && message.pointer("/params/level").is_some_and(|level| level != "emergency")
        })
    };
    if messages(loud).next().is_none() {
        judged.withdraw_pass(Verdict::Skip, "no tool that may be called logs anything");
    }
    let (at, message) = messages(quiet).next()?;
    let level = message.pointer("/params/level").map(Value::to_string).unwrap_or_default();
    Some(Difference { actual: format!("a log message of the level {level}"), diff: None, positions: vec![quiet.0, at] })
}

/// The values in the responses of a step; none if one of them is not a result.
fn values_of_step(
    body: &Active,
    name: &str,
    path: Option<&PathPattern>,
    revision: Revision,
    execution: &Execution,
    positions: &mut Vec<usize>,
) -> Option<Vec<Value>> {
    let step = body.steps.iter().position(|step| {
        step.name.as_deref() == Some(name) && step.revisions.is_none_or(|revisions| revisions.contains(revision))
    })?;
    let step_id = StepId { execution: execution.number, step };
    let mut values = Vec::new();
    let mut is_answered = false;
    if body.steps[step].is_http() {
        for exchange in execution.transcript.http_exchanges_of(|own| own == Some(step_id)) {
            is_answered |= exchange.value.get("status").is_some();
            positions.extend(&exchange.positions);
            match path {
                Some(path) => values.extend(path.find(&exchange.value).into_iter().map(|(_, value)| value.clone())),
                None => values.push(exchange.value.clone()),
            }
        }
        return is_answered.then_some(values);
    }
    for exchange in execution.transcript.exchanges() {
        let sent = &execution.transcript.entries[exchange.sent];
        if !matches!(&sent.event, Event::Sent { step_id: Some(of), .. } if *of == step_id) {
            continue;
        }
        let (position, response) = exchange.responses.first()?;
        response.get("result")?;
        is_answered = true;
        positions.extend([exchange.sent, *position]);
        match path {
            Some(path) => values.extend(path.find(response).into_iter().map(|(_, value)| value.clone())),
            None => values.push((*response).clone()),
        }
    }
    is_answered.then_some(values)
}

fn sorted(values: &[Value]) -> Vec<String> {
    let mut texts: Vec<String> = values.iter().map(Value::to_string).collect();
    texts.sort_unstable();
    texts
}

fn lines(values: &[Value], comparison: Comparison) -> Vec<String> {
    match comparison {
        Comparison::SameSet | Comparison::SameSetBetween | Comparison::SameSetAsShared => sorted(values),
        _ => values.iter().map(Value::to_string).collect(),
    }
}
