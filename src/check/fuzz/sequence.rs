//! Judges sequences of calls: whether later results agree with what earlier calls created, changed and deleted.

use serde_json::Value;

use super::message_text::excerpt;
use super::violation::OracleViolation;
use crate::case::Oracle;
use crate::sequence::{CallSequence, Claim, StepAnswer, StepRecord, StepSource, is_volatile, members, words};

/// The violation that a sequence shows: its claim does not hold, although all of its controls do.
#[must_use]
pub(crate) fn sequence_violation(
    oracle: Oracle,
    sequence: &CallSequence,
    records: &[StepRecord],
) -> Option<OracleViolation> {
    let expectation = &sequence.expectation;
    let controlled = expectation.controls.iter().all(|control| holds(control, records) == Some(true));
    if !controlled || holds(&expectation.claim, records) != Some(false) {
        return None;
    }
    let tool = |step: usize| sequence.steps.get(step).map_or("", |step| step.tool.as_str());
    let cause = expectation.needs.last().map_or("", |step| tool(*step));
    let last = expectation.claim.last();
    let message = match (oracle, &expectation.claim) {
        (Oracle::DeletedServed, _) => format!("it serves an object that {cause} has deleted"),
        (Oracle::DeletedListed, _) => format!("it lists an object that {cause} has deleted"),
        (Oracle::CreatedUnlisted, Claim::Shows(_, source)) => {
            format!("it does not list an object that {} has created", tool(source.step()))
        }
        (Oracle::ReadBack, Claim::Keeps(_, StepSource::Argument { step, name })) => {
            format!("it does not return the {name} that {} was called with", tool(*step))
        }
        (Oracle::OtherObject, _) => format!("{cause}, called for one object, affects another"),
        (Oracle::RepeatedRead, _) => "a second call in a row no longer returns what the first did".to_owned(),
        (Oracle::ReadOnly, _) => format!("{cause} is annotated readOnlyHint, but changes what this tool returns"),
        (Oracle::Idempotent, _) => format!("{cause} is annotated idempotentHint, but its second call changes more"),
        _ => format!("in a sequence of calls it breaks a rule: {}", oracle.rule()),
    };
    let actual = actual(&expectation.claim, records);
    let signature = format!("sequence {} {cause} {}", oracle.as_str(), tool(last));
    Some(OracleViolation::from_many_calls(oracle, message, actual).signature(signature))
}

/// What a claim that does not hold shows instead.
fn actual(claim: &Claim, records: &[StepRecord]) -> String {
    let value =
        |source: &StepSource| source.find(records).map_or_else(String::new, |value| excerpt(&value.to_string(), 100));
    let shown = |step: usize| {
        let results = records.get(step).map_or(&[][..], StepRecord::results);
        results.first().map_or_else(|| "an error".to_owned(), |result| excerpt(&content(result).to_string(), 200))
    };
    match claim {
        Claim::Keeps(step, source) => {
            let StepSource::Argument { name, .. } = source else { return shown(*step) };
            let found = named_members(&records[*step], name).into_iter().map(|(_, value)| value).next();
            let found = found.map_or_else(String::new, |value| excerpt(&value.to_string(), 100));
            format!("{} was sent, and {found} is returned", value(source))
        }
        Claim::Shows(step, source) => format!("{} is missing in {}", value(source), shown(*step)),
        Claim::Hides(step, source) => format!("{} is in {}", value(source), shown(*step)),
        Claim::Same { earlier, later, .. } => {
            let before = earlier.last().map_or_else(String::new, |step| shown(*step));
            format!("{before} before, {} after", shown(*later))
        }
        Claim::Served(step) | Claim::Refused(step) | Claim::Sound(step, _) => {
            format!("the response is {}", shown(*step))
        }
    }
}

/// What a result says.
fn content(result: &Value) -> &Value {
    let text = || result.pointer("/content/0/text");
    result.get("structuredContent").or_else(text).unwrap_or(result)
}

/// Whether a claim holds in the calls that were made; `None` if they do not show it.
fn holds(claim: &Claim, records: &[StepRecord]) -> Option<bool> {
    match claim {
        Claim::Served(step) => match records.get(*step)?.answer {
            StepAnswer::Served(_) => Some(true),
            StepAnswer::Refused => Some(false),
            StepAnswer::Missing => None,
        },
        Claim::Refused(step) => holds(&Claim::Served(*step), records).map(|served| !served),
        Claim::Sound(step, oracle) => Some(!records.get(*step)?.violated.contains(oracle)),
        Claim::Shows(step, source) => {
            let record = records.get(*step).filter(|record| !record.results().is_empty())?;
            let shows = record.occurrences(&source.find(records)?) > 0;
            // A part of a list shows nothing about the rest.
            (shows || !is_partial(record)).then_some(shows)
        }
        Claim::Hides(step, source) => {
            let record = records.get(*step).filter(|record| !record.results().is_empty())?;
            Some(record.occurrences(&source.find(records)?) == 0)
        }
        Claim::Keeps(step, source) => keeps(*step, source, records),
        Claim::Same { earlier, later, values } => same(earlier, *later, values, records),
    }
}

/// Whether the member that is named like an argument has its value; `None` if there is not exactly one, or if the server
/// has said at once that it stores another value.
fn keeps(step: usize, source: &StepSource, records: &[StepRecord]) -> Option<bool> {
    let StepSource::Argument { step: written, name } = source else { return None };
    let sent = source.find(records)?;
    if is_volatile(name) || sent.is_array() || sent.is_object() || sent.is_null() {
        return None;
    }
    let [(_, read)] = named_members(records.get(step)?, name).try_into().ok()?;
    if is_alike(&sent, &read) {
        return Some(true);
    }
    let announced = named_members(records.get(*written)?, name);
    if announced.iter().any(|(_, value)| !is_alike(&sent, value)) {
        return None;
    }
    // A value of another type, such as a list of tags made from a text, is another form of it.
    let same_type = std::mem::discriminant(&sent) == std::mem::discriminant(&read);
    (same_type || read.is_null()).then_some(false)
}

/// The members of the results that are named like an argument, with their pointers.
fn named_members(record: &StepRecord, name: &str) -> Vec<(String, Value)> {
    let wanted = words(name);
    let named = |(pointer, name, value): (String, String, Value)| (words(&name) == wanted).then_some((pointer, value));
    let mut found: Vec<(String, Value)> = record.results().iter().flat_map(members).filter_map(named).collect();
    found.retain(|(_, value)| !value.is_object() && !value.is_array());
    found
}

/// Whether two values are the same but for the case and the punctuation of a text.
fn is_alike(left: &Value, right: &Value) -> bool {
    let letters =
        |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect() };
    match (left, right) {
        (Value::String(left), Value::String(right)) => letters(left) == letters(right),
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::String(text), Value::Number(number)) | (Value::Number(number), Value::String(text)) => {
            *text == number.to_string()
        }
        _ => left == right,
    }
}

/// Whether a list says that it is only a part, or looks like a page of a fixed size.
fn is_partial(record: &StepRecord) -> bool {
    let Some(last) = record.results().last() else { return true };
    let all = members(last);
    let says_so = all.iter().any(|(_, name, value)| {
        let words = words(name);
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
        let is_set = !matches!(value, Value::Null | Value::Bool(false)) && *value != "";
        is_set
            && (has(&["cursor", "more", "truncated"])
                || words == ["next"]
                || (has(&["next"]) && has(&["page", "token"])))
    });
    let longest = all.iter().filter_map(|(_, _, value)| value.as_array()).map(Vec::len).max().unwrap_or(0);
    let is_page = record.results().len() == 1 && longest >= 10 && longest % 5 == 0;
    says_so || is_page
}

/// Whether a later result shows what the earlier ones did.
fn same(earlier: &[usize], later: usize, values: &[StepSource], records: &[StepRecord]) -> Option<bool> {
    let before = earlier.iter().map(|step| records.get(*step)).collect::<Option<Vec<_>>>()?;
    let after = records.get(later)?;
    let all_served = before.iter().chain([&after]).all(|record| !record.results().is_empty());
    if !all_served {
        return None;
    }
    for source in values {
        let value = source.find(records)?;
        let counts: Vec<usize> = before.iter().map(|record| record.occurrences(&value)).collect();
        let is_stable = counts.windows(2).all(|pair| pair[0] == pair[1]);
        if is_stable && counts.first().is_some_and(|count| *count != after.occurrences(&value)) {
            return Some(false);
        }
    }
    let [first, second] = before.as_slice() else { return Some(true) };
    let read = |record: &StepRecord| record.results().iter().flat_map(members).collect::<Vec<_>>();
    let (second, after) = (read(second), read(after));
    let is_stable = |member: &&(String, String, Value)| {
        let (_, name, value) = member;
        !is_volatile(name) && !value.is_object() && !value.is_array() && second.contains(member)
    };
    let first = read(first);
    Some(first.iter().filter(is_stable).all(|member| after.contains(member)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::{Expectation, Place, SequenceStep};
    use serde_json::json;

    fn record(arguments: Value, structured: Option<Value>) -> StepRecord {
        let served = |structured| StepAnswer::Served(vec![json!({"content": [], "structuredContent": structured})]);
        StepRecord { arguments, answer: structured.map_or(StepAnswer::Refused, served), violated: Vec::new() }
    }

    fn id(step: usize) -> StepSource {
        StepSource::Result { step, place: Place::Member("/structuredContent/id".to_owned()) }
    }

    fn sent(step: usize, name: &str) -> StepSource {
        StepSource::Argument { step, name: name.to_owned() }
    }

    #[test]
    fn a_violation_needs_every_control() {
        let names = ["create_task", "delete_task", "get_task"];
        let step = |name: &str| SequenceStep { tool: name.to_owned(), arguments: json!({}), values: Vec::new() };
        let expectation = Expectation { claim: Claim::Refused(2), controls: vec![Claim::Served(1)], needs: vec![1] };
        let sequence = CallSequence { steps: names.map(step).to_vec(), expectation };
        let created = record(json!({}), Some(json!({"id": 1})));
        let deleted = record(json!({}), Some(json!({})));
        let refused = record(json!({}), None);
        let judge = |records: &[StepRecord]| sequence_violation(Oracle::DeletedServed, &sequence, records);
        let found = judge(&[created.clone(), deleted.clone(), created.clone()]).expect("it is served");
        assert_eq!(found.message, "it serves an object that delete_task has deleted");
        assert_eq!(judge(&[created.clone(), deleted.clone(), refused.clone()]), None);
        assert_eq!(judge(&[created.clone(), refused, created.clone()]), None, "it was not deleted");
        let missing = StepRecord { answer: StepAnswer::Missing, ..created.clone() };
        assert_eq!(judge(&[created, deleted, missing]), None, "there was no response");
    }

    #[test]
    fn a_value_is_kept_unless_the_only_member_of_its_name_has_another() {
        let created = |answer: Value| record(json!({"title": "Some Title", "size": 3}), Some(answer));
        let holds = |answer: Value, read: Value, name: &str| {
            super::holds(&Claim::Keeps(1, sent(0, name)), &[created(answer), record(json!({}), Some(read))])
        };
        let rows = [
            (json!({}), json!({"title": "Some Title"}), "title", Some(true)),
            (json!({}), json!({"title": "some-title"}), "title", Some(true)),
            (json!({}), json!({"title": "Some"}), "title", Some(false)),
            (json!({}), json!({"title": null}), "title", Some(false)),
            (json!({"title": "Some"}), json!({"title": "Some"}), "title", None),
            (json!({}), json!({"title": ["Some"]}), "title", None),
            (json!({}), json!({"a": {"title": "x"}, "b": {"title": "y"}}), "title", None),
            (json!({}), json!({"name": "x"}), "title", None),
            (json!({}), json!({"size": 3.0}), "size", Some(true)),
            (json!({}), json!({"size": 4}), "size", Some(false)),
        ];
        for (answer, read, name, expected) in rows {
            assert_eq!(holds(answer.clone(), read.clone(), name), expected, "{answer} {read}");
        }
    }

    #[test]
    fn a_part_of_a_list_does_not_show_that_something_is_missing() {
        let created = record(json!({}), Some(json!({"id": "t-9"})));
        let holds =
            |list: Value| super::holds(&Claim::Shows(1, id(0)), &[created.clone(), record(json!({}), Some(list))]);
        assert_eq!(holds(json!({"items": [{"id": "t-9"}], "nextCursor": "x"})), Some(true));
        assert_eq!(holds(json!({"items": [{"id": "t-1"}]})), Some(false));
        assert_eq!(holds(json!({"items": [{"id": "t-1"}], "nextCursor": null})), Some(false));
        assert_eq!(holds(json!({"items": [{"id": "t-1"}], "nextCursor": "x"})), None);
        assert_eq!(holds(json!({"items": vec![json!({"id": "t-1"}); 20]})), None);
    }

    #[test]
    fn clocks_counters_and_values_of_others_do_not_make_results_differ() {
        let created = record(json!({"title": "lemon"}), Some(json!({"id": "t-9"})));
        let claim = Claim::Same { earlier: vec![1, 2], later: 3, values: vec![id(0), sent(0, "title")] };
        let read = |value: Value| record(json!({}), Some(value));
        let holds = |first: Value, second: Value, third: Value| {
            super::holds(&claim, &[created.clone(), read(first), read(second), read(third)])
        };
        let plain = || json!({"id": "t-9", "title": "lemon", "done": false});
        assert_eq!(holds(plain(), plain(), plain()), Some(true));
        assert_eq!(holds(plain(), plain(), json!({"id": "t-9", "title": "lemon", "done": true})), Some(false));
        assert_eq!(holds(plain(), plain(), json!({"id": "t-9", "done": false})), Some(false));
        let noise = |number: i64| json!({"id": "t-9", "title": "lemon", "nonce": number, "viewCount": number});
        assert_eq!(holds(noise(1), noise(2), noise(3)), Some(true));
        let counted = |views: i64| json!({"id": "t-9", "title": "lemon", "viewCount": views});
        assert_eq!(holds(counted(1), counted(1), counted(2)), Some(true));
    }
}
