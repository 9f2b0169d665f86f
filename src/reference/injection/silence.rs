//! Faults that leave requests unanswered.

use crate::reference::fault::Fault;

/// The faults, each with the method whose requests it leaves unanswered.
const UNANSWERED: &[(Fault, &str)] = &[
    (Fault::InitializeUnanswered, "initialize"),
    (Fault::OldestInitializeUnanswered, "initialize"),
    (Fault::DiscoverUnanswered, "server/discover"),
    (Fault::ToolsListUnanswered, "tools/list"),
    (Fault::CallsUnanswered, "tools/call"),
    (Fault::ResourcesListUnanswered, "resources/list"),
    (Fault::TemplatesUnanswered, "resources/templates/list"),
    (Fault::ReadsUnanswered, "resources/read"),
    (Fault::SubscribeUnanswered, "resources/subscribe"),
    (Fault::PromptsListUnanswered, "prompts/list"),
    (Fault::PromptsUnanswered, "prompts/get"),
    (Fault::CompletionUnanswered, "completion/complete"),
    (Fault::SetLevelUnanswered, "logging/setLevel"),
];

/// The tool whose calls go unanswered with [`Fault::ToolUnanswered`].
const UNANSWERED_TOOL: &str = "annotated";

/// Whether a fault leaves a request with this method unanswered; `opens` says whether it opens the connection, and `tool`
/// which tool it calls, if it calls one.
pub(in crate::reference) fn is_unanswered(
    method: &str,
    tool: Option<&str>,
    opens: bool,
    is_active: impl Fn(Fault) -> bool,
) -> bool {
    !opens && is_active(Fault::SilentAfterOpening)
        || tool == Some(UNANSWERED_TOOL) && is_active(Fault::ToolUnanswered)
        || UNANSWERED.iter().any(|(fault, of)| *of == method && is_active(*fault))
}
