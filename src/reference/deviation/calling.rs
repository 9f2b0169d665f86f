//! Faults that show in the result of a tool, each in the tool that shows the feature concerned.

use serde_json::{Value, json};

use super::edit::Edit;
use super::edit::Edit::{Push, Remove, Set, With};
use crate::reference::content;
use crate::reference::fault::Fault::{
    self, AudienceRobot, AudienceString, AudioBase64Url, AudioIn20241105, AudioMimeVideo, AudioWithoutData,
    ContentMissing, ContentObject, ContentTypeVideo, EmbeddedBlobNotBase64, EmbeddedEmpty, EmbeddedRelativeUri,
    EmbeddedWithoutUri, ImageDataUrl, ImageMagic, ImageMimeText, ImageWithoutMime, InterimEarly, LastModifiedNumber,
    LastModifiedInvalid, LinkBefore20250618, LinkSizeString, LinkWithoutName, PriorityTwo, StructuredArray,
    StructuredMismatch, StructuredMissing, StructuredWithoutText, TerminalEscapeInResult, TextNumber,
};
use crate::reference::fault::FaultSet;
use crate::reference::message::{Object, object};
use crate::reference::resource;
use crate::reference::revision::Revision;

/// Makes the result of a tool what the faults want it to be.
pub(in crate::reference) fn deviate(result: &mut Object, tool: &str, revision: Revision, faults: &FaultSet) {
    let failed = result.get("isError") == Some(&json!(true));
    if failed && faults.shows(Fault::ErrorUnexplained, revision) {
        result.insert("content".to_owned(), json!([]));
    }
    if faults.shows(Fault::IsErrorString, revision) {
        result.insert("isError".to_owned(), json!(failed.to_string()));
    }
    if faults.shows(Fault::ToolResultMissing, revision)
        && let Some(value) = result.remove("toolResult")
    {
        result.insert("content".to_owned(), json!([content::text(value.to_string())]));
    }
    if failed {
        return;
    }
    for Row(fault, of, edit) in TOOL_FAULTS {
        if *of == tool && faults.shows(*fault, revision) {
            edit.apply(result);
        }
    }
}

/// A fault, the tool in whose result it shows, and what it does there.
struct Row(Fault, &'static str, Edit);

const TOOL_FAULTS: &[Row] = &[
    Row(ContentObject, "echo", With(unwrap_content)),
    Row(TextNumber, "echo", Set("content/0/text", || json!(5))),
    Row(TerminalEscapeInResult, "echo", Set("content/0/text", || json!(ESCAPES))),
    Row(StructuredArray, "echo", Set("content/0/text", || json!(r#"["one","two"]"#))),
    Row(StructuredArray, "echo", Set("structuredContent", || json!(["one", "two"]))),
    Row(ContentMissing, "add", Remove("content")),
    Row(StructuredMismatch, "add", Set("content/0/text", || json!(r#"{"sum":"many"}"#))),
    Row(StructuredMismatch, "add", Set("structuredContent", || json!({"sum": "many"}))),
    Row(StructuredMissing, "add", Remove("structuredContent")),
    Row(StructuredWithoutText, "add", Set("content/0/text", || json!("Added."))),
    Row(InterimEarly, "add", With(become_interim)),
    Row(ContentTypeVideo, "image", Push("content", video)),
    Row(AudioIn20241105, "image", Push("content", content::audio)),
    Row(LinkBefore20250618, "image", Push("content", link)),
    Row(ImageWithoutMime, "image", Remove("content/0/mimeType")),
    Row(ImageDataUrl, "image", Set("content/0/data", data_url)),
    Row(ImageMimeText, "image", Set("content/0/mimeType", || json!("text/plain"))),
    Row(ImageMagic, "image", Set("content/0/mimeType", || json!("image/jpeg"))),
    Row(AudioWithoutData, "audio", Remove("content/0/data")),
    Row(AudioBase64Url, "audio", Set("content/0/data", url_alphabet)),
    Row(AudioMimeVideo, "audio", Set("content/0/mimeType", || json!("video/mp4"))),
    Row(LinkWithoutName, "link", Remove("content/1/name")),
    Row(LinkSizeString, "link", Set("content/1/size", || json!("44"))),
    Row(EmbeddedWithoutUri, "embed_text", Remove("content/0/resource/uri")),
    Row(EmbeddedEmpty, "embed_text", Remove("content/0/resource/text")),
    Row(EmbeddedRelativeUri, "embed_text", Set("content/0/resource/uri", || json!("notes.txt"))),
    Row(EmbeddedBlobNotBase64, "embed_blob", Set("content/0/resource/blob", no_base64)),
    Row(AudienceString, "annotated", Set("content/0/annotations/audience", || json!("user"))),
    Row(AudienceRobot, "annotated", Set("content/0/annotations/audience", || json!(["robot"]))),
    Row(PriorityTwo, "annotated", Set("content/0/annotations/priority", || json!(2))),
    Row(LastModifiedNumber, "annotated", Set("content/0/annotations/lastModified", seconds)),
    Row(LastModifiedInvalid, "annotated", Set("content/0/annotations/lastModified", words)),
];

/// A sequence that retitles a terminal, and one that colours it.
const ESCAPES: &str = "\u{1b}]0;mine\u{7}\u{1b}[31mred\u{1b}[0m";

fn unwrap_content(result: &mut Object) {
    let first = result.get("content").and_then(|content| content.get(0)).cloned();
    if let Some(first) = first {
        result.insert("content".to_owned(), first);
    }
}

fn become_interim(result: &mut Object) {
    *result = object(json!({"resultType": "input_required", "requestState": "add-1"}));
}

fn video() -> Value {
    json!({"type": "video", "data": content::PNG, "mimeType": "video/mp4"})
}

fn link() -> Value {
    content::link(&resource::notes(Revision::V2025_03_26))
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

fn words() -> Value {
    json!("yesterday")
}
