//! The variant of the server that writes every optional member which its revision has.

use serde_json::{Value, json};

use super::content;
use super::message::Object;
use super::resource;
use super::revision::Revision;

/// Writes the optional members that are missing in a result.
pub(super) fn write_every_member(result: &mut Object, revision: Revision) {
    add_meta(result);
    let writer = MemberWriter { revision };
    for tool in objects(result.get_mut("tools")) {
        writer.complete_tool(tool);
    }
    for list in ["resources", "resourceTemplates"] {
        for resource in objects(result.get_mut(list)) {
            writer.complete_resource(resource);
        }
    }
    for prompt in objects(result.get_mut("prompts")) {
        writer.complete_prompt(prompt);
    }
    for contents in objects(result.get_mut("contents")) {
        writer.complete_contents(contents);
    }
    for block in objects(result.get_mut("content")) {
        writer.complete_block(block);
    }
    for message in objects(result.get_mut("messages")) {
        if let Some(Value::Object(block)) = message.get_mut("content") {
            writer.complete_block(block);
        }
    }
    if let Some(Value::Object(completion)) = result.get_mut("completion") {
        let count = completion.get("values").and_then(Value::as_array).map_or(0, Vec::len);
        add(completion, "total", json!(count));
        add(completion, "hasMore", json!(false));
    }
}

/// Adds a member, unless it is there.
fn add(members: &mut Object, name: &str, value: Value) {
    members.entry(name).or_insert(value);
}

/// Adds a member to `_meta`.
fn add_meta(members: &mut Object) {
    if let Value::Object(meta) = members.entry("_meta").or_insert_with(|| json!({})) {
        add(meta, "com.example/note", json!({"kept": [true, null, 1.5]}));
    }
}

fn objects(list: Option<&mut Value>) -> impl Iterator<Item = &mut Object> {
    list.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Completes what a result contains.
struct MemberWriter {
    revision: Revision,
}

impl MemberWriter {
    /// Adds what definitions of every kind have: a title, a description, icons and `_meta`.
    fn complete_definition(&self, definition: &mut Object) {
        add(definition, "description", json!("One of several."));
        if self.revision >= Revision::V2025_06_18 {
            let name = definition.get("name").cloned().unwrap_or_default();
            add(definition, "title", name);
            add_meta(definition);
        }
        if self.revision >= Revision::V2025_11_25 {
            let icon = |theme: &str| {
                let mut icon = content::icon();
                icon["theme"] = json!(theme);
                icon
            };
            add(definition, "icons", json!([icon("light"), icon("dark")]));
        }
    }

    fn complete_tool(&self, tool: &mut Object) {
        self.complete_definition(tool);
        if self.revision >= Revision::V2025_03_26
            && let Value::Object(hints) = tool.entry("annotations").or_insert_with(|| json!({}))
        {
            add(hints, "title", json!("A tool"));
            for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
                add(hints, hint, json!(false));
            }
        }
        if self.revision == Revision::V2025_11_25 {
            add(tool, "execution", json!({"taskSupport": "forbidden"}));
        }
    }

    fn complete_resource(&self, resource: &mut Object) {
        self.complete_definition(resource);
        add(resource, "mimeType", json!("text/plain"));
        if self.revision < Revision::V2024_11_05 {
            return;
        }
        add(resource, "annotations", content::annotations(self.revision));
        let contents = resource.get("uri").and_then(Value::as_str).and_then(resource::contents);
        if let Some(text) = contents.as_ref().and_then(|contents| contents.get("text")?.as_str()) {
            add(resource, "size", json!(text.len()));
        }
    }

    fn complete_prompt(&self, prompt: &mut Object) {
        self.complete_definition(prompt);
        let arguments = prompt.entry("arguments").or_insert_with(|| json!([]));
        for argument in objects(Some(arguments)) {
            add(argument, "description", json!("Any word."));
            add(argument, "required", json!(false));
            if self.revision >= Revision::V2025_06_18 {
                add(argument, "title", json!("A word"));
            }
        }
    }

    fn complete_contents(&self, contents: &mut Object) {
        add(contents, "mimeType", json!("text/plain"));
        if self.revision >= Revision::V2025_06_18 {
            add_meta(contents);
        }
    }

    fn complete_block(&self, block: &mut Object) {
        if self.revision >= Revision::V2024_11_05 {
            add(block, "annotations", content::annotations(self.revision));
        }
        if self.revision >= Revision::V2025_06_18 {
            add_meta(block);
        }
        if let Some(Value::Object(contents)) = block.get_mut("resource") {
            self.complete_contents(contents);
        }
        if block.get("type").is_some_and(|kind| kind == "resource_link") {
            self.complete_resource(block);
        }
    }
}
