//! How a case responds to requests of the server, or that it does not.

use serde::Deserialize;
use serde_json::Value;

/// A response to a request of the server, or `no-response`; placeholders `${client-request...}` in its strings are filled in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "client-response", transform = super::schema_types::one_member))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ClientResponse {
    /// The result of the response.
    Result(#[cfg_attr(test, schemars(with = "super::schema_types::Object"))] Value),
    /// The error of the response. Where the revision puts responses into a retry, which can hold no error, there is
    /// none.
    Error(#[cfg_attr(test, schemars(with = "super::schema_types::Object"))] Value),
    /// No response at all.
    NoResponse,
}
