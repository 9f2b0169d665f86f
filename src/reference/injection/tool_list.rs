//! Faults in `tools/list`: in its result and in tool definitions.

use serde_json::{Value, json};

use super::edit::Edit;
use super::edit::Edit::{Remove, Set, With};
use crate::reference::fault::Fault::{
    self, AnnotationsStringHint, AnnotationsTitleNumber, BidiInDescription, CacheScopeShared, CachingHintsMissing,
    DescriptionArray, HeaderInItems, HeaderNameSpace, HeaderNameTwice, HeaderOnObject, HeaderOnPassword,
    IconJavascript, IconSizesString, IconThemeUnknown, InputSchemaBooleanProperty, InputSchemaDraft4,
    InputSchemaInvalid, InputSchemaMissing, InputSchemaPatternInvalid, InputSchemaRefDangling, InputSchemaRemoteRef,
    InputSchemaRequiredString, InputSchemaTypeList, MarkupExample, MarkupInDescription, MetaArray, MetaKeyBad,
    MetaKeyForwardDns, MetaKeyReservedAny, MetaKeyReservedSecond, NewerKeywordsUnchecked, OutputSchemaArrayRoot,
    OutputSchemaBooleanProperty, OutputSchemaInvalid, OutputSchemaPatternInvalid, OutputSchemaRefDangling,
    OutputSchemaRemoteRef, OutputSchemaTrue, ResultTypeMissing, ResultTypeUnknown, TaskSupportUnknown,
    TerminalEscapeInDescription, TitleNumber, ToolMetaString, ToolNameLong, ToolNameNumber, ToolNameSpace, ToolsObject,
    TtlNegative,
};
use crate::reference::fault::FaultSet;
use crate::reference::message::{Object, object};
use crate::reference::particular_tool::{particular_tools, render_tool};
use crate::reference::revision::Revision;
use crate::reference::variant::MARKUP_EXAMPLE;
use crate::reference::variant_tool;

/// Applies faults to a result of `tools/list`.
pub(in crate::reference) fn inject(result: &mut Object, revision: Revision, faults: &FaultSet) {
    for Injection(fault, edit) in RESULT_FAULTS {
        if faults.is_active(*fault, revision) {
            edit.apply(result);
        }
    }
}

/// A fault, and the change to the result or the definition.
struct Injection(Fault, Edit);

const RESULT_FAULTS: &[Injection] = &[
    Injection(ToolsObject, With(key_tools)),
    Injection(MetaKeyBad, With(|result| add_meta(result, "-bad key"))),
    Injection(MetaKeyReservedAny, With(|result| add_meta(result, "tools.mcp.example/x"))),
    Injection(MetaKeyReservedSecond, With(|result| add_meta(result, "com.mcp.tools/x"))),
    Injection(MetaKeyForwardDns, With(|result| add_meta(result, "example.com/x"))),
    Injection(MetaArray, Set("_meta", || json!([]))),
    Injection(ResultTypeMissing, Remove("resultType")),
    Injection(ResultTypeUnknown, Set("resultType", || json!("done"))),
    Injection(CachingHintsMissing, Remove("ttlMs")),
    Injection(CachingHintsMissing, Remove("cacheScope")),
    Injection(CacheScopeShared, Set("cacheScope", || json!("shared"))),
    Injection(TtlNegative, Set("ttlMs", || json!(-1))),
];

fn key_tools(result: &mut Object) {
    if let Some(Value::Array(tools)) = result.get("tools") {
        let name = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
        let keyed: Object = tools.iter().map(|tool| (name(tool), tool.clone())).collect();
        result.insert("tools".to_owned(), json!(keyed));
    }
}

fn add_meta(result: &mut Object, key: &str) {
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    if let Value::Object(meta) = meta {
        meta.insert(key.to_owned(), json!("odd"));
    }
}

/// The name of the tool whose definition a fault changes.
const FAULT_TOOL_NAME: &str = "specimen";

/// Adds the tools that only faults list.
pub(in crate::reference) fn add_fault_tools(tools: &mut Vec<Object>, revision: Revision, faults: &FaultSet, salt: u64) {
    if faults.is_active(Fault::ToolNameTwice, revision)
        && let Some(first) = tools.first().cloned()
    {
        tools.push(first);
    }
    if faults.is_active(Fault::ListPerConnection, revision) {
        let mut tool = fault_tool(revision);
        tool.insert("name".to_owned(), json!(format!("visitor_{salt:x}")));
        tools.push(tool);
    }
    if faults.is_active(Fault::Awkward, revision) && revision >= Revision::V2025_11_25 {
        let mut tool = object(json!({"name": "pair", "description": "Takes a word and a number."}));
        use_prefix_items(&mut tool);
        tools.push(tool);
    }
    if faults.is_active(Fault::ParticularTools, revision) {
        *tools = particular_tools();
    }
    variant_tool::add_tools(tools, revision, faults);
    if faults.is_active(Fault::RenderKinds, revision) || faults.is_active(Fault::RenderedImageDataUrl, revision) {
        tools.push(render_tool());
    }
    for Injection(fault, edit) in DEFINITION_FAULTS {
        if faults.is_active(*fault, revision) {
            let mut tool = fault_tool(revision);
            edit.apply(&mut tool);
            tools.push(tool);
        }
    }
}

/// Whether only a fault lists this tool. Such a tool accepts any arguments and always succeeds.
pub(in crate::reference) fn is_fault_tool(tool: &Object) -> bool {
    tool.get("description").is_some_and(|text| text.to_string().contains(FAULT_TOOL_NAME))
}

fn fault_tool(revision: Revision) -> Object {
    let mut tool = object(json!({
        "name": FAULT_TOOL_NAME,
        "description": "A specimen of a definition.",
        "inputSchema": {"type": "object"},
    }));
    // Destructive, so that a judge checks the definition and does not call the tool.
    if revision >= Revision::V2025_03_26 {
        let annotations = json!({"readOnlyHint": false, "destructiveHint": true});
        tool.insert("annotations".to_owned(), annotations);
    }
    tool
}

const DEFINITION_FAULTS: &[Injection] = &[
    Injection(ToolNameNumber, Set("name", || json!(7))),
    Injection(ToolNameLong, Set("name", || json!("n".repeat(129)))),
    Injection(ToolNameSpace, Set("name", || json!("specimen of a name"))),
    Injection(DescriptionArray, Set("description", || json!(["A specimen of a definition."]))),
    Injection(TitleNumber, Set("title", || json!(7))),
    Injection(InputSchemaMissing, Remove("inputSchema")),
    Injection(InputSchemaTypeList, Set("inputSchema/type", || json!(["object"]))),
    Injection(InputSchemaBooleanProperty, Set(PROPERTIES, || json!({"x": true}))),
    Injection(InputSchemaRequiredString, Set(PROPERTIES, || json!({"x": {"type": "string"}}))),
    Injection(InputSchemaRequiredString, Set("inputSchema/required", || json!("x"))),
    Injection(InputSchemaInvalid, Set(PROPERTIES, || json!({"x": {"type": "strin"}}))),
    Injection(InputSchemaDraft4, Set(PROPERTIES, draft4)),
    Injection(
        InputSchemaPatternInvalid,
        Set(PROPERTIES, || json!({"x": {"type": "string", "pattern": PYTHON_PATTERN}})),
    ),
    Injection(InputSchemaRefDangling, Set(PROPERTIES, || json!({"x": {"$ref": "#/$defs/missing"}}))),
    Injection(InputSchemaRemoteRef, Set(PROPERTIES, remote_ref)),
    Injection(OutputSchemaArrayRoot, Set("outputSchema", || json!({"type": "array"}))),
    Injection(OutputSchemaBooleanProperty, Set("outputSchema", || output_with(&json!(true)))),
    Injection(OutputSchemaInvalid, Set("outputSchema", output_schema)),
    Injection(
        OutputSchemaPatternInvalid,
        Set("outputSchema", || output_with(&json!({"type": "string", "pattern": "^[0-9]++$"}))),
    ),
    Injection(OutputSchemaRefDangling, Set("outputSchema", || output_with(&json!({"$ref": "#/$defs/missing"})))),
    Injection(OutputSchemaRemoteRef, Set("outputSchema", || output_with(&remote_ref()["x"]))),
    Injection(OutputSchemaTrue, Set("outputSchema", || json!(true))),
    Injection(AnnotationsStringHint, Set("annotations/readOnlyHint", || json!("true"))),
    Injection(AnnotationsTitleNumber, Set("annotations/title", || json!(7))),
    Injection(TaskSupportUnknown, Set("execution", || json!({"taskSupport": "maybe"}))),
    Injection(IconSizesString, Set("icons", || json!([{"src": PICTURE, "sizes": "48x48"}]))),
    Injection(IconThemeUnknown, Set("icons", || json!([{"src": PICTURE, "theme": "sepia"}]))),
    Injection(IconJavascript, Set("icons", || json!([{"src": "javascript:void(0)"}]))),
    Injection(HeaderNameSpace, Set(PROPERTIES, || json!({"x": header("string", "Two Words")}))),
    Injection(HeaderNameTwice, Set(PROPERTIES, same_header_twice)),
    Injection(HeaderOnObject, Set(PROPERTIES, || json!({"x": header("object", "Region")}))),
    Injection(HeaderInItems, Set(PROPERTIES, in_items)),
    Injection(HeaderOnPassword, Set(PROPERTIES, || json!({"password": header("string", "Word")}))),
    Injection(ToolMetaString, Set("_meta", || json!("odd"))),
    Injection(TerminalEscapeInDescription, Set("description", || json!(ESCAPES))),
    Injection(BidiInDescription, Set("description", || json!(BIDI))),
    Injection(MarkupInDescription, Set("description", || json!(MARKUP))),
    Injection(MarkupExample, Set("description", || json!(MARKUP_EXAMPLE))),
    Injection(NewerKeywordsUnchecked, With(use_prefix_items)),
];

const PROPERTIES: &str = "inputSchema/properties";
const PYTHON_PATTERN: &str = "^(?P<word>[a-z]{8})$";
const PICTURE: &str = "https://icons.example.com/x.png";
const ESCAPES: &str = "A \u{1b}[31mspecimen\u{1b}[0m of a definition.";
const MARKUP: &str = "A specimen of a definition.<script>fetch('https://example.com')</script>";
const BIDI: &str = "A \u{202e}specimen\u{202c}\u{200b} of a definition.";

/// Gives a tool a schema that needs a keyword which older dialects do not have.
fn use_prefix_items(tool: &mut Object) {
    let pair = json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]});
    let schema = json!({"type": "object", "properties": {"pair": pair}, "required": ["pair"]});
    tool.insert("inputSchema".to_owned(), schema);
    tool.insert("annotations".to_owned(), json!({"readOnlyHint": true}));
}

fn draft4() -> Value {
    json!({"x": {"type": "number", "minimum": 0, "exclusiveMinimum": true}})
}

/// An output schema with one property.
fn output_with(property: &Value) -> Value {
    json!({"type": "object", "properties": {"x": property}})
}

fn remote_ref() -> Value {
    json!({"x": {"$ref": "https://schemas.example.com/x.json"}})
}

fn output_schema() -> Value {
    json!({"type": "object", "properties": {"x": {"type": "strin"}}})
}

/// The schema of an argument that the client also sends as a header.
fn header(kind: &str, name: &str) -> Value {
    json!({"type": kind, "x-mcp-header": name})
}

fn same_header_twice() -> Value {
    json!({"x": header("string", "Region"), "y": header("string", "region")})
}

fn in_items() -> Value {
    json!({"x": {"type": "array", "items": header("string", "Region")}})
}
