//! The errors of [`Judge`](crate::Judge).

use std::path::PathBuf;

use crate::case::{LoadError, SelectError};
use crate::client::HttpEndpointError;

/// A server or a setting that cannot be used.
///
/// A server that does not start or misbehaves is not such an error: it is judged, and its report says so.
///
/// # Examples
///
/// ```
/// use mcp_conformance::{HttpEndpointError, Judge, JudgeError, LoadError, SelectError, Server, Settings};
///
/// let judge = |server: Server, settings: Settings| Judge::new(server).settings(settings).run_blocking();
///
/// let misspelt = Settings { select: vec!["tools/lits".to_owned()], ..Settings::default() };
/// match judge(Server::reference([]), misspelt) {
///     Err(JudgeError::Select(SelectError::Nothing { nearest, .. })) => assert_eq!(nearest.as_deref(), Some("tools/list")),
///     other => panic!("{other:?}"),
/// }
/// # #[cfg(feature = "http")] {
/// let no_http = judge(Server::http("ftp://localhost/mcp").into(), Settings::default());
/// assert!(matches!(no_http, Err(JudgeError::Address(HttpEndpointError::Scheme(_)))));
/// # }
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let hints = folder.path().join("hints.jsonc");
/// std::fs::write(&hints, r#"{"hint": []}"#).expect("the folder exists");
/// let with_hints = Settings { hints: Some(hints), ..Settings::default() };
/// let invalid: LoadError = match judge(Server::reference([]), with_hints) {
///     Err(JudgeError::Hints(invalid)) => invalid,
///     other => panic!("{other:?}"),
/// };
/// // Each problem has its file and line.
/// assert!(invalid.to_string().contains("hints.jsonc:1"), "{invalid}");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JudgeError {
    /// The URL of a server, or one of its headers, is invalid.
    #[error(transparent)]
    Address(#[from] HttpEndpointError),
    /// The variable of [`HttpServer::bearer_token_env`](crate::HttpServer::bearer_token_env) holds no token.
    #[error("the environment variable {variable} holds no bearer token: it is not set, empty or not Unicode")]
    Token {
        /// The name of the variable.
        variable: String,
    },
    /// The working directory of a server does not exist.
    #[error("failed to use {} as the server's working directory: it is not a directory", .0.display())]
    Directory(PathBuf),
    /// The folder that `{scratch}` stands for cannot be made.
    #[error("failed to make the folder {{scratch}}: {0}")]
    Scratch(#[source] std::io::Error),
    /// A pattern of [`Settings::select`](crate::Settings::select) or [`Settings::skip`](crate::Settings::skip) is not
    /// a glob or matches no case.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// A pattern of [`FuzzSettings::tools`](crate::FuzzSettings::tools) or
    /// [`FuzzSettings::skip_tools`](crate::FuzzSettings::skip_tools) is not a glob.
    #[error("failed to read the tool pattern `{pattern}`: {reason}")]
    ToolPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A case file of [`Settings::cases`](crate::Settings::cases) is invalid.
    #[error("failed to read the cases:\n{0}")]
    Cases(LoadError),
    /// The file of [`Settings::hints`](crate::Settings::hints) is invalid.
    #[error("failed to read the hints:\n{0}")]
    Hints(LoadError),
    /// The file of [`Settings::baseline`](crate::Settings::baseline) is invalid.
    #[error("failed to read the baseline:\n{0}")]
    Baseline(LoadError),
    /// The asynchronous runtime could not be started.
    #[error("failed to start an asynchronous runtime: {0}")]
    Runtime(#[source] std::io::Error),
}
