//! Reads lists page by page.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::WaitOutcome;
use crate::limits::MAX_PAGES;
use crate::session::Session;
use crate::transcript::StepId;

/// The pages of a list.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// The result of each page.
    pub(super) results: Vec<Value>,
    /// The cursors that the results contain, each once.
    pub(super) cursors: Vec<Value>,
}

/// Reads the pages of a list until they end, repeat or exceed the maximum. `limit` is how long each response is waited
/// for.
pub(super) async fn read_pages(
    session: &mut Session,
    method: &str,
    step_id: Option<StepId>,
    limit: impl Fn(&Session) -> Duration,
) -> Pages {
    let mut pages = Pages::default();
    let mut params = json!({});
    while pages.results.len() < MAX_PAGES {
        let message = session.complete(&json!({ "method": method, "params": params }), true, None);
        let from = session.connection.len();
        session.send(&message, step_id).await;
        let limit = limit(session);
        let WaitOutcome::Ready(response) = session.wait_for_response(from, &message["id"], limit).await else { break };
        let Some(result) = response.get("result") else { break };
        pages.results.push(result.clone());
        let Some(cursor) = result.get("nextCursor").filter(|cursor| cursor.is_string()) else { break };
        if pages.cursors.contains(cursor) {
            break;
        }
        pages.cursors.push(cursor.clone());
        params = json!({ "cursor": cursor });
    }
    pages
}

/// The results of `tools/list`.
pub(super) async fn list_tools(session: &mut Session, timeout: Duration) -> Vec<Value> {
    read_pages(session, "tools/list", None, |_| timeout).await.results
}
