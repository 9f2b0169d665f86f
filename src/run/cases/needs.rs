//! What a case needs of the server, compared with what the server declares, and whether it may do harm.

use super::execution::LastingCall;
use crate::case::{Active, Body, Case, Comparison, ForEach, Placeholder};
use crate::inventory::{Inventory, Tool};
use crate::limits::SLOW_CALL;
use crate::spec::Revision;
use crate::transcript::SessionParameters;

/// Whether the capabilities that a case needs were declared (or, with `!`, were not).
pub(in crate::run) fn declares_needed_capabilities(case: &Case, session_parameters: &SessionParameters) -> bool {
    case.needs.capabilities.iter().all(|name| match name.strip_prefix('!') {
        Some(name) => !session_parameters.declares(name),
        None => session_parameters.declares(name),
    })
}

/// Why a case does not apply to a server with these capabilities.
pub(super) fn missing_capabilities(case: &Case) -> String {
    let words: Vec<String> = case
        .needs
        .capabilities
        .iter()
        .map(|name| match name.strip_prefix('!') {
            Some(name) => format!("no {name} capability"),
            None => format!("the {name} capability"),
        })
        .collect();
    format!("it is for servers with {}", words.join(" and "))
}

/// Whether a case compares a list with that of discovery, which was read earlier.
pub(super) fn compares_with_discovery(body: &Active) -> bool {
    body.across_steps.iter().any(|together| together.check == Comparison::SameSetAsShared)
}

/// Whether a case needs nothing of what discovery finds out.
pub(super) fn is_independent_of_discovery(case: &Case, body: &Active) -> bool {
    let is_found = |placeholder: &Placeholder| {
        placeholder.is_of_tool()
            || matches!(
                placeholder,
                Placeholder::NextCursor
                    | Placeholder::AlteredCursor
                    | Placeholder::Resource
                    | Placeholder::Prompt
                    | Placeholder::PromptArguments
                    | Placeholder::PromptArgument
            )
    };
    matches!(body.for_each, None | Some(ForEach::Page(_)))
        && !uses_tools(case, body)
        && !compares_with_discovery(body)
        && !case.placeholders().iter().any(is_found)
}

/// Whether a case waits for calls that take long, or that were not answered at all: it then runs on a process of its own, next
/// to the others. On a server whose calls are answered soon it shares a session.
pub(super) fn waits_for_long_calls(case: &Case, inventory: &Inventory) -> bool {
    let has = |is_wanted: fn(&Tool) -> bool| inventory.tools.iter().any(is_wanted);
    (case.needs.unanswered_tool && has(Tool::is_unanswered))
        || (case.needs_lasting_call() && has(|tool| tool.is_served() && takes_long(tool)))
}

/// Whether a tool has a call that takes a second or longer.
fn takes_long(tool: &Tool) -> bool {
    LastingCall::of(tool).is_some_and(|call| call.duration >= SLOW_CALL)
}

/// Whether a case calls tools of the server, and so needs the outcomes of their first calls.
pub(super) fn uses_tools(case: &Case, body: &Active) -> bool {
    case.needs.tool.is_some()
        || case.needs.client_request.is_some()
        || body.for_each == Some(ForEach::Tool)
        || case.placeholders().iter().any(Placeholder::is_of_tool)
}

/// Whether a case may damage its session.
pub(super) fn may_damage(case: &Case, revision: Revision) -> bool {
    matches!(&case.body, Body::Active(body) if body.may_damage_session(revision))
}
