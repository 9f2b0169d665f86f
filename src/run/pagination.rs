//! Reads lists page by page.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::WaitOutcome;
use crate::limits::MAX_PAGES;
use crate::session::Session;
use crate::transcript::StepId;
use crate::wire::Id;

/// The pages of a list.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// The result of each page.
    pub(super) results: Vec<Value>,
    /// The cursors that the results contain, each once.
    pub(super) cursors: Vec<Value>,
}

/// A request that is in flight.
#[derive(Debug)]
pub(super) struct SentRequest {
    pub(super) id: Id,
    /// The position in the transcript before the request.
    pub(super) from: usize,
}

impl Pages {
    /// Asks for the next page.
    pub(super) async fn ask_for_next(
        &self,
        session: &mut Session,
        method: &str,
        step_id: Option<StepId>,
    ) -> SentRequest {
        let message = session.complete(&self.next_request(method), true, None);
        let from = session.connection.len();
        session.send(&message, step_id).await;
        SentRequest { id: message["id"].clone(), from }
    }

    /// Waits for a page as long as `limit`; returns whether another one follows. None does if the pages repeat or exceed the
    /// maximum.
    pub(super) async fn take_next(&mut self, session: &mut Session, page: &SentRequest, limit: Duration) -> bool {
        let waited = session.wait_for_response(page.from, &page.id, limit).await;
        let WaitOutcome::Ready(response) = waited else { return false };
        response.get("result").is_some_and(|result| self.add(result))
    }

    /// Reads the next page, as [`Self::take_next`].
    pub(super) async fn read_next(
        &mut self,
        session: &mut Session,
        method: &str,
        step_id: Option<StepId>,
        limit: impl Fn(&Session) -> Duration,
    ) -> bool {
        let page = self.ask_for_next(session, method, step_id).await;
        let limit = limit(session);
        self.take_next(session, &page, limit).await
    }

    /// The request for the next page.
    pub(super) fn next_request(&self, method: &str) -> Value {
        let params = self.cursors.last().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        json!({ "method": method, "params": params })
    }

    /// Adds a page; returns whether another one follows.
    pub(super) fn add(&mut self, result: &Value) -> bool {
        self.results.push(result.clone());
        match result.get("nextCursor").filter(|cursor| cursor.is_string()) {
            Some(cursor) if !self.cursors.contains(cursor) => self.cursors.push(cursor.clone()),
            Some(_) | None => return false,
        }
        self.results.len() < MAX_PAGES
    }
}

/// Reads the pages of a list until they end, repeat or exceed the maximum. `limit` is how long each response is waited
/// for.
pub(super) async fn read_pages(
    session: &mut Session,
    method: &str,
    step_id: Option<StepId>,
    limit: impl Fn(&Session) -> Duration + Copy,
) -> Pages {
    let mut pages = Pages::default();
    while pages.read_next(session, method, step_id, limit).await {}
    pages
}

/// The results of `tools/list`.
pub(super) async fn list_tools(session: &mut Session, timeout: Duration) -> Vec<Value> {
    read_pages(session, "tools/list", None, |_| timeout).await.results
}
