//! The configuration: what `mcp-conformance.toml` and the configuration files of MCP clients say, as words of a command
//! line.
//!
//! A key of the file has the name of an option, so the options decide which keys there are and which values they take.
//! The words of the file come before those that were typed, except where a typed option sets or contradicts the same.

mod client_file;
mod error;
mod file;
mod find;
mod keys;
#[cfg(test)]
mod schema;
mod settings;
mod toml_table;
mod variables;

pub(super) use error::ConfigError;
pub(super) use find::{Configured, with_configuration};
