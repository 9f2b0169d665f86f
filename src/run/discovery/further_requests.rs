//! Sends requests at the end of a session whose responses only the passive cases judge, so that each kind of result
//! appears at least once: calls with varied arguments, every resource, resources of templates and of links, and every
//! prompt, with its optional arguments too.
//!
//! The calls may change the state of the server, so no other case follows on the session.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

use serde_json::{Map, Value, json};

use super::argument_variants::variants;
use super::request_batch::{BatchLimits, send_batch};
use super::working_arguments::template_variables;
use crate::inventory::{Inventory, KnownValues, Tool};
use crate::limits::{
    FURTHER_REQUEST_TIMEOUT, FURTHER_TIME, FURTHER_TIME_PER_TOOL, MAX_EXPANSIONS, MAX_EXPANSIONS_PER_TEMPLATE,
    MAX_FIRST_READS, MAX_FURTHER_CALLS, MAX_FURTHER_CALLS_PER_TOOL, MAX_FURTHER_PROMPTS, MAX_FURTHER_RESOURCES,
    MAX_LINKED_RESOURCES,
};
use crate::percent;
use crate::session::Session;
use crate::transcript::Entry;

/// The values of variables of which nothing is known.
const GUESSES: [&str; 3] = ["1", "0", "test"];

/// Sends the requests on a session whose cases have finished.
pub(in crate::run) async fn send_further_requests(session: &mut Session, inventory: &Inventory, timeout: Duration) {
    if inventory.stop_reason.is_some() || session.unanswered > 0 || session.is_slow() {
        return;
    }
    let limit = session.answer_times().at_least(FURTHER_REQUEST_TIMEOUT).min(timeout);
    let limits = BatchLimits { timeout: limit, end: Instant::now() + FURTHER_TIME };
    for requests in [resource_requests(inventory), prompt_requests(inventory), calls(inventory)] {
        send_batch(session, &requests, limits).await;
    }
    if session.parameters.declares("resources") {
        let requests = linked_resource_requests(&session.connection.entries_from(0));
        send_batch(session, &requests, limits).await;
    }
}

/// Reads the resources that discovery did not read, and some resources of each template.
fn resource_requests(inventory: &Inventory) -> Vec<Value> {
    let primitives = &inventory.primitives;
    let listed = primitives.resources.iter().skip(MAX_FIRST_READS).take(MAX_FURTHER_RESOURCES).cloned();
    let known = &inventory.known_values;
    let expanded = primitives.templates.iter().flat_map(|template| expansions(template, known));
    let new = expanded.filter(|uri| !primitives.resources.contains(uri)).take(MAX_EXPANSIONS);
    listed.chain(new).map(|uri| json!({ "method": "resources/read", "params": { "uri": uri } })).collect()
}

/// Reads the resources to which results link and that were not read before. A link to the web is for the client to follow.
fn linked_resource_requests(entries: &[Arc<Entry>]) -> Vec<Value> {
    let read: BTreeSet<&str> =
        entries.iter().filter_map(|entry| entry.sent()?.pointer("/params/uri")?.as_str()).collect();
    let mut linked: Vec<&str> = Vec::new();
    for result in entries.iter().filter_map(|entry| entry.received()?.get("result")) {
        let items = result.get("content").and_then(Value::as_array).into_iter().flatten();
        let messages = result.get("messages").and_then(Value::as_array).into_iter().flatten();
        let blocks = items.chain(messages.filter_map(|message| message.get("content")));
        let links = blocks.filter(|block| block.get("type").is_some_and(|kind| kind == "resource_link"));
        for uri in links.filter_map(|link| link.get("uri")?.as_str()) {
            let is_of_web = uri.starts_with("http:") || uri.starts_with("https:");
            if !is_of_web && !read.contains(uri) && !linked.contains(&uri) && linked.len() < MAX_LINKED_RESOURCES {
                linked.push(uri);
            }
        }
    }
    linked.into_iter().map(|uri| json!({ "method": "resources/read", "params": { "uri": uri } })).collect()
}

/// Gets the prompts that discovery did not get, and each prompt with its optional arguments too.
fn prompt_requests(inventory: &Inventory) -> Vec<Value> {
    let prompts = inventory.primitives.prompts();
    let request = |name: &str, arguments: &Map<String, Value>| {
        let params = if arguments.is_empty() {
            json!({ "name": name })
        } else {
            json!({ "name": name, "arguments": arguments })
        };
        json!({ "method": "prompts/get", "params": params })
    };
    let plain = prompts.iter().skip(MAX_FIRST_READS).map(|prompt| request(&prompt.name, &prompt.arguments));
    let with_options = prompts.iter().filter(|prompt| !prompt.optional.is_empty()).map(|prompt| {
        let mut arguments = prompt.arguments.clone();
        for (name, guess) in &prompt.optional {
            let known = inventory.known_values.values_for(name).into_iter().find(Value::is_string);
            arguments.insert(name.clone(), known.unwrap_or_else(|| guess.clone()));
        }
        request(&prompt.name, &arguments)
    });
    plain.take(MAX_FURTHER_PROMPTS).chain(with_options.take(MAX_FURTHER_PROMPTS)).collect()
}

/// Calls each served tool with varied arguments, the tools in turn.
fn calls(inventory: &Inventory) -> Vec<Value> {
    let of_tool = |tool: &Tool| -> Vec<Value> {
        let (Some(schema), Some(served)) = (&tool.schema, &tool.arguments) else { return Vec::new() };
        let arguments = variants(schema, served, max_calls(tool));
        arguments.into_iter().map(|arguments| json!({ "name": tool.name, "arguments": arguments })).collect()
    };
    let varied: Vec<Vec<Value>> = inventory.tools.iter().filter(|tool| tool.is_served()).map(of_tool).collect();
    let in_turn = (0..MAX_FURTHER_CALLS_PER_TOOL).flat_map(|at| varied.iter().filter_map(move |calls| calls.get(at)));
    let with_token = |(number, params): (usize, &Value)| {
        let mut params = params.clone();
        params["_meta"] = json!({ "progressToken": format!("further-{number}") });
        json!({ "method": "tools/call", "params": params })
    };
    in_turn.take(MAX_FURTHER_CALLS).enumerate().map(with_token).collect()
}

/// The maximum number of calls of a tool: fewer if its first call was slow.
fn max_calls(tool: &Tool) -> usize {
    let duration = tool.first_call.map_or(FURTHER_TIME_PER_TOOL, |(_, duration)| duration);
    let in_time = FURTHER_TIME_PER_TOOL.as_micros() / duration.as_micros().max(1);
    usize::try_from(in_time).unwrap_or(MAX_FURTHER_CALLS_PER_TOOL).min(MAX_FURTHER_CALLS_PER_TOOL)
}

/// Some URIs of a template: its variables take the values of completions or of results, or else guesses.
fn expansions(template: &str, known: &KnownValues) -> Vec<String> {
    let variables = template_variables(template);
    let expansion = |at: usize| {
        let mut values = variables.iter().map(|name| {
            let known = known.values_for(name);
            let value = known.get(at).or(known.first()).cloned().unwrap_or(json!(GUESSES[at % GUESSES.len()]));
            (name.as_str(), value.as_str().map_or_else(|| value.to_string(), percent::encode))
        });
        expand(template, &mut values)
    };
    let mut uris: Vec<String> = Vec::new();
    for uri in (0..MAX_EXPANSIONS_PER_TEMPLATE).map(expansion) {
        if !uris.contains(&uri) {
            uris.push(uri);
        }
    }
    uris
}

/// Replaces the expressions of a template (RFC 6570) by the values of their variables, in order.
fn expand<'a>(template: &str, values: &mut impl Iterator<Item = (&'a str, String)>) -> String {
    let mut uri = String::new();
    let mut rest = template;
    while let Some((before, expression)) = rest.split_once('{') {
        let (inside, after) = expression.split_once('}').unwrap_or((expression, ""));
        uri.push_str(before);
        let operator = inside.chars().next().filter(|first| "+#./;?&".contains(*first));
        let (first, separator) = match operator {
            Some('?') => ("?", "&"),
            Some('&') => ("&", "&"),
            Some(';') => (";", ";"),
            Some('/') => ("/", "/"),
            Some('.') => (".", "."),
            Some('#') => ("#", ","),
            _ => ("", ","),
        };
        let is_named = matches!(operator, Some('?' | '&' | ';'));
        let values = values.by_ref().take(inside.split(',').count());
        let items: Vec<String> =
            values.map(|(name, value)| if is_named { format!("{name}={value}") } else { value }).collect();
        uri.extend([first, &items.join(separator)]);
        rest = after;
    }
    uri + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_a_template_take_known_values() {
        let mut known = KnownValues::default();
        known.add("city", &json!("Oulu"));
        known.add("city", &json!("Säkylä 2"));
        assert_eq!(expansions("weather://{city}", &known), ["weather://Oulu", "weather://S%C3%A4kyl%C3%A4%202"]);
        assert_eq!(expansions("w://{city}/{+id}{?a,b}{#c}", &known)[0], "w://Oulu/1?a=1&b=1#1");
        assert_eq!(expansions("plain://x", &known), ["plain://x"]);
    }

    #[test]
    fn a_slow_tool_gets_few_calls() {
        use crate::inventory::FirstCallOutcome;
        use crate::plan::CallPolicy;
        let definition = json!({"name": "a", "inputSchema": {"type": "object"}});
        let mut tool = Tool::new(&definition, CallPolicy::NonDestructive).expect("it has a name");
        for (duration, calls) in [(1, MAX_FURTHER_CALLS_PER_TOOL), (400, 2), (1_500, 0)] {
            tool.first_call = Some((FirstCallOutcome::Served, Duration::from_millis(duration)));
            assert_eq!(max_calls(&tool), calls, "{duration}");
        }
    }
}
