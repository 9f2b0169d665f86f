//! Faults that show in the result of a tool, each in the tool that shows the feature concerned.

use serde_json::{Value, json};

use crate::mock::content;
use crate::mock::fault::{Fault, FaultSet};
use crate::mock::message::Object;
use crate::mock::resource;
use crate::mock::revision::Revision;

/// Makes the result of a tool what the faults want it to be.
pub(in crate::mock) fn deviate(
    result: &mut Object,
    tool: &str,
    revision: Revision,
    faults: &FaultSet,
) {
    let failed = result.get("isError") == Some(&json!(true));
    if failed && faults.shows(Fault::ErrorUnexplained, revision) {
        set(result, "content", json!([]));
    }
    if faults.shows(Fault::IsErrorString, revision) {
        set(result, "isError", json!(failed.to_string()));
    }
    if failed {
        return;
    }
    if faults.shows(Fault::ToolResultMissing, revision)
        && let Some(value) = result.remove("toolResult")
    {
        set(result, "content", json!([content::text(value.to_string())]));
    }
    for (fault, of, edit) in TOOL_FAULTS {
        if *of == tool && faults.shows(*fault, revision) {
            edit(result);
        }
    }
}

const TOOL_FAULTS: &[(Fault, &str, fn(&mut Object))] = &[
    (Fault::ContentObject, "echo", |result| {
        if let Some(Value::Array(blocks)) = result.get("content")
            && let Some(first) = blocks.first().cloned()
        {
            set(result, "content", first);
        }
    }),
    (Fault::TextNumber, "echo", |result| {
        block(result, 0, "text", json!(5))
    }),
    (Fault::TerminalEscapeInResult, "echo", |result| {
        block(
            result,
            0,
            "text",
            json!("\u{1b}]0;mine\u{7}\u{1b}[31mred\u{1b}[0m"),
        )
    }),
    (Fault::StructuredArray, "echo", |result| {
        let structured = json!(["one", "two"]);
        set(
            result,
            "content",
            json!([content::text(structured.to_string())]),
        );
        set(result, "structuredContent", structured);
    }),
    (Fault::ContentMissing, "add", |result| {
        drop(result.remove("content"))
    }),
    (Fault::StructuredMismatch, "add", |result| {
        let structured = json!({"sum": "many"});
        set(
            result,
            "content",
            json!([content::text(structured.to_string())]),
        );
        set(result, "structuredContent", structured);
    }),
    (Fault::StructuredMissing, "add", |result| {
        drop(result.remove("structuredContent"))
    }),
    (Fault::StructuredWithoutText, "add", |result| {
        set(result, "content", json!([content::text("Added.")]));
    }),
    (Fault::ContentTypeVideo, "image", |result| {
        push(
            result,
            json!({"type": "video", "data": content::PNG, "mimeType": "video/mp4"}),
        );
    }),
    (Fault::AudioIn20241105, "image", |result| {
        push(result, content::audio())
    }),
    (Fault::LinkBefore20250618, "image", |result| {
        push(
            result,
            content::link(&resource::notes(Revision::V2025_03_26)),
        );
    }),
    (Fault::ImageWithoutMime, "image", |result| {
        without(result, 0, "mimeType")
    }),
    (Fault::ImageDataUrl, "image", |result| {
        block(
            result,
            0,
            "data",
            json!(format!("data:image/png;base64,{}", content::PNG)),
        )
    }),
    (Fault::ImageMimeText, "image", |result| {
        block(result, 0, "mimeType", json!("text/plain"))
    }),
    (Fault::ImageMagic, "image", |result| {
        block(result, 0, "mimeType", json!("image/jpeg"))
    }),
    (Fault::AudioWithoutData, "audio", |result| {
        without(result, 0, "data")
    }),
    (Fault::AudioBase64Url, "audio", |result| {
        block(
            result,
            0,
            "data",
            json!(content::WAV.replace('+', "-").replace('/', "_")),
        )
    }),
    (Fault::AudioMimeVideo, "audio", |result| {
        block(result, 0, "mimeType", json!("video/mp4"))
    }),
    (Fault::LinkWithoutName, "link", |result| {
        without(result, 1, "name")
    }),
    (Fault::LinkSizeString, "link", |result| {
        block(result, 1, "size", json!("44"))
    }),
    (Fault::EmbeddedWithoutUri, "embed_text", |result| {
        embedded(result, "uri", None)
    }),
    (Fault::EmbeddedEmpty, "embed_text", |result| {
        embedded(result, "text", None)
    }),
    (Fault::EmbeddedRelativeUri, "embed_text", |result| {
        embedded(result, "uri", Some(json!("notes.txt")))
    }),
    (Fault::EmbeddedBlobNotBase64, "embed_blob", |result| {
        embedded(result, "blob", Some(json!("this is not base64!")))
    }),
    (Fault::AudienceString, "annotated", |result| {
        annotation(result, "audience", json!("user"))
    }),
    (Fault::AudienceRobot, "annotated", |result| {
        annotation(result, "audience", json!(["robot"]))
    }),
    (Fault::PriorityTwo, "annotated", |result| {
        annotation(result, "priority", json!(2))
    }),
    (Fault::LastModifiedNumber, "annotated", |result| {
        annotation(result, "lastModified", json!(1_736_694_058));
    }),
    (Fault::LastModifiedWords, "annotated", |result| {
        annotation(result, "lastModified", json!("yesterday"));
    }),
];

fn set(result: &mut Object, member: &str, value: Value) {
    result.insert(member.to_owned(), value);
}

fn push(result: &mut Object, block: Value) {
    if let Some(Value::Array(blocks)) = result.get_mut("content") {
        blocks.push(block);
    }
}

/// The members of a content block; none where another fault left no such block.
fn members(result: &mut Object, block: usize) -> Option<&mut Object> {
    result.get_mut("content")?.get_mut(block)?.as_object_mut()
}

fn block(result: &mut Object, block: usize, member: &str, value: Value) {
    if let Some(members) = members(result, block) {
        set(members, member, value);
    }
}

fn without(result: &mut Object, block: usize, member: &str) {
    if let Some(members) = members(result, block) {
        members.remove(member);
    }
}

/// Gives the embedded resource of the first block another member, or takes one away.
fn embedded(result: &mut Object, member: &str, value: Option<Value>) {
    let resource = members(result, 0).and_then(|block| block.get_mut("resource"));
    if let Some(resource) = resource.and_then(Value::as_object_mut) {
        match value {
            Some(value) => set(resource, member, value),
            None => drop(resource.remove(member)),
        }
    }
}

fn annotation(result: &mut Object, name: &str, value: Value) {
    let annotations = members(result, 0).and_then(|block| block.get_mut("annotations"));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        set(annotations, name, value);
    }
}
