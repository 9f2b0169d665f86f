//! The JSON Schema dialects: which drafts are supported, and which one a schema declares.

use jsonschema::Draft;
use serde_json::Value;

/// A supported version of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// Draft 4.
    Draft4,
    /// Draft 6.
    Draft6,
    /// Draft 7.
    Draft7,
    /// 2019-09.
    Draft201909,
    /// 2020-12, the default of newer MCP revisions.
    Draft202012,
}

impl Dialect {
    /// The dialect that a `$schema` URI names, whether written with `http`, `https` or an empty
    /// fragment.
    #[must_use]
    pub fn from_uri(uri: &str) -> Option<Self> {
        let name = uri.strip_suffix('#').unwrap_or(uri).trim_end_matches('/').strip_prefix("http")?;
        match name.strip_prefix('s').unwrap_or(name) {
            "://json-schema.org/draft-04/schema" => Some(Self::Draft4),
            "://json-schema.org/draft-06/schema" => Some(Self::Draft6),
            "://json-schema.org/draft-07/schema" => Some(Self::Draft7),
            "://json-schema.org/draft/2019-09/schema" => Some(Self::Draft201909),
            "://json-schema.org/draft/2020-12/schema" => Some(Self::Draft202012),
            _ => None,
        }
    }

    /// The dialect that `schema` declares, or `default` if it declares none; the error is an unknown
    /// URI.
    pub(super) fn of(schema: &Value, default: Self) -> Result<Self, &str> {
        match schema.get("$schema").and_then(Value::as_str) {
            Some(uri) => Self::from_uri(uri).ok_or(uri),
            None => Ok(default),
        }
    }

    pub(super) fn draft(self) -> Draft {
        match self {
            Self::Draft4 => Draft::Draft4,
            Self::Draft6 => Draft::Draft6,
            Self::Draft7 => Draft::Draft7,
            Self::Draft201909 => Draft::Draft201909,
            Self::Draft202012 => Draft::Draft202012,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_declared_dialect_wins_over_the_default() {
        let seventh = json!({"$schema": "http://json-schema.org/draft-07/schema#"});
        assert_eq!(Dialect::of(&seventh, Dialect::Draft202012), Ok(Dialect::Draft7));
        assert_eq!(Dialect::of(&json!({}), Dialect::Draft6), Ok(Dialect::Draft6));
        let unknown = json!({"$schema": "https://example.com/meta"});
        assert_eq!(Dialect::of(&unknown, Dialect::Draft7), Err("https://example.com/meta"));
    }
}
