//! Why an HTTP endpoint cannot be used.

/// How short a secret may be, in characters: a shorter one would be masked in text that has nothing to do with it.
pub(in crate::client) const MIN_SECRET_CHARS: usize = 6;

/// Why an endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpEndpointError {
    /// The URL cannot be parsed.
    #[error("`{address}` is not a URL: {reason}")]
    Address {
        /// The URL as given.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The URL has another scheme than HTTP.
    #[error("`{0}` is not an HTTP URL: it must begin with http:// or https://")]
    Scheme(String),
    /// The URL contains a user name or password, which would appear in every report.
    #[error(
        "the URL contains a user name or password, and URLs are shown in reports: use --header 'Authorization: Basic ...', or --bearer-env for a token"
    )]
    Credentials,
    /// A header cannot be sent.
    #[error(
        "the header `{0}` cannot be sent: a name consists of letters, digits and hyphens, a value of one line of text"
    )]
    Header(String),
    /// A secret that could not be masked reliably.
    #[error(
        "the secret in the header `{0}` cannot be masked reliably in reports, because it is shorter than {MIN_SECRET_CHARS} characters, a date or a name of the protocol: use a longer one"
    )]
    UnmaskableSecret(String),
    /// The HTTP client could not be created.
    #[cfg(feature = "http")]
    #[error("failed to set up HTTP: {0}")]
    Client(#[from] reqwest::Error),
    /// The crate was compiled without HTTP.
    #[error(
        "failed to reach {0} over HTTP: the crate mcp-conformance was compiled without its feature `http`; add it to the features of the dependency"
    )]
    NotCompiled(String),
}
