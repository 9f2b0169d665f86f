//! The name of the configuration file.

/// The file that is looked for, from the current folder upwards.
pub(super) const FILE_NAME: &str = "mcp-conformance.toml";
