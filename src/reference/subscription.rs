//! Subscriptions of 2026-07-28: what clients subscribe to, and the notifications that they receive.
//!
//! The lists and the notes only change for subscribers, since the responses of a stateless server do not
//! depend on the connection.

use serde_json::{Value, json};

use super::connection_state::{ConnectionState, NoResult, Request};
use super::fault::Fault;
use super::message::{INVALID_REQUEST, METHOD_NOT_FOUND, Object, RpcError, invalid_params, notification, object};
use super::resource;
use super::revision::Revision;
use super::task_method::Tasks;

const ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The lists: the member of the filter, and the notification.
const LISTS: [(&str, &str); 3] = [
    ("toolsListChanged", "notifications/tools/list_changed"),
    ("promptsListChanged", "notifications/prompts/list_changed"),
    ("resourcesListChanged", "notifications/resources/list_changed"),
];

/// A subscription and its accepted filter.
#[derive(Debug)]
struct Subscription {
    id: Value,
    granted: Object,
    /// Whether it was cancelled; only a fault keeps it after that.
    cancelled: bool,
}

/// The subscriptions of a connection.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    open: Vec<Subscription>,
    /// Whether the lists have an extra item for subscribers.
    grown: bool,
    /// Whether the client has ended a subscription to a resource, which earlier revisions have.
    pub(super) has_unsubscribed: bool,
}

impl Subscriptions {
    /// Opens a subscription. It ends at once if nothing of the filter is accepted.
    pub(super) fn listen(
        &mut self,
        state: &mut ConnectionState<'_>,
        tasks: &mut Tasks,
        request: &Request,
        params: &Object,
    ) -> Result<Object, NoResult> {
        if state.is_active_for(request, Fault::ListenRejected) {
            return Err(RpcError::new(METHOD_NOT_FOUND, "Method not found: subscriptions/listen").into());
        }
        if !self.open.is_empty() && state.is_active_for(request, Fault::ListenOnlyOne) {
            return Err(RpcError::new(INVALID_REQUEST, "There already is a subscription").into());
        }
        let filter = match params.get("notifications") {
            Some(Value::Object(filter)) => filter.clone(),
            _ if state.is_active_for(request, Fault::ListenFilterUnchecked) => Object::new(),
            _ => return Err(invalid_params("notifications must be an object").into()),
        };
        let mut granted = granted(&filter);
        let tasks = tasks.listen(state, request, params)?;
        if !tasks.is_empty() {
            granted.insert("taskIds".to_owned(), json!(tasks));
        }
        let mut notifications = json!(granted);
        if state.is_active_for(request, Fault::ListenGrantsMore) {
            notifications = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
        }
        if state.is_active_for(request, Fault::ListenGrantString) {
            notifications = json!("all");
        }
        let meta = json!({ID: request.id});
        if state.is_active_for(request, Fault::ListenUpdateFirst) {
            let params = json!({"_meta": meta, "uri": resource::NOTES});
            state.send(notification("notifications/resources/updated", &params), request.revision);
        }
        let params = json!({"_meta": meta, "notifications": notifications});
        if !state.is_active_for(request, Fault::ListenUnacknowledged) {
            state.send(notification("notifications/subscriptions/acknowledged", &params), request.revision);
        }
        if state.is_active_for(request, Fault::ListenUnrequestedNotification)
            && !granted.contains_key("promptsListChanged")
        {
            state.send(notification("notifications/prompts/list_changed", &json!({"_meta": meta})), request.revision);
        }
        if granted.is_empty() {
            if state.is_active_for(request, Fault::ListenEndsAbruptly) {
                return Err(NoResult::Closed);
            }
            let untagged = state.is_active_for(request, Fault::ListenResultWithoutSubscriptionId);
            return Ok(if untagged { Object::new() } else { object(json!({"_meta": meta})) });
        }
        self.open.push(Subscription { id: request.id.clone(), granted, cancelled: false });
        Err(NoResult::Deferred)
    }

    /// Ends the subscription of a request, if there is one.
    pub(super) fn cancel(&mut self, state: &ConnectionState<'_>, id: &Value) {
        let ignored = state.is_enabled(Fault::ListenCancelIgnored);
        for subscription in self.open.iter_mut().filter(|subscription| subscription.id == *id) {
            subscription.cancelled = true;
        }
        self.open.retain(|subscription| !subscription.cancelled || ignored);
    }

    /// Whether the lists have changed, and in 2026-07-28 the notes as well.
    pub(super) fn has_grown(&self, state: &ConnectionState<'_>, revision: Revision) -> bool {
        if !revision.is_modern() {
            return state.session.as_ref().is_some_and(|session| session.grown);
        }
        self.grown && self.open.iter().any(|subscription| !subscription.cancelled)
    }

    /// Changes the lists if there are subscribers, and notifies them.
    pub(super) fn grow(&mut self, state: &mut ConnectionState<'_>, request: &Request) -> bool {
        self.grown = self.open.iter().any(|subscription| !subscription.cancelled);
        let mut notifications = Vec::new();
        for subscription in self.open.iter().filter(|_| self.grown) {
            let granted = |member: &str| subscription.granted.contains_key(member);
            for (member, method) in LISTS.into_iter().filter(|(member, _)| granted(member)) {
                let silent =
                    if member == "toolsListChanged" { Fault::ListenToolsSilent } else { Fault::ListenListsSilent };
                if !state.is_active_for(request, silent) {
                    notifications.push((method, subscription.id.clone(), None));
                }
            }
            let watched = subscription.granted.get("resourceSubscriptions").and_then(Value::as_array);
            let notes = watched.is_some_and(|uris| uris.iter().any(|uri| uri == resource::NOTES));
            if notes && !state.is_active_for(request, Fault::ListenUpdatesSilent) {
                notifications.push(("notifications/resources/updated", subscription.id.clone(), Some(resource::NOTES)));
            }
        }
        for (method, id, uri) in notifications {
            let mut params = json!({"_meta": {ID: id}});
            if state.is_active_for(request, Fault::ListenWithoutSubscriptionId) {
                params = json!({});
            }
            if let Some(uri) = uri {
                params["uri"] = json!(uri);
            }
            state.send(notification(method, &params), request.revision);
        }
        self.grown
    }

    /// Sends the notifications of a fault to cancelled subscriptions.
    pub(super) fn notify_cancelled(&self, state: &mut ConnectionState<'_>, request: &Request) {
        if !state.is_active_for(request, Fault::ListenCancelIgnored) {
            return;
        }
        let ids: Vec<Value> = self.open.iter().filter(|one| one.cancelled).map(|one| one.id.clone()).collect();
        for id in ids {
            let params = json!({"_meta": {ID: id}});
            state.send(notification("notifications/tools/list_changed", &params), request.revision);
        }
    }
}

/// The part of a filter that the server supports.
fn granted(filter: &Object) -> Object {
    let lists = LISTS.into_iter().filter(|(member, _)| filter.get(*member) == Some(&json!(true)));
    let mut granted: Object = lists.map(|(member, _)| (member.to_owned(), json!(true))).collect();
    let uris = filter.get("resourceSubscriptions").and_then(Value::as_array).into_iter().flatten();
    let uris: Vec<&Value> =
        uris.filter(|uri| uri.as_str().is_some_and(|uri| resource::contents(uri).is_some())).collect();
    if !uris.is_empty() {
        granted.insert("resourceSubscriptions".to_owned(), json!(uris));
    }
    granted
}
