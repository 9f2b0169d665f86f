//! What a case needs of the server, compared with what the server declares, and whether it may do harm.

use super::execution::LastingCall;
use crate::case::{Active, Body, Case, Comparison, ForEach, Placeholder};
use crate::inventory::{Inventory, Tool};
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

/// Whether a case waits for calls that were not answered: it then runs on a process of its own, next to the others. On a server
/// that answers its calls it shares a session.
pub(super) fn waits_for_unanswered_calls(case: &Case, inventory: &Inventory) -> bool {
    case.needs.unanswered_tool && inventory.tools.iter().any(Tool::is_unanswered)
}

/// Whether no call of a tool takes as long as a case needs one. Of the call of a hint it is not known.
pub(super) fn lacks_lasting_call(case: &Case, body: &Active, inventory: &Inventory, revision: Revision) -> bool {
    let Some(needed) = body.wait_while_open().filter(|_| case.needs_lasting_call()) else { return false };
    if inventory.hint_results.iter().any(|followed| followed.applies_to(case, revision)) {
        return false;
    }
    let lasts = |tool: &Tool| LastingCall::of(tool).is_some_and(|call| call.duration > needed);
    !inventory.tools.iter().any(|tool| tool.is_served() && lasts(tool))
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::case::load;
    use crate::inventory::FirstCallOutcome;
    use crate::plan::CallPolicy;

    #[test]
    fn a_case_about_calls_that_last_needs_one_that_is_open_when_it_is_cancelled() {
        let cases = load(None, &[]).expect("they are sound");
        let lacks = |id: &str, millis: u64| {
            let case = cases.iter().find(|case| case.id == id).expect("it exists");
            let Body::Active(body) = &case.body else { panic!("it sends messages") };
            let definition = json!({"name": "render", "inputSchema": {"type": "object"}});
            let mut tool = Tool::new(&definition, CallPolicy::NonDestructive).expect("it has a name");
            tool.first_call = Some((FirstCallOutcome::Served, Duration::from_millis(millis)));
            lacks_lasting_call(
                case,
                body,
                &Inventory { tools: vec![tool], ..Inventory::default() },
                Revision::V2025_11_25,
            )
        };
        assert!(lacks("cancellation/running", 90) && !lacks("cancellation/running", 110));
        assert!(lacks("cancellation/running-twice", 590) && !lacks("cancellation/running-twice", 610));
        assert!(!lacks("tools/call/callable-again", 1), "it needs no such call");
    }
}
