//! Standard output, as the result of a command.

use std::io::{self, Write};

use mcp_conformance::report::Conclusion;

use super::error::CliError;

/// Writes to standard output. A failure to write is an error of the command.
pub(super) fn print(write: impl FnOnce(&mut dyn Write) -> Result<(), CliError>) -> Result<Conclusion, CliError> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write(&mut out)?;
    out.flush()?;
    Ok(Conclusion::Passed)
}
