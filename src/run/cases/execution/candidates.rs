//! What the steps of a case are carried out for: the tools, resources or prompts that suit it.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::bindings::{Bindings, Item};
use super::lasting_call::LastingCall;
use super::tool_arguments::{BoundTool, MissingValue};
use crate::case::{Active, Case, ForEach, HintRequest, Placeholder, Process};
use crate::inventory::{Inventory, Tool};
use crate::limits::{MAX_ITEMS, MAX_UNANSWERED_TOOLS};
use crate::scratch::RootFolder;
use crate::session::Session;
use crate::spec::Revision;

/// Why a case that needs a tool is skipped.
pub(in crate::run::cases) const NO_TOOL_SERVED: &str = "no tool that may be called was served";

/// The items that a case is carried out for, best first; an item of nothing if its placeholders need none.
pub(super) fn candidates<'a>(
    case: &'a Case,
    body: &Active,
    inventory: &'a Inventory,
    folder: Option<&'a RootFolder>,
    session: &mut Session,
) -> Result<Vec<Item<'a>>, MissingValue> {
    if let Some(reason) = reason_by_session(case, session) {
        return Err(MissingValue(reason.to_owned()));
    }
    match body.for_each.as_ref().and_then(|for_each| listed(for_each, inventory)) {
        None => tools(case, body, inventory, folder, session),
        Some(items) if items.is_empty() => {
            Err(MissingValue("the server lists nothing that the case could be repeated for".to_owned()))
        }
        Some(items) => Ok(items),
    }
}

/// Why a case does not apply to a server that opens HTTP sessions, or to one that opens none.
fn reason_by_session(case: &Case, session: &Session) -> Option<&'static str> {
    match (case.needs.http_session?, session.connection.http_session().is_some()) {
        (true, false) => Some("the server opened no session"),
        (false, true) => Some("the server uses sessions"),
        (true, true) | (false, false) => None,
    }
}

/// The listed resources or prompts that a case is repeated for, if it is for these.
fn listed<'a>(for_each: &ForEach, inventory: &'a Inventory) -> Option<Vec<Item<'a>>> {
    let primitives = &inventory.primitives;
    match for_each {
        ForEach::Resource => Some(primitives.resources.iter().take(MAX_ITEMS).map(|uri| Item::Resource(uri)).collect()),
        ForEach::Prompt => Some(primitives.prompts().iter().take(MAX_ITEMS).map(Item::Prompt).collect()),
        ForEach::Tool | ForEach::Page(_) => None,
    }
}

/// The tools that a case's placeholders can be bound to.
fn tools<'a>(
    case: &'a Case,
    body: &Active,
    inventory: &'a Inventory,
    folder: Option<&'a RootFolder>,
    session: &mut Session,
) -> Result<Vec<Item<'a>>, MissingValue> {
    let placeholders = case.placeholders();
    let of_tool: Vec<&Placeholder> = placeholders.iter().filter(|placeholder| placeholder.is_of_tool()).collect();
    let client_request = case.needs.client_request.as_ref();
    if of_tool.is_empty() && body.for_each.is_none() && case.needs.tool.is_none() && client_request.is_none() {
        return Ok(vec![Item::Nothing]);
    }
    let mut why = MissingValue(NO_TOOL_SERVED.to_owned());
    let mut found: Vec<BoundTool<'a>> = Vec::new();
    // Silence takes long. A case about it is carried out for few tools, or for one of which it is known that it answers.
    let unanswered: Vec<&Tool> =
        inventory.tools.iter().filter(|tool| case.needs.unanswered_tool && tool.is_unanswered()).collect();
    let wanted = match case.needs.unanswered_tool {
        true => unanswered.len().clamp(1, MAX_UNANSWERED_TOOLS),
        false if body.for_each.is_some() => MAX_ITEMS,
        false => 1,
    };
    let hinted = hinted(case, inventory, session);
    let unanswered = unanswered.into_iter().map(BoundTool::plain);
    let others = in_order(case, body, inventory).map(BoundTool::plain);
    for bound in unanswered.chain(hinted).chain(others) {
        if found.len() >= wanted {
            break;
        }
        if found.iter().any(|known| known.tool.name == bound.tool.name) {
            continue;
        }
        if !is_of_needed_kind(case, bound.tool) {
            why = MissingValue("no tool that may be called is of the kind that the case needs".to_owned());
            continue;
        }
        if !makes_needed_request(case, bound.tool) {
            why = MissingValue("the server made no such request of the client during the call of a tool".to_owned());
            continue;
        }
        let bindings = Bindings::new(case, inventory, Item::Tool(bound.clone()), 0).with_folder(folder);
        match of_tool.iter().try_for_each(|placeholder| bindings.value(placeholder, session).map(drop)) {
            Ok(()) => found.push(bound),
            Err(unfilled) => why = unfilled,
        }
    }
    if found.is_empty() { Err(why) } else { Ok(found.into_iter().map(Item::Tool).collect()) }
}

/// The tools that may be called for a case, best first: those that served a call, and the others if the case is about all
/// tools or about what a call shows even if it fails.
fn in_order<'a>(case: &Case, body: &Active, inventory: &'a Inventory) -> impl Iterator<Item = &'a Tool> {
    let all = body.for_each.is_some() || case.needs.client_request.is_some() || case.needs.unanswered_tool;
    let unserved = inventory.tools.iter().filter(move |tool| all && tool.is_usable() && !tool.is_served());
    served_in_order(case, body, inventory).into_iter().chain(unserved)
}

/// The tools that served a call, best first.
///
/// A tool whose plain call was served proves more than one that rejects everything, and one that makes no request of the
/// client is better for a case that is not about such requests. Another process may not know the values of earlier results.
fn served_in_order<'a>(case: &Case, body: &Active, inventory: &'a Inventory) -> Vec<&'a Tool> {
    let (any_process, this_process): (Vec<&Tool>, Vec<&Tool>) =
        inventory.tools.iter().filter(|tool| tool.is_served()).partition(|tool| !tool.depends_on_results);
    let this_process = this_process.into_iter().filter(|_| body.process == Process::Shared);
    let (mut plain, requesting): (Vec<&Tool>, Vec<&Tool>) =
        any_process.into_iter().chain(this_process).partition(|tool| !tool.asks_client());
    if case.needs_lasting_call() {
        plain.sort_by_cached_key(|tool| Reverse(LastingCall::of(tool).map(|call| call.duration)));
    } else if case.needs.slowest_tool {
        plain.sort_by_key(|tool| Reverse(tool.first_call.map(|(_, duration)| duration)));
    } else {
        // A slow tool proves no more than another one.
        plain.sort_by_key(|tool| tool.is_slow());
    }
    plain.extend(requesting);
    plain
}

/// Whether the definition of a tool is of the kind that a case needs.
fn is_of_needed_kind(case: &Case, tool: &Tool) -> bool {
    case.needs.tool.as_ref().is_none_or(|schema| schema.fits(&tool.definition))
}

/// Whether a tool made the request of the client that a case needs.
fn makes_needed_request(case: &Case, tool: &Tool) -> bool {
    let needed = case.needs.client_request.as_ref();
    needed.is_none_or(|schema| tool.client_requests.iter().any(|request| schema.fits(request)))
}

/// The call that a case makes first, as a text: two revisions in which it is the same may share one run of the case. A hint is
/// for one revision.
pub(in crate::run::cases) fn called_first(
    case: &Case,
    body: &Active,
    inventory: &Inventory,
    revision: Revision,
) -> String {
    if inventory.hint_results.iter().any(|followed| followed.applies_to(case, revision)) {
        return format!("hint for {revision}");
    }
    let suits =
        |tool: &&Tool| tool.arguments.is_some() && is_of_needed_kind(case, tool) && makes_needed_request(case, tool);
    let Some(tool) = in_order(case, body, inventory).find(suits) else { return String::new() };
    json!([tool.name, tool.arguments]).to_string()
}

/// The tools that served hints for the case, with the arguments of the hints.
fn hinted<'a>(case: &Case, inventory: &'a Inventory, session: &Session) -> Vec<BoundTool<'a>> {
    let helping = inventory.hint_results.iter().filter(|followed| followed.applies_to(case, session.revision));
    let bound = helping.filter_map(|followed| match &followed.hint.request {
        HintRequest::Call { tool, arguments } => {
            let tool = inventory.tools.iter().find(|listed| listed.name == *tool && listed.is_usable())?;
            Some(BoundTool { tool, arguments: Some(Value::Object(arguments.clone())) })
        }
        HintRequest::Read { .. } | HintRequest::Get { .. } => None,
    });
    bound.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::case::{Body, load};
    use crate::inventory::FirstCallOutcome;
    use crate::plan::CallPolicy;

    /// A tool with the outcome of its first call, and how long that took, in milliseconds.
    fn tool(name: &str, outcome: FirstCallOutcome, millis: u64) -> Tool {
        let definition = json!({"name": name, "inputSchema": {"type": "object"}});
        let tool = Tool::new(&definition, CallPolicy::NonDestructive).expect("it has a name");
        Tool { first_call: Some((outcome, Duration::from_millis(millis))), ..tool }
    }

    /// What a case calls first on a server with these tools.
    fn called_by(id: &str, tools: Vec<Tool>) -> String {
        let cases = load(None, &[]).expect("they are sound");
        let case = cases.iter().find(|case| case.id == id).expect("it exists");
        let Body::Active(body) = &case.body else { panic!("it sends messages") };
        called_first(case, body, &Inventory { tools, ..Inventory::default() }, Revision::V2025_11_25)
    }

    #[test]
    fn the_first_call_of_a_case_is_that_of_the_best_tool() {
        let called = |tools: &[(&str, u64)]| {
            let tools = tools.iter().map(|(name, millis)| tool(name, FirstCallOutcome::Served, *millis)).collect();
            called_by("tools/call/callable-again", tools)
        };
        let echo = called(&[("echo", 1), ("add", 1)]);
        assert_eq!(echo, r#"["echo",{}]"#);
        assert_eq!(called(&[("slow", 2_000), ("echo", 3)]), echo, "slow tools come last");
        assert_ne!(called(&[("add", 1), ("echo", 1)]), echo);
        assert_eq!(called(&[]), "");
    }

    #[test]
    fn the_first_call_of_a_case_about_client_requests_may_be_one_that_failed() {
        let asking = |name: &str, outcome: FirstCallOutcome| {
            let client_requests = vec![json!({"method": "sampling/createMessage"})];
            Tool { client_requests, ..tool(name, outcome, 1) }
        };
        let called = |tools: Vec<Tool>| called_by("lifecycle/unanswered-request", tools);
        assert_eq!(called(vec![asking("sample", FirstCallOutcome::Failed)]), r#"["sample",{}]"#);
        let served = vec![asking("sample", FirstCallOutcome::Failed), asking("ask", FirstCallOutcome::Served)];
        assert_eq!(called(served), r#"["ask",{}]"#);
        let unknown = Tool { arguments: None, ..asking("sample", FirstCallOutcome::Failed) };
        assert_eq!(called(vec![unknown]), "", "without arguments no call is made");
    }

    #[test]
    fn a_case_is_repeated_for_each_listed_resource_and_prompt() {
        let mut inventory = Inventory::default();
        inventory.primitives.resources = vec!["file:///a".to_owned(), "file:///b".to_owned()];
        inventory.primitives.record_working_arguments("review", &serde_json::Map::new());
        let labels = |for_each: &ForEach| -> Option<Vec<String>> {
            Some(listed(for_each, &inventory)?.iter().map(Item::label).collect())
        };
        assert_eq!(
            labels(&ForEach::Resource),
            Some(vec!["resource file:///a".to_owned(), "resource file:///b".to_owned()])
        );
        assert_eq!(labels(&ForEach::Prompt), Some(vec!["prompt review".to_owned()]));
        assert_eq!(labels(&ForEach::Tool), None);
        let page = Item::Page { method: "tools/list".to_owned(), number: 2, cursor: json!("x") };
        assert_eq!(page.label(), "page 2 of tools/list");
    }
}
