//! Discovers what the server has in one revision: reads its lists, calls each tool that may be called once, reads a few
//! resources, gets a few prompts, and sends the requests of hints. Passive cases judge the messages.
//!
//! The result is an [`Inventory`]; which requests are made, and in which order, is decided here.

mod argument_search;
mod argument_variants;
mod client_requests;
pub(super) mod example_arguments;
pub(super) mod further_requests;
mod hint_requests;
mod primitives;
mod request_batch;
mod subscription;
mod suggested_values;
mod tool_calls;
mod working_arguments;

use std::time::Duration;

use serde_json::{Value, json};

pub(super) use self::client_requests::{Attribution, RequestsByTool};
pub(super) use self::example_arguments::with_path;
pub(super) use self::hint_requests::send_hint_request;
use self::primitives::TOOLS;
pub(super) use self::primitives::list_only;
use self::subscription::ChangeSubscription;
use self::tool_calls::{UnansweredCall, call_tools, wait_for_unanswered};
use super::control_request::control_method;
use super::pagination::{Pages, SentRequest, list_tools};
use crate::client::WaitOutcome;
use crate::inventory::{Inventory, Primitives};
use crate::limits::TIMEOUTS_OF_SILENT_SERVER;
use crate::plan::Plan;
use crate::session::Session;
use crate::transcript::Event;

/// What is left of discovery once the inventory is known.
#[derive(Debug, Default)]
pub(super) struct RemainingDiscovery {
    /// The calls that are still in flight.
    unanswered_calls: Vec<UnansweredCall>,
    /// The calls that show which tools ask the client; several cases need not wait for them.
    attribution: Option<Attribution>,
    /// The requests that are still to send.
    repetition: Option<Repetition>,
}

/// Lists and reads everything again, which shows what the calls changed.
#[derive(Debug)]
struct Repetition {
    subscription: Option<ChangeSubscription>,
}

impl RemainingDiscovery {
    /// Whether calls are still in flight.
    pub(super) fn has_calls_in_flight(&self) -> bool {
        !self.unanswered_calls.is_empty()
    }

    /// Waits for the calls that are still in flight; returns the inventory with their outcomes.
    pub(super) async fn finish_calls(
        &mut self,
        session: &mut Session,
        inventory: &Inventory,
        timeout: Duration,
    ) -> Inventory {
        let mut inventory = Inventory { awaits_first_calls: false, ..inventory.clone() };
        let calls = std::mem::take(&mut self.unanswered_calls);
        if let Some(attribution) = wait_for_unanswered(session, calls, &mut inventory, timeout).await {
            inventory.awaits_client_requests = true;
            self.attribution = Some(attribution);
        }
        inventory
    }

    /// The calls that are left to make to see which tools ask the client.
    pub(super) fn take_attribution(&mut self) -> Option<Attribution> {
        self.attribution.take()
    }

    /// Sends the remaining requests.
    pub(super) async fn send_requests(&mut self, session: &mut Session, timeout: Duration) {
        if let Some(repetition) = self.repetition.take() {
            repetition.send_requests(session, timeout).await;
        }
    }
}

impl Repetition {
    async fn send_requests(self, session: &mut Session, timeout: Duration) {
        // If the calls changed the list, the server should have announced it.
        let lists_tools = session.parameters.declares("tools.listChanged") && !session.connection.is_closed();
        let beside_tools = lists_tools && session.is_slow();
        if lists_tools && !beside_tools {
            list_tools(session, timeout).await;
        }
        match self.subscription {
            Some(subscription) => subscription.close(session, timeout, beside_tools).await,
            None if beside_tools => return primitives::list_announced_again_beside_tools(session, timeout).await,
            None => {}
        }
        primitives::list_announced_again(session, timeout).await;
    }
}

/// Lists the tools, calls each callable tool once, and sends the hint requests; also returns what is left to do, so that
/// cases need not wait for it. `after_first_answers` is called once it is known whether the server is slow to answer.
pub(super) async fn discover(
    session: &mut Session,
    plan: &Plan,
    after_first_answers: impl FnOnce(&Session) + Send,
) -> (Inventory, RemainingDiscovery) {
    let (mut inventory, remaining) = discover_plainly(session, plan, after_first_answers).await;
    hint_requests::send_all(session, plan, &mut inventory).await;
    let requests = session.transcript_from(0).requests_to_client();
    let methods = requests.iter().filter_map(|request| request["method"].as_str());
    inventory.requested_of_client = methods.map(str::to_owned).collect();
    (inventory, remaining)
}

/// Lists the tools, and everything else beside them if the server is slow. A first page that is slow may have been built for
/// the first time, so that one more request shows whether the server takes long for every response; the next page follows it
/// at once.
async fn list_tools_first(
    session: &mut Session,
    timeout: Duration,
    after_first_answers: impl FnOnce(&Session) + Send,
) -> (Vec<Value>, Option<Primitives>) {
    let (mut pages, mut primitives, mut page) = (Pages::default(), None, None);
    let mut continues = pages.read_next(session, TOOLS, None, |_| timeout).await;
    if session.is_slow() {
        let control = begin_control_request(session).await;
        if continues {
            page = Some(pages.ask_for_next(session, TOOLS, None).await);
        }
        let limit = session.response_timeout(timeout);
        session.wait_for_response(control.from, &control.id, limit).await;
    }
    after_first_answers(session);
    if continues && session.is_slow() && session.parameters.opening.is_some() {
        let (listed, follows) = primitives::discover_beside_tools(session, &mut pages, page.take(), timeout).await;
        (primitives, continues) = (Some(listed), follows);
    }
    while continues {
        let next = match page.take() {
            Some(page) => page,
            None => pages.ask_for_next(session, TOOLS, None).await,
        };
        continues = pages.take_next(session, &next, timeout).await;
    }
    (pages.results, primitives)
}

/// Sends the control request, without waiting for its response.
async fn begin_control_request(session: &mut Session) -> SentRequest {
    let message = session.complete(&json!({ "method": control_method(session), "params": {} }), true, None);
    let from = session.connection.len();
    session.send(&message, None).await;
    SentRequest { id: message["id"].clone(), from }
}

async fn discover_plainly(
    session: &mut Session,
    plan: &Plan,
    after_first_answers: impl FnOnce(&Session) + Send,
) -> (Inventory, RemainingDiscovery) {
    let declared = session.parameters.opening.is_none() || session.parameters.declares("tools");
    let timeout = session.response_timeout(plan.timeout);
    let (pages, primitives) = list_tools_first(session, timeout, after_first_answers).await;
    let timeout = session.response_timeout(plan.timeout);
    if !declared && session.unanswered == 0 {
        // Whether they should have been declared is judged; without that they are not called.
        let primitives = match primitives {
            Some(primitives) => primitives,
            None => primitives::discover(session, timeout).await,
        };
        return (Inventory { primitives, ..Inventory::default() }, RemainingDiscovery::default());
    }
    let mut inventory = Inventory::from_pages(&pages, plan.calls);
    if session.unanswered > 0 {
        // One more request, of another kind, distinguishes a silent server from a slow list. It may be busy for a while.
        let limit = plan.timeout * TIMEOUTS_OF_SILENT_SERVER;
        let control = begin_control_request(session).await;
        if matches!(session.wait_for_response(control.from, &control.id, limit).await, WaitOutcome::TimedOut) {
            session.connection.record(Event::Abandoned);
            inventory.stop_reason = Some("the server stopped answering after the session was opened".to_owned());
        }
        return (inventory, RemainingDiscovery::default());
    }
    inventory.primitives = match primitives {
        Some(primitives) => primitives,
        None => primitives::discover(session, timeout).await,
    };
    let subscription = ChangeSubscription::open(session, &inventory.primitives, timeout).await;
    let began = session.connection.len();
    let unanswered_calls = call_tools(session, plan, &mut inventory, began).await;
    working_arguments::find_working_arguments(session, plan, &mut inventory).await;
    let attribution = Attribution::prepare(session, &mut inventory, began).await;
    let mut remaining =
        RemainingDiscovery { unanswered_calls, attribution: None, repetition: Some(Repetition { subscription }) };
    if session.is_slow() {
        inventory.awaits_client_requests = attribution.len() > 0;
        remaining.attribution = inventory.awaits_client_requests.then_some(attribution);
    } else {
        let requests = attribution.make_calls(session, &inventory, plan.timeout, |_| true).await;
        inventory.set_client_requests(requests);
        remaining.send_requests(session, timeout).await;
    }
    (inventory, remaining)
}
