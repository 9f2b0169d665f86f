//! The cases, for the subcommands that describe them.

use std::path::Path;

use mcp_conformance::internals::case::Case;
use mcp_conformance::internals::judge::load_cases;

use super::error::CliError;

/// Every case, the built-in ones and those in a folder, sorted by id.
pub(super) fn all(folder: Option<&Path>) -> Result<Vec<Case>, CliError> {
    Ok(load_cases(folder)?)
}
