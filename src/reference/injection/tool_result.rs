//! Faults in tool results, each in the tool that returns the affected feature.

use serde_json::{Value, json};

use super::edit::Edit;
use super::edit::Edit::{Push, Remove, Set, With};
use crate::reference::content;
use crate::reference::fault::Fault::{
    self, AudienceRobot, AudienceString, AudioBase64Url, AudioIn20241105, AudioMimeVideo, AudioWithoutData,
    ContentMetaArray, ContentMissing, ContentObject, ContentTypeVideo, EmbeddedBlobNotBase64, EmbeddedEmpty,
    EmbeddedMetaArray, EmbeddedRelativeUri, EmbeddedWithoutUri, ImageDataUrl, ImageMagic, ImageMimeText,
    ImageWithoutMime, InterimEarly, LastModifiedInvalid, LastModifiedNumber, LinkBefore20250618, LinkSizeString,
    LinkWithoutName, LinkedResourceEmpty, PriorityTwo, RenderedImageDataUrl, StructuredArray, StructuredContentEarly,
    StructuredMismatch, StructuredMissing, StructuredWithoutText, TerminalEscapeInResult, TextNumber,
};
use crate::reference::fault::FaultSet;
use crate::reference::message::{Object, object};
use crate::reference::particular_tool::RENDER;
use crate::reference::resource;
use crate::reference::revision::Revision;

/// Applies faults to the result of a tool.
pub(in crate::reference) fn inject(result: &mut Object, tool: &str, revision: Revision, faults: &FaultSet) {
    let failed = result.get("isError") == Some(&json!(true));
    if failed && faults.is_active(Fault::ErrorUnexplained, revision) {
        result.insert("content".to_owned(), json!([]));
    }
    if faults.is_active(Fault::IsErrorString, revision) {
        result.insert("isError".to_owned(), json!(failed.to_string()));
    }
    if faults.is_active(Fault::ToolResultMissing, revision)
        && let Some(value) = result.remove("toolResult")
    {
        result.insert("content".to_owned(), json!([content::text(value.to_string())]));
    }
    if failed {
        return;
    }
    for Injection(fault, of, edit) in TOOL_FAULTS {
        if *of == tool && faults.is_active(*fault, revision) {
            edit.apply(result);
        }
    }
}

/// A fault, the tool whose result it affects, and the change.
struct Injection(Fault, &'static str, Edit);

const TOOL_FAULTS: &[Injection] = &[
    Injection(ContentObject, "echo", With(unwrap_content)),
    Injection(TextNumber, "echo", Set("content/0/text", || json!(5))),
    Injection(TerminalEscapeInResult, "echo", Set("content/0/text", || json!(ESCAPES))),
    Injection(ContentMetaArray, "echo", Set("content/0/_meta", || json!([]))),
    Injection(StructuredContentEarly, "echo", Set("structuredContent", || json!({"text": "early"}))),
    Injection(StructuredArray, "echo", Set("content/0/text", || json!(r#"["one","two"]"#))),
    Injection(StructuredArray, "echo", Set("structuredContent", || json!(["one", "two"]))),
    Injection(ContentMissing, "add", Remove("content")),
    Injection(StructuredMismatch, "add", Set("content/0/text", || json!(r#"{"sum":"many"}"#))),
    Injection(StructuredMismatch, "add", Set("structuredContent", || json!({"sum": "many"}))),
    Injection(StructuredMissing, "add", Remove("structuredContent")),
    Injection(StructuredWithoutText, "add", Set("content/0/text", || json!("Added."))),
    Injection(InterimEarly, "add", With(become_input_required)),
    Injection(ContentTypeVideo, "image", Push("content", video)),
    Injection(AudioIn20241105, "image", Push("content", content::audio)),
    Injection(LinkBefore20250618, "image", Push("content", link)),
    Injection(ImageWithoutMime, "image", Remove("content/0/mimeType")),
    Injection(ImageDataUrl, "image", Set("content/0/data", data_url)),
    Injection(RenderedImageDataUrl, RENDER, With(use_data_url_for_image)),
    Injection(ImageMimeText, "image", Set("content/0/mimeType", || json!("text/plain"))),
    Injection(ImageMagic, "image", Set("content/0/mimeType", || json!("image/jpeg"))),
    Injection(AudioWithoutData, "audio", Remove("content/0/data")),
    Injection(AudioBase64Url, "audio", Set("content/0/data", url_alphabet)),
    Injection(AudioMimeVideo, "audio", Set("content/0/mimeType", || json!("video/mp4"))),
    Injection(LinkWithoutName, "link", Remove("content/1/name")),
    Injection(LinkedResourceEmpty, "link", Set("content/1/uri", || json!(resource::UNLISTED))),
    Injection(LinkSizeString, "link", Set("content/1/size", || json!("44"))),
    Injection(EmbeddedWithoutUri, "embed_text", Remove("content/0/resource/uri")),
    Injection(EmbeddedMetaArray, "embed_text", Set("content/0/resource/_meta", || json!([]))),
    Injection(EmbeddedEmpty, "embed_text", Remove("content/0/resource/text")),
    Injection(EmbeddedRelativeUri, "embed_text", Set("content/0/resource/uri", || json!("notes.txt"))),
    Injection(EmbeddedBlobNotBase64, "embed_blob", Set("content/0/resource/blob", no_base64)),
    Injection(AudienceString, "annotated", Set("content/0/annotations/audience", || json!("user"))),
    Injection(AudienceRobot, "annotated", Set("content/0/annotations/audience", || json!(["robot"]))),
    Injection(PriorityTwo, "annotated", Set("content/0/annotations/priority", || json!(2))),
    Injection(LastModifiedNumber, "annotated", Set("content/0/annotations/lastModified", seconds)),
    Injection(LastModifiedInvalid, "annotated", Set("content/0/annotations/lastModified", not_a_date)),
];

/// One sequence that retitles a terminal, and one that colours text.
const ESCAPES: &str = "\u{1b}]0;mine\u{7}\u{1b}[31mred\u{1b}[0m";

fn unwrap_content(result: &mut Object) {
    let first = result.get("content").and_then(|content| content.get(0)).cloned();
    if let Some(first) = first {
        result.insert("content".to_owned(), first);
    }
}

fn become_input_required(result: &mut Object) {
    *result = object(json!({"resultType": "input_required", "requestState": "add-1"}));
}

fn video() -> Value {
    json!({"type": "video", "data": content::PNG, "mimeType": "video/mp4"})
}

fn link() -> Value {
    content::link(&resource::notes(Revision::V2025_03_26))
}

fn use_data_url_for_image(result: &mut Object) {
    if let Some(data) = result.get_mut("content").and_then(|content| content.get_mut(0)?.get_mut("data")) {
        *data = data_url();
    }
}

fn data_url() -> Value {
    json!(format!("data:image/png;base64,{}", content::PNG))
}

fn url_alphabet() -> Value {
    json!(content::WAV.replace('+', "-").replace('/', "_"))
}

fn no_base64() -> Value {
    json!("this is not base64!")
}

fn seconds() -> Value {
    json!(1_736_694_058)
}

fn not_a_date() -> Value {
    json!("yesterday")
}
