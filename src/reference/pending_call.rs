//! Calls that wait for a response from the client, and their end if none comes.
//!
//! The server has no clock: it counts the pings of a client that responds to nothing else.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::call::ToolOutput;
use super::client_request::ClientRequest;
use super::client_response::WaitingCall;
use super::connection_state::{ConnectionState, Request};
use super::fault::Fault;
use super::message::{Object, notification, response};
use super::revision::Revision;

/// After how many pings the server stops waiting for a response of the client.
const MAX_PINGS: u32 = 3;

/// A call that waits for a response from the client.
#[derive(Debug)]
pub(super) struct PendingCall {
    pub(super) id: Value,
    pub(super) revision: Revision,
    pub(super) client_request: ClientRequest,
    pub(super) arguments: Object,
    /// The number of the elicitation.
    pub(super) number: u64,
    /// The messages of a sampling request, and the number of rounds so far.
    pub(super) messages: Vec<Value>,
    pub(super) rounds: usize,
    /// How many pings have come meanwhile.
    pub(super) pings: u32,
}

impl PendingCall {
    pub(super) fn new(request: &Request, client_request: ClientRequest, arguments: &Object, number: u64) -> Self {
        Self {
            id: request.id.clone(),
            revision: request.revision,
            client_request,
            arguments: arguments.clone(),
            number,
            messages: Vec::new(),
            rounds: 0,
            pings: 0,
        }
    }

    /// What the response to it depends on.
    pub(super) fn waiting(&self) -> WaitingCall<'_> {
        let Self { client_request, arguments, messages, rounds, revision, .. } = self;
        let (client_request, rounds, revision) = (*client_request, *rounds, *revision);
        WaitingCall { client_request, arguments, messages, rounds, revision }
    }
}

/// The calls that wait for a response from the client, by the ids of the requests to it.
#[derive(Debug, Default)]
pub(super) struct PendingCalls(pub(super) BTreeMap<String, PendingCall>);

impl PendingCalls {
    /// Whether a call waits for the client.
    pub(super) fn awaits_client(&self) -> bool {
        !self.0.is_empty()
    }

    /// Counts a ping, and ends the calls that have waited too long.
    pub(super) fn time_out(&mut self, state: &mut ConnectionState<'_>) {
        self.0.values_mut().for_each(|waiting| waiting.pings += 1);
        let (late, waiting) =
            std::mem::take(&mut self.0).into_iter().partition(|(_, waiting)| waiting.pings >= MAX_PINGS);
        self.0 = waiting;
        let late: BTreeMap<String, PendingCall> = late;
        for (request_id, PendingCall { id, revision, .. }) in late {
            // 2024-11-05 asks for a timeout only.
            if revision >= Revision::V2025_03_26 && !state.faults.is_active(Fault::TimeoutNotCancelled, revision) {
                let params = json!({"requestId": request_id, "reason": "the client did not respond"});
                state.send(notification("notifications/cancelled", &params), revision);
            }
            let result = ToolOutput::failure("The client did not respond.").into_result(revision);
            state.respond(response(&id, result), "tools/call", revision);
        }
    }
}
