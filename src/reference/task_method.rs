//! The creation of tasks from calls, and the methods of tasks, in both revisions that have them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::call::CallContext;
use super::connection::{Connection, NoResult, Request};
use super::fault::Fault;
use super::injection::task as task_injection;
use super::injection::tool_result;
use super::message::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, Object, RpcError,
    invalid_params, notification, object, response,
};
use super::pagination;
use super::revision::Revision;
use super::task::{EXTENSION, RELATED, Status, Task, elicitation_params, random_id};

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

impl Connection<'_> {
    /// Whether the server supports tasks in this revision.
    pub(super) fn supports_tasks(&self, revision: Revision) -> bool {
        let without = [Fault::WithoutTools, Fault::WithoutTasks, Fault::TaskMemberRejected];
        revision >= Revision::V2025_11_25 && !without.into_iter().any(|fault| self.faults.is_active(fault, revision))
    }

    /// Creates a task from a call if the client requests one or, in 2026-07-28, if it supports them.
    pub(super) fn create_task_if_requested(
        &mut self,
        request: &Request,
        params: &Object,
        tool: &Object,
        arguments: &Object,
    ) -> Result<Option<Object>, NoResult> {
        let augmented = params.contains_key("task");
        let long = matches!(tool["name"].as_str(), Some("research" | "batch" | "interview"));
        if !self.supports_tasks(request.revision) {
            if augmented && self.is_active_for(request, Fault::TaskMemberRejected) {
                return Err(invalid_params("Unknown member task").into());
            }
            return Ok(None);
        }
        let wanted = if request.revision.is_modern() {
            let legacy = client_of(params).is_some_and(|client| client.get("tasks").is_some());
            let honoured = declares(params)
                || self.is_active_for(request, Fault::TaskHandleUndeclared)
                || legacy && self.is_active_for(request, Fault::TaskHandleForLegacy)
                || augmented && self.is_active_for(request, Fault::TaskParamHonoured);
            if long && !honoured && tool["name"] == "batch" {
                return Err(missing_capability().into());
            }
            long && honoured
        } else {
            let rejected =
                || Err(RpcError::new(METHOD_NOT_FOUND, "The tool does not support this way of calling it").into());
            let extension = self.session.as_ref().is_some_and(|session| session.client.contains_key("extensions"));
            match tool.get("execution").and_then(|execution| execution["taskSupport"].as_str()) {
                Some("optional" | "required") if augmented => true,
                _ if long && extension && self.is_active_for(request, Fault::TaskExtensionLegacy) => true,
                Some("required") if !self.is_active_for(request, Fault::RequiredTaskCalledDirectly) => {
                    return rejected();
                }
                _ if augmented && !self.is_active_for(request, Fault::ForbiddenTaskServed) => return rejected(),
                _ => augmented,
            }
        };
        if wanted { self.create(request, params, tool, arguments).map(Some) } else { Ok(None) }
    }

    fn create(
        &mut self,
        request: &Request,
        params: &Object,
        tool: &Object,
        arguments: &Object,
    ) -> Result<Object, NoResult> {
        let revision = request.revision;
        let name = tool["name"].as_str().unwrap_or_default();
        let mut context =
            CallContext { revision, progress_token: None, min_log_severity: None, notifications: Vec::new() };
        let outcome = match self.run_tool(request, tool, name, arguments, &mut context) {
            Ok(output) => {
                let mut result = output.into_result(revision);
                tool_result::inject(&mut result, name, revision, self.faults);
                Ok(result)
            }
            Err(NoResult::Error(error)) => Err(error),
            Err(stop) => return Err(stop),
        };
        if self.is_active_for(request, Fault::TaskRequestAnsweredDirectly) {
            return outcome.map_err(NoResult::from);
        }
        let id = if self.is_active_for(request, Fault::TaskIdReused) {
            format!("0123456789abcdef-the-one-task-of-{name}")
        } else if self.is_active_for(request, Fault::TaskIdSequential) {
            format!("task-{}", self.tasks.list.len() + 1)
        } else {
            random_id()
        };
        let inputs = params.get("task").and_then(|task| task.get("ttl")).and_then(Value::as_u64);
        let mut task = Task::new(id, outcome, json!(inputs.map_or(MAX_TTL_MS, |ttl| ttl.min(MAX_TTL_MS))));
        if name == "interview" {
            task.input_rounds = match (&self.session, revision.is_modern()) {
                (_, true) if client_of(params).is_some_and(|client| client.get("elicitation").is_some()) => 2,
                (Some(session), false) if session.client.contains_key("elicitation") => 1,
                _ => 0,
            };
        }
        if !revision.is_modern() {
            let token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
            task.progress_token = token.filter(|token| token.is_string() || token.is_i64()).cloned();
        }
        if self.is_active_for(request, Fault::TaskCreatedEnded) {
            task.finish(revision);
        }
        if self.is_active_for(request, Fault::TaskHandleEarly) {
            self.tasks.not_visible_yet.push(self.tasks.list.len());
        }
        let mut task_object = task.to_object(revision);
        self.tasks.list.push(task);
        if revision.is_modern() {
            task_object.insert("resultType".to_owned(), json!("task"));
            return Ok(task_object);
        }
        Ok(object(json!({"task": task_object})))
    }

    /// Processes a method of tasks; nothing if the server does not support it in this revision.
    pub(super) fn serve_task(
        &mut self,
        request: &Request,
        method: &str,
        params: &Object,
    ) -> Option<Result<Object, NoResult>> {
        if !method.starts_with("tasks/") || !self.supports_tasks(request.revision) {
            return None;
        }
        let modern = request.revision.is_modern();
        let known = match method {
            "tasks/get" | "tasks/cancel" => true,
            "tasks/update" => modern,
            "tasks/list" => !modern && !self.is_active_for(request, Fault::TasksListRejected),
            "tasks/result" => !modern || self.is_active_for(request, Fault::TaskResultServed),
            _ => false,
        };
        if !known {
            return None;
        }
        if modern && !declares(params) && !self.is_active_for(request, Fault::TaskMethodsUngated) {
            return Some(Err(missing_capability().into()));
        }
        let rejected = [("tasks/cancel", Fault::TaskCancelRejected), ("tasks/update", Fault::TaskUpdateRejected)];
        if rejected.into_iter().any(|(of, fault)| of == method && self.is_active_for(request, fault)) {
            return Some(Err(RpcError::new(INTERNAL_ERROR, "Internal error").into()));
        }
        if method == "tasks/list" {
            return Some(self.list_tasks(request, params).map_err(NoResult::from));
        }
        let served = self.task_of(request, params).map_err(NoResult::from).and_then(|at| match method {
            "tasks/get" => Ok(self.get_task(request, at)),
            "tasks/cancel" => self.cancel_task(request, at).map_err(NoResult::from),
            "tasks/update" => self.update_task(request, params, at).map_err(NoResult::from),
            _ => self.result_of(request, at),
        });
        Some(served)
    }

    /// The position of the task that a request names.
    fn task_of(&mut self, request: &Request, params: &Object) -> Result<usize, RpcError> {
        let named = |task: &Value| task.get("taskId").and_then(Value::as_str).map(str::to_owned);
        let other = params.get("_meta").and_then(|meta| meta.get(RELATED)).and_then(named);
        let id = other
            .filter(|_| self.is_active_for(request, Fault::RelatedTaskWins))
            .or_else(|| params.get("taskId").and_then(Value::as_str).map(str::to_owned));
        let known = id.and_then(|id| self.tasks.position(&id));
        let hidden = known.filter(|at| self.tasks.not_visible_yet.contains(at));
        self.tasks.not_visible_yet.retain(|at| Some(*at) != hidden);
        let code = if self.is_active_for(request, Fault::UnknownTaskCode) { INTERNAL_ERROR } else { INVALID_PARAMS };
        known.filter(|_| hidden.is_none()).ok_or_else(|| RpcError::new(code, "Task not found"))
    }

    fn get_task(&mut self, request: &Request, at: usize) -> Object {
        self.advance(at, request.revision);
        let task = &self.tasks.list[at];
        let mut task_object =
            if request.revision.is_modern() { task.to_detailed_object() } else { task.to_object(request.revision) };
        if self.is_active_for(request, Fault::TaskInputKeyReused)
            && let Some(Value::Object(inputs)) = task_object.get_mut("inputRequests")
        {
            *inputs = std::mem::take(inputs).into_iter().map(|(_, question)| ("word-1".to_owned(), question)).collect();
        }
        let again = self.tasks.ended.contains(&at);
        if again && self.is_active_for(request, Fault::TaskRevives) {
            task_object.insert("status".to_owned(), json!("working"));
        } else if self.tasks.list[at].status.is_terminal() && !again {
            self.tasks.ended.push(at);
        }
        self.send_late_progress(request, at);
        task_object
    }

    /// Sends the progress that a fault reports for an ended task.
    fn send_late_progress(&mut self, request: &Request, at: usize) {
        let task = &self.tasks.list[at];
        if let (true, Some(token)) = (task.status.is_terminal(), &task.progress_token)
            && self.is_active_for(request, Fault::TaskProgressLate)
        {
            let params = json!({"progressToken": token, "progress": task.steps + 1, "_meta": related(&task.id)});
            self.after_response.push(notification("notifications/progress", &params));
        }
    }

    fn list_tasks(&self, request: &Request, params: &Object) -> Result<Object, RpcError> {
        let mut items: Vec<Value> =
            self.tasks.list.iter().map(|task| json!(task.to_object(request.revision))).collect();
        if self.is_active_for(request, Fault::TaskUnlisted) {
            items.pop();
        }
        let page = match pagination::page("tasks", &items, params) {
            Err(_) if self.is_active_for(request, Fault::TasksCursorUnchecked) => {
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

    fn cancel_task(&mut self, request: &Request, at: usize) -> Result<Object, RpcError> {
        let revision = request.revision;
        if revision.is_modern() {
            self.tasks.list[at].move_to(Status::Cancelled);
            self.notify_status(at, revision);
            return Ok(Object::new());
        }
        if self.tasks.list[at].status.is_terminal() && !self.is_active_for(request, Fault::TaskCancelTwice) {
            return Err(invalid_params("The task has already ended"));
        }
        if !self.is_active_for(request, Fault::TaskCancelKeepsWorking) {
            self.tasks.list[at].move_to(Status::Cancelled);
            self.respond_to_waiting(at, revision);
        }
        if !self.tasks.ended.contains(&at) && self.tasks.list[at].status.is_terminal() {
            self.tasks.ended.push(at);
        }
        Ok(self.tasks.list[at].to_object(revision))
    }

    /// Accepts input for a task. Input that the task did not request is ignored.
    fn update_task(&mut self, request: &Request, params: &Object, at: usize) -> Result<Object, RpcError> {
        let Some(Value::Object(responses)) = params.get("inputResponses") else {
            return Err(invalid_params("inputResponses must be an object"));
        };
        let task = &mut self.tasks.list[at];
        let awaited = task.status == Status::InputRequired && responses.contains_key(&task.key());
        let reused =
            self.faults.is_active(Fault::TaskInputKeyReused, request.revision) && responses.contains_key("word-1");
        if awaited || task.status == Status::InputRequired && reused {
            task.move_to(Status::Working);
        }
        Ok(Object::new())
    }

    /// The result of a task; deferred until the task has one.
    fn result_of(&mut self, request: &Request, at: usize) -> Result<Object, NoResult> {
        let interception = self.is_active_for(request, Fault::TaskResultEarly) || request.revision.is_modern();
        if interception || self.tasks.list[at].status.is_terminal() {
            return self.final_result(at).map_err(NoResult::from);
        }
        self.tasks.waiting_results.push((request.id.clone(), at));
        self.respond_to_waiting(at, request.revision);
        Err(NoResult::Deferred)
    }

    fn final_result(&self, at: usize) -> Result<Object, RpcError> {
        let task = &self.tasks.list[at];
        if task.status == Status::Cancelled {
            return Err(RpcError::new(INVALID_REQUEST, "The task was cancelled"));
        }
        let mut result = task.outcome.clone()?;
        result.insert("_meta".to_owned(), related(&task.id));
        Ok(result)
    }

    /// Works one step of a task, and sends its notifications.
    fn advance(&mut self, at: usize, revision: Revision) {
        let task = &mut self.tasks.list[at];
        if task.status != Status::Working {
            return;
        }
        let done = task.work();
        if let Some(token) = &task.progress_token {
            let params = json!({"progressToken": token, "progress": task.steps, "_meta": related(&task.id)});
            self.send(notification("notifications/progress", &params), revision);
        }
        if !done {
            return;
        }
        let task = &mut self.tasks.list[at];
        if task.inputs_requested < task.input_rounds {
            task.inputs_requested += 1;
            task.move_to(Status::InputRequired);
        } else {
            task.finish(revision);
        }
        self.notify_status(at, revision);
        self.respond_to_waiting(at, revision);
    }

    /// Answers the requests that wait for an ended task, and requests input for one that a request waits for.
    fn respond_to_waiting(&mut self, at: usize, revision: Revision) {
        let status = self.tasks.list[at].status;
        let awaited = self.tasks.waiting_results.iter().any(|(_, of)| *of == at);
        if status == Status::InputRequired && awaited && !self.tasks.input_required.values().any(|of| *of == at) {
            let task = &self.tasks.list[at];
            let mut params = elicitation_params(task.inputs_requested);
            if !self.faults.is_active(Fault::TaskInputWithoutRelatedTask, revision) {
                params["_meta"] = related(&task.id);
            }
            let id = self.send_request("elicitation/create", Some(params), revision);
            self.tasks.input_required.insert(id, at);
        }
        if status.is_terminal() {
            let waiting_results = std::mem::take(&mut self.tasks.waiting_results);
            let (ended, others): (Vec<_>, Vec<_>) = waiting_results.into_iter().partition(|(_, of)| *of == at);
            self.tasks.waiting_results = others;
            for (id, _) in ended {
                let message = match self.final_result(at) {
                    Ok(mut result) => {
                        task_injection::inject(&mut result, "tasks/result", revision, self.faults);
                        response(&id, result)
                    }
                    Err(error) => error.into_message(Some(&id), false),
                };
                self.respond(message, "tasks/result", revision);
            }
        }
    }

    /// Notifies the client of the status of a task.
    fn notify_status(&mut self, at: usize, revision: Revision) {
        if !revision.is_modern() {
            let mut params = self.tasks.list[at].to_object(revision);
            task_injection::inject(&mut params, "notifications/tasks/status", revision, self.faults);
            self.send(notification("notifications/tasks/status", &json!(params)), revision);
            return;
        }
        let subscriptions_to: Vec<Value> = self.subscriptions_to(at).map(|(id, _)| id.clone()).collect();
        for id in subscriptions_to {
            let mut params = self.tasks.list[at].to_detailed_object();
            params.insert("_meta".to_owned(), json!({ SUBSCRIPTION: id }));
            task_injection::inject(&mut params, "notifications/tasks", revision, self.faults);
            self.send(notification("notifications/tasks", &json!(params)), revision);
        }
        let list = &self.tasks.list;
        let spent = |tasks: &[usize]| tasks.iter().all(|at| list[*at].status.is_terminal());
        let over: Vec<Value> =
            self.subscriptions_to(at).filter(|(_, tasks)| spent(tasks)).map(|(id, _)| id.clone()).collect();
        for id in over {
            self.end_subscription(&id, revision);
        }
    }

    /// The subscriptions to a task.
    fn subscriptions_to(&self, at: usize) -> impl Iterator<Item = &(Value, Vec<usize>)> {
        self.tasks.subscriptions.iter().filter(move |(_, tasks)| tasks.contains(&at))
    }

    /// Ends a subscription whose tasks have all ended.
    fn end_subscription(&mut self, id: &Value, revision: Revision) {
        self.tasks.subscriptions.retain(|(open, _)| open != id);
        let reason = "all tasks of the subscription have ended";
        let params = json!({"_meta": { SUBSCRIPTION: id }, "requestId": self.cancelled_id(id), "reason": reason});
        self.send(notification("notifications/cancelled", &params), revision);
        self.respond(self.end_of_subscription(id), "subscriptions/listen", revision);
    }

    fn end_of_subscription(&self, id: &Value) -> Value {
        let mut result = Object::new();
        self.mark_modern(&mut result);
        // A fault may have omitted it.
        let meta = result.entry("_meta").or_insert_with(|| json!({}));
        meta[SUBSCRIPTION] = id.clone();
        response(id, result)
    }

    /// The `requestId` of a cancellation, after fault injection.
    pub(super) fn cancelled_id(&self, id: &Value) -> Value {
        if self.is_enabled(Fault::CancelsWithObjectId) { json!({"id": id}) } else { id.clone() }
    }

    /// Opens a subscription; returns the ids of the accepted tasks.
    ///
    /// # Errors
    /// When the filter selects tasks and the client does not declare the extension.
    pub(super) fn listen_to_tasks(&mut self, request: &Request, params: &Object) -> Result<Vec<String>, RpcError> {
        let wanted = params.get("notifications").and_then(|filter| filter.get("taskIds")).and_then(Value::as_array);
        let wanted = wanted.filter(|_| self.supports_tasks(request.revision));
        if wanted.is_some() && !declares(params) && !self.is_active_for(request, Fault::TaskListenUngated) {
            return Err(missing_capability());
        }
        if wanted.is_some() && self.is_active_for(request, Fault::TaskListenRejected) {
            return Err(invalid_params("Unknown member taskIds"));
        }
        let ids: Vec<String> = wanted.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        let granted: Vec<(String, usize)> =
            ids.into_iter().filter_map(|id| self.tasks.position(&id).map(|at| (id, at))).collect();
        let (names, places) = granted.into_iter().unzip();
        self.tasks.subscriptions.push((request.id.clone(), places));
        Ok(names)
    }

    /// Handles a cancellation: a waiting request is no longer answered.
    pub(super) fn cancel_pending(&mut self, id: &Value) {
        let served = self.faults.is_active(Fault::CancelledServed, self.revision());
        let waiting_results = self.tasks.waiting_results.iter().any(|(open, _)| open == id);
        let subscriptions = self.tasks.subscriptions.iter().any(|(open, _)| open == id);
        self.tasks.waiting_results.retain(|(open, _)| open != id);
        self.tasks.subscriptions.retain(|(open, _)| open != id);
        if served && waiting_results {
            let error = RpcError::new(INVALID_REQUEST, "The request was cancelled");
            self.after_response.push(error.into_message(Some(id), false));
        } else if served && subscriptions {
            self.after_response.push(self.end_of_subscription(id));
        }
    }

    /// Handles a response to the elicitation of a task; false if there is no such request.
    pub(super) fn receive_task_input(&mut self, id: &str) -> bool {
        let Some(at) = self.tasks.input_required.remove(id) else {
            return false;
        };
        if !self.faults.is_active(Fault::TaskInputStuck, self.revision()) {
            self.tasks.list[at].move_to(Status::Working);
        }
        true
    }

    /// Finishes the tasks that requests wait for.
    pub(super) fn finish_awaited_tasks(&mut self) {
        while let Some((_, at)) =
            self.tasks.waiting_results.iter().find(|(_, at)| self.tasks.list[*at].status == Status::Working).cloned()
        {
            self.advance(at, self.revision());
        }
    }
}
