//! Generates arguments for tools from their inputSchema.
//!
//! Compiles schemas (which may be hostile), generates valid instances and instances that violate
//! exactly one constraint, enumerates boundaries, and shrinks failing instances. Knows nothing of
//! servers: nothing here sends, waits or judges a response, and no reference out of a schema is ever
//! fetched.
//!
//! ```text
//! inputSchema ── limits ── canonical form ── plan ─┐
//!                              │                   ├── Generator ── instance, checked to be in its class
//!                difference without a constraint ─ plan ┘    ▲
//!                                              Source: seed, choice sequence, bytes, or forced decisions
//! ```
//!
//! [`ToolSchema`] compiles a schema; [`ToolSchema::valid`] and [`ToolSchema::violating`] give a
//! [`Generator`] for one class of instances; a [`Source`] makes its choices. [`CoverageGoal`]s
//! enumerate boundaries, and a [`Shrinker`] minimizes a failing instance without leaving its class.
//! [`Malformed`] arguments are outside of every schema, [`handler_arguments`] within it and rarely expected. [`telling_arguments`] are those on which wrong validators and the
//! schema differ.
//!
//! # Examples
//!
//! ```
//! use mcp_conformance::fuzz::{Dialect, Random, ToolSchema};
//! use serde_json::json;
//!
//! let schema = json!({
//!     "type": "object",
//!     "properties": {"count": {"type": "integer", "maximum": 10}},
//!     "required": ["count"]
//! });
//! let schema = ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema");
//! assert_eq!(schema.minimal(), Ok(json!({"count": 0})));
//!
//! let mut random = Random::new(42);
//! assert!(schema.is_valid(&schema.generate(&mut random).expect("some arguments")));
//!
//! for constraint in schema.constraints() {
//!     let generator = schema.violating(&constraint).expect("each keyword has an effect");
//!     let invalid = generator.generate(&mut random).expect("invalid arguments");
//!     assert!(!schema.is_valid(&invalid), "{invalid} does not violate {constraint}");
//! }
//! ```

mod array;
mod asked_time;
mod compile;
mod constraint;
mod coverage;
mod dialect;
mod edit;
mod expansion;
mod format;
mod generate;
mod generator;
mod handler;
mod hint;
mod instance_path;
mod limit;
mod malformed;
mod mutant;
mod number;
mod object;
mod pattern;
mod plan;
#[cfg(test)]
mod property_tests;
mod schema;
mod schema_error;
mod shrink;
mod source;
mod splice;
#[cfg(feature = "proptest")]
mod strategy;
mod string;

pub(crate) use asked_time::{AskedTime, NumericArgument, quick_arguments};
pub use constraint::Constraint;
pub use coverage::CoverageGoal;
pub use dialect::Dialect;
pub use generator::{Class, Domain, GenerationError, Generator};
#[doc(hidden)]
pub use handler::{
    HandlerArguments, HandlerInput, HandlerText, LongArguments, handler_arguments, handler_inputs, long_arguments,
};
#[doc(hidden)]
pub use limit::is_bounded;
#[doc(hidden)]
pub use malformed::{Grammar, Malformed, MalformedKind};
pub use mutant::{Mutant, Telling, TellingArguments, Undecided, UntoldMutant, mutants, telling_arguments};
pub use schema::{InvalidArguments, Mistake, ToolSchema, ViolationError};
pub use schema_error::SchemaError;
pub use shrink::Shrinker;
pub use source::{Bytes, ChoiceSequence, Random, Simplest, Source};
