//! The tasks of a connection: their creation from calls, and their methods, in both revisions that have them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::connection_state::{ConnectionState, NoResult, Request};
use super::fault::{Fault, FaultSet, HttpFault};
use super::identity;
use super::injection::task as task_injection;
use super::message::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, Object, RpcError,
    invalid_params, notification, object, response,
};
use super::pagination;
use super::revision::Revision;
use super::task::{EXTENSION, Outcome, RELATED, Status, Task, elicitation_params, random_id};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The maximum lifetime of a task, and the default.
const MAX_TTL_MS: u64 = 60_000;

/// The tasks of a connection, and what waits for them.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    list: Vec<Task>,
    /// Ids of `tasks/result` requests that wait for the end of a task.
    waiting_results: Vec<(Value, usize)>,
    /// Requests to the client, each for a task.
    input_required: BTreeMap<String, usize>,
    /// Open subscriptions: the id of the request, and the tasks that it selects.
    subscriptions: Vec<(Value, Vec<usize>)>,
    /// Tasks that a fault does not know yet.
    not_visible_yet: Vec<usize>,
    /// Tasks whose terminal status the client has received.
    ended: Vec<usize>,
}

impl Tasks {
    /// Whether a request waits for a working task.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting_results.iter().any(|(_, at)| self.list[*at].status == Status::Working)
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.list.iter().position(|task| task.id == id)
    }

    /// Creates a task from a call with this outcome; returns the result of the call.
    pub(super) fn create(
        &mut self,
        state: &ConnectionState<'_>,
        request: &Request,
        params: &Object,
        name: &str,
        outcome: Outcome,
    ) -> Object {
        let revision = request.revision;
        let id = if state.is_active_for(request, Fault::TaskIdReused) {
            format!("0123456789abcdef-the-one-task-of-{name}")
        } else if state.is_active_for(request, Fault::TaskIdSequential) {
            format!("task-{}", self.list.len() + 1)
        } else {
            random_id()
        };
        let inputs = params.get("task").and_then(|task| task.get("ttl")).and_then(Value::as_u64);
        let mut task = Task::new(id, outcome, json!(inputs.map_or(MAX_TTL_MS, |ttl| ttl.min(MAX_TTL_MS))));
        if name == "interview" {
            task.input_rounds = match (&state.session, revision.is_modern()) {
                (_, true) if client_of(params).is_some_and(|client| client.get("elicitation").is_some()) => 2,
                (Some(session), false) if session.client.contains_key("elicitation") => 1,
                _ => 0,
            };
        }
        if !revision.is_modern() {
            let token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
            task.progress_token = token.filter(|token| token.is_string() || token.is_i64()).cloned();
        }
        if state.is_active_for(request, Fault::TaskCreatedEnded) {
            task.finish(revision);
        }
        if state.is_active_for(request, Fault::TaskHandleEarly) {
            self.not_visible_yet.push(self.list.len());
        }
        let mut task_object = task.to_object(revision);
        self.list.push(task);
        if revision.is_modern() {
            task_object.insert("resultType".to_owned(), json!("task"));
            return task_object;
        }
        object(json!({"task": task_object}))
    }

    /// Processes a method of tasks; nothing if the server does not support it in this revision.
    pub(super) fn serve(
        &mut self,
        state: &mut ConnectionState<'_>,
        request: &Request,
        method: &str,
        params: &Object,
    ) -> Option<Result<Object, NoResult>> {
        if !method.starts_with("tasks/") || !supports_tasks(state.faults, request.revision) {
            return None;
        }
        let modern = request.revision.is_modern();
        let known = match method {
            "tasks/get" | "tasks/cancel" => true,
            "tasks/update" => modern,
            "tasks/list" => !modern && !state.is_active_for(request, Fault::TasksListRejected),
            "tasks/result" => !modern || state.is_active_for(request, Fault::TaskResultServed),
            _ => false,
        };
        if !known {
            return None;
        }
        if modern && !declares(params) && !state.is_active_for(request, Fault::TaskMethodsUngated) {
            return Some(Err(missing_capability().into()));
        }
        let rejected = [("tasks/cancel", Fault::TaskCancelRejected), ("tasks/update", Fault::TaskUpdateRejected)];
        if rejected.into_iter().any(|(of, fault)| of == method && state.is_active_for(request, fault)) {
            return Some(Err(RpcError::new(INTERNAL_ERROR, "Internal error").into()));
        }
        if method == "tasks/list" {
            return Some(self.list_tasks(state, request, params).map_err(NoResult::from));
        }
        if method == "tasks/result" && state.is_active_for(request, Fault::TaskResultUnanswered) {
            return Some(Err(NoResult::Deferred));
        }
        let served = self.task_of(state, request, params).map_err(NoResult::from).and_then(|at| match method {
            "tasks/get" => Ok(self.get_task(state, request, at)),
            "tasks/cancel" => self.cancel_task(state, request, at).map_err(NoResult::from),
            "tasks/update" => self.update_task(state, request, params, at).map_err(NoResult::from),
            _ => self.result_of(state, request, at),
        });
        Some(served)
    }

    /// The position of the task that a request names.
    fn task_of(&mut self, state: &ConnectionState<'_>, request: &Request, params: &Object) -> Result<usize, RpcError> {
        let named = |task: &Value| task.get("taskId").and_then(Value::as_str).map(str::to_owned);
        let other = params.get("_meta").and_then(|meta| meta.get(RELATED)).and_then(named);
        let id = other
            .filter(|_| state.is_active_for(request, Fault::RelatedTaskWins))
            .or_else(|| params.get("taskId").and_then(Value::as_str).map(str::to_owned));
        let known = id.and_then(|id| self.position(&id));
        let known =
            known.filter(|at| !(state.is_active_for(request, Fault::TaskDeletedOnEnd) && self.ended.contains(at)));
        let hidden = known.filter(|at| self.not_visible_yet.contains(at));
        self.not_visible_yet.retain(|at| Some(*at) != hidden);
        let code = if state.is_active_for(request, Fault::UnknownTaskCode) { INTERNAL_ERROR } else { INVALID_PARAMS };
        known.filter(|_| hidden.is_none()).ok_or_else(|| RpcError::new(code, "Task not found"))
    }

    fn get_task(&mut self, state: &mut ConnectionState<'_>, request: &Request, at: usize) -> Object {
        self.advance(state, at, request.revision);
        let task = &self.list[at];
        let mut task_object =
            if request.revision.is_modern() { task.to_detailed_object() } else { task.to_object(request.revision) };
        if state.is_active_for(request, Fault::TaskInputKeyReused)
            && let Some(Value::Object(inputs)) = task_object.get_mut("inputRequests")
        {
            *inputs = std::mem::take(inputs).into_iter().map(|(_, question)| ("word-1".to_owned(), question)).collect();
        }
        let again = self.ended.contains(&at);
        if again && state.is_active_for(request, Fault::TaskRevives) {
            task_object.insert("status".to_owned(), json!("working"));
        } else if self.list[at].status.is_terminal() && !again {
            self.ended.push(at);
        }
        self.send_late_progress(state, request, at);
        task_object
    }

    /// Sends the progress that a fault reports for an ended task.
    fn send_late_progress(&mut self, state: &mut ConnectionState<'_>, request: &Request, at: usize) {
        let task = &self.list[at];
        if let (true, Some(token)) = (task.status.is_terminal(), &task.progress_token)
            && state.is_active_for(request, Fault::TaskProgressLate)
        {
            let params = json!({"progressToken": token, "progress": task.steps + 1, "_meta": related(&task.id)});
            state.after_response.push(notification("notifications/progress", &params));
        }
    }

    fn list_tasks(&self, state: &ConnectionState<'_>, request: &Request, params: &Object) -> Result<Object, RpcError> {
        let mut items: Vec<Value> = self.list.iter().map(|task| json!(task.to_object(request.revision))).collect();
        if state.is_active_for(request, Fault::TaskUnlisted) {
            items.pop();
        }
        let page = match pagination::page("tasks", &items, params) {
            Err(_) if state.is_active_for(request, Fault::TasksCursorUnchecked) => {
                pagination::page("tasks", &items, &Object::new())
            }
            page => page,
        }?;
        let mut result = object(json!({"tasks": page.items}));
        if let Some(next) = page.next {
            result.insert("nextCursor".to_owned(), next);
        }
        Ok(result)
    }

    fn cancel_task(
        &mut self,
        state: &mut ConnectionState<'_>,
        request: &Request,
        at: usize,
    ) -> Result<Object, RpcError> {
        let revision = request.revision;
        if revision.is_modern() {
            self.list[at].move_to(Status::Cancelled);
            self.notify_status(state, at, revision);
            return Ok(Object::new());
        }
        if self.list[at].status.is_terminal() && !state.is_active_for(request, Fault::TaskCancelTwice) {
            return Err(invalid_params("The task has already ended"));
        }
        if !state.is_active_for(request, Fault::TaskCancelKeepsWorking) {
            self.list[at].move_to(Status::Cancelled);
            self.respond_to_waiting(state, at, revision);
        }
        if !self.ended.contains(&at) && self.list[at].status.is_terminal() {
            self.ended.push(at);
        }
        Ok(self.list[at].to_object(revision))
    }

    /// Accepts input for a task. Input that the task did not request is ignored.
    fn update_task(
        &mut self,
        state: &ConnectionState<'_>,
        request: &Request,
        params: &Object,
        at: usize,
    ) -> Result<Object, RpcError> {
        let Some(Value::Object(responses)) = params.get("inputResponses") else {
            return Err(invalid_params("inputResponses must be an object"));
        };
        let task = &mut self.list[at];
        let awaited = task.status == Status::InputRequired && responses.contains_key(&task.key());
        let reused =
            state.faults.is_active(Fault::TaskInputKeyReused, request.revision) && responses.contains_key("word-1");
        if awaited || task.status == Status::InputRequired && reused {
            task.move_to(Status::Working);
        }
        Ok(Object::new())
    }

    /// The result of a task; deferred until the task has one.
    fn result_of(&mut self, state: &mut ConnectionState<'_>, request: &Request, at: usize) -> Result<Object, NoResult> {
        let is_early = state.is_active_for(request, Fault::TaskResultEarly) || request.revision.is_modern();
        if is_early || self.list[at].status.is_terminal() {
            return self.final_result(at).map_err(NoResult::from);
        }
        self.waiting_results.push((request.id.clone(), at));
        self.respond_to_waiting(state, at, request.revision);
        Err(NoResult::Deferred)
    }

    fn final_result(&self, at: usize) -> Result<Object, RpcError> {
        let task = &self.list[at];
        if task.status == Status::Cancelled {
            return Err(RpcError::new(INVALID_REQUEST, "The task was cancelled"));
        }
        let mut result = task.outcome.clone()?;
        result.insert("_meta".to_owned(), related(&task.id));
        Ok(result)
    }

    /// Works one step of a task, and sends its notifications.
    fn advance(&mut self, state: &mut ConnectionState<'_>, at: usize, revision: Revision) {
        let task = &mut self.list[at];
        if task.status != Status::Working {
            return;
        }
        let done = task.work();
        if let Some(token) = &task.progress_token {
            let params = json!({"progressToken": token, "progress": task.steps, "_meta": related(&task.id)});
            state.send(notification("notifications/progress", &params), revision);
        }
        if !done {
            return;
        }
        let task = &mut self.list[at];
        if task.inputs_requested < task.input_rounds {
            task.inputs_requested += 1;
            task.move_to(Status::InputRequired);
        } else {
            task.finish(revision);
        }
        self.notify_status(state, at, revision);
        self.respond_to_waiting(state, at, revision);
    }

    /// Answers the requests that wait for an ended task, and requests input for one that a request waits for.
    fn respond_to_waiting(&mut self, state: &mut ConnectionState<'_>, at: usize, revision: Revision) {
        let status = self.list[at].status;
        let awaited = self.waiting_results.iter().any(|(_, of)| *of == at);
        if status == Status::InputRequired && awaited && !self.input_required.values().any(|of| *of == at) {
            let task = &self.list[at];
            let mut params = elicitation_params(task.inputs_requested);
            if !state.faults.is_active(Fault::TaskInputWithoutRelatedTask, revision) {
                params["_meta"] = related(&task.id);
            }
            let id = state.send_request("elicitation/create", Some(params), revision);
            self.input_required.insert(id, at);
        }
        if status.is_terminal() {
            let waiting_results = std::mem::take(&mut self.waiting_results);
            let (ended, others): (Vec<_>, Vec<_>) = waiting_results.into_iter().partition(|(_, of)| *of == at);
            self.waiting_results = others;
            for (id, _) in ended {
                let message = match self.final_result(at) {
                    Ok(mut result) => {
                        task_injection::inject(&mut result, "tasks/result", revision, state.faults);
                        response(&id, result)
                    }
                    Err(error) => error.into_message(Some(&id), false),
                };
                state.respond(message, "tasks/result", revision);
            }
        }
    }

    /// Notifies the client of the status of a task.
    fn notify_status(&mut self, state: &mut ConnectionState<'_>, at: usize, revision: Revision) {
        if !revision.is_modern() {
            let mut params = self.list[at].to_object(revision);
            task_injection::inject(&mut params, "notifications/tasks/status", revision, state.faults);
            state.send(notification("notifications/tasks/status", &json!(params)), revision);
            return;
        }
        let subscriptions_to: Vec<Value> = self.subscriptions_to(at).map(|(id, _)| id.clone()).collect();
        for id in subscriptions_to {
            let mut params = self.list[at].to_detailed_object();
            params.insert("_meta".to_owned(), json!({ SUBSCRIPTION: id }));
            task_injection::inject(&mut params, "notifications/tasks", revision, state.faults);
            state.send(notification("notifications/tasks", &json!(params)), revision);
        }
        let list = &self.list;
        let spent = |tasks: &[usize]| tasks.iter().all(|at| list[*at].status.is_terminal());
        let over: Vec<Value> =
            self.subscriptions_to(at).filter(|(_, tasks)| spent(tasks)).map(|(id, _)| id.clone()).collect();
        for id in over {
            self.end_subscription(state, &id, revision);
        }
    }

    /// The subscriptions to a task.
    fn subscriptions_to(&self, at: usize) -> impl Iterator<Item = &(Value, Vec<usize>)> {
        self.subscriptions.iter().filter(move |(_, tasks)| tasks.contains(&at))
    }

    /// Ends a subscription whose tasks have all ended.
    fn end_subscription(&mut self, state: &mut ConnectionState<'_>, id: &Value, revision: Revision) {
        self.subscriptions.retain(|(open, _)| open != id);
        let reason = "all tasks of the subscription have ended";
        let params = json!({"_meta": { SUBSCRIPTION: id }, "requestId": state.cancelled_id(id), "reason": reason});
        state.send(notification("notifications/cancelled", &params), revision);
        state.respond(end_of_subscription(id, state.faults), "subscriptions/listen", revision);
    }

    /// Opens a subscription; returns the ids of the accepted tasks.
    ///
    /// # Errors
    /// When the filter selects tasks and the client does not declare the extension.
    pub(super) fn listen(
        &mut self,
        state: &mut ConnectionState<'_>,
        request: &Request,
        params: &Object,
    ) -> Result<Vec<String>, RpcError> {
        let wanted = params.get("notifications").and_then(|filter| filter.get("taskIds")).and_then(Value::as_array);
        let wanted = wanted.filter(|_| supports_tasks(state.faults, request.revision));
        if wanted.is_some() && !declares(params) && !state.is_active_for(request, Fault::TaskListenUngated) {
            return Err(missing_capability());
        }
        if wanted.is_some() && state.is_active_for(request, Fault::TaskListenRejected) {
            return Err(invalid_params("Unknown member taskIds"));
        }
        let ids: Vec<String> = wanted.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        let granted: Vec<(String, usize)> =
            ids.into_iter().filter_map(|id| self.position(&id).map(|at| (id, at))).collect();
        let (names, places) = granted.into_iter().unzip();
        self.subscriptions.push((request.id.clone(), places));
        Ok(names)
    }

    /// Handles a cancellation: a waiting request is no longer answered.
    pub(super) fn cancel(&mut self, state: &mut ConnectionState<'_>, id: &Value) {
        let served = state.faults.is_active(Fault::CancelledServed, state.revision());
        let waiting_results = self.waiting_results.iter().any(|(open, _)| open == id);
        let subscriptions = self.subscriptions.iter().any(|(open, _)| open == id);
        self.waiting_results.retain(|(open, _)| open != id);
        self.subscriptions.retain(|(open, _)| open != id);
        if served && waiting_results {
            let error = RpcError::new(INVALID_REQUEST, "The request was cancelled");
            state.after_response.push(error.into_message(Some(id), false));
        } else if served && subscriptions {
            state.after_response.push(end_of_subscription(id, state.faults));
        }
    }

    /// Handles a response to the elicitation of a task; false if there is no such request.
    pub(super) fn receive_input(&mut self, state: &ConnectionState<'_>, id: &str) -> bool {
        let Some(at) = self.input_required.remove(id) else {
            return false;
        };
        if !state.faults.is_active(Fault::TaskInputStuck, state.revision()) {
            self.list[at].move_to(Status::Working);
        }
        true
    }

    /// Finishes the tasks that requests wait for.
    pub(super) fn finish_awaited(&mut self, state: &mut ConnectionState<'_>) {
        while let Some((_, at)) =
            self.waiting_results.iter().find(|(_, at)| self.list[*at].status == Status::Working).cloned()
        {
            let revision = state.revision();
            self.advance(state, at, revision);
        }
    }
}

/// Whether the server supports tasks in this revision.
fn supports_tasks(faults: &FaultSet, revision: Revision) -> bool {
    let without = [
        Fault::WithoutTools,
        Fault::OnlyResources,
        Fault::WithoutTasks,
        Fault::TaskMemberRejected,
        Fault::Http(HttpFault::AlwaysStreams),
    ];
    revision >= Revision::V2025_11_25 && !without.into_iter().any(|fault| faults.is_active(fault, revision))
}

/// Whether a call becomes a task: if the client requests one or, in 2026-07-28, if it supports them.
///
/// # Errors
/// When the tool cannot be called in this way.
pub(super) fn becomes_task(
    state: &ConnectionState<'_>,
    request: &Request,
    params: &Object,
    tool: &Object,
) -> Result<bool, RpcError> {
    let augmented = params.contains_key("task");
    let long = matches!(tool["name"].as_str(), Some("research" | "batch" | "interview"));
    if !supports_tasks(state.faults, request.revision) {
        if augmented && state.is_active_for(request, Fault::TaskMemberRejected) {
            return Err(invalid_params("Unknown member task"));
        }
        return Ok(false);
    }
    if request.revision.is_modern() {
        let legacy = client_of(params).is_some_and(|client| client.get("tasks").is_some());
        let honoured = declares(params)
            || state.is_active_for(request, Fault::TaskHandleUndeclared)
            || legacy && state.is_active_for(request, Fault::TaskHandleForLegacy)
            || augmented && state.is_active_for(request, Fault::TaskParamHonoured);
        if long && !honoured && tool["name"] == "batch" {
            return Err(missing_capability());
        }
        Ok(long && honoured)
    } else {
        let rejected = || Err(RpcError::new(METHOD_NOT_FOUND, "The tool does not support this way of calling it"));
        let extension = state.session.as_ref().is_some_and(|session| session.client.contains_key("extensions"));
        match tool.get("execution").and_then(|execution| execution["taskSupport"].as_str()) {
            Some("optional" | "required") if augmented => Ok(true),
            _ if long && extension && state.is_active_for(request, Fault::TaskExtensionLegacy) => Ok(true),
            Some("required") if !state.is_active_for(request, Fault::RequiredTaskCalledDirectly) => rejected(),
            _ if augmented && !state.is_active_for(request, Fault::ForbiddenTaskServed) => rejected(),
            _ => Ok(augmented),
        }
    }
}

/// Whether the client of a stateless request declares the tasks extension.
fn declares(params: &Object) -> bool {
    client_of(params).is_some_and(|client| client.get("extensions").is_some_and(|all| all.get(EXTENSION).is_some()))
}

fn client_of(params: &Object) -> Option<&Value> {
    params.get("_meta")?.get("io.modelcontextprotocol/clientCapabilities")
}

fn missing_capability() -> RpcError {
    let error = RpcError::new(MISSING_CAPABILITY, "Missing required client capability");
    error.with_data(json!({"requiredCapabilities": {"extensions": { EXTENSION: {} }}}))
}

fn related(id: &str) -> Value {
    json!({ RELATED: {"taskId": id} })
}

/// The response that ends a subscription.
fn end_of_subscription(id: &Value, faults: &FaultSet) -> Value {
    let mut result = Object::new();
    identity::mark_modern(&mut result, faults);
    // A fault may have omitted it.
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    meta[SUBSCRIPTION] = id.clone();
    response(id, result)
}
