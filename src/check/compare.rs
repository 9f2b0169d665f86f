//! Judges what holds of several steps together.

use serde_json::Value;
use similar::TextDiff;

use super::asked::undeclared;
use super::evidence::evidence_of;
use super::{Judged, Pass, add, verdict_of};
use crate::case::{Act, Action, Case, Comparison, Place, Together};
use crate::spec::Revision;
use crate::transcript::{Event, Mark, input_requests};
use crate::verdict::{Finding, Verdict};
use crate::wire::Kind;

/// What a comparison finds wrong.
struct Difference {
    actual: String,
    diff: Option<String>,
    positions: Vec<usize>,
}

/// Judges one comparison; adds what it finds.
pub(super) fn together(
    case: &Case,
    body: &Act,
    together: &Together,
    revision: Revision,
    pass: &Pass,
    judged: &mut Judged,
) {
    let found = match together.check {
        Comparison::NoServerRequests | Comparison::RequestsDeclared => asked(body, together, revision, pass),
        Comparison::LogsFollowLevel => logged(body, together, revision, pass, judged),
        Comparison::FewQuestions => many_questions(pass),
        _ => differs(body, together, revision, pass, judged),
    };
    let Some(difference) = found else { return };
    let Some((requirement, verdict)) = verdict_of(case, revision, together.requirement.as_deref(), together.verdict)
    else {
        return;
    };
    judged.verdict = judged.verdict.join(verdict);
    add(
        &mut judged.findings,
        Finding {
            message: together.message.clone().unwrap_or_else(|| format!("the answers do not agree: {}", case.title)),
            expected: case.title.clone(),
            actual: difference.actual,
            diff: difference.diff,
            subjects: pass.subjects(),
            evidence: evidence_of(&pass.transcript.entries, &difference.positions),
            fix: case.fix.clone(),
            ..Finding::new(requirement, revision, verdict)
        },
    );
}

/// Compares the values of several steps.
fn differs(
    body: &Act,
    together: &Together,
    revision: Revision,
    pass: &Pass,
    judged: &mut Judged,
) -> Option<Difference> {
    let mut positions = Vec::new();
    let sides: Vec<Option<Vec<Value>>> = together
        .steps
        .iter()
        .map(|name| side(body, name, together.path.as_ref(), revision, pass, &mut positions))
        .collect();
    let Some(mut sides) = sides.into_iter().collect::<Option<Vec<_>>>() else {
        // A step with rows of its own has been judged by them; without, nothing is proved.
        let judged_by_rows = body.steps.iter().any(|step| {
            step.name.as_ref().is_some_and(|name| together.steps.contains(name))
                && !step.action.expected().responses().is_empty()
        });
        if !judged_by_rows && judged.verdict == Verdict::Pass {
            judged.verdict = Verdict::Error;
            judged.reason = Some("one of the compared requests was not served".to_owned());
        }
        return None;
    };
    if together.check == Comparison::SameSetOnShared {
        let walked =
            body.steps.iter().find(|step| step.name.as_ref().is_some_and(|name| together.steps.contains(name)));
        let list = match walked.map(|step| &step.action) {
            Some(Action::Paginate { method, .. }) => method,
            _ => "tools/list",
        };
        let Some(offered) = pass.offered.get(list) else {
            if judged.verdict == Verdict::Pass {
                judged.verdict = Verdict::Skip;
                judged.reason = Some(format!("{list} was not read to its end when the server was surveyed"));
            }
            return None;
        };
        sides.insert(0, offered.iter().map(|name| Value::from(name.as_str())).collect());
    }
    let (first, other) = breach(together.check, &sides)?;
    let (before, after) = (lines(first, together.check), lines(other, together.check));
    let text =
        TextDiff::from_lines(&before, &after).unified_diff().context_radius(2).header("first", "other").to_string();
    Some(Difference {
        actual: format!("{} values against {}", first.len(), other.len()),
        diff: (before != after).then_some(text),
        positions,
    })
}

/// The two sides that a comparison finds wrong, if any.
fn breach(comparison: Comparison, sides: &[Vec<Value>]) -> Option<(&Vec<Value>, &Vec<Value>)> {
    let (first, rest) = sides.split_first()?;
    let against =
        |wrong: &dyn Fn(&Vec<Value>) -> bool| rest.iter().find(|other| wrong(other)).map(|other| (first, other));
    match comparison {
        Comparison::Same => against(&|other| first != other),
        Comparison::SameSet | Comparison::SameSetOnShared => against(&|other| sorted(first) != sorted(other)),
        Comparison::SameSetBetween => {
            let last = rest.last()?;
            // A list that changed by itself in the meantime proves nothing.
            if sorted(first) == sorted(last) { against(&|other| sorted(first) != sorted(other)) } else { None }
        }
        Comparison::SameOrder => against(&|other| sorted(first) == sorted(other) && first != other),
        Comparison::Differ => against(&|other| !first.is_empty() && first == other),
        Comparison::Disjoint => against(&|other| first.iter().any(|value| other.contains(value))),
        Comparison::NoServerRequests
        | Comparison::RequestsDeclared
        | Comparison::LogsFollowLevel
        | Comparison::FewQuestions => None,
    }
}

/// The questions of the server in a pass, if they are more than a loop has that ends by itself.
fn many_questions(pass: &Pass) -> Option<Difference> {
    const MOST: usize = 20;
    let count = pass.transcript.asked().len();
    let entries = &pass.transcript.entries;
    let received = (0..entries.len()).filter(|at| entries[*at].received().is_some());
    (count > MOST).then(|| Difference {
        actual: format!("the server asks {count} times"),
        diff: None,
        positions: received.take(4).collect(),
    })
}

/// Looks for requests of the server from the first of several steps to the answer of the last.
fn asked(body: &Act, together: &Together, revision: Revision, pass: &Pass) -> Option<Difference> {
    let steps: Vec<usize> = body
        .steps
        .iter()
        .enumerate()
        .filter(|(_, step)| step.name.as_ref().is_some_and(|name| together.steps.contains(name)))
        .filter(|(_, step)| step.revisions.is_none_or(|revisions| revisions.contains(revision)))
        .map(|(at, _)| at)
        .collect();
    let record = &pass.transcript;
    let of_steps = |at: usize| {
        matches!(&record.entries[at].event, Event::Sent { mark: Some(mark), .. }
            if mark.pass == pass.number && steps.contains(&mark.step))
    };
    let from = (0..record.entries.len()).find(|at| of_steps(*at))?;
    let answered =
        record.exchanges().iter().filter(|e| of_steps(e.sent)).filter_map(|e| e.responses.first().map(|r| r.0)).max();
    let to = answered.unwrap_or(record.entries.len());
    let to = if together.check == Comparison::RequestsDeclared { (to + 1).min(record.entries.len()) } else { to };
    (from..to).find_map(|at| {
        let message = record.entries[at].received()?;
        let actual = match (together.check, Kind::of(message)) {
            (Comparison::RequestsDeclared, Kind::Request { method, .. }) => {
                let missing = undeclared(message, &record.terms.client_capabilities)?;
                format!("the server sends {method}, though the client did not declare {missing}")
            }
            (Comparison::RequestsDeclared, _) => {
                let mut asked = message.get("result").into_iter().flat_map(input_requests);
                let missing = asked.find_map(|(_, one)| undeclared(one, &record.terms.client_capabilities))?;
                format!("the result asks for input, though the client did not declare {missing}")
            }
            (_, Kind::Request { method, .. }) if method != "ping" => format!("the server sends {method}"),
            _ => return None,
        };
        Some(Difference { actual, diff: None, positions: vec![from, at] })
    })
}

/// Looks for log messages below the level that the second of two steps asks for, which is the highest.
/// Where nothing was logged at the first step, nothing is proved.
fn logged(body: &Act, together: &Together, revision: Revision, pass: &Pass, judged: &mut Judged) -> Option<Difference> {
    let record = &pass.transcript;
    let mut spans = together.steps.iter().filter_map(|name| {
        let step = body.steps.iter().position(|step| {
            step.name.as_ref() == Some(name) && step.revisions.is_none_or(|revisions| revisions.contains(revision))
        })?;
        let mark = Mark { pass: pass.number, step };
        let exchange = record.exchanges().into_iter().find(|exchange| {
            matches!(&record.entries[exchange.sent].event, Event::Sent { mark: Some(own), .. } if *own == mark)
        })?;
        Some((exchange.sent, exchange.responses.first()?.0))
    });
    let (loud, quiet) = (spans.next()?, spans.next()?);
    let messages = |(from, to): (usize, usize)| {
        (from..to).filter_map(|at| Some((at, record.entries[at].received()?))).filter(|(_, message)| {
            message.get("method").is_some_and(|method| method == "notifications/message")
                && message.pointer("/params/level").is_some_and(|level| level != "emergency")
        })
    };
    if messages(loud).next().is_none() && judged.verdict == Verdict::Pass {
        judged.verdict = Verdict::Skip;
        judged.reason = Some("no tool that may be called logs anything".to_owned());
    }
    let (at, message) = messages(quiet).next()?;
    let level = message.pointer("/params/level").map(Value::to_string).unwrap_or_default();
    Some(Difference { actual: format!("a message of the level {level}"), diff: None, positions: vec![quiet.0, at] })
}

/// The values that the responses of a step hold; none if one of them was not served.
fn side(
    body: &Act,
    name: &str,
    at: Option<&Place>,
    revision: Revision,
    pass: &Pass,
    positions: &mut Vec<usize>,
) -> Option<Vec<Value>> {
    let step = body.steps.iter().position(|step| {
        step.name.as_deref() == Some(name) && step.revisions.is_none_or(|revisions| revisions.contains(revision))
    })?;
    let mark = Mark { pass: pass.number, step };
    let mut values = Vec::new();
    let mut served = false;
    if body.steps[step].is_http() {
        for exchange in pass.transcript.http_exchanges().iter().filter(|exchange| exchange.mark == Some(mark)) {
            served |= exchange.value.get("status").is_some();
            positions.extend(&exchange.positions);
            match at {
                Some(at) => values.extend(at.find(&exchange.value).into_iter().map(|(_, value)| value.clone())),
                None => values.push(exchange.value.clone()),
            }
        }
        return served.then_some(values);
    }
    for exchange in pass.transcript.exchanges() {
        let sent = &pass.transcript.entries[exchange.sent];
        if !matches!(&sent.event, Event::Sent { mark: Some(marked), .. } if *marked == mark) {
            continue;
        }
        let (position, response) = exchange.responses.first()?;
        response.get("result")?;
        served = true;
        positions.extend([exchange.sent, *position]);
        match at {
            Some(at) => values.extend(at.find(response).into_iter().map(|(_, value)| value.clone())),
            None => values.push((*response).clone()),
        }
    }
    served.then_some(values)
}

fn sorted(values: &[Value]) -> Vec<String> {
    let mut texts: Vec<String> = values.iter().map(Value::to_string).collect();
    texts.sort_unstable();
    texts
}

fn lines(values: &[Value], comparison: Comparison) -> String {
    let texts = match comparison {
        Comparison::SameSet | Comparison::SameSetBetween | Comparison::SameSetOnShared => sorted(values),
        _ => values.iter().map(Value::to_string).collect(),
    };
    texts.into_iter().map(|text| text + "\n").collect()
}
