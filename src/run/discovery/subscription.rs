//! A subscription of the stateless era that is open during discovery, so that the server reports changes caused by
//! the calls.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::primitives;
use crate::client::WaitOutcome;
use crate::inventory::Primitives;
use crate::limits::MAX_FIRST_READS;
use crate::run::pagination::Pages;
use crate::session::Session;
use crate::spec::Era;
use crate::transcript::messages;

/// The id of the subscription request.
const SUBSCRIPTION_ID: &str = "conformance-discovery";

/// The list changes to subscribe to: the capability, and the member of the filter.
const LISTS: [(&str, &str); 3] = [
    ("tools.listChanged", "toolsListChanged"),
    ("prompts.listChanged", "promptsListChanged"),
    ("resources.listChanged", "resourcesListChanged"),
];

/// An open subscription.
#[derive(Debug)]
pub(super) struct ChangeSubscription(());

impl ChangeSubscription {
    /// Subscribes to all changes that the server declares; returns `None` if there are none.
    pub(super) async fn open(session: &mut Session, primitives: &Primitives, timeout: Duration) -> Option<Self> {
        if session.revision.era() != Era::Stateless || session.connection.is_closed() {
            return None;
        }
        let declared = LISTS.iter().filter(|(capability, _)| session.parameters.declares(capability));
        let mut filter: Map<String, Value> =
            declared.map(|(_, member)| ((*member).to_owned(), Value::Bool(true))).collect();
        if session.parameters.declares("resources.subscribe") && !primitives.resources.is_empty() {
            let watched: Vec<&String> = primitives.resources.iter().take(MAX_FIRST_READS).collect();
            filter.insert("resourceSubscriptions".to_owned(), json!(watched));
        }
        if filter.is_empty() {
            return None;
        }
        let request =
            json!({ "id": SUBSCRIPTION_ID, "method": "subscriptions/listen", "params": { "notifications": filter } });
        let request = session.complete(&request, true, None);
        let from = session.connection.len();
        session.send(&request, None).await;
        let is_acknowledgement = |value: &Value| {
            messages(value).any(|message| {
                let acknowledges =
                    message.get("method").is_some_and(|method| method == "notifications/subscriptions/acknowledged");
                acknowledges || message.get("id").is_some_and(|id| id == SUBSCRIPTION_ID)
            })
        };
        let waited = session
            .connection
            .wait(from, primitives::next_response_timeout(session, timeout), |entries| {
                entries.iter().filter_map(|entry| entry.received()).any(is_acknowledgement).then_some(())
            })
            .await;
        if matches!(waited, WaitOutcome::Ready(())) {
            // Reading before and after the calls shows what they change.
            primitives::read_resources_again(session, primitives, timeout).await;
        }
        Some(Self(()))
    }

    /// Reads everything again, with the tools if these are still to be read, and cancels the subscription.
    pub(super) async fn close(self, session: &mut Session, timeout: Duration, with_tools: bool) {
        if session.connection.is_closed() {
            return;
        }
        if with_tools {
            let mut tools = Pages::default();
            let _again = primitives::discover_beside_tools(session, &mut tools, None, timeout).await;
        } else {
            let _again = primitives::discover(session, timeout).await;
        }
        session.cancel(&json!(SUBSCRIPTION_ID), "the discovery is complete").await;
    }
}
