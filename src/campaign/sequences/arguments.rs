//! Makes the arguments of the calls of sequences: texts and numbers that are found again in later results.

use serde_json::{Map, Value};

use crate::campaign::calls::tools::FuzzTools;
use crate::sequence::{ParameterType, Role, SequenceTool};

/// The beginning of every text that sequences write, so that whoever finds it knows where it comes from.
const WORD: &str = "sample";

/// How many of the optional arguments of a tool are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    /// All texts and numbers.
    All,
    /// None, and texts where they are required.
    Required,
    /// The arguments with which the tool succeeded in discovery, or the smallest ones.
    Plain,
}

/// Makes arguments. A seed determines them.
#[derive(Debug)]
pub(super) struct ArgumentMaker {
    /// Counts the values, so that no two are the same.
    next: u64,
    seed: u64,
}

impl ArgumentMaker {
    pub(super) fn new(seed: u64) -> Self {
        Self { next: 0, seed }
    }

    /// A number that a seed determines, and that does not repeat.
    fn draw(&mut self) -> u64 {
        self.next += 1;
        // The numbers of a permutation of 64 bits are all different.
        let mut mixed = self.seed.wrapping_add(self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 27)
    }

    /// A text of lower-case letters that no other call has sent.
    pub(super) fn word(&mut self) -> String {
        let mut number = self.draw();
        let letter = |_| {
            let letter = char::from(b'a' + u8::try_from(number % 26).unwrap_or(0));
            number /= 26;
            letter
        };
        format!("{WORD}{}", (0..6).map(letter).collect::<String>())
    }

    /// The arguments for a tool; those in `fixed` are given. `None` if the schema allows none of that kind.
    pub(super) fn arguments(
        &mut self,
        tools: &FuzzTools,
        tool: usize,
        view: &SequenceTool,
        amount: Amount,
        fixed: &Map<String, Value>,
    ) -> Option<Value> {
        let schema = tools.schema(tool)?;
        let plain = tools.get(tool).working_arguments.clone();
        let plain = plain.or_else(|| schema.minimal().ok()).filter(Value::is_object)?;
        let mut arguments = plain.as_object()?.clone();
        if amount != Amount::Plain {
            // What a hint or an earlier result gave may be optional and not fit to the object.
            let is_required = |name: &str| view.parameter(name).is_none_or(|parameter| parameter.is_required);
            arguments.retain(|name, _| is_required(name));
        }
        for (name, value) in fixed {
            arguments.insert(name.clone(), value.clone());
        }
        for parameter in view.parameters.iter().filter(|parameter| !fixed.contains_key(&parameter.name)) {
            let is_sent = match amount {
                Amount::All => true,
                Amount::Required => parameter.is_required,
                Amount::Plain => false,
            };
            // A path has to be one that the server may access: a new one next to a known one.
            let path = arguments.get(&parameter.name).and_then(Value::as_str).filter(|text| text.contains('/'));
            let values = match path {
                Some(path) if view.role == Some(Role::Create) => vec![self.path_next_to(path).into()],
                Some(_) => Vec::new(),
                None => self.values(parameter.kind),
            };
            if !is_sent {
                continue;
            }
            let fitting = values.into_iter().find_map(|value| {
                let mut changed = arguments.clone();
                changed.insert(parameter.name.clone(), value);
                schema.is_valid(&Value::Object(changed.clone())).then_some(changed)
            });
            arguments = fitting.unwrap_or(arguments);
        }
        let arguments = Value::Object(arguments);
        schema.is_valid(&arguments).then_some(arguments)
    }

    /// A new path in the folder of a file, or in a folder.
    fn path_next_to(&mut self, path: &str) -> String {
        let (folder, name) = path.rsplit_once('/').unwrap_or_default();
        let is_file = name.contains('.');
        format!("{}/{}.txt", if is_file { folder } else { path.trim_end_matches('/') }, self.word())
    }

    /// Values to try for an argument.
    fn values(&mut self, kind: ParameterType) -> Vec<Value> {
        match kind {
            ParameterType::Text { is_free: true } => vec![self.word().into()],
            ParameterType::Integer | ParameterType::Number => {
                let number = self.draw();
                vec![(number % 90 + 10).into(), (number % 8 + 2).into(), (number % 3).into()]
            }
            ParameterType::Text { is_free: false } | ParameterType::Other => Vec::new(),
        }
    }
}

/// Whether a value is new: a call of a sequence made it up.
pub(super) fn is_new(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains(WORD))
}

/// A value of the same shape that no call has returned: each letter and digit is another one.
pub(super) fn made_up(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) => Some((number.as_i64()?.checked_add(1_000_003)?).into()),
        Value::String(text) => {
            // The beginning of a path or of an identifier says what it is.
            let fixed = text.rfind(['/', '-', '_', ':', '.']).map_or(0, |at| at + 1);
            let is_short = text[fixed..].chars().filter(char::is_ascii_alphanumeric).count() < 3;
            let changed = |c: char| match c {
                '0'..='8' | 'a'..='e' | 'A'..='E' | 'g'..='y' | 'G'..='Y' => {
                    char::from(u8::try_from(c).unwrap_or(b'0') + 1)
                }
                '9' => '0',
                'f' | 'z' => 'a',
                'F' | 'Z' => 'A',
                other => other,
            };
            let mut made: String = text[..fixed].to_owned();
            made.extend(text[fixed..].chars().map(changed));
            if made == *text {
                return None;
            }
            if is_short {
                // `t-1` becomes `t-2`, which the server may well have made.
                made.push_str("907");
            }
            Some(made.into())
        }
        _ => None,
    }
}

/// Replaces the texts that a sequence writes by new ones, so that it can be repeated on a server that keeps them.
pub(super) fn with_new_words(value: &Value, maker: &mut ArgumentMaker, renamed: &mut Vec<(String, String)>) -> Value {
    match value {
        Value::String(text) => {
            let Some(at) = text.find(WORD) else { return value.clone() };
            let end = text[at..].find(|c: char| !c.is_ascii_lowercase()).map_or(text.len(), |length| at + length);
            let old = &text[at..end];
            let known = renamed.iter().find(|(from, _)| from == old).map(|(_, to)| to.clone());
            let new = known.unwrap_or_else(|| {
                let new = maker.word();
                renamed.push((old.to_owned(), new.clone()));
                new
            });
            Value::String(text.replacen(old, &new, 1))
        }
        Value::Array(items) => items.iter().map(|item| with_new_words(item, maker, renamed)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), with_new_words(member, maker, renamed)))
            .collect::<Map<String, Value>>()
            .into(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn made_up_values_have_the_same_shape_and_are_others() {
        let rows = [
            (json!("prj_8f"), json!("prj_9a907")),
            (json!("t-17"), json!("t-28907")),
            (json!("3f2b9c00"), json!("4a3c0d11")),
            (json!("/data/notes.txt"), json!("/data/notes.uyu")),
            (json!(7), json!(1_000_010)),
        ];
        for (value, expected) in rows {
            assert_eq!(made_up(&value), Some(expected), "{value}");
        }
        assert_eq!(made_up(&json!(i64::MAX)), None);
        assert_eq!(made_up(&json!("--")), None);
    }

    #[test]
    fn words_never_repeat_and_are_renamed_alike_in_all_arguments() {
        let mut maker = ArgumentMaker::new(7);
        let (first, second) = (maker.word(), maker.word());
        assert_ne!(first, second);
        assert_eq!(ArgumentMaker::new(7).word(), first);
        for (known, folder) in [("/data/notes.txt", "/data/"), ("/data", "/data/"), ("/data/", "/data/")] {
            let path = maker.path_next_to(known);
            assert!(path.starts_with(&format!("{folder}{WORD}")) && is_new(&path.into()), "{known}");
        }
        let mut renamed = Vec::new();
        let before = json!({"path": format!("/data/{first}.txt"), "names": [first, second], "kept": "plain"});
        let after = with_new_words(&before, &mut maker, &mut renamed);
        assert_eq!(renamed.len(), 2);
        assert_eq!(after["path"], format!("/data/{}.txt", renamed[0].1));
        assert_eq!(after["names"], json!([renamed[0].1, renamed[1].1]));
        assert_eq!(after["kept"], "plain");
    }
}
