//! Complete messages, made from the official schemas: together they have every property that a server may send.

use serde_json::{Map, Value, json};

/// The id of the requests that the messages belong to.
const ID: &str = "conformance-specimen";
/// The progress token of those requests.
const TOKEN: &str = "conformance-token";

/// A picture of one pixel, and a sound of no samples: their bytes have the MIME types that the messages name.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// A complete message, and the request that it belongs to.
pub(super) struct Specimen {
    pub(super) message: Value,
    pub(super) request: Value,
    pub(super) definition: &'static str,
}

/// The definitions of all results, with a request that each answers.
fn results() -> Vec<(&'static str, Value)> {
    let call = json!({"name": "conformance", "arguments": {}});
    let task_call = json!({"name": "conformance", "arguments": {}, "task": {}});
    let task = json!({"taskId": TASK_ID});
    let uri = json!({"uri": "file:///conformance"});
    let completion = json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "x", "value": "x"}});
    let request = |method: &str, params: Value| json!({"method": method, "params": params});
    vec![
        ("EmptyResult", request("ping", json!({}))),
        ("DiscoverResult", request("server/discover", json!({}))),
        ("ListToolsResult", request("tools/list", json!({}))),
        ("CallToolResult", request("tools/call", call.clone())),
        ("ListResourcesResult", request("resources/list", json!({}))),
        ("ListResourceTemplatesResult", request("resources/templates/list", json!({}))),
        ("ReadResourceResult", request("resources/read", uri)),
        ("ListPromptsResult", request("prompts/list", json!({}))),
        ("GetPromptResult", request("prompts/get", json!({"name": "conformance"}))),
        ("CompleteResult", request("completion/complete", completion)),
        ("CreateTaskResult", request("tools/call", task_call)),
        ("GetTaskResult", request("tasks/get", task.clone())),
        ("CancelTaskResult", request("tasks/cancel", task)),
        ("ListTasksResult", request("tasks/list", json!({}))),
        ("InputRequiredResult", request("tools/call", call)),
        ("SubscriptionsListenResult", request("subscriptions/listen", json!({"notifications": {}}))),
    ]
}

/// The definitions of results of which no complete message is made, each with the reason.
const RESULTS_WITHOUT_SPECIMEN: [(&str, &str); 10] = [
    (
        "InitializeResult",
        "it opens the connection that the others are judged on; the built-in server sends a complete one",
    ),
    ("GetTaskPayloadResult", "it has the form of the result of the task's call, and defines no property of its own"),
    ("Result", "the base of all results"),
    ("PaginatedResult", "the base of all lists"),
    ("CacheableResult", "the base of all results that may be cached"),
    ("ServerResult", "any of the results of a server"),
    ("ClientResult", "any of the results of a client"),
    ("CreateMessageResult", "a result of a client"),
    ("ElicitResult", "a result of a client"),
    ("ListRootsResult", "a result of a client"),
];

/// A line for each definition of a result that has neither a complete message nor a reason for having none.
pub(super) fn forgotten_results(definitions: &Value) -> String {
    let known: Vec<&str> = results().iter().map(|(name, _)| *name).collect();
    let has_reason =
        |name: &str| RESULTS_WITHOUT_SPECIMEN.iter().any(|(own, reason)| *own == name && !reason.is_empty());
    let names = definitions.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let forgotten = names.filter(|name| name.ends_with("Result") && !known.contains(name) && !has_reason(name));
    let forgotten: Vec<&str> = forgotten.collect();
    if forgotten.is_empty() { String::new() } else { format!("no message is mutated of {}\n", forgotten.join(", ")) }
}

/// The definitions of all notifications that a server sends while a call is open.
const NOTIFICATIONS: [&str; 7] = [
    "ProgressNotification",
    "LoggingMessageNotification",
    "ToolListChangedNotification",
    "ResourceListChangedNotification",
    "PromptListChangedNotification",
    "ResourceUpdatedNotification",
    "TaskStatusNotification",
];

const URI: &str = "https://conformance.example/x";
const TASK_ID: &str = "7f3c1c7e-5e0b-4f0e-9d5c-1f2a3b4c5d6e";

/// Complete messages for every result and notification that a revision defines, as the schema has them.
///
/// `definitions` is the member of the schema that holds them. The handshake is not among them: it opens the connection
/// that everything else is judged on, and the built-in server sends a complete one.
pub(super) fn specimens(definitions: &Value, revision: &str) -> Vec<Specimen> {
    let generator = Generator { definitions, revision };
    let mut found = Vec::new();
    for (definition, mut request) in results() {
        if definitions.get(definition).is_none() {
            continue;
        }
        request["jsonrpc"] = json!("2.0");
        request["id"] = json!(ID);
        for result in generator.of_definition(definition) {
            let message = json!({"jsonrpc": "2.0", "id": ID, "result": result});
            found.push(Specimen { message, request: request.clone(), definition });
        }
    }
    for definition in NOTIFICATIONS {
        if definitions.get(definition).is_none() {
            continue;
        }
        let call = json!({"name": "conformance", "arguments": {}, "_meta": {
            "progressToken": TOKEN, "io.modelcontextprotocol/logLevel": "debug",
        }});
        let subscription = json!({"notifications": {
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": [URI],
        }});
        // Where subscriptions exist, changes belong to one.
        let is_of_subscription = definition.contains("Changed") || definition.contains("Updated");
        let (method, params) = if is_of_subscription && definitions.get("SubscriptionsListenResult").is_some() {
            ("subscriptions/listen", subscription)
        } else {
            ("tools/call", call)
        };
        let request = json!({"jsonrpc": "2.0", "id": ID, "method": method, "params": params});
        for mut message in generator.of_definition(definition) {
            message["jsonrpc"] = json!("2.0");
            if let (false, Some(meta)) = (is_of_subscription, message.pointer_mut("/params/_meta")) {
                *meta = json!({});
            }
            found.push(Specimen { message, request: request.clone(), definition });
        }
    }
    found
}

/// Generates instances with every property.
struct Generator<'s> {
    definitions: &'s Value,
    revision: &'s str,
}

impl Generator<'_> {
    fn of_definition(&self, name: &str) -> Vec<Value> {
        let mut open = Vec::new();
        let mut instances = self.of_reference(name, &mut open);
        for instance in &mut instances {
            self.adapt(instance, name);
        }
        instances
    }

    /// Instances of a definition; `open` are the definitions around it, so that a recursive one ends.
    fn of_reference(&self, name: &str, open: &mut Vec<String>) -> Vec<Value> {
        // Any JSON value is allowed there.
        if name == "JSONObject" || open.iter().any(|known| known == name) {
            return vec![json!({})];
        }
        open.push(name.to_owned());
        let instances = self.of_schema(&self.definitions[name], open);
        open.pop();
        instances
    }

    /// Instances of a schema: one for each of its alternatives.
    fn of_schema(&self, schema: &Value, open: &mut Vec<String>) -> Vec<Value> {
        if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
            return self.of_reference(name, open);
        }
        if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)) {
            return vec![value.clone()];
        }
        if let Some(alternatives) = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
            return alternatives.iter().flat_map(|alternative| self.of_schema(alternative, open)).collect();
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let mut merged = Map::new();
            for part in parts {
                if let Some(Value::Object(members)) = self.of_schema(part, open).into_iter().next() {
                    merged.extend(members);
                }
            }
            return vec![Value::Object(merged)];
        }
        let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or("object");
        match kind {
            "object" => self.of_object(schema, open),
            "array" => vec![Value::Array(self.of_schema(&schema["items"], open))],
            "integer" => vec![json!(5)],
            "number" => vec![json!(0.5)],
            "boolean" => vec![json!(true)],
            _ => vec![json!(match schema["format"].as_str() {
                Some("uri") => URI,
                Some("uri-template") => "file:///{path}",
                Some("byte") => PNG,
                _ => "conformance",
            })],
        }
    }

    /// Objects with every property: one with the first alternative of each, and one for each further alternative.
    fn of_object(&self, schema: &Value, open: &mut Vec<String>) -> Vec<Value> {
        let mut first = Map::new();
        let mut further = Vec::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let mut alternatives = self.of_schema(property, open).into_iter();
            first.extend(alternatives.next().map(|value| (name.clone(), value)));
            further.extend(alternatives.map(|value| (name.clone(), value)));
        }
        // Members of any name: one for each alternative.
        let others = &schema["additionalProperties"];
        if others.get("type").is_some() || others.get("$ref").is_some() {
            for (number, value) in self.of_schema(others, open).into_iter().enumerate() {
                first.insert(format!("com.example/x{number}"), value);
            }
        }
        let replaced = |(name, value)| {
            let mut object = first.clone();
            object.insert(name, value);
            Value::Object(object)
        };
        let more: Vec<Value> = further.into_iter().map(replaced).collect();
        std::iter::once(Value::Object(first)).chain(more).collect()
    }

    /// Sets what the specification says beyond the schema: times, MIME types, versions, ids.
    fn adapt(&self, value: &mut Value, definition: &str) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.adapt(item, definition)),
            Value::Object(members) => {
                let of_type = members.get("type").and_then(Value::as_str).map(str::to_owned);
                for (name, member) in members.iter_mut() {
                    match (name.as_str(), member) {
                        ("lastModified" | "createdAt" | "lastUpdatedAt", member) => {
                            *member = json!("2025-01-12T15:00:58Z");
                        }
                        ("mimeType", member) => {
                            *member = json!(match of_type.as_deref() {
                                Some("audio") => "audio/wav",
                                Some("text" | "resource_link") => "text/plain",
                                _ => "image/png",
                            });
                        }
                        ("data", member) if of_type.as_deref() == Some("audio") => *member = json!(WAV),
                        ("supportedVersions", member) => *member = json!([self.revision]),
                        ("$schema", member) => *member = json!("https://json-schema.org/draft/2020-12/schema"),
                        ("progressToken", member) => *member = json!(TOKEN),
                        ("taskId", member) => *member = json!(TASK_ID),
                        ("status", member) => *member = json!("working"),
                        ("io.modelcontextprotocol/subscriptionId", member) => *member = json!(ID),
                        ("resultType", member) if definition == "InputRequiredResult" => {
                            *member = json!("input_required");
                        }
                        ("resultType", member) => *member = json!("complete"),
                        (_, member) => self.adapt(member, definition),
                    }
                }
                // The messages of a sampling request are a dialogue, which no schema describes.
                if members.contains_key("maxTokens") {
                    let said = json!({"role": "user", "content": {"type": "text", "text": "conformance"}});
                    members.insert("messages".to_owned(), json!([said]));
                }
            }
            _ => {}
        }
    }
}
