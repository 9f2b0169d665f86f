//! Faults in the results of methods other than those of tools.

use serde_json::{Value, json};

use super::edit::Edit;
use super::edit::Edit::{Remove, Set, With};
use crate::reference::fault::Fault::{
    self, CompletionTooMany, CompletionValuesString, PromptArgumentRequiredString, PromptArgumentTitleNumber,
    PromptAudioUrlAlphabet, PromptContentArray, PromptContentVideo, PromptEmbeddedWithoutMime, PromptImageDataUrl,
    PromptNameTwice, PromptWithoutName, ReadBlobNotBase64, ReadContentsObject, ReadEmpty, ResourceHttpsReserved,
    ResourcePriorityTwo, ResourceRelativeUri, ResourceSchemeUnderscore, ResourceUriTwice, ResourceWithoutName,
    SetLevelNotEmpty, SubscribeNotEmpty, TemplateUnclosed, TemplateWithoutName,
};
use crate::reference::fault::FaultSet;
use crate::reference::message::Object;
use crate::reference::revision::Revision;

/// Applies faults to the result of a method.
pub(in crate::reference) fn inject(result: &mut Object, method: &str, revision: Revision, faults: &FaultSet) {
    for Injection(fault, of, edit) in RESULT_FAULTS {
        if *of == method && faults.is_active(*fault, revision) {
            edit.apply(result);
        }
    }
}

/// A fault, the method whose result it affects, and the change.
struct Injection(Fault, &'static str, Edit);

const RESULT_FAULTS: &[Injection] = &[
    Injection(ResourceWithoutName, "resources/list", Remove("resources/0/name")),
    Injection(ResourceRelativeUri, "resources/list", Set("resources/0/uri", || json!("notes.txt"))),
    Injection(ResourceSchemeUnderscore, "resources/list", Set("resources/0/uri", || json!("my_notes://today"))),
    Injection(
        ResourceHttpsReserved,
        "resources/list",
        Set("resources/0/uri", || json!("https://notes.invalid/notes.txt")),
    ),
    Injection(ResourceUriTwice, "resources/list", With(|result| duplicate_first(result, "resources"))),
    Injection(ResourcePriorityTwo, "resources/list", Set("resources/0/annotations", || json!({"priority": 2}))),
    Injection(TemplateWithoutName, "resources/templates/list", Remove("resourceTemplates/0/name")),
    Injection(
        TemplateUnclosed,
        "resources/templates/list",
        Set("resourceTemplates/0/uriTemplate", || json!("mock:///{a")),
    ),
    Injection(ReadContentsObject, "resources/read", With(|result| unwrap_first(result, "contents"))),
    Injection(ReadEmpty, "resources/read", With(remove_bodies)),
    Injection(ReadBlobNotBase64, "resources/read", With(invalidate_blobs)),
    Injection(SubscribeNotEmpty, "resources/subscribe", Set("subscribed", || json!(true))),
    Injection(SetLevelNotEmpty, "logging/setLevel", Set("level", || json!("set"))),
    Injection(PromptWithoutName, "prompts/list", Remove("prompts/0/name")),
    Injection(PromptNameTwice, "prompts/list", With(|result| duplicate_first(result, "prompts"))),
    Injection(PromptArgumentRequiredString, "prompts/list", Set("prompts/0/arguments/0/required", || json!("yes"))),
    Injection(PromptArgumentTitleNumber, "prompts/list", Set("prompts/0/arguments/0/title", || json!(5))),
    Injection(PromptContentArray, "prompts/get", With(wrap_content)),
    Injection(PromptContentVideo, "prompts/get", Set("messages/0/content", video)),
    Injection(PromptImageDataUrl, "prompts/get", With(|result| reencode_data(result, "image"))),
    Injection(PromptAudioUrlAlphabet, "prompts/get", With(|result| reencode_data(result, "audio"))),
    Injection(PromptEmbeddedWithoutMime, "prompts/get", Remove("messages/0/content/resource/mimeType")),
    Injection(CompletionValuesString, "completion/complete", Set("completion/values", || json!("rust"))),
    Injection(CompletionTooMany, "completion/complete", Set("completion/values", too_many)),
];

/// Duplicates the first item, with another description.
fn duplicate_first(result: &mut Object, member: &str) {
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

fn invalidate_blobs(result: &mut Object) {
    each_contents(result, |contents| {
        if contents.contains_key("blob") {
            contents.insert("blob".to_owned(), json!("<no base64>"));
        }
    });
}

/// The result with the content of the first message of a prompt in an array.
pub(in crate::reference) fn with_wrapped_content(mut result: Object) -> Object {
    wrap_content(&mut result);
    result
}

fn wrap_content(result: &mut Object) {
    if let Some(content) = result.get_mut("messages").and_then(|messages| messages.pointer_mut("/0/content")) {
        *content = json!([content.clone()]);
    }
}

fn video() -> Value {
    json!({"type": "video", "data": "AAAA", "mimeType": "video/mp4"})
}

/// Writes the data of one type of content in another encoding than standard base64.
fn reencode_data(result: &mut Object, kind: &str) {
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
