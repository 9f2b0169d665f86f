//! Arguments for tools, made from their inputSchema.
//!
//! Owns the compilation of a schema (hostile until proven otherwise), the generation of valid
//! instances and of instances that break exactly one keyword, the enumeration of boundaries, and
//! shrinking. Refuses to know servers: nothing here sends, waits, or judges an answer, and no
//! reference out of a schema is ever fetched.
//!
//! ```text
//! inputSchema ── limits ── canonical form ── plan ─┐
//!                              │                   ├── Generator ── instance, proved to be in its class
//!                 difference without a keyword ─ plan ─┘    ▲
//!                                                        Source: seed, tape, bytes, or forced decisions
//! ```
//!
//! [`ToolSchema`] compiles a schema; [`ToolSchema::valid`] and [`ToolSchema::violating`] give a
//! [`Generator`] for one class of instances; a [`Source`] makes its choices. [`Obligation`]s
//! enumerate boundaries, and a [`Shrinker`] makes a failing instance small without leaving its
//! class. [`Malformed`] is what no schema speaks of.
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
//! for site in schema.sites() {
//!     let generator = schema.violating(&site).expect("each keyword has an effect");
//!     let broken = generator.generate(&mut random).expect("broken arguments");
//!     assert!(!schema.is_valid(&broken), "{site} is not broken by {broken}");
//! }
//! ```

mod array;
mod compile;
mod cover;
mod dialect;
mod edit;
mod format;
mod generate;
mod generator;
mod hint;
#[cfg(test)]
mod laws;
mod limit;
mod malformed;
mod number;
mod object;
mod pattern;
mod plan;
mod reach;
mod schema;
mod shrink;
mod site;
mod source;
mod splice;
mod strategy;
mod tame;
mod text;

pub use cover::Obligation;
pub use dialect::Dialect;
pub use generator::{Class, GenerationError, Generator};
#[doc(hidden)]
pub use limit::is_bounded;
#[doc(hidden)]
pub use malformed::{Grammar, Malformed, Oddity};
pub use schema::{Breakage, BrokenArguments, Domain, SchemaError, ToolSchema, ViolationError};
pub use shrink::Shrinker;
pub use site::Site;
pub use source::{Bytes, Random, Simplest, Source, Tape};
