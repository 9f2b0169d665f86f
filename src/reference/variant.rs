//! What conforming variants of the server have in addition.

use serde_json::{Value, json};

use super::content;
use super::message::{Object, object};

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
