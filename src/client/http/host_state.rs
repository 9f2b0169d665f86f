//! What became of a server over HTTP that stopped answering.

/// The state of a server over HTTP that stopped answering.
#[derive(Debug)]
pub(crate) enum HostState {
    /// Its process ended; with the end of its output.
    Ended { status: String, stderr: String },
    /// It does not listen any more, and the client cannot restart it.
    Unreachable,
    /// It still accepts connections.
    Listening,
}
