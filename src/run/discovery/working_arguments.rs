//! Finds arguments for the tools whose first call failed, and for the prompts that were not served.
//!
//! Each failure is learnt from: the next arguments contain the values that error messages, descriptions, results of other
//! tools, resources and completions name, and the folders of the server's command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

use serde_json::{Value, json};

use super::argument_search::ArgumentSearch;
use super::example_arguments::{files_of_each_kind, known_paths};
use super::request_batch::{BatchLimits, send_batch};
use crate::inventory::{FirstCallOutcome, HintOutcome, Inventory, KnownValues, Tool};
use crate::limits::{MAX_COMPLETIONS, MAX_SEARCH_CALL_TIMEOUTS, MAX_SEARCH_ROUNDS, SEARCH_CALL_TIMEOUT_DIVISOR};
use crate::plan::{HttpTarget, Launcher, Plan};
use crate::session::Session;
use crate::wire::MessageKind;

/// What arguments are searched for, by its position in the inventory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Tool(usize),
    Prompt(usize),
}

/// Searches for arguments of the tools and prompts that were not served, and records those that are.
pub(super) async fn find_working_arguments(session: &mut Session, plan: &Plan, inventory: &mut Inventory) {
    let timeout = plan.timeout / SEARCH_CALL_TIMEOUT_DIVISOR;
    let end = Instant::now() + timeout * MAX_SEARCH_CALL_TIMEOUTS;
    let limits = BatchLimits { timeout, end };
    inventory.known_values = known_values(session, plan, inventory);
    let mut searches = searches(session, inventory, timeout);
    if session.connection.is_closed() || session.unanswered > 0 || session.is_slow() || inventory.stop_reason.is_some()
    {
        return;
    }
    if !searches.is_empty() || !inventory.primitives.templates.is_empty() {
        ask_for_completions(session, inventory, limits).await;
    }
    for _ in 0..MAX_SEARCH_ROUNDS {
        let mut attempts: Vec<(Subject, Value)> = Vec::new();
        for (subject, search) in &mut searches {
            attempts.extend(search.next(&inventory.known_values).map(|arguments| (*subject, arguments)));
        }
        if attempts.is_empty() || Instant::now() > end {
            return;
        }
        let requests: Vec<Value> = attempts.iter().map(|one| request(inventory, one)).collect();
        let mut unanswered: Vec<usize> = (0..attempts.len()).collect();
        for answered in send_batch(session, &requests, limits).await {
            unanswered.retain(|at| *at != answered.request);
            let (subject, arguments) = &attempts[answered.request];
            let result = answered.response.get("result").unwrap_or(&Value::Null);
            if HintOutcome::of_response(&answered.response) == HintOutcome::Served {
                searches.remove(subject);
                record(inventory, *subject, arguments, answered.input_requests, answered.duration);
                inventory.known_values.add_result(result);
            } else if let Some(search) = searches.get_mut(subject) {
                search.learn(arguments, &message_of(&answered.response));
            }
        }
        // What is not answered is not asked again.
        for at in unanswered {
            searches.remove(&attempts[at].0);
        }
    }
}

/// The searches for the tools that failed in less than a time, and for the prompts that were not served, with what their
/// failures say.
fn searches(session: &Session, inventory: &Inventory, timeout: Duration) -> BTreeMap<Subject, ArgumentSearch> {
    let failed_quickly = |tool: &&Tool| {
        let how = tool.first_call.filter(|(_, duration)| *duration < timeout).map(|(how, _)| how);
        tool.is_usable() && how == Some(FirstCallOutcome::Failed)
    };
    let tools = inventory.tools.iter().enumerate().filter(|(_, tool)| failed_quickly(tool));
    let prompts = inventory.primitives.prompts().iter().enumerate();
    let prompts = prompts.filter(|(_, prompt)| !prompt.is_served() && !prompt.arguments.is_empty());
    let tools = tools.filter_map(|(at, tool)| Some((Subject::Tool(at), ArgumentSearch::of_tool(tool)?)));
    let prompts = prompts.filter_map(|(at, prompt)| Some((Subject::Prompt(at), ArgumentSearch::of_prompt(prompt)?)));
    let mut searches: BTreeMap<Subject, ArgumentSearch> = tools.chain(prompts).collect();
    let transcript = session.transcript_from(0);
    for exchange in transcript.exchanges() {
        let MessageKind::Request { method, .. } = MessageKind::of(exchange.request) else { continue };
        let Some(name) = exchange.request.pointer("/params/name").and_then(Value::as_str) else { continue };
        let subject = match method {
            "tools/call" => inventory.tools.iter().position(|tool| tool.name == name).map(Subject::Tool),
            "prompts/get" => {
                inventory.primitives.prompts().iter().position(|prompt| prompt.name == name).map(Subject::Prompt)
            }
            _ => None,
        };
        let arguments = exchange.request.pointer("/params/arguments").unwrap_or(&Value::Null);
        if let Some(search) = subject.and_then(|subject| searches.get_mut(&subject)) {
            for (_, response) in &exchange.responses {
                search.learn(arguments, &message_of(response));
            }
        }
    }
    searches
}

/// What the session has shown so far, and the folders of the server.
fn known_values(session: &Session, plan: &Plan, inventory: &Inventory) -> KnownValues {
    let mut known = KnownValues::default();
    let server = match &plan.launcher {
        Launcher::Command(server) | Launcher::Http(HttpTarget { command: Some(server), .. }) => Some(server),
        Launcher::Http(HttpTarget { command: None, .. }) | Launcher::Reference(_) | Launcher::InProcess(_) => None,
    };
    if let Some(server) = server {
        let directory: Option<PathBuf> = server.directory.clone().or_else(|| std::env::current_dir().ok());
        let words: Vec<_> = server.words_of_places().collect();
        let mut paths = known_paths(&words, directory.as_deref());
        let more = paths.first().map(|folder| files_of_each_kind(folder, directory.as_deref(), &paths));
        if let Some(directory) = &directory {
            paths.extend(known_paths(&[directory.as_os_str()], None));
        }
        paths.extend(more.into_iter().flatten());
        let is_folder = |path: &String| match &directory {
            Some(directory) => directory.join(path).is_dir(),
            None => Path::new(path).is_dir(),
        };
        let (folders, files) = paths.into_iter().partition(is_folder);
        known = KnownValues::of_paths(folders, files);
    }
    let transcript = session.transcript_from(0);
    for exchange in transcript.exchanges() {
        let MessageKind::Request { method: "tools/call", .. } = MessageKind::of(exchange.request) else { continue };
        for result in exchange.responses.iter().filter_map(|(_, response)| response.get("result")) {
            known.add_result(result);
        }
    }
    for uri in &inventory.primitives.resources {
        known.add("uri", &json!(uri));
    }
    known
}

/// Asks for completions of the arguments of prompts and of the variables of URI templates.
async fn ask_for_completions(session: &mut Session, inventory: &mut Inventory, limits: BatchLimits) {
    if !session.parameters.declares("completions") {
        return;
    }
    let of_prompts = inventory.primitives.prompts().iter().flat_map(|prompt| {
        let reference = json!({ "type": "ref/prompt", "name": prompt.name });
        prompt.arguments.keys().map(move |argument| (reference.clone(), argument.clone()))
    });
    let of_templates = inventory.primitives.templates.iter().flat_map(|template| {
        let reference = json!({ "type": "ref/resource", "uri": template });
        template_variables(template).into_iter().map(move |variable| (reference.clone(), variable))
    });
    let arguments: Vec<(Value, String)> = of_prompts.chain(of_templates).take(MAX_COMPLETIONS).collect();
    let request = |(reference, name): &(Value, String)| {
        let params = json!({ "ref": reference, "argument": { "name": name, "value": "" } });
        json!({ "method": "completion/complete", "params": params })
    };
    let requests: Vec<Value> = arguments.iter().map(request).collect();
    for answered in send_batch(session, &requests, limits).await {
        let name = &arguments[answered.request].1;
        let values = answered.response.pointer("/result/completion/values").and_then(Value::as_array);
        values.into_iter().flatten().for_each(|value| inventory.known_values.add(name, value));
    }
}

/// The names of the variables of a URI template (RFC 6570), without operators and modifiers.
pub(in crate::run) fn template_variables(template: &str) -> Vec<String> {
    let expressions = template.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(inside, _)| inside);
    let names =
        expressions.flat_map(|inside| inside.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']).split(','));
    let bare = names.map(|name| name.split([':', '*']).next().unwrap_or_default().to_owned());
    bare.filter(|name| !name.is_empty()).collect()
}

fn request(inventory: &Inventory, (subject, arguments): &(Subject, Value)) -> Value {
    let (method, name) = match subject {
        Subject::Tool(at) => ("tools/call", &inventory.tools[*at].name),
        Subject::Prompt(at) => ("prompts/get", &inventory.primitives.prompts()[*at].name),
    };
    json!({ "method": method, "params": { "name": name, "arguments": arguments } })
}

/// Records arguments that were served.
fn record(
    inventory: &mut Inventory,
    subject: Subject,
    arguments: &Value,
    client_requests: Vec<Value>,
    duration: Duration,
) {
    match subject {
        Subject::Tool(at) => {
            let tool = &mut inventory.tools[at];
            tool.use_working_arguments(arguments.clone(), client_requests, duration);
            tool.depends_on_results = inventory.known_values.depend_on_results(arguments, &tool.definition);
        }
        Subject::Prompt(at) => {
            let name = inventory.primitives.prompts()[at].name.clone();
            let arguments = arguments.as_object().cloned().unwrap_or_default();
            inventory.primitives.record_working_arguments(&name, &arguments);
        }
    }
}

/// The text of an error, or of a result with `isError`.
fn message_of(response: &Value) -> String {
    if let Some(error) = response.get("error") {
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        let data = error.get("data").map(|data| data.as_str().map_or_else(|| data.to_string(), str::to_owned));
        return format!("{message}\n{}", data.unwrap_or_default());
    }
    let content = response.pointer("/result/content").and_then(Value::as_array);
    let texts = content.into_iter().flatten().filter_map(|item| item.get("text")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_a_template_are_named() {
        assert_eq!(template_variables("note://{id}/{+path}{?a,b*,c:3}"), ["id", "path", "a", "b", "c"]);
        assert_eq!(template_variables("note://1"), Vec::<String>::new());
    }

    #[test]
    fn the_message_of_a_failure_is_its_text() {
        let failed = json!({"result": {"isError": true, "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}});
        assert_eq!(message_of(&failed), "a\nb");
        let error = json!({"error": {"code": -32602, "message": "m", "data": {"zones": ["x"]}}});
        assert_eq!(message_of(&error), "m\n{\"zones\":[\"x\"]}");
    }
}
