//! Values made of a tool: its name, and arguments that are valid or violate its schema in one way.

use serde_json::{Value, json};

use super::lasting_call::LastingCall;
use crate::case::{FilePath, Placeholder};
use crate::fuzz::{Mistake, Random};
use crate::inventory::{Inventory, Tool};
use crate::limits::MAX_OTHER_ARGUMENTS;
use crate::run::discovery::with_path;
use crate::scratch::RootFolder;

/// Why a placeholder cannot be filled in, and so why the case is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run::cases) struct MissingValue(pub(in crate::run::cases) String);

/// A tool with the arguments that a case calls it with.
#[derive(Debug, Clone)]
pub(super) struct BoundTool<'a> {
    pub(super) tool: &'a Tool,
    pub(super) arguments: Option<Value>,
}

impl<'a> BoundTool<'a> {
    /// A tool with its usual arguments.
    pub(super) fn plain(tool: &'a Tool) -> Self {
        Self { tool, arguments: tool.arguments.clone() }
    }

    /// The value of a placeholder of a tool.
    pub(super) fn value(
        &self,
        placeholder: &Placeholder,
        inventory: &Inventory,
        folder: Option<&RootFolder>,
        seed: u64,
    ) -> Result<Value, MissingValue> {
        let tool = self.tool;
        let invalid = |breakage: Mistake, what: &str| {
            let schema = tool.schema.as_ref();
            let broken = schema.and_then(|schema| match &self.arguments {
                Some(arguments) => schema.with_mistake_in(arguments, breakage),
                None => schema.with_mistake(breakage),
            });
            broken
                .map(|broken| broken.arguments)
                .ok_or_else(|| MissingValue(format!("no tool that may be called has {what}")))
        };
        match placeholder {
            Placeholder::ToolArguments => self
                .arguments
                .clone()
                .ok_or_else(|| MissingValue("no arguments could be generated for a tool".to_owned())),
            Placeholder::ToolArgumentsMissing => invalid(Mistake::MissingRequired, "a required argument"),
            Placeholder::ToolArgumentsWrongType => {
                invalid(Mistake::WrongType, "an argument of a type that is not converted")
            }
            Placeholder::ToolArgumentsOutsideEnum => invalid(Mistake::OutsideEnum, "an argument with listed values"),
            Placeholder::ToolArgumentsAdditional => invalid(Mistake::ExtraProperty, "additionalProperties: false"),
            Placeholder::ToolArguments2020Only => invalid_in_2020_12(tool)
                .ok_or_else(|| MissingValue("no tool that may be called has an argument with prefixItems".to_owned())),
            Placeholder::ToolArgumentsAlternative => other_arguments(tool, seed)
                .ok_or_else(|| MissingValue("no tool that may be called takes other arguments".to_owned())),
            Placeholder::ToolArgumentsLasting => LastingCall::of(tool)
                .map(|call| call.arguments)
                .ok_or_else(|| MissingValue("no arguments could be generated for a tool".to_owned())),
            Placeholder::ToolArgumentsFile(file) => with_file(tool, folder, *file),
            Placeholder::ToolSwappedCase => {
                let swapped = swapped_case(&tool.name);
                if swapped == tool.name || inventory.tools.iter().any(|other| other.name == swapped) {
                    return Err(MissingValue("every tool name in swapped case is that of a tool".to_owned()));
                }
                Ok(json!(swapped))
            }
            _ => Ok(json!(tool.name)),
        }
    }
}

/// Valid arguments with the path of a file that the run made.
fn with_file(tool: &Tool, folder: Option<&RootFolder>, file: FilePath) -> Result<Value, MissingValue> {
    let path = folder.and_then(|folder| match file {
        FilePath::InRoot => Some(folder.inside_file()),
        FilePath::Outside => Some(folder.outside_file()),
        FilePath::OutsideByParent => Some(folder.outside_file_by_parent()),
        FilePath::OutsideByLink => folder.outside_file_by_link(),
    });
    let path = path.ok_or_else(|| MissingValue("the run made no such file".to_owned()))?;
    let arguments = tool.schema.as_ref().and_then(|schema| with_path(schema, &path));
    arguments.ok_or_else(|| MissingValue("no tool that may be called needs a path".to_owned()))
}

/// Arguments that violate a keyword which only the 2020-12 dialect of JSON Schema has; the tool's schema names that dialect
/// or none.
fn invalid_in_2020_12(tool: &Tool) -> Option<Value> {
    let schema = tool.definition.get("inputSchema")?;
    let named = schema.get("$schema").and_then(Value::as_str);
    if named.is_some_and(|dialect| !dialect.contains("2020-12")) {
        return None;
    }
    let arguments = tool.arguments.clone()?;
    let own = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (name, property) in own {
        let first = property.pointer("/prefixItems/0/type").and_then(Value::as_str);
        let wrong = match first {
            Some("object" | "array") => json!("unexpected"),
            Some("string" | "integer" | "number" | "boolean" | "null") => json!({"unexpected": true}),
            _ => continue,
        };
        let mut broken = arguments.clone();
        broken.as_object_mut()?.insert(name.clone(), json!([wrong]));
        return Some(broken);
    }
    None
}

/// Valid arguments that are not the minimal ones.
fn other_arguments(tool: &Tool, seed: u64) -> Option<Value> {
    let mut random = Random::new(seed);
    let generated = (0..MAX_OTHER_ARGUMENTS).filter_map(|_| tool.schema.as_ref()?.generate(&mut random).ok());
    generated.into_iter().find(|arguments| tool.arguments.as_ref() != Some(arguments))
}

/// A string with the case of its letters swapped.
pub(super) fn swapped_case(text: &str) -> String {
    let swapped = |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    text.chars().map(swapped).collect()
}

/// A string with the character in its middle changed.
pub(super) fn altered(cursor: &str) -> Option<String> {
    let mut characters: Vec<char> = cursor.chars().collect();
    let middle = characters.len() / 2;
    let character = characters.get_mut(middle)?;
    *character = match *character {
        '0' => '1',
        c if c.is_ascii_digit() => '0',
        'a' => 'b',
        'A' => 'B',
        c if c.is_ascii_uppercase() => 'A',
        _ => 'a',
    };
    Some(characters.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::CallPolicy;

    #[test]
    fn arguments_for_2020_12_violate_prefix_items_and_nothing_else() {
        let tool = |schema: Value| {
            Tool::new(&json!({"name": "pair", "inputSchema": schema}), CallPolicy::NonDestructive)
                .expect("it has a name")
        };
        let pair = json!({"type": "array", "prefixItems": [{"type": "string"}]});
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}, "pair": pair}, "required": ["n"]});
        let broken = invalid_in_2020_12(&tool(schema.clone())).expect("it has prefixItems");
        assert_eq!(broken["pair"], json!([{"unexpected": true}]));
        assert!(broken["n"].is_i64(), "{broken}");
        let mut older = schema;
        older["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        assert_eq!(invalid_in_2020_12(&tool(older)), None);
        assert_eq!(invalid_in_2020_12(&tool(json!({"type": "object"}))), None);
    }

    #[test]
    fn an_altered_cursor_differs_in_one_character() {
        for cursor in ["MTA=", "10", "abc", "ü"] {
            let altered = altered(cursor).expect("it has a character");
            assert_ne!(altered, cursor);
            assert_eq!(altered.chars().count(), cursor.chars().count());
        }
        assert_eq!(altered(""), None);
    }
}
