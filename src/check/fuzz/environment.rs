//! Failures of what a tool uses, such as the network, a browser or a cluster, by the words of an error.
//!
//! They say nothing about the arguments: with the same arguments the tool works where these are available.

/// Words of such failures, in lower case.
const PHRASES: [&str; 38] = [
    // the resolution of names
    "enotfound",
    "eai_again",
    "getaddrinfo",
    "no such host",
    "name or service not known",
    "name resolution",
    "could not resolve",
    // connections
    "econnrefused",
    "econnreset",
    "etimedout",
    "ehostunreach",
    "enetunreach",
    "connection refused",
    "connection error",
    "connecterror",
    "connection attempts failed",
    "network is unreachable",
    "network error",
    "fetch failed",
    "dial tcp",
    "socket hang up",
    "failed to connect",
    "failed to establish a new connection",
    "could not connect",
    "cannot connect",
    "unable to connect",
    // credentials
    "api key",
    "api_key",
    "api token",
    "unauthorized",
    "authentication failed",
    "not authenticated",
    // programs and services
    "kubeconfig",
    "no configuration has been provided",
    "current-context is not set",
    "browser is not installed",
    "executable doesn't exist",
    "command not found",
];

/// Whether a message reports a failure of something outside of the server.
#[must_use]
pub(crate) fn is_environmental(message: &str) -> bool {
    let message = message.to_lowercase();
    PHRASES.iter().any(|phrase| message.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_the_network_is_distinguished_from_one_of_the_arguments() {
        for message in [
            "request to https://api.example.com failed, reason: getaddrinfo ENOTFOUND api.example.com",
            "Failed to connect to cluster: dial tcp 127.0.0.1:8080: connect: connection refused",
            "TypeError: fetch failed",
            "[Errno -3] Temporary failure in name resolution",
        ] {
            assert!(is_environmental(message), "{message}");
        }
        for message in ["Internal error", "no such city: Ulm", "invalid literal for int()", "list index out of range"] {
            assert!(!is_environmental(message), "{message}");
        }
    }
}
