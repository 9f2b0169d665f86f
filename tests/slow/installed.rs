//! What the slow suite needs and `tests/servers/install.sh` installs.

use std::path::{Path, PathBuf};

/// The folder of the installed servers and of the clients that use them.
pub(crate) fn servers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers")
}

/// Whether trials of servers that are not installed fail; otherwise they are ignored.
pub(crate) fn servers_are_required() -> bool {
    std::env::var_os("MCP_CONFORMANCE_SERVERS").is_some_and(|value| value == "required")
}
