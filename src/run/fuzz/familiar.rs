//! Answers that came before in the same words: what was found out about one holds for the next.
//!
//! A server says few different things. An answer is known again by its bytes, all but those of its id, and then
//! neither parsed nor judged a second time. That is right for what follows from those bytes alone; where the
//! arguments have a say as well, as in an echo, or where something is wrong, the answer is looked at as if it were new.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::Value;

use crate::check::fuzz::{Call, Rank, Subject, echoes, is_in_order, kind_of};
use crate::event::CallOutcome;
use crate::wire::Kind;

/// How many answers are known, and how long they may be.
const ANSWERS: usize = 16;
const LONGEST: usize = 4 << 10;
/// How many answers are remembered as such that came once.
const ONCE: usize = 64;
/// How many digits an id has at most.
const DIGITS: usize = 18;

/// What is known of an answer.
#[derive(Debug)]
pub(super) struct Met {
    /// The answer, under the id that it had when it was learnt.
    pub(super) message: Value,
    pub(super) outcome: CallOutcome,
    /// What it looks like, as [`class_of`](crate::check::fuzz::class_of) says it.
    pub(super) class: String,
    /// The words out of which ours would be taken.
    said: Option<String>,
}

/// An answer by its bytes.
struct Answer {
    before_id: Vec<u8>,
    after_id: Vec<u8>,
    id: i64,
    met: Arc<Met>,
    /// Whether it is in order, by [`Rank`], as far as that was asked.
    in_order: [Option<bool>; Rank::COUNT],
    /// How often it came lately.
    hits: u32,
}

/// The answers of a tool that are known.
pub(super) struct Familiar<'a> {
    subject: &'a Subject,
    answers: Vec<Answer>,
    /// What came once, as hashes: what never comes again is not worth the work of learning it.
    once: [u64; ONCE],
}

impl<'a> Familiar<'a> {
    pub(super) fn of(subject: &'a Subject) -> Self {
        Self { subject, answers: Vec::new(), once: [0; ONCE] }
    }

    /// Whose answers these are.
    pub(super) fn subject(&self) -> &'a Subject {
        self.subject
    }

    /// The known answer that a line is, by its position, and the id that it came under.
    pub(super) fn find(&mut self, line: &[u8]) -> Option<(usize, i64)> {
        self.answers.iter_mut().enumerate().find_map(|(at, answer)| {
            let rest = line.strip_prefix(answer.before_id.as_slice())?;
            let digits = rest.strip_suffix(answer.after_id.as_slice())?;
            let id = number(digits)?;
            answer.hits = answer.hits.saturating_add(1);
            Some((at, id))
        })
    }

    /// What is known of an answer, where that is all there is to say of it as the answer to this call.
    pub(super) fn met(&mut self, at: usize, call: &Call) -> Option<&Arc<Met>> {
        let rank = Rank::of(&call.standing)?;
        let answer = &mut self.answers[at];
        let subject = self.subject;
        let in_order = *answer.in_order[rank as usize]
            .get_or_insert_with(|| is_in_order(subject, &answer.met.message, answer.id, rank));
        let is_all = in_order && answer.met.said.as_ref().is_none_or(|said| !echoes(said, &call.arguments));
        is_all.then_some(&answer.met)
    }

    /// Learns a response that comes for the second time.
    pub(super) fn learn(&mut self, line: &[u8], message: &Value) {
        if line.len() > LONGEST || !matches!(Kind::of(message), Kind::Response { .. }) {
            return;
        }
        let Some(id) = message.get("id").and_then(Value::as_i64).filter(|id| *id > 0) else { return };
        let Some((before, after)) = around(line, id) else { return };
        let hash = {
            let mut hasher = DefaultHasher::new();
            (before, after).hash(&mut hasher);
            hasher.finish()
        };
        let place = &mut self.once[usize::try_from(hash % ONCE as u64).unwrap_or(0)];
        if *place != hash {
            *place = hash;
            return;
        }
        if self.answers.iter().any(|known| known.before_id == before && known.after_id == after) {
            return;
        }
        if !is_place_of_id(before, after, message, id) {
            return;
        }
        let (outcome, class, said) = kind_of(message);
        if outcome == CallOutcome::Malformed {
            return;
        }
        let answer = Answer {
            before_id: before.to_vec(),
            after_id: after.to_vec(),
            id,
            met: Arc::new(Met { message: message.clone(), outcome, class, said }),
            in_order: [None; Rank::COUNT],
            hits: 0,
        };
        if self.answers.len() < ANSWERS {
            self.answers.push(answer);
        } else if let Some(rarest) = self.answers.iter_mut().min_by_key(|known| known.hits) {
            *rarest = answer;
            self.answers.iter_mut().for_each(|known| known.hits /= 2);
        }
    }
}

/// What stands before and after the first place where an id is said.
fn around(line: &[u8], id: i64) -> Option<(&[u8], &[u8])> {
    const KEY: &[u8] = b"\"id\":";
    let at = memchr::memmem::find(line, KEY)? + KEY.len();
    let at = at + line[at..].iter().take_while(|byte| **byte == b' ').count();
    let after = line[at..].strip_prefix(id.to_string().as_bytes())?;
    Some((&line[..at], after))
}

/// Whether a message with another id between these bytes is the same message under that id: an id may stand further
/// down as well, or in a text.
fn is_place_of_id(before: &[u8], after: &[u8], message: &Value, id: i64) -> bool {
    let other = id + 1;
    let line = [before, other.to_string().as_bytes(), after].concat();
    let mut expected = message.clone();
    expected["id"] = other.into();
    serde_json::from_slice::<Value>(&line).is_ok_and(|read| read == expected)
}

/// A whole number as JSON writes it.
fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > DIGITS || digits[0] == b'0' {
        return None;
    }
    digits.iter().try_fold(0_i64, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::fuzz::{Arguments, Standing};
    use crate::spec::Revision;
    use crate::verdict::CallKind;
    use serde_json::json;

    fn call(standing: Standing, arguments: Value) -> Call {
        Call { kind: CallKind::Valid, standing, arguments: Arguments::Json(arguments), tape: None }
    }

    fn learnt(familiar: &mut Familiar<'_>, line: &str) {
        let message = serde_json::from_str(line).expect("it is JSON");
        familiar.learn(line.as_bytes(), &message);
        familiar.learn(line.as_bytes(), &message);
    }

    #[test]
    fn an_answer_is_known_again_under_another_id_and_only_so() {
        let subject = Subject::new(&json!({"name": "t"}), Revision::V2025_11_25, Vec::new());
        let mut familiar = Familiar::of(&subject);
        let line =
            r#"{"jsonrpc":"2.0","id": 12,"result":{"content":[{"type":"text","text":"no Ulm"}],"isError":true}}"#;
        learnt(&mut familiar, line);
        assert_eq!(familiar.find(line.replace("12", "345").as_bytes()), Some((0, 345)));
        for other in ["012", "1e2", "\\\"12\\\"", "-12", "", "12.0"] {
            assert_eq!(familiar.find(line.replace("12", other).as_bytes()), None, "{other}");
        }
        assert_eq!(familiar.find(line.replace("Ulm", "Bonn").as_bytes()), None);
        assert!(familiar.met(0, &call(Standing::Valid, json!({"city": "Bern"}))).is_some());
        // The words are those of the call, so that they are taken out of what the answer looks like.
        assert!(familiar.met(0, &call(Standing::Valid, json!({"city": "Ulm"}))).is_none());
    }

    #[test]
    fn what_is_wrong_is_looked_at_each_time_and_an_id_elsewhere_is_none() {
        let subject = Subject::new(&json!({"name": "t"}), Revision::V2025_11_25, Vec::new());
        let mut familiar = Familiar::of(&subject);
        learnt(&mut familiar, r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"oops"}}"#);
        assert!(familiar.met(0, &call(Standing::Valid, json!({}))).is_none());
        let mut familiar = Familiar::of(&subject);
        learnt(&mut familiar, r#"{"result":{"content":[],"structuredContent":{"id":5}},"id":5}"#);
        assert!(familiar.answers.is_empty());
        let mut once = Familiar::of(&subject);
        once.learn(br#"{"id":5,"result":{}}"#, &json!({"id": 5, "result": {}}));
        assert!(once.answers.is_empty());
    }
}
