//! Why a schema cannot be used.

use thiserror::Error;

/// Why a schema cannot be used at all.
///
/// # Examples
///
/// ```
/// use mcp_conformance::fuzz::{Dialect, SchemaError, ToolSchema};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"size": {"type": "int"}}});
/// match ToolSchema::compile(&schema, Dialect::Draft202012) {
///     Err(SchemaError::Invalid { pointer, .. }) => assert!(pointer.starts_with("/properties/size"), "{pointer}"),
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The schema is invalid in its own dialect.
    #[error("read the schema at {pointer:?}: {message}")]
    Invalid {
        /// Where in the schema, as a JSON pointer.
        pointer: String,
        /// The error of the meta-schema or of the reference resolver.
        message: String,
    },
    /// `$schema` names an unknown dialect.
    #[error("recognise the dialect {uri:?} that $schema names")]
    UnknownDialect {
        /// The URI as written.
        uri: String,
    },
    /// A `$ref` leads out of the document. Nothing is ever fetched.
    #[error("resolve {uri:?}: references out of the schema are not followed")]
    RemoteReference {
        /// The URI as resolved.
        uri: String,
    },
    /// The schema nests too deeply.
    #[error("read a schema nested more than {limit} levels deep")]
    TooDeep {
        /// How deep a schema may be.
        limit: usize,
    },
    /// The schema is too large.
    #[error("read a schema of more than {limit} {what}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The maximum.
        limit: usize,
    },
    /// References multiply, so that checking a single value would take exponential time.
    #[error("read a schema whose references multiply beyond any reasonable count")]
    Multiplies,
}
