//! Malformed arguments: of another JSON type, of extreme size, or not JSON at all.
//!
//! They are bytes, because a parsed value would lose most of the defects: duplicate keys, numbers beyond
//! a double, halves of surrogate pairs.

use serde_json::Value;

use crate::raw_text::RawText;

/// A nesting depth beyond what parsers usually accept.
const DEEP: usize = 1_000;
/// The length of an extremely long key or string.
const LONG: usize = 1 << 20;

/// Makes malformed arguments from valid ones.
type Make = fn(&Value) -> RawText;

/// How far malformed arguments are from those of a valid request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grammar {
    /// An unusual JSON object, or none at all: a server may accept or reject it.
    Object,
    /// A JSON object that a parser need not accept: it may limit depth and the range of numbers, and half of a
    /// surrogate pair is not a character. A server may treat the whole message as unparsable.
    Beyond,
    /// JSON, but not an object: the request itself is invalid.
    OtherJson,
    /// Not JSON, so that the whole message cannot be parsed.
    NotJson,
}

/// Malformed arguments, to be inserted into a request as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The defect in a few words; unique.
    pub name: &'static str,
    /// How severe the defect is.
    pub grammar: Grammar,
    /// The bytes in place of the arguments; none if the whole member is left out. They never contain a line break, since
    /// transports split messages at line breaks.
    pub arguments: RawText,
}

impl Malformed {
    /// Every kind of malformed arguments.
    #[must_use]
    pub fn kinds() -> [MalformedKind; 19] {
        let kinds: [(&'static str, Grammar, Make); 19] = [
            ("absent", Grammar::Object, |_| Vec::new().into()),
            ("an array", Grammar::OtherJson, |_| b"[]".to_vec().into()),
            ("a string", Grammar::OtherJson, |_| b"\"arguments\"".to_vec().into()),
            ("a number", Grammar::OtherJson, |_| b"0".to_vec().into()),
            ("a boolean", Grammar::OtherJson, |_| b"true".to_vec().into()),
            ("null", Grammar::OtherJson, |_| b"null".to_vec().into()),
            ("an object in a string", Grammar::OtherJson, |valid| {
                Value::String(valid.to_string()).to_string().into_bytes().into()
            }),
            ("an object in an array", Grammar::OtherJson, |valid| format!("[{valid}]").into_bytes().into()),
            ("duplicate keys", Grammar::Object, |valid| duplicate(valid).into()),
            ("a key of a mebibyte", Grammar::Object, |valid| with_long_entry(valid, "\"", b'k', "\":0")),
            ("a string of a mebibyte", Grammar::Object, |valid| with_long_entry(valid, "\"long\":\"", b's', "\"")),
            ("a thousand levels", Grammar::Beyond, |valid| {
                let deep = format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP));
                with_entry(valid, "deep", &deep).into()
            }),
            ("a number beyond a double", Grammar::Beyond, |valid| with_entry(valid, "number", "1e400").into()),
            ("a number of a thousand digits", Grammar::Beyond, |valid| {
                with_entry(valid, "number", &"9".repeat(1_000)).into()
            }),
            ("half of a surrogate pair", Grammar::Beyond, |valid| with_entry(valid, "half", "\"\\ud800\"").into()),
            ("not a number", Grammar::NotJson, |valid| with_entry(valid, "number", "NaN").into()),
            ("a comma too many", Grammar::NotJson, |valid| with_entry(valid, "extra", "0,").into()),
            ("no UTF-8", Grammar::NotJson, |valid| {
                let mut bytes = with_entry(valid, "bytes", "\"?\"");
                let at = bytes.len() - 3;
                bytes[at] = 0xff;
                bytes.into()
            }),
            ("cut off", Grammar::NotJson, |valid| {
                let mut bytes = with_entry(valid, "cut", "\"off");
                bytes.pop();
                bytes.into()
            }),
        ];
        kinds.map(|(name, grammar, make)| MalformedKind { name, grammar, make })
    }

    /// Malformed arguments of every kind, derived from valid ones so that a tool's own names help them
    /// past the first checks. Deterministic for the same `valid`.
    pub fn all(valid: &Value) -> impl Iterator<Item = Self> + '_ {
        Self::kinds().into_iter().map(|kind| kind.of(valid))
    }
}

/// A kind of malformed arguments, which makes them on demand: some are very large.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MalformedKind {
    /// The defect in a few words; unique.
    pub name: &'static str,
    /// How severe the defect is.
    pub grammar: Grammar,
    make: Make,
}

impl MalformedKind {
    /// Malformed arguments of this kind, derived from valid ones.
    #[must_use]
    pub fn of(&self, valid: &Value) -> Malformed {
        Malformed { name: self.name, grammar: self.grammar, arguments: (self.make)(valid) }
    }
}

/// The valid arguments as text with one more entry, whose value is inserted as it is.
fn with_entry(valid: &Value, key: &str, value: &str) -> Vec<u8> {
    format!("{}\"{key}\":{value}}}", opened(valid)).into_bytes()
}

/// The valid arguments as text with one more entry, in the middle of which a character is repeated.
fn with_long_entry(valid: &Value, before: &str, repeated: u8, after: &str) -> RawText {
    RawText::with_repeated(format!("{}{before}", opened(valid)), repeated, LONG, format!("{after}}}"))
}

/// The valid arguments as text up to where one more entry may follow.
fn opened(valid: &Value) -> String {
    let mut text = match valid {
        Value::Object(entries) if !entries.is_empty() => valid.to_string(),
        _ => return "{".to_owned(),
    };
    // The last brace closes the arguments themselves.
    text.pop();
    text.push(',');
    text
}

/// The valid arguments with their first entry repeated with another value.
fn duplicate(valid: &Value) -> Vec<u8> {
    let Some(first) = valid.as_object().and_then(|entries| entries.keys().next()) else {
        return b"{\"key\":0,\"key\":null}".to_vec();
    };
    let quoted = Value::from(first.as_str()).to_string();
    let escaped = quoted.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
    with_entry(valid, escaped.unwrap_or(first), "null")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_has_the_defect_that_it_names() {
        for valid in [json!({}), json!({"a\"b": {"c": {}}, "n": 1})] {
            let mut names = HashSet::new();
            for malformed in Malformed::all(&valid) {
                let name = malformed.name;
                assert!(names.insert(name), "{name} twice");
                let bytes = malformed.arguments.bytes();
                assert!(!bytes.contains(&b'\n'), "{name}");
                let text = std::str::from_utf8(&bytes);
                let balanced = |text: &str| text.matches('{').count() == text.matches('}').count();
                match malformed.grammar {
                    Grammar::Object if name == "absent" => assert!(malformed.arguments.is_empty()),
                    Grammar::Object | Grammar::Beyond => {
                        let text = text.expect("text");
                        assert!(text.starts_with('{') && text.ends_with('}'), "{name}");
                        assert!(balanced(text), "{name}: {text}");
                    }
                    Grammar::OtherJson => {
                        let value: Value = serde_json::from_slice(&bytes).expect("JSON of another kind");
                        assert!(!value.is_object(), "{name}");
                    }
                    Grammar::NotJson => {
                        assert!(serde_json::from_slice::<Value>(&bytes).is_err(), "{name}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_duplicate_key_is_the_first_one_of_the_tool() {
        let valid = json!({"path": "/a", "n": {"m": 1}});
        assert_eq!(
            String::from_utf8(duplicate(&valid)).as_deref(),
            Ok("{\"path\":\"/a\",\"n\":{\"m\":1},\"path\":null}")
        );
    }
}
