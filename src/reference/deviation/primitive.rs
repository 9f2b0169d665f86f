//! Faults that show in the results of methods other than those of tools.

use serde_json::{Value, json};

use super::edit::Edit;
use super::edit::Edit::{Remove, Set, With};
use crate::reference::fault::Fault::{
    self, CompletionTooMany, CompletionValuesString, PromptArgumentRequiredString, PromptAudioUrlAlphabet,
    PromptContentArray, PromptContentVideo, PromptEmbeddedWithoutMime, PromptImageDataUrl, PromptNameTwice,
    PromptWithoutName, ReadBlobNotBase64, ReadContentsObject, ReadEmpty, ResourcePriorityTwo, ResourceRelativeUri,
    ResourceSchemeUnderscore, ResourceUriTwice, ResourceWithoutName, SetLevelNotEmpty, SubscribeNotEmpty,
    TemplateUnclosed, TemplateWithoutName,
};
use crate::reference::fault::FaultSet;
use crate::reference::message::Object;
use crate::reference::revision::Revision;

/// Makes the result of a method what the faults want it to be.
pub(in crate::reference) fn deviate(result: &mut Object, method: &str, revision: Revision, faults: &FaultSet) {
    for Row(fault, of, edit) in RESULT_FAULTS {
        if *of == method && faults.shows(*fault, revision) {
            edit.apply(result);
        }
    }
}

/// A fault, the method in whose result it shows, and what it does there.
struct Row(Fault, &'static str, Edit);

const RESULT_FAULTS: &[Row] = &[
    Row(ResourceWithoutName, "resources/list", Remove("resources/0/name")),
    Row(ResourceRelativeUri, "resources/list", Set("resources/0/uri", || json!("notes.txt"))),
    Row(ResourceSchemeUnderscore, "resources/list", Set("resources/0/uri", || json!("my_notes://today"))),
    Row(ResourceUriTwice, "resources/list", With(|result| repeat_first(result, "resources"))),
    Row(ResourcePriorityTwo, "resources/list", Set("resources/0/annotations", || json!({"priority": 2}))),
    Row(TemplateWithoutName, "resources/templates/list", Remove("resourceTemplates/0/name")),
    Row(TemplateUnclosed, "resources/templates/list", Set("resourceTemplates/0/uriTemplate", || json!("mock:///{a"))),
    Row(ReadContentsObject, "resources/read", With(|result| unwrap_first(result, "contents"))),
    Row(ReadEmpty, "resources/read", With(remove_bodies)),
    Row(ReadBlobNotBase64, "resources/read", With(spoil_blobs)),
    Row(SubscribeNotEmpty, "resources/subscribe", Set("subscribed", || json!(true))),
    Row(SetLevelNotEmpty, "logging/setLevel", Set("level", || json!("set"))),
    Row(PromptWithoutName, "prompts/list", Remove("prompts/0/name")),
    Row(PromptNameTwice, "prompts/list", With(|result| repeat_first(result, "prompts"))),
    Row(PromptArgumentRequiredString, "prompts/list", Set("prompts/0/arguments/0/required", || json!("yes"))),
    Row(PromptContentArray, "prompts/get", With(wrap_content)),
    Row(PromptContentVideo, "prompts/get", Set("messages/0/content", video)),
    Row(PromptImageDataUrl, "prompts/get", With(|result| spoil_data(result, "image"))),
    Row(PromptAudioUrlAlphabet, "prompts/get", With(|result| spoil_data(result, "audio"))),
    Row(PromptEmbeddedWithoutMime, "prompts/get", Remove("messages/0/content/resource/mimeType")),
    Row(CompletionValuesString, "completion/complete", Set("completion/values", || json!("rust"))),
    Row(CompletionTooMany, "completion/complete", Set("completion/values", too_many)),
];

/// Lists the first item once more, under another description.
fn repeat_first(result: &mut Object, member: &str) {
    if let Some(Value::Array(items)) = result.get_mut(member)
        && let Some(mut first) = items.first().cloned()
    {
        first["description"] = json!("The same once more.");
        items.push(first);
    }
}

fn unwrap_first(result: &mut Object, member: &str) {
    if let Some(first) = result.get(member).and_then(|items| items.get(0)).cloned() {
        result.insert(member.to_owned(), first);
    }
}

fn each_contents(result: &mut Object, change: impl Fn(&mut Object)) {
    if let Some(Value::Array(items)) = result.get_mut("contents") {
        items.iter_mut().filter_map(Value::as_object_mut).for_each(change);
    }
}

fn remove_bodies(result: &mut Object) {
    each_contents(result, |contents| {
        contents.shift_remove("text");
        contents.shift_remove("blob");
    });
}

fn spoil_blobs(result: &mut Object) {
    each_contents(result, |contents| {
        if contents.contains_key("blob") {
            contents.insert("blob".to_owned(), json!("<no base64>"));
        }
    });
}

fn wrap_content(result: &mut Object) {
    if let Some(content) = result.get_mut("messages").and_then(|messages| messages.pointer_mut("/0/content")) {
        *content = json!([content.clone()]);
    }
}

fn video() -> Value {
    json!({"type": "video", "data": "AAAA", "mimeType": "video/mp4"})
}

/// Writes the data of content of a kind in a way that is not the standard alphabet.
fn spoil_data(result: &mut Object, kind: &str) {
    let messages = result.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten();
    for content in messages.filter_map(|message| message.get_mut("content")).filter(|content| content["type"] == kind) {
        let data = content["data"].as_str().unwrap_or_default();
        content["data"] = if kind == "image" {
            json!(format!("data:image/png;base64,{data}"))
        } else {
            json!(data.replace('+', "-").replace('/', "_"))
        };
    }
}

fn too_many() -> Value {
    json!((0..101).map(|number: u32| number.to_string()).collect::<Vec<_>>())
}
