//! A subscription of the stateless era that is open while the survey calls the tools, so that what they
//! change is told.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::others::{self, MOST_USED, Others};
use super::session::Session;
use crate::client::Waited;
use crate::spec::Era;
use crate::transcript::messages;

/// The id of the request that listens.
const ID: &str = "conformance-survey";

/// How long the acknowledgement is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// The lists whose changes can be listened for: the capability, and the member of the filter.
const LISTS: [(&str, &str); 3] = [
    ("tools.listChanged", "toolsListChanged"),
    ("prompts.listChanged", "promptsListChanged"),
    ("resources.listChanged", "resourcesListChanged"),
];

/// A subscription that is open.
#[derive(Debug)]
pub(super) struct Listening(());

impl Listening {
    /// Listens for everything that the server declared to tell; nothing if that is nothing.
    pub(super) async fn begin(session: &mut Session, others: &Others, timeout: Duration) -> Option<Self> {
        if session.revision.era() != Era::Stateless || session.connection.is_closed() {
            return None;
        }
        let declared = LISTS.iter().filter(|(capability, _)| session.terms.declares(capability));
        let mut filter: Map<String, Value> =
            declared.map(|(_, member)| ((*member).to_owned(), Value::Bool(true))).collect();
        if session.terms.declares("resources.subscribe") && !others.resources.is_empty() {
            let watched: Vec<&String> = others.resources.iter().take(MOST_USED).collect();
            filter.insert("resourceSubscriptions".to_owned(), json!(watched));
        }
        if filter.is_empty() {
            return None;
        }
        let request = json!({ "id": ID, "method": "subscriptions/listen", "params": { "notifications": filter } });
        let request = session.complete(&request, true, None);
        let from = session.connection.len();
        session.send(&request, None).await;
        let sign = |value: &Value| {
            messages(value).any(|message| {
                let acknowledges =
                    message.get("method").is_some_and(|method| method == "notifications/subscriptions/acknowledged");
                acknowledges || message.get("id").is_some_and(|id| id == ID)
            })
        };
        let waited = session
            .connection
            .wait(from, PATIENCE.min(timeout), |entries| {
                entries.iter().filter_map(|entry| entry.received()).any(sign).then_some(())
            })
            .await;
        if matches!(waited, Waited::Came(())) {
            // What is the same now as before changes through the calls, if it changes.
            others::read_again(session, others, timeout).await;
        }
        Some(Self(()))
    }

    /// Looks at everything once more, and cancels the subscription.
    pub(super) async fn end(self, session: &mut Session, timeout: Duration) {
        if session.connection.is_closed() {
            return;
        }
        let _again = others::look(session, timeout).await;
        let params = json!({ "requestId": ID });
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }), None).await;
    }
}
