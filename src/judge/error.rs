//! Why a server could not be judged at all.

use crate::case::{LoadError, SelectError};
use crate::client::SiteError;

/// Why a server could not be judged at all.
///
/// A server that cannot be started or misbehaves is none of these: it is judged, and its report says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JudgeError {
    /// The address of a server, or a header, cannot be used.
    #[error(transparent)]
    Address(#[from] SiteError),
    /// A pattern of [`Judge::select`](crate::Judge::select) or [`Judge::skip`](crate::Judge::skip) is none, or matches no case.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// A pattern for tools is none.
    #[error("failed to read the pattern `{pattern}` for tools: {reason}")]
    Tool {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Case files of [`Judge::cases`](crate::Judge::cases) cannot be used.
    #[error("failed to read the cases:\n{0}")]
    Cases(LoadError),
    /// The file of [`Judge::hints`](crate::Judge::hints) cannot be used.
    #[error("failed to read the hints:\n{0}")]
    Hints(LoadError),
    /// The file of [`Judge::baseline`](crate::Judge::baseline) cannot be used.
    #[error("failed to read the baseline:\n{0}")]
    Baseline(LoadError),
    /// The asynchronous runtime could not be started.
    #[error("failed to start a runtime: {0}")]
    Runtime(#[source] std::io::Error),
}
