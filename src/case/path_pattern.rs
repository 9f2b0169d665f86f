//! Path patterns: JSON pointers in which `*` matches each member or item, and a leading `**` matches at any depth.

use std::str::FromStr;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::json_pointer::{self, unescape};

/// The members that `**` does not descend into: they contain data of tools, not of the protocol.
const OPAQUE: [&str; 6] = ["inputSchema", "outputSchema", "structuredContent", "toolResult", "arguments", "_meta"];

/// A JSON pointer whose tokens may be `*`, and the first of them `**`.
///
/// # Examples
/// ```
/// use mcp_conformance::internals::case::PathPattern;
/// use serde_json::json;
///
/// let place: PathPattern = "/tools/*/name".parse().expect("a path");
/// let list = json!({"tools": [{"name": "echo"}, {"title": "no name"}]});
/// assert_eq!(place.find(&list), [("/tools/0/name".to_owned(), &json!("echo"))]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    anywhere: bool,
    tokens: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Each,
    Name(String),
}

/// Why a string is not a path pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathPatternError {
    /// It does not begin with `/`.
    #[error("the path `{0}` does not begin with `/`")]
    NoSlash(String),
    /// A `~` is not an escape.
    #[error("a `~` in the path `{0}` is followed by neither 0 (for `~`) nor 1 (for `/`)")]
    BadEscape(String),
    /// A `**` is not at the beginning, or alone.
    #[error("`**` in the path `{0}` is not at its beginning with a name after it")]
    AnyDepth(String),
}

impl PathPattern {
    /// The pattern as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Everything in `value` that the pattern matches, with its pointer, in document order.
    ///
    /// `**` does not descend into the data of tools: `inputSchema`, `outputSchema`,
    /// `structuredContent`, `toolResult`, `arguments`, `_meta` itself, and the `data` of `params` and `error`.
    #[must_use]
    pub fn find<'a>(&self, value: &'a Value) -> Vec<(String, &'a Value)> {
        let mut found = Vec::new();
        if self.anywhere {
            self.search("", "", value, &mut found);
        } else {
            descend(&self.tokens, String::new(), value, &mut found);
        }
        found
    }

    fn search<'a>(&self, path: &str, name: &str, value: &'a Value, found: &mut Vec<(String, &'a Value)>) {
        descend(&self.tokens, path.to_owned(), value, found);
        match value {
            Value::Object(members) => {
                for (member, inner) in members {
                    let opaque =
                        OPAQUE.contains(&member.as_str()) || matches!(name, "params" | "error") && member == "data";
                    if !opaque {
                        self.search(&json_pointer::join(path, member), member, inner, found);
                    }
                }
            }
            Value::Array(items) => {
                for (index, inner) in items.iter().enumerate() {
                    self.search(&format!("{path}/{index}"), "", inner, found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn descend<'a>(tokens: &[Token], path: String, value: &'a Value, found: &mut Vec<(String, &'a Value)>) {
    let Some((token, rest)) = tokens.split_first() else {
        found.push((path, value));
        return;
    };
    match (token, value) {
        (Token::Each, Value::Object(members)) => {
            for (member, inner) in members {
                descend(rest, json_pointer::join(&path, member), inner, found);
            }
        }
        (Token::Each, Value::Array(items)) => {
            for (index, inner) in items.iter().enumerate() {
                descend(rest, format!("{path}/{index}"), inner, found);
            }
        }
        (Token::Name(name), Value::Object(members)) => {
            if let Some(inner) = members.get(name) {
                descend(rest, json_pointer::join(&path, name), inner, found);
            }
        }
        (Token::Name(name), Value::Array(items)) => {
            if let Some(inner) = name.parse().ok().and_then(|index: usize| items.get(index)) {
                descend(rest, format!("{path}/{name}"), inner, found);
            }
        }
        (_, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {}
    }
}

impl FromStr for PathPattern {
    type Err = PathPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let place = || text.to_owned();
        if text.is_empty() {
            return Ok(Self { text: place(), anywhere: false, tokens: Vec::new() });
        }
        let rest = text.strip_prefix('/').ok_or_else(|| PathPatternError::NoSlash(place()))?;
        let mut names = rest.split('/').peekable();
        let anywhere = names.next_if_eq(&"**").is_some();
        if anywhere && names.peek().is_none() {
            return Err(PathPatternError::AnyDepth(place()));
        }
        let tokens = names.map(|token| match token {
            "**" => Err(PathPatternError::AnyDepth(place())),
            "*" => Ok(Token::Each),
            _ if token.split('~').skip(1).any(|after| !after.starts_with(['0', '1'])) => {
                Err(PathPatternError::BadEscape(place()))
            }
            _ => Ok(Token::Name(unescape(token))),
        });
        Ok(Self { tokens: tokens.collect::<Result<_, _>>()?, text: place(), anywhere })
    }
}

impl<'de> Deserialize<'de> for PathPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(place: &str, value: &Value) -> Vec<String> {
        let place: PathPattern = place.parse().expect("a path");
        place.find(value).into_iter().map(|(pointer, _)| pointer).collect()
    }

    #[test]
    fn a_star_matches_each_member_or_item() {
        let value = json!({"a": [{"b": 1}, {"c": 2}, {"b": 3}], "d/e": {"b": 4}});
        assert_eq!(found("/a/*/b", &value), ["/a/0/b", "/a/2/b"]);
        assert_eq!(found("/*/b", &value), ["/d~1e/b"]);
        assert_eq!(found("/a/1/c", &value), ["/a/1/c"]);
        assert_eq!(found("/d~1e/*", &value), ["/d~1e/b"]);
        assert_eq!(found("", &value), [""]);
        assert!(found("/a/b/*", &value).is_empty());
    }

    #[test]
    fn two_stars_match_at_any_depth_except_in_the_data_of_tools() {
        let value = json!({
            "_meta": {"_meta": 1},
            "tools": [{"_meta": 2, "inputSchema": {"_meta": 3}}],
            "structuredContent": {"_meta": 4},
            "params": {"data": {"_meta": 5}},
            "data": {"_meta": 6},
        });
        assert_eq!(found("/**/_meta", &value), ["/_meta", "/tools/0/_meta", "/data/_meta"]);
        assert_eq!(found("/**/inputSchema/_meta", &value), ["/tools/0/inputSchema/_meta"]);
    }

    #[test]
    fn an_invalid_pattern_is_rejected() {
        assert!(matches!("tools/*".parse::<PathPattern>(), Err(PathPatternError::NoSlash(_))));
        assert!(matches!("/a~2".parse::<PathPattern>(), Err(PathPatternError::BadEscape(_))));
        assert!(matches!("/a~".parse::<PathPattern>(), Err(PathPatternError::BadEscape(_))));
        assert!(matches!("/a/**/b".parse::<PathPattern>(), Err(PathPatternError::AnyDepth(_))));
        assert!(matches!("/**".parse::<PathPattern>(), Err(PathPatternError::AnyDepth(_))));
    }
}
