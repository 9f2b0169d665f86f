//! The methods of resources, prompts and completion.

use serde_json::{Value, json};

use super::connection::{Connection, NoResult, Request};
use super::fault::Fault;
use super::message::{
    INTERNAL_ERROR, METHOD_NOT_FOUND, Object, RESOURCE_NOT_FOUND, RpcError, invalid_params, notification, object,
};
use super::method::add_caching;
use super::pagination;
use super::prompt::{self, PromptLeniency};
use super::resource;
use super::revision::Revision;

impl Connection<'_> {
    /// Processes a method of these; nothing if the server does not support it in this revision.
    pub(super) fn serve_primitive(
        &mut self,
        request: &Request,
        method: &str,
        params: &Object,
    ) -> Option<Result<Object, NoResult>> {
        let revision = request.revision;
        if self.is_active_for(request, Fault::WithoutTools) {
            return None;
        }
        let prompts = revision >= Revision::V2024_11_05;
        let subscribes = resource::supports_subscribe(revision);
        Some(match method {
            "resources/list" if self.is_active_for(request, Fault::ResourcesListRejected) => internal(),
            "resources/list" => {
                if self.is_active_for(request, Fault::ListChangedUnsubscribed) {
                    self.after_response.push(notification("notifications/resources/list_changed", &json!({})));
                }
                if self.is_active_for(request, Fault::UpdateUnsubscribed) {
                    self.after_response.push(updated(resource::NOTES));
                }
                let mut items = resource::listed(revision, self.has_grown(revision));
                if self.is_active_for(request, Fault::ResourcesPerConnection) {
                    items.push(
                        json!({"uri": format!("mock:///visitors/{:x}", self.pagination.salt), "name": "visitor"}),
                    );
                }
                self.page("resources", "resources", &items, request, params)
            }
            "resources/templates/list" => {
                self.page("templates", "resourceTemplates", &resource::templates(revision), request, params)
            }
            "resources/read" => self.read(request, params),
            "resources/subscribe" if subscribes => self.subscribe(request, params),
            "resources/unsubscribe" if subscribes => uri_of(params).map(|_| Object::new()).map_err(NoResult::from),
            "prompts/list" if prompts && self.is_active_for(request, Fault::PromptsListRejected) => internal(),
            "prompts/list" if prompts => {
                let mut items = prompt::listed(revision);
                if self.has_grown(revision) {
                    items.push(json!({"name": prompt::GROWTH.0, "description": prompt::GROWTH.2}));
                }
                if self.is_active_for(request, Fault::PromptsPerConnection) {
                    items.push(json!({"name": format!("visitor_{:x}", self.pagination.salt)}));
                }
                self.page("prompts", "prompts", &items, request, params)
            }
            "prompts/get" if prompts && self.rejects_prompt(request, params) => {
                Err(invalid_params("Unknown prompt").into())
            }
            "prompts/get" if prompts => {
                let leniency = PromptLeniency {
                    name: self.is_active_for(request, Fault::UnknownPromptServed),
                    missing: self.is_active_for(request, Fault::MissingPromptArgumentServed),
                    types: self.is_active_for(request, Fault::PromptArgumentTypesUnchecked),
                };
                let expanded = self.is_active_for(request, Fault::PromptTemplateExpanded).then(|| expand(params));
                prompt::get(expanded.as_ref().unwrap_or(params), revision, leniency).map_err(NoResult::from)
            }
            "completion/complete" if prompt::supports_completion(revision) => self.complete(request, params),
            "subscriptions/listen" if revision.is_modern() => self.listen(request, params),
            _ => return None,
        })
    }

    /// Whether a fault rejects the listed prompt that a request names.
    fn rejects_prompt(&self, request: &Request, params: &Object) -> bool {
        self.is_active_for(request, Fault::ListedPromptRejected)
            && params.get("name").is_some_and(|name| name == "picture")
    }

    /// A page of a list other than that of tools.
    fn page(
        &self,
        list: &str,
        member: &str,
        items: &[Value],
        request: &Request,
        params: &Object,
    ) -> Result<Object, NoResult> {
        let page = match pagination::page(list, items, params) {
            Err(_) if self.is_active_for(request, Fault::ResourceCursorUnchecked) => {
                pagination::page(list, items, &Object::new())
            }
            page => page,
        }?;
        let mut result = object(json!({member: page.items}));
        if let Some(next) = page.next {
            result.insert("nextCursor".to_owned(), next);
        }
        let varies = params.contains_key("cursor") && self.is_active_for(request, Fault::ResourceCacheScopeVaries);
        add_caching(&mut result, request.revision, if varies { "private" } else { "public" });
        Ok(result)
    }

    fn read(&self, request: &Request, params: &Object) -> Result<Object, NoResult> {
        let revision = request.revision;
        if params.get("uri").is_some_and(|uri| !uri.is_string()) && self.is_active_for(request, Fault::ReadCrash) {
            return Err(NoResult::Closed);
        }
        let uri = uri_of(params)?;
        let mut contents = resource::contents(uri);
        if uri == resource::PIXELS && self.is_active_for(request, Fault::InternalErrorCode) {
            return Err(RpcError::new(0, "Internal error").into());
        }
        if uri == resource::PIXELS && self.is_active_for(request, Fault::Awkward) {
            return internal();
        }
        if uri.contains("..") && self.is_active_for(request, Fault::PathTraversal) {
            let text = "root:x:0:0:root:/root:/bin/sh\n";
            contents = Some(object(json!({"uri": uri, "mimeType": "text/plain", "text": text})));
        }
        if uri == resource::NOTES && revision.is_modern() && self.has_grown(revision) {
            contents = contents.map(resource::grown);
        }
        if uri == resource::NOTES && self.is_active_for(request, Fault::ListedNotRead) {
            contents = None;
        }
        let mut result = match contents {
            Some(contents) => object(json!({"contents": [contents]})),
            None if self.is_active_for(request, Fault::MissingResourceEmpty) => object(json!({"contents": []})),
            None if self.is_active_for(request, Fault::MissingResourceCode) => return internal(),
            None => return Err(resource::not_found(uri, revision).into()),
        };
        add_caching(&mut result, revision, "public");
        Ok(result)
    }

    /// Notifies the subscriber at once, which a server may do at any time.
    fn subscribe(&mut self, request: &Request, params: &Object) -> Result<Object, NoResult> {
        let uri = uri_of(params)?;
        if resource::contents(uri).is_none() {
            return Err(RpcError::new(RESOURCE_NOT_FOUND, "Resource not found").into());
        }
        let mut message = updated(uri);
        if self.is_active_for(request, Fault::UpdateWithoutUri) {
            message["params"] = json!({});
        }
        self.after_response.push(message);
        Ok(Object::new())
    }

    fn complete(&self, request: &Request, params: &Object) -> Result<Object, NoResult> {
        let empty = || Ok(object(json!({"completion": {"values": []}})));
        if self.is_active_for(request, Fault::MrtrOnCompletion) {
            return Ok(object(json!({"resultType": "input_required", "requestState": "more"})));
        }
        if self.is_active_for(request, Fault::CompletionRejected) {
            return Err(RpcError::new(METHOD_NOT_FOUND, "Method not found: completion/complete").into());
        }
        if params.contains_key("context") && self.is_active_for(request, Fault::CompletionContextRejected) {
            return Err(invalid_params("Unknown member context").into());
        }
        let begun = params.get("argument").and_then(|argument| argument.get("value")).and_then(Value::as_str);
        if begun.is_some_and(|begun| begun.len() > 4000) && self.is_active_for(request, Fault::CompletionCrash) {
            return Err(NoResult::Closed);
        }
        let whole = begun.is_some() && params.contains_key("ref");
        match prompt::complete(params) {
            Err(_) if whole && self.is_active_for(request, Fault::CompletionUnknownServed) => empty(),
            Err(_) if !whole && self.is_active_for(request, Fault::CompletionIncompleteServed) => empty(),
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
