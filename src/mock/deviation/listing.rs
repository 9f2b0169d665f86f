//! Faults that show in `tools/list`: its result, and the definition of one tool.

use serde_json::{Value, json};

use crate::mock::fault::{Fault, FaultSet};
use crate::mock::message::{Object, object};
use crate::mock::revision::Revision;

/// Makes a result of `tools/list` what the faults want it to be.
pub(in crate::mock) fn deviate(result: &mut Object, revision: Revision, faults: &FaultSet) {
    for (fault, edit) in RESULT_FAULTS {
        if faults.shows(*fault, revision) {
            edit(result);
        }
    }
}

const RESULT_FAULTS: &[(Fault, fn(&mut Object))] = &[
    (Fault::ToolsObject, |result| {
        if let Some(Value::Array(tools)) = result.get("tools") {
            let keyed: Object = tools
                .iter()
                .map(|tool| (tool["name"].to_string(), tool.clone()))
                .collect();
            result.insert("tools".to_owned(), json!(keyed));
        }
    }),
    (Fault::MetaArray, |result| {
        drop(result.insert("_meta".to_owned(), json!([])))
    }),
    (Fault::MetaKeyBad, |result| add_meta(result, "-bad key")),
    (Fault::MetaKeyReservedAny, |result| {
        add_meta(result, "tools.mcp.example/x")
    }),
    (Fault::MetaKeyReservedSecond, |result| {
        add_meta(result, "com.mcp.tools/x")
    }),
    (Fault::MetaKeyForwardDns, |result| {
        add_meta(result, "example.com/x")
    }),
    (Fault::ResultTypeMissing, |result| {
        drop(result.remove("resultType"))
    }),
    (Fault::ResultTypeOdd, |result| {
        drop(result.insert("resultType".to_owned(), json!("done")))
    }),
    (Fault::CachingHintsMissing, |result| {
        result.remove("ttlMs");
        result.remove("cacheScope");
    }),
    (Fault::CacheScopeShared, |result| {
        result.insert("cacheScope".to_owned(), json!("shared"));
    }),
    (Fault::TtlNegative, |result| {
        drop(result.insert("ttlMs".to_owned(), json!(-1)))
    }),
];

fn add_meta(result: &mut Object, key: &str) {
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    if let Value::Object(meta) = meta {
        meta.insert(key.to_owned(), json!("odd"));
    }
}

/// The name under which the tool is listed whose definition a fault deforms.
const SPECIMEN: &str = "specimen";

/// Adds the tools that only faults list to those that are offered.
pub(in crate::mock) fn add_specimens(
    tools: &mut Vec<Object>,
    revision: Revision,
    faults: &FaultSet,
    salt: u64,
) {
    if faults.shows(Fault::ToolNameTwice, revision)
        && let Some(first) = tools.first().cloned()
    {
        tools.push(first);
    }
    if faults.shows(Fault::ListPerConnection, revision) {
        let mut tool = specimen(revision);
        tool.insert("name".to_owned(), json!(format!("visitor_{salt:x}")));
        tools.push(tool);
    }
    for (fault, edit) in DEFINITION_FAULTS {
        if faults.shows(*fault, revision) {
            let mut tool = specimen(revision);
            edit(&mut tool);
            tools.push(tool);
        }
    }
}

/// Whether a definition is one that only faults list: it takes any arguments and always succeeds.
pub(in crate::mock) fn is_specimen(tool: &Object) -> bool {
    tool.get("description")
        .is_some_and(|text| text.to_string().contains(SPECIMEN))
}

fn specimen(revision: Revision) -> Object {
    let mut tool = object(json!({
        "name": SPECIMEN,
        "description": "A specimen of a definition.",
        "inputSchema": {"type": "object"},
    }));
    // Marked as destructive so that a judge sees the definition and makes no calls that depend on it.
    if revision >= Revision::V2025_03_26 {
        let annotations = json!({"readOnlyHint": false, "destructiveHint": true});
        tool.insert("annotations".to_owned(), annotations);
    }
    tool
}

const DEFINITION_FAULTS: &[(Fault, fn(&mut Object))] = &[
    (Fault::ToolNameNumber, |tool| tool["name"] = json!(7)),
    (Fault::ToolNameLong, |tool| {
        tool["name"] = json!("n".repeat(129))
    }),
    (Fault::ToolNameSpace, |tool| {
        tool["name"] = json!("specimen of a name")
    }),
    (Fault::DescriptionArray, |tool| {
        tool["description"] = json!(["A specimen of a definition."])
    }),
    (Fault::TitleNumber, |tool| set(tool, "title", json!(7))),
    (Fault::InputSchemaMissing, |tool| {
        drop(tool.remove("inputSchema"))
    }),
    (Fault::InputSchemaTypeList, |tool| {
        tool["inputSchema"] = json!({"type": ["object"]})
    }),
    (Fault::InputSchemaBooleanProperty, |tool| {
        input(tool, json!({"x": true}))
    }),
    (Fault::InputSchemaRequiredString, |tool| {
        let properties = json!({"x": {"type": "string"}});
        tool["inputSchema"] = json!({"type": "object", "properties": properties, "required": "x"});
    }),
    (Fault::InputSchemaInvalid, |tool| {
        input(tool, json!({"x": {"type": "strin"}}))
    }),
    (Fault::InputSchemaDraft4, |tool| {
        input(
            tool,
            json!({"x": {"type": "number", "minimum": 0, "exclusiveMinimum": true}}),
        );
    }),
    (Fault::InputSchemaRemoteRef, |tool| {
        input(
            tool,
            json!({"x": {"$ref": "https://schemas.example.com/x.json"}}),
        );
    }),
    (Fault::OutputSchemaArrayRoot, |tool| {
        set(
            tool,
            "outputSchema",
            json!({"type": "array", "items": {"type": "string"}}),
        );
    }),
    (Fault::OutputSchemaInvalid, |tool| {
        let properties = json!({"x": {"type": "strin"}});
        set(
            tool,
            "outputSchema",
            json!({"type": "object", "properties": properties}),
        );
    }),
    (Fault::OutputSchemaTrue, |tool| {
        set(tool, "outputSchema", json!(true))
    }),
    (Fault::AnnotationsStringHint, |tool| {
        set(
            tool,
            "annotations",
            json!({"readOnlyHint": "true", "destructiveHint": true}),
        );
    }),
    (Fault::AnnotationsTitleNumber, |tool| {
        let annotations = json!({"title": 7, "readOnlyHint": false, "destructiveHint": true});
        set(tool, "annotations", annotations);
    }),
    (Fault::ExecutionOdd, |tool| {
        set(tool, "execution", json!({"taskSupport": "maybe"}))
    }),
    (Fault::IconSizesString, |tool| {
        let icon = json!({"src": "https://icons.example.com/x.png", "sizes": "48x48"});
        set(tool, "icons", json!([icon]));
    }),
    (Fault::IconJavascript, |tool| {
        set(
            tool,
            "icons",
            json!([{"src": "javascript:void(0)", "mimeType": "image/png"}]),
        );
    }),
    (Fault::HeaderNameSpace, |tool| {
        input(
            tool,
            json!({"x": {"type": "string", "x-mcp-header": "Two Words"}}),
        );
    }),
    (Fault::HeaderNameTwice, |tool| {
        let first = json!({"type": "string", "x-mcp-header": "Region"});
        let second = json!({"type": "string", "x-mcp-header": "region"});
        input(tool, json!({"x": first, "y": second}));
    }),
    (Fault::HeaderOnObject, |tool| {
        input(
            tool,
            json!({"x": {"type": "object", "x-mcp-header": "Region"}}),
        );
    }),
    (Fault::HeaderInItems, |tool| {
        let items = json!({"type": "string", "x-mcp-header": "Region"});
        input(tool, json!({"x": {"type": "array", "items": items}}));
    }),
    (Fault::HeaderOnPassword, |tool| {
        input(
            tool,
            json!({"password": {"type": "string", "x-mcp-header": "Password"}}),
        );
    }),
    (Fault::ToolMetaString, |tool| {
        set(tool, "_meta", json!("odd"))
    }),
    (Fault::TerminalEscapeInDescription, |tool| {
        tool["description"] = json!("A \u{1b}[31mspecimen\u{1b}[0m of a definition.");
    }),
    (Fault::BidiInDescription, |tool| {
        tool["description"] = json!("A \u{202e}specimen\u{202c}\u{200b} of a definition.");
    }),
];

fn set(tool: &mut Object, member: &str, value: Value) {
    tool.insert(member.to_owned(), value);
}

fn input(tool: &mut Object, properties: Value) {
    tool["inputSchema"] = json!({"type": "object", "properties": properties});
}
