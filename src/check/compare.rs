//! Judges what holds of several steps together.

use serde_json::Value;
use similar::TextDiff;

use super::evidence::evidence_of;
use super::{Judged, Pass, add, verdict_of};
use crate::case::{Act, Case, Comparison, Place, Together};
use crate::spec::Revision;
use crate::transcript::{Event, Mark};
use crate::verdict::{Finding, Verdict};

/// Judges one comparison; adds what it finds.
pub(super) fn together(
    case: &Case,
    body: &Act,
    together: &Together,
    revision: Revision,
    pass: &Pass,
    judged: &mut Judged,
) {
    let mut positions = Vec::new();
    let sides: Vec<Option<Vec<Value>>> =
        together.of.iter().map(|name| side(body, name, together.at.as_ref(), revision, pass, &mut positions)).collect();
    let Some(sides) = sides.into_iter().collect::<Option<Vec<_>>>() else {
        if judged.verdict == Verdict::Pass {
            judged.verdict = Verdict::Error;
            judged.reason = Some("one of the compared requests was not served".to_owned());
        }
        return;
    };
    let first = &sides[0];
    let breach = sides.iter().skip(1).find(|other| !holds(together.check, first, other));
    let Some(other) = breach else { return };
    let Some((requirement, verdict)) = verdict_of(case, revision, together.requirement.as_deref(), together.verdict) else {
        return;
    };
    judged.verdict = judged.verdict.join(verdict);
    let (before, after) = (lines(first, together.check), lines(other, together.check));
    let diff = TextDiff::from_lines(&before, &after).unified_diff().context_radius(2).header("first", "second").to_string();
    add(
        &mut judged.findings,
        Finding {
            requirement: requirement.id.clone(),
            level: requirement.level,
            derived: requirement.derived,
            verdict,
            revision,
            message: together.say.clone().unwrap_or_else(|| format!("the answers do not agree: {}", case.title)),
            expected: case.title.clone(),
            actual: format!("{} against {} values", first.len(), other.len()),
            value: None,
            diff: Some(diff),
            count: 1,
            subjects: if pass.label.is_empty() { Vec::new() } else { vec![pass.label.clone()] },
            evidence: evidence_of(&pass.transcript.entries, &positions),
            link: requirement.link(revision),
            hint: case.mend.clone(),
            replay: String::new(),
        },
    );
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

fn holds(comparison: Comparison, first: &[Value], other: &[Value]) -> bool {
    match comparison {
        Comparison::Same => first == other,
        Comparison::SameOrder => {
            let shared = |own: &[Value], theirs: &[Value]| -> Vec<Value> {
                own.iter().filter(|value| theirs.contains(value)).cloned().collect()
            };
            shared(first, other) == shared(other, first)
        }
        Comparison::SameSet => sorted(first) == sorted(other),
        Comparison::Disjoint => first.iter().all(|value| !other.contains(value)),
    }
}

fn sorted(values: &[Value]) -> Vec<String> {
    let mut texts: Vec<String> = values.iter().map(Value::to_string).collect();
    texts.sort_unstable();
    texts
}

fn lines(values: &[Value], comparison: Comparison) -> String {
    let texts = match comparison {
        Comparison::SameSet => sorted(values),
        Comparison::Same | Comparison::SameOrder | Comparison::Disjoint => values.iter().map(Value::to_string).collect(),
    };
    texts.into_iter().map(|text| text + "\n").collect()
}
