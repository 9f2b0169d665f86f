//! The resources of the reference server: a few fixed ones and a template.

use serde_json::{Value, json};

use super::content::{self, PNG};
use super::message::{INVALID_PARAMS, Object, RESOURCE_NOT_FOUND, RpcError, object, quoted};
use super::revision::Revision;

/// The resource that tools embed as text and link to.
pub(super) const NOTES: &str = "mock:///notes.txt";
/// The resource that tools embed as a blob.
pub(super) const PIXELS: &str = "mock:///pixels.png";
/// The resource that no list has, and that only [`Fault::LinkedResourceEmpty`](super::Fault::LinkedResourceEmpty) serves.
pub(super) const UNLISTED: &str = "mock:///unlisted.txt";

const NOTES_TEXT: &str = "The first line.\nThe second line, in a café.\n";
/// The template of a numbered resource.
pub(super) const NUMBERS_TEMPLATE: &str = "mock:///numbers/{number}";
const NUMBERS: &str = "mock:///numbers/";

/// The name, title, URI and MIME type of each listed resource.
const RESOURCES: &[(&str, &str, &str, &str)] = &[
    ("notes.txt", "Notes", NOTES, "text/plain"),
    ("pixels.png", "Pixels", PIXELS, "image/png"),
    ("one", "Number one", "mock:///numbers/1", "text/plain"),
    ("two", "Number two", "mock:///numbers/2", "text/plain"),
    ("three", "Number three", "mock:///numbers/3", "text/plain"),
];

/// The list of resources in a revision, with one more after the lists have changed.
pub(super) fn listed(revision: Revision, grown: bool) -> Vec<Value> {
    let more = grown.then_some(("four", "Number four", "mock:///numbers/4", "text/plain"));
    RESOURCES.iter().copied().chain(more).map(|entry| Value::Object(resource_object(entry, revision))).collect()
}

/// The resource object of the notes.
pub(super) fn notes(revision: Revision) -> Object {
    resource_object(RESOURCES[0], revision)
}

fn resource_object(entry: (&str, &str, &str, &str), revision: Revision) -> Object {
    let (name, title, uri, mime_type) = entry;
    let mut resource = object(json!({"uri": uri, "name": name, "mimeType": mime_type}));
    if revision >= Revision::V2025_06_18 {
        resource.insert("title".to_owned(), json!(title));
    }
    if uri == NOTES {
        resource.insert("description".to_owned(), json!("Two lines of text."));
        if revision >= Revision::V2024_11_05 {
            resource.insert("size".to_owned(), json!(NOTES_TEXT.len()));
            resource.insert("annotations".to_owned(), content::annotations(revision));
        }
        if revision >= Revision::V2025_11_25 {
            resource.insert("icons".to_owned(), json!([content::icon()]));
        }
    }
    resource
}

/// The list of templates. Three of the resources that it covers are listed as well.
pub(super) fn templates(revision: Revision) -> Vec<Value> {
    let mut template = json!({
        "uriTemplate": NUMBERS_TEMPLATE,
        "name": "numbers",
        "description": "A number between 0 and 999, as text.",
        "mimeType": "text/plain",
    });
    if revision >= Revision::V2025_06_18 {
        template["title"] = json!("Numbers");
    }
    vec![template]
}

/// Whether only the template covers a resource.
pub(super) fn is_listed_by_template_only(uri: &str) -> bool {
    uri.starts_with(NUMBERS) && !RESOURCES.iter().any(|(_, _, listed, _)| *listed == uri)
}

/// The contents of a resource, if it exists.
pub(super) fn contents(uri: &str) -> Option<Object> {
    let value = match uri {
        NOTES => json!({"uri": uri, "mimeType": "text/plain", "text": NOTES_TEXT}),
        PIXELS => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        _ => {
            let digits = uri.strip_prefix(NUMBERS)?;
            let plain = (1..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
            if !plain {
                return None;
            }
            json!({"uri": uri, "mimeType": "text/plain", "text": digits})
        }
    };
    Some(object(value))
}

/// The notes with an additional line.
pub(super) fn grown(mut contents: Object) -> Object {
    contents.insert("text".to_owned(), json!(format!("{NOTES_TEXT}The third line, while somebody listens.\n")));
    contents
}

/// The error for an unknown URI.
pub(super) fn not_found(uri: &str, revision: Revision) -> RpcError {
    let code = if revision.is_modern() { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
    RpcError::new(code, "Resource not found").with_data(json!({"uri": quoted(uri)}))
}

/// Whether the server supports `resources/subscribe` in this revision. It does not do so in every revision
/// that has it.
pub(super) fn supports_subscribe(revision: Revision) -> bool {
    revision >= Revision::V2025_03_26 && !revision.is_modern()
}
