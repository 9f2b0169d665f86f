//! A JSON Schema of a case, compiled when it is first used.
//!
//! Most runs use only some of the cases. That each schema compiles is checked when a case of the user's is loaded, and by
//! a test for the embedded ones.

use std::fmt;
use std::sync::{Arc, OnceLock};

use jsonschema::{Draft, ValidationError, Validator};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::constrained_types::JsonTypes;
use super::format::with_formats;

/// A JSON Schema (2020-12; formats are asserted, including the additional ones).
///
/// # Examples
/// ```
/// use mcp_conformance::internals::case::LazySchema;
/// use serde_json::json;
///
/// let pattern = LazySchema::new(json!({"type": "string", "format": "base64"}));
/// assert!(pattern.fits(&json!("AAAA")));
/// assert!(!pattern.fits(&json!("AAA")));
/// ```
#[derive(Clone)]
pub struct LazySchema(Arc<Inner>);

struct Inner {
    schema: Value,
    compiled: OnceLock<Validator>,
    constrained: OnceLock<JsonTypes>,
}

impl LazySchema {
    /// Takes a schema without compiling it.
    #[must_use]
    pub fn new(schema: Value) -> Self {
        Self(Arc::new(Inner { schema, compiled: OnceLock::new(), constrained: OnceLock::new() }))
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.0.schema
    }

    /// The compiled schema.
    ///
    /// # Panics
    /// When the schema does not compile, which loading a case or a test rules out.
    #[must_use]
    pub fn validator(&self) -> &Validator {
        self.0.compiled.get_or_init(|| {
            compile(&self.0.schema).expect("the loader or a test has checked that each schema compiles")
        })
    }

    /// Whether `value` is valid against the schema.
    ///
    /// # Panics
    /// As [`LazySchema::validator`] does.
    #[must_use]
    pub fn fits(&self, value: &Value) -> bool {
        self.validator().is_valid(value)
    }

    /// Whether the schema says anything about values of this type: one that has only keywords for objects, negated or
    /// not, says nothing about `null` or a string.
    #[must_use]
    pub fn constrains(&self, value: &Value) -> bool {
        self.0.constrained.get_or_init(|| JsonTypes::constrained_by(&self.0.schema)).include(value)
    }
}

impl fmt::Debug for LazySchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LazySchema").field(&self.0.schema).finish()
    }
}

impl PartialEq for LazySchema {
    fn eq(&self, other: &Self) -> bool {
        self.0.schema == other.0.schema
    }
}

impl<'de> Deserialize<'de> for LazySchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::new)
    }
}

/// Compiles a schema of a case.
pub(super) fn compile(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    with_formats(jsonschema::options())
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .should_ignore_unknown_formats(false)
        .build(schema)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn formats_are_asserted_and_unknown_ones_rejected() {
        let pattern = LazySchema::new(json!({"format": "date-time"}));
        assert!(pattern.fits(&json!("2025-01-12T15:00:58Z")));
        assert!(!pattern.fits(&json!("yesterday")));
        assert!(compile(&json!({"format": "base65"})).is_err());
    }
}
