//! The methods of resources, prompts and completion.

use serde_json::{Value, json};

use super::connection_state::{ConnectionState, NoResult, Request};
use super::fault::Fault;
use super::injection::primitive::with_wrapped_content;
use super::message::{
    INTERNAL_ERROR, METHOD_NOT_FOUND, Object, RESOURCE_NOT_FOUND, RpcError, invalid_params, notification, object,
};
use super::pagination::{self, add_caching};
use super::prompt::{self, PromptLeniency};
use super::resource;
use super::revision::Revision;
use super::subscription::Subscriptions;
use super::task_method::Tasks;
use super::variant;

/// A request for a method of these, while it is processed.
pub(super) struct PrimitiveRequest<'r, 'a> {
    pub(super) state: &'r mut ConnectionState<'a>,
    pub(super) subscriptions: &'r mut Subscriptions,
    pub(super) tasks: &'r mut Tasks,
    /// A value that is different on each connection.
    pub(super) salt: u64,
    pub(super) request: &'r Request,
    pub(super) params: &'r Object,
}

impl PrimitiveRequest<'_, '_> {
    /// Processes the request; nothing if the server does not support the method in this revision.
    pub(super) fn serve(&mut self, method: &str) -> Option<Result<Object, NoResult>> {
        let (request, params) = (self.request, self.params);
        let revision = request.revision;
        if self.is_active(Fault::WithoutTools)
            || self.is_active(Fault::OnlyResources)
                && !(method.starts_with("resources/") || method.starts_with("subscriptions/"))
        {
            return None;
        }
        let prompts = revision >= Revision::V2024_11_05;
        let subscribes = resource::supports_subscribe(revision);
        Some(match method {
            "resources/list" if self.is_active(Fault::ResourcesListRejected) => internal(),
            "resources/list" => {
                if self.is_active(Fault::ListChangedUnsubscribed) {
                    self.state.after_response.push(notification("notifications/resources/list_changed", &json!({})));
                }
                if self.is_active(Fault::UpdateAfterUnsubscribe) && self.subscriptions.has_unsubscribed {
                    self.state.after_response.push(updated(resource::NOTES));
                }
                if self.is_active(Fault::UpdateUnsubscribed) {
                    self.state.after_response.push(updated(resource::NOTES));
                }
                let mut items = resource::listed(revision, self.has_grown());
                if self.is_active(Fault::ResourcesPerConnection) {
                    items.push(json!({"uri": format!("mock:///visitors/{:x}", self.salt), "name": "visitor"}));
                }
                self.page("resources", "resources", &items)
            }
            "resources/templates/list" if self.is_active(Fault::TemplatesNotFound) => return None,
            "resources/templates/list" => self.page("templates", "resourceTemplates", &resource::templates(revision)),
            "resources/read" => self.read(),
            "resources/subscribe" if subscribes => self.subscribe(),
            "resources/unsubscribe" if subscribes => {
                self.subscriptions.has_unsubscribed = true;
                uri_of(params).map(|_| Object::new()).map_err(NoResult::from)
            }
            "prompts/list" if prompts && self.is_active(Fault::PromptsListRejected) => internal(),
            "prompts/list" if prompts => {
                let mut items = prompt::listed(revision);
                if self.has_grown() {
                    items.push(json!({"name": prompt::GROWTH.0, "description": prompt::GROWTH.2}));
                }
                if self.is_active(Fault::PromptEmbedsArgument) {
                    items.insert(1, variant::quoting_prompt());
                }
                if self.is_active(Fault::PromptsPerConnection) {
                    items.push(json!({"name": format!("visitor_{:x}", self.salt)}));
                }
                self.page("prompts", "prompts", &items)
            }
            "prompts/get" if prompts && self.rejects_prompt() => Err(invalid_params("Unknown prompt").into()),
            "prompts/get" if prompts => {
                if self.is_active(Fault::PromptEmbedsArgument)
                    && let Some(result) = variant::quote(params)
                {
                    return Some(Ok(result));
                }
                let leniency = PromptLeniency {
                    name: self.is_active(Fault::UnknownPromptServed),
                    missing: self.is_active(Fault::MissingPromptArgumentServed),
                    types: self.is_active(Fault::PromptArgumentTypesUnchecked),
                };
                let expanded = self.is_active(Fault::PromptTemplateExpanded).then(|| expand(params));
                let has_option = params.get("arguments").is_some_and(|arguments| arguments.get("language").is_some());
                let wraps = has_option && self.is_active(Fault::PromptOptionWrapped);
                let got = prompt::get(expanded.as_ref().unwrap_or(params), revision, leniency);
                let got = got.map(|result| if wraps { with_wrapped_content(result) } else { result });
                got.map_err(NoResult::from)
            }
            "completion/complete" if prompt::supports_completion(revision) => self.complete(),
            "subscriptions/listen" if revision.is_modern() => {
                self.subscriptions.listen(self.state, self.tasks, request, params)
            }
            _ => return None,
        })
    }

    /// Whether the fault is enabled and shows in the revision of the request.
    fn is_active(&self, fault: Fault) -> bool {
        self.state.is_active_for(self.request, fault)
    }

    fn has_grown(&self) -> bool {
        self.subscriptions.has_grown(self.state, self.request.revision)
    }

    /// Whether a fault rejects the listed prompt that the request names.
    fn rejects_prompt(&self) -> bool {
        self.is_active(Fault::ListedPromptRejected) && self.params.get("name").is_some_and(|name| name == "picture")
    }

    /// A page of a list other than that of tools.
    fn page(&self, list: &str, member: &str, items: &[Value]) -> Result<Object, NoResult> {
        let (request, params) = (self.request, self.params);
        let page = match pagination::page(list, items, params) {
            Err(_) if self.is_active(Fault::ResourceCursorUnchecked) => pagination::page(list, items, &Object::new()),
            page => page,
        }?;
        let mut result = object(json!({member: page.items}));
        if let Some(next) = page.next {
            result.insert("nextCursor".to_owned(), next);
        }
        let varies = params.contains_key("cursor") && self.is_active(Fault::ResourceCacheScopeVaries);
        add_caching(&mut result, request.revision, if varies { "private" } else { "public" });
        Ok(result)
    }

    fn read(&self) -> Result<Object, NoResult> {
        let (revision, params) = (self.request.revision, self.params);
        if params.get("uri").is_some_and(|uri| !uri.is_string()) && self.is_active(Fault::ReadCrash) {
            return Err(NoResult::Closed);
        }
        let uri = uri_of(params)?;
        let mut contents = resource::contents(uri);
        if uri == resource::PIXELS && self.is_active(Fault::InternalErrorCode) {
            return Err(RpcError::new(0, "Internal error").into());
        }
        if uri == resource::PIXELS && self.is_active(Fault::Awkward) {
            return internal();
        }
        if uri.contains("..") && self.is_active(Fault::PathTraversal) {
            let text = "root:x:0:0:root:/root:/bin/sh\n";
            contents = Some(object(json!({"uri": uri, "mimeType": "text/plain", "text": text})));
        }
        if uri == resource::NOTES && revision.is_modern() && self.has_grown() {
            contents = contents.map(resource::grown);
        }
        if uri == resource::NOTES && self.is_active(Fault::ListedNotRead) {
            contents = None;
        }
        if uri.starts_with("data:") && self.is_active(Fault::DataUriServed) {
            contents = Some(object(json!({"uri": uri, "mimeType": "text/plain", "text": uri})));
        }
        if resource::is_listed_by_template_only(uri) && self.is_active(Fault::TemplateResourceEmpty) {
            contents = contents.map(|mut contents| {
                contents.remove("text");
                contents
            });
        }
        if uri == resource::UNLISTED && self.is_active(Fault::LinkedResourceEmpty) {
            contents = Some(object(json!({"uri": uri, "mimeType": "text/plain"})));
        }
        let mut result = match contents {
            Some(contents) => object(json!({"contents": [contents]})),
            None if self.is_active(Fault::MissingResourceEmpty) => object(json!({"contents": []})),
            None if self.is_active(Fault::MissingResourceCode) => return internal(),
            None => return Err(resource::not_found(uri, revision).into()),
        };
        add_caching(&mut result, revision, "public");
        Ok(result)
    }

    /// Notifies the subscriber at once, which a server may do at any time.
    fn subscribe(&mut self) -> Result<Object, NoResult> {
        let uri = uri_of(self.params)?;
        if resource::contents(uri).is_none() {
            return Err(RpcError::new(RESOURCE_NOT_FOUND, "Resource not found").into());
        }
        let mut message = updated(uri);
        if self.is_active(Fault::UpdateWithoutUri) {
            message["params"] = json!({});
        }
        self.state.after_response.push(message);
        Ok(Object::new())
    }

    fn complete(&self) -> Result<Object, NoResult> {
        let params = self.params;
        let empty = || Ok(object(json!({"completion": {"values": []}})));
        if self.is_active(Fault::MrtrOnCompletion) {
            return Ok(object(json!({"resultType": "input_required", "requestState": "more"})));
        }
        if self.is_active(Fault::CompletionRejected) || self.is_active(Fault::CompletionNotFound) {
            return Err(RpcError::new(METHOD_NOT_FOUND, "Method not found: completion/complete").into());
        }
        if params.contains_key("context") && self.is_active(Fault::CompletionContextRejected) {
            return Err(invalid_params("Unknown member context").into());
        }
        let begun = params.get("argument").and_then(|argument| argument.get("value")).and_then(Value::as_str);
        if begun.is_some_and(|begun| begun.len() > 4000) && self.is_active(Fault::CompletionCrash) {
            return Err(NoResult::Closed);
        }
        let whole = begun.is_some() && params.contains_key("ref");
        match prompt::complete(params) {
            Err(_) if whole && self.is_active(Fault::CompletionUnknownServed) => empty(),
            Err(_) if !whole && self.is_active(Fault::CompletionIncompleteServed) => empty(),
            completed => completed.map_err(NoResult::from),
        }
    }
}

fn internal() -> Result<Object, NoResult> {
    Err(RpcError::new(INTERNAL_ERROR, "Internal error").into())
}

fn uri_of(params: &Object) -> Result<&str, RpcError> {
    params.get("uri").and_then(Value::as_str).ok_or_else(|| invalid_params("uri must be a string"))
}

/// The notification of a changed resource.
fn updated(uri: &str) -> Value {
    notification("notifications/resources/updated", &json!({"uri": uri}))
}

/// The params as a template engine would return them that evaluates expressions in arguments.
fn expand(params: &Object) -> Object {
    let mut params = params.clone();
    if let Some(Value::Object(arguments)) = params.get_mut("arguments") {
        for argument in arguments.values_mut() {
            if let Some(text) = argument.as_str() {
                *argument = json!(text.replace("{{7*7777}}", "54439"));
            }
        }
    }
    params
}
