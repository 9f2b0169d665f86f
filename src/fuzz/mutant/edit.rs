//! A variation of the value to which a subschema applies.

use serde_json::Value;

/// Another value in place of a valid one, and the mutant that it may tell from the schema.
#[derive(Debug, Clone)]
pub(super) struct Edit {
    /// The name of the mutant in the catalogue.
    pub(super) mutant: &'static str,
    pub(super) value: Value,
}

/// Edits of one kind, the most telling first.
pub(super) type Edits = Vec<Edit>;

/// An edit that replaces the value by this one.
pub(super) fn edit(mutant: &'static str, value: impl Into<Value>) -> Edit {
    Edit { mutant, value: value.into() }
}
