//! What conforming variants of the server have in addition.

use serde_json::{Value, json};

use super::content;
use super::fault::{Fault, FaultSet};
use super::message::{Object, object};
use super::revision::Revision;
use super::variant_member;

/// The prompt that embeds a resource whose URI is its argument.
const QUOTE: &str = "quote";

/// A description that shows markup as an example.
pub(super) const MARKUP_EXAMPLE: &str = "Writes a page. Pass its parts, such as '<script>...</script>' or `<a onclick=\"x()\">`:\n```html\n<!-- a note -->\n```";

/// The definition of the prompt that embeds its argument.
pub(super) fn quoting_prompt() -> Value {
    let arguments = json!([{"name": "resourceUri", "description": "The resource to quote.", "required": true}]);
    json!({"name": QUOTE, "description": "Quotes a resource.", "arguments": arguments})
}

/// The result of the prompt that embeds its argument, if these are its params.
pub(super) fn quote(params: &Object) -> Option<Object> {
    params.get("name").filter(|name| *name == QUOTE)?;
    let uri = params.get("arguments")?.get("resourceUri").filter(|uri| uri.is_string())?;
    let resource = object(json!({"uri": uri, "mimeType": "text/plain", "text": "It says so."}));
    let message = json!({"role": "user", "content": content::embedded(&resource)});
    Some(object(json!({"description": "Quotes a resource.", "messages": [message]})))
}

/// The length of what the server with long cursors adds to each of them, in bytes.
const CURSOR_PADDING: usize = 4 << 10;

/// What the names of prompts, their arguments and resources begin with, if they are in other scripts.
const PREFIX: &str = "资料 данные ";

/// Undoes in the params of a request what [`change_result`] has done to what a client repeats.
pub(super) fn restore_params(params: &mut Object, method: &str, revision: Revision, faults: &FaultSet) {
    if faults.is_active(Fault::LongCursors, revision)
        && let Some(Value::String(cursor)) = params.get_mut("cursor")
    {
        // One without all of it was not issued.
        let issued = cursor.strip_suffix(&cursor_padding()).unwrap_or("not issued").to_owned();
        *cursor = issued;
    }
    if !faults.is_active(Fault::OtherScripts, revision) {
        return;
    }
    if method == "prompts/get" {
        params.get_mut("name").into_iter().for_each(restore_name);
        params.get_mut("arguments").into_iter().for_each(restore_members);
    }
    if method == "completion/complete"
        && let Some(reference) = params.get_mut("ref")
        && reference["type"] == "ref/prompt"
    {
        reference.get_mut("name").into_iter().for_each(restore_name);
        let argument = params.get_mut("argument").and_then(|argument| argument.get_mut("name"));
        argument.into_iter().for_each(restore_name);
        let context = params.get_mut("context").and_then(|context| context.get_mut("arguments"));
        context.into_iter().for_each(restore_members);
    }
}

/// Changes a result into that of a conforming variant.
pub(super) fn change_result(result: &mut Object, revision: Revision, faults: &FaultSet) {
    if faults.is_active(Fault::LongCursors, revision)
        && let Some(Value::String(cursor)) = result.get_mut("nextCursor")
    {
        cursor.push_str(&cursor_padding());
    }
    if faults.is_active(Fault::EveryMember, revision) {
        variant_member::write_every_member(result, revision);
    }
    if !faults.is_active(Fault::OtherScripts, revision) {
        return;
    }
    for list in ["resources", "resourceTemplates", "prompts"] {
        for entry in items(result.get_mut(list)) {
            entry.get_mut("name").into_iter().for_each(add_prefix);
            let arguments = items(entry.get_mut("arguments"));
            arguments.filter_map(|argument| argument.get_mut("name")).for_each(add_prefix);
        }
    }
    for tool in items(result.get_mut("tools")) {
        tool.get_mut("description").into_iter().for_each(add_prefix);
    }
}

fn cursor_padding() -> String {
    format!("~{}", "0".repeat(CURSOR_PADDING))
}

fn items(list: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    list.and_then(Value::as_array_mut).into_iter().flatten()
}

fn add_prefix(text: &mut Value) {
    if let Value::String(text) = text {
        text.insert_str(0, PREFIX);
    }
}

/// The name without the prefix; one that does not have it belongs to nothing.
fn restored(name: &str) -> String {
    name.strip_prefix(PREFIX).map_or_else(|| format!("not named: {name}"), str::to_owned)
}

fn restore_name(name: &mut Value) {
    if let Value::String(name) = name {
        *name = restored(name);
    }
}

fn restore_members(members: &mut Value) {
    if let Value::Object(members) = members {
        *members = std::mem::take(members).into_iter().map(|(name, value)| (restored(&name), value)).collect();
    }
}

/// Writes progress as a fraction of the total, and leaves the total out where it is not reached.
pub(super) fn report_in_fractions(notification: &mut Value) {
    let Some(params) = notification.get_mut("params").and_then(Value::as_object_mut) else { return };
    let number = |name: &str| params.get(name).and_then(Value::as_f64);
    let (Some(progress), Some(total)) = (number("progress"), number("total")) else { return };
    params.insert("progress".to_owned(), json!(progress / total));
    if progress < total {
        params.remove("total");
    } else {
        params.insert("total".to_owned(), json!(1.0));
    }
}
