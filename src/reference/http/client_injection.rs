//! Fault injection into what keeps the clients of the server apart.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;

use super::injection::has;
use super::response::HttpResponse;
use crate::reference::fault::FaultSet;
use crate::reference::fault::HttpFault::{RoutesById, SharedTransport};

/// How long a fault holds a response back, so that another client can use the id meanwhile.
const RESPONSE_HOLD_TIMEOUT: Duration = Duration::from_millis(60);

/// Who waits for the response to an id: one map for all clients, which only a fault uses.
#[derive(Default)]
pub(super) struct Routes(Mutex<HashMap<String, oneshot::Sender<HttpResponse>>>);

impl Routes {
    fn waiting(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<HttpResponse>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The response to a message. With one of the faults, a response goes to the client that used its id last, and nothing to the
    /// one that used it before.
    pub(super) async fn respond(
        &self,
        message: &Value,
        own: impl Future<Output = HttpResponse>,
        faults: &FaultSet,
    ) -> HttpResponse {
        let routes_by_id = has(faults, RoutesById) || has(faults, SharedTransport);
        let id = message.get("id").and_then(Value::as_str).filter(|_| routes_by_id);
        let Some(id) = id else { return own.await };
        let (sender, response) = oneshot::channel();
        self.waiting().insert(id.to_owned(), sender);
        let own = own.await;
        tokio::time::sleep(RESPONSE_HOLD_TIMEOUT).await;
        let route = self.waiting().remove(id);
        if let Some(route) = route {
            // The client may have disconnected.
            let _gone = route.send(own);
        }
        match response.await {
            Ok(response) => response,
            // Nobody else will answer, as in a server that has lost the route.
            Err(_) => std::future::pending().await,
        }
    }
}
