//! What tools request from the client: the kinds of requests, and which of them the client allows.
//!
//! The revisions differ in how a request reaches the client: as a JSON-RPC request ([`super::outgoing`]) or in
//! the result of the call ([`super::input_required`]). [`super::client_request_params`] makes the requests, and
//! [`super::client_response`] reads the responses.

use serde_json::{Value, json};

use super::fault::{Fault, FaultSet};
use super::message::Object;
use super::revision::Revision;
use super::root_file;

/// A request that a tool makes to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientRequest {
    /// `roots/list`.
    Roots,
    /// `roots/list`, to read a file within the roots.
    RootsForFile,
    /// Sampling without tools.
    Sampling,
    /// Sampling with tools.
    SamplingWithTools,
    /// Elicitation in form mode.
    ElicitationForm,
    /// Elicitation in URL mode.
    ElicitationUrl,
}

impl ClientRequest {
    pub(super) const ALL: [Self; 6] = [
        Self::Roots,
        Self::RootsForFile,
        Self::Sampling,
        Self::SamplingWithTools,
        Self::ElicitationForm,
        Self::ElicitationUrl,
    ];

    /// The tool that makes this request.
    const fn tool(self) -> &'static str {
        match self {
            Self::Roots => "ask_roots",
            Self::RootsForFile => root_file::TOOL,
            Self::Sampling => "ask_model",
            Self::SamplingWithTools => "ask_model_with_tools",
            Self::ElicitationForm => "ask_user",
            Self::ElicitationUrl => "ask_user_on_page",
        }
    }

    /// The request that a tool makes, if it makes any.
    pub(super) fn of(tool: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|question| question.tool() == tool)
    }

    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::Roots | Self::RootsForFile => "roots/list",
            Self::Sampling | Self::SamplingWithTools => "sampling/createMessage",
            Self::ElicitationForm | Self::ElicitationUrl => "elicitation/create",
        }
    }

    /// The client capabilities that the request needs.
    pub(super) fn required_capabilities(self) -> Value {
        match self {
            Self::Roots | Self::RootsForFile => json!({"roots": {}}),
            Self::Sampling => json!({"sampling": {}}),
            Self::SamplingWithTools => json!({"sampling": {"tools": {}}}),
            Self::ElicitationForm => json!({"elicitation": {"form": {}}}),
            Self::ElicitationUrl => json!({"elicitation": {"url": {}}}),
        }
    }

    /// Whether the client's capabilities, or a fault, allow the request.
    pub(super) fn is_allowed(self, client: &Object, revision: Revision, faults: &FaultSet) -> bool {
        let is_active = |fault| faults.is_active(fault, revision);
        let has = |path: &str| path.split('/').try_fold(&json!(client), |value, name| value.get(name)).is_some();
        if is_active(Fault::MrtrUndeclared) {
            return true;
        }
        match self {
            Self::Roots | Self::RootsForFile => has("roots"),
            Self::Sampling => has("sampling"),
            Self::SamplingWithTools => {
                has("sampling/tools") || has("sampling") && is_active(Fault::SamplingToolsUndeclared)
            }
            // An empty object means form mode only.
            Self::ElicitationForm => {
                let form = has("elicitation/form") || !has("elicitation/url") || is_active(Fault::ElicitFormUndeclared);
                has("elicitation") && form
            }
            Self::ElicitationUrl => {
                has("elicitation/url") || has("elicitation") && is_active(Fault::ElicitUrlUndeclared)
            }
        }
    }

    /// Whether a fault never answers the call if the client responds with an error.
    pub(super) fn hangs_on_error(self, revision: Revision, faults: &FaultSet) -> bool {
        let fault = match self {
            Self::Roots | Self::RootsForFile => Fault::RootsUnavailableHangs,
            Self::Sampling | Self::SamplingWithTools => Fault::SamplingRejectionHangs,
            Self::ElicitationForm | Self::ElicitationUrl => Fault::ElicitDeclineHangs,
        };
        faults.is_active(fault, revision)
    }
}

/// The tools whose requests the client's capabilities allow.
pub(super) fn tools_for(client: &Object, revision: Revision, faults: &FaultSet) -> Vec<&'static str> {
    let mut tools = tools(revision, faults);
    tools.retain(|tool| {
        ClientRequest::of(tool).is_some_and(|client_request| client_request.is_allowed(client, revision, faults))
    });
    if revision == Revision::V2025_11_25
        && ClientRequest::ElicitationUrl.is_allowed(client, revision, &FaultSet::none())
    {
        tools.push(TOOL_REQUIRING_URL);
    }
    tools
}

/// All tools that make requests, where capabilities are only known on a call.
pub(super) fn tools(revision: Revision, faults: &FaultSet) -> Vec<&'static str> {
    let exists = |tool: &&str| *tool != root_file::TOOL || root_file::is_served(revision, faults);
    ClientRequest::ALL.into_iter().map(ClientRequest::tool).filter(exists).collect()
}

/// The tool that fails with `URLElicitationRequiredError` until the user has visited a URL.
pub(super) const TOOL_REQUIRING_URL: &str = "ask_user_first";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::message::object;

    #[test]
    fn tools_only_make_requests_that_the_client_declared() {
        let tools = |client: Value| tools_for(&object(client), Revision::V2025_11_25, &FaultSet::none());
        assert!(tools(json!({})).is_empty());
        assert_eq!(tools(json!({"elicitation": {}})), ["ask_user"]);
        assert_eq!(tools(json!({"elicitation": {"url": {}}})), ["ask_user_on_page", "ask_user_first"]);
        assert_eq!(tools(json!({"sampling": {}, "roots": {}})), ["ask_roots", "ask_model"]);
        assert_eq!(tools(json!({"sampling": {"tools": {}}})), ["ask_model", "ask_model_with_tools"]);
    }
}
