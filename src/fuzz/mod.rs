//! Arguments for tools, made from their inputSchema.
//!
//! Owns the compilation of a schema (hostile until proven otherwise), the generation of valid
//! instances and of instances that break exactly one keyword, the enumeration of boundaries, and
//! shrinking. Refuses to know servers: nothing here sends, waits, or judges an answer, and no
//! reference out of a schema is ever fetched.

mod array;
mod compile;
mod cover;
mod dialect;
mod format;
mod generate;
mod generator;
mod hint;
#[cfg(test)]
mod laws;
mod limit;
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
pub use schema::{Breakage, BrokenArguments, Domain, SchemaError, ToolSchema, ViolationError};
pub use shrink::Shrinker;
pub use site::Site;
pub use source::{Bytes, Random, Simplest, Source, Tape};
