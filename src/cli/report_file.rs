//! Reads the JSON reports of earlier runs.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use mcp_conformance::report::Report;

use super::error::CliError;

/// The maximum size of a report, in bytes (512 MiB).
const MAX_REPORT_BYTES: u64 = 512 << 20;

/// Reads a report; `-` is standard input.
pub(super) fn read(path: &Path) -> Result<Report, CliError> {
    let failed = |source: io::Error| CliError::ReadReport { path: path.to_owned(), source };
    let mut text = String::new();
    let stream: Box<dyn io::Read> =
        if path.as_os_str() == "-" { Box::new(io::stdin()) } else { Box::new(File::open(path).map_err(failed)?) };
    stream.take(MAX_REPORT_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_REPORT_BYTES {
        return Err(failed(io::Error::other(format!("the file is larger than {MAX_REPORT_BYTES} bytes"))));
    }
    Report::parse(&text).map_err(|source| CliError::Report { path: path.to_owned(), source })
}
