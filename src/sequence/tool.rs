//! A tool as sequences see it: what it does, to what, and with which arguments.

use serde_json::Value;

use super::words::{Role, referred, role_and_nouns, singular, words};

/// The maximum number of arguments that are looked at.
const MAX_PARAMETERS: usize = 64;

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterType {
    /// A string; free if no keyword restricts its content.
    Text {
        is_free: bool,
    },
    Integer,
    Number,
    Other,
}

/// An argument of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) kind: ParameterType,
    pub(crate) is_required: bool,
}

/// A tool as sequences see it.
#[derive(Debug, Clone)]
pub(crate) struct SequenceTool {
    pub(crate) name: String,
    pub(crate) role: Option<Role>,
    /// The singular words of its name that say what it works on.
    pub(crate) nouns: Vec<String>,
    pub(crate) parameters: Vec<Parameter>,
    /// Whether it is annotated `readOnlyHint: true`.
    pub(crate) is_read_only: bool,
    /// Whether it is annotated `idempotentHint: true`.
    pub(crate) is_idempotent: bool,
}

impl SequenceTool {
    /// A tool by its definition; `None` without a name.
    pub(crate) fn new(definition: &Value) -> Option<Self> {
        let name = definition.get("name")?.as_str()?.to_owned();
        let hint = |hint: &str| definition.get("annotations").and_then(|all| all.get(hint)) == Some(&Value::Bool(true));
        let (role, nouns) = role_and_nouns(&name);
        let schema = definition.get("inputSchema");
        let required: Vec<&str> = schema
            .and_then(|schema| schema.get("required")?.as_array())
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
        let parameter = |(name, schema): (&String, &Value)| Parameter {
            name: name.clone(),
            kind: parameter_type(schema),
            is_required: required.contains(&name.as_str()),
        };
        let parameters = properties.into_iter().flatten().take(MAX_PARAMETERS).map(parameter).collect();
        let is_read_only = hint("readOnlyHint");
        // A tool that says that it only reads makes, changes and deletes nothing, whatever its name.
        let role = match role {
            Some(Role::Create | Role::Change | Role::Delete) if is_read_only => Some(Role::Read),
            role => role,
        };
        Some(Self { name, role, nouns, parameters, is_read_only, is_idempotent: hint("idempotentHint") })
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }
}

/// The type of an argument; of several types, the first that is not null.
fn parameter_type(schema: &Value) -> ParameterType {
    let alternatives = ["anyOf", "oneOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array());
    if let (None, Some(alternatives)) = (schema.get("type"), alternatives) {
        let is_null = |schema: &&Value| schema.get("type").is_some_and(|kind| kind == "null");
        return alternatives.iter().find(|schema| !is_null(schema)).map_or(ParameterType::Other, parameter_type);
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().find(|kind| **kind != "null").and_then(Value::as_str),
        Some(kind) => kind.as_str(),
        None => None,
    };
    match kind {
        Some("string") => {
            let restricts = ["enum", "const", "pattern", "format"].iter().any(|keyword| schema.get(keyword).is_some());
            ParameterType::Text { is_free: !restricts }
        }
        Some("integer") => ParameterType::Integer,
        Some("number") => ParameterType::Number,
        _ => ParameterType::Other,
    }
}

/// How well a value of a result fits an argument by their names, from 0 (not at all) to 4. `member` is the name of the
/// member that holds the value, empty for a word of a text; `producer` are the nouns of the tool that returned it.
pub(crate) fn affinity(member: &str, producer: &[String], parameter: &Parameter, consumer: &SequenceTool) -> u8 {
    let is_about = |words: &[String]| words.iter().any(|word| producer.contains(word));
    let own: Vec<String> = words(&parameter.name).iter().map(|word| singular(word)).collect();
    let wanted = match referred(&parameter.name) {
        // `project` may be the id of a project.
        None if own.len() == 1 && producer.contains(&own[0]) => {
            return if member.is_empty() || referred(member).is_some_and(|words| words.is_empty()) { 2 } else { 0 };
        }
        None => return 0,
        Some(wanted) => wanted,
    };
    let shares_noun = consumer.nouns.iter().any(|noun| producer.contains(noun));
    if member.is_empty() {
        return if is_about(&wanted) || (wanted.is_empty() && shares_noun) { 2 } else { 0 };
    }
    let Some(given) = referred(member) else { return 0 };
    let same_end = words(member).last().map(|word| singular(word)) == own.last().cloned();
    match (given.is_empty(), wanted.is_empty()) {
        (false, false) if given == wanted && same_end => 4,
        (true, false) if is_about(&wanted) => 4 - u8::from(!same_end),
        (false, true) if given.iter().any(|word| consumer.nouns.contains(word)) => 3,
        (true, true) if shares_noun => 4 - u8::from(!same_end),
        // A server with one kind of object need not name it.
        (true, true) => u8::from(same_end && consumer.nouns.is_empty()),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, properties: &Value, required: &Value) -> SequenceTool {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        SequenceTool::new(&json!({"name": name, "inputSchema": schema})).expect("it has a name")
    }

    fn fits(member: &str, producer: &SequenceTool, consumer: &SequenceTool, argument: &str) -> u8 {
        affinity(member, &producer.nouns, consumer.parameter(argument).expect("it is declared"), consumer)
    }

    #[test]
    fn ids_fit_the_arguments_of_the_tools_for_the_same_objects() {
        let text = json!({"type": "string"});
        let project = tool("create_project", &json!({"name": text}), &json!(["name"]));
        let task = tool("addTask", &json!({"projectId": text, "title": text}), &json!(["projectId", "title"]));
        let get_task = tool("get-task", &json!({"id": text}), &json!(["id"]));
        let move_task = tool("move_task", &json!({"task_id": text, "project": text}), &json!(["task_id"]));
        assert_eq!(fits("id", &project, &task, "projectId"), 4);
        assert_eq!(fits("projectId", &project, &task, "projectId"), 4);
        assert_eq!(fits("id", &task, &get_task, "id"), 4);
        assert_eq!(fits("taskId", &task, &get_task, "id"), 3);
        assert_eq!(fits("id", &task, &move_task, "task_id"), 4);
        assert_eq!(fits("id", &project, &move_task, "project"), 2);
        assert_eq!(fits("", &task, &get_task, "id"), 2);
        for (member, producer, consumer, argument) in [
            ("id", &project, &get_task, "id"),
            ("id", &task, &task, "projectId"),
            ("title", &task, &get_task, "id"),
            ("id", &task, &move_task, "project"),
            ("id", &project, &task, "title"),
            ("projectId", &task, &get_task, "id"),
        ] {
            assert_eq!(fits(member, producer, consumer, argument), 0, "{member} {argument}");
        }
    }

    #[test]
    fn types_are_read_from_unions_with_null() {
        let optional = json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null});
        assert_eq!(parameter_type(&optional), ParameterType::Text { is_free: true });
        assert_eq!(parameter_type(&json!({"type": ["null", "integer"]})), ParameterType::Integer);
        assert_eq!(parameter_type(&json!({"type": "string", "enum": ["a"]})), ParameterType::Text { is_free: false });
        assert_eq!(parameter_type(&json!(true)), ParameterType::Other);
    }

    #[test]
    fn a_tool_that_says_that_it_only_reads_deletes_nothing() {
        let definition = json!({"name": "drop_down", "inputSchema": {}, "annotations": {"readOnlyHint": true}});
        assert_eq!(SequenceTool::new(&definition).and_then(|tool| tool.role), Some(Role::Read));
    }
}
