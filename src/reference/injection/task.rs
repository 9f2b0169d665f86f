//! Faults in messages about tasks.

use serde_json::{Value, json};

use super::edit::Edit;
use super::edit::Edit::{Remove, Set, With};
use crate::reference::fault::Fault::{
    self, TaskCancelShown, TaskCompletedWithoutResult, TaskCreatedAtInvalid, TaskCreatedWithoutTtl,
    TaskFailureReportedCompleted, TaskFailureWithoutMessage, TaskGetTyped, TaskGetWithRelatedTask, TaskGetWithoutTtl,
    TaskHandleComplete, TaskHandleLegacyNames, TaskHandleOnList, TaskListedWithoutStatus,
    TaskNotificationWithoutStatus, TaskResultDiffers, TaskResultWithoutContent, TaskResultWithoutRelatedTask,
    TaskStatusUnknown, TaskStatusWithRelatedTask, TaskStatusWithoutId, TaskToolErrorReportedFailed,
};
use crate::reference::fault::FaultSet;
use crate::reference::message::Object;
use crate::reference::revision::Revision;

/// Applies faults to the result of a method or the params of a notification.
pub(in crate::reference) fn inject(target: &mut Object, of: &str, revision: Revision, faults: &FaultSet) {
    let creates = of == "tools/call" && (target.contains_key("task") || target.contains_key("taskId"));
    let of = if creates { "create" } else { of };
    for Injection(fault, place, edit) in FAULTS {
        if *place == of && faults.is_active(*fault, revision) {
            edit.apply(target);
        }
    }
}

/// A fault, the message that it affects, and the change.
struct Injection(Fault, &'static str, Edit);

const FAULTS: &[Injection] = &[
    Injection(TaskCreatedWithoutTtl, "create", Remove("task/ttl")),
    Injection(TaskCreatedAtInvalid, "create", Set("task/createdAt", || json!("today at noon"))),
    Injection(TaskStatusUnknown, "tasks/get", Set("status", || json!("running"))),
    Injection(TaskGetWithRelatedTask, "tasks/get", Set("_meta", related_task)),
    Injection(TaskStatusWithRelatedTask, "notifications/tasks/status", Set("_meta", related_task)),
    Injection(TaskGetWithoutTtl, "tasks/get", Remove("ttl")),
    Injection(TaskFailureReportedCompleted, "tasks/get", With(complete_failure)),
    Injection(TaskFailureWithoutMessage, "tasks/get", With(remove_failure_message)),
    Injection(TaskListedWithoutStatus, "tasks/list", Remove("tasks/0/status")),
    Injection(TaskStatusWithoutId, "notifications/tasks/status", Remove("taskId")),
    Injection(
        TaskResultDiffers,
        "tasks/result",
        Set("content", || json!([{"type": "text", "text": "Something else."}])),
    ),
    Injection(TaskResultWithoutContent, "tasks/result", Remove("content")),
    Injection(TaskResultWithoutRelatedTask, "tasks/result", Remove("_meta")),
    Injection(TaskHandleComplete, "create", Set("resultType", || json!("complete"))),
    Injection(TaskHandleLegacyNames, "create", With(use_legacy_names)),
    Injection(TaskHandleOnList, "tools/list", Set("resultType", || json!("task"))),
    Injection(TaskGetTyped, "tasks/get", Set("resultType", || json!("task"))),
    Injection(TaskCompletedWithoutResult, "tasks/get", Remove("result")),
    Injection(TaskToolErrorReportedFailed, "tasks/get", With(fail_with_result)),
    Injection(TaskCancelShown, "tasks/cancel", Set("status", || json!("cancelled"))),
    Injection(TaskNotificationWithoutStatus, "notifications/tasks", Remove("status")),
];

fn related_task() -> Value {
    json!({"io.modelcontextprotocol/related-task": {"taskId": "the-same-task"}})
}

fn complete_failure(task: &mut Object) {
    if task.get("status") == Some(&json!("failed")) {
        task.insert("status".to_owned(), json!("completed"));
    }
}

fn remove_failure_message(task: &mut Object) {
    if task.get("status") == Some(&json!("failed")) {
        task.shift_remove("statusMessage");
    }
}

fn use_legacy_names(task: &mut Object) {
    let ttl = task.shift_remove("ttlMs").unwrap_or(Value::Null);
    task.insert("ttl".to_owned(), ttl);
}

/// Reports a tool error as a failed task.
fn fail_with_result(task: &mut Object) {
    if task.get("result").is_some_and(|result| result["isError"] == json!(true)) {
        task.insert("status".to_owned(), json!("failed"));
    }
}
