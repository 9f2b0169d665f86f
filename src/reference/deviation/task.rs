//! Faults that show in what is written about tasks.

use serde_json::{Value, json};

use super::edit::Edit;
use super::edit::Edit::{Remove, Set, With};
use crate::reference::fault::Fault::{
    self, TaskHandleComplete, TaskHandleLegacyNames, TaskHandleOnList, TaskCancelShown, TaskCompletedWithoutResult, TaskCreatedWithoutTtl,
    TaskToolErrorReportedFailed, TaskFailureReportedCompleted, TaskFailureWithoutMessage, TaskGetTyped, TaskGetWithoutTtl, TaskListedWithoutStatus,
    TaskResultWithoutContent, TaskResultDiffers, TaskResultWithoutRelatedTask, TaskStatusUnknown, TaskCreatedAtInvalid, TaskNotificationWithoutStatus,
    TaskStatusWithoutId,
};
use crate::reference::fault::FaultSet;
use crate::reference::message::Object;
use crate::reference::revision::Revision;

/// Makes the result of a method, or the params of a notification, what the faults want it to be.
pub(in crate::reference) fn deviate(target: &mut Object, of: &str, revision: Revision, faults: &FaultSet) {
    let creates = of == "tools/call" && (target.contains_key("task") || target.contains_key("taskId"));
    let of = if creates { "create" } else { of };
    for Row(fault, place, edit) in FAULTS {
        if *place == of && faults.shows(*fault, revision) {
            edit.apply(target);
        }
    }
}

/// A fault, what it shows in, and what it does there.
struct Row(Fault, &'static str, Edit);

const FAULTS: &[Row] = &[
    Row(TaskCreatedWithoutTtl, "create", Remove("task/ttl")),
    Row(TaskCreatedAtInvalid, "create", Set("task/createdAt", || json!("today at noon"))),
    Row(TaskStatusUnknown, "tasks/get", Set("status", || json!("running"))),
    Row(TaskGetWithoutTtl, "tasks/get", Remove("ttl")),
    Row(TaskFailureReportedCompleted, "tasks/get", With(complete_failure)),
    Row(TaskFailureWithoutMessage, "tasks/get", With(mute_failure)),
    Row(TaskListedWithoutStatus, "tasks/list", Remove("tasks/0/status")),
    Row(TaskStatusWithoutId, "notifications/tasks/status", Remove("taskId")),
    Row(TaskResultDiffers, "tasks/result", Set("content", || json!([{"type": "text", "text": "Something else."}]))),
    Row(TaskResultWithoutContent, "tasks/result", Remove("content")),
    Row(TaskResultWithoutRelatedTask, "tasks/result", Remove("_meta")),
    Row(TaskHandleComplete, "create", Set("resultType", || json!("complete"))),
    Row(TaskHandleLegacyNames, "create", With(name_as_before)),
    Row(TaskHandleOnList, "tools/list", Set("resultType", || json!("task"))),
    Row(TaskGetTyped, "tasks/get", Set("resultType", || json!("task"))),
    Row(TaskCompletedWithoutResult, "tasks/get", Remove("result")),
    Row(TaskToolErrorReportedFailed, "tasks/get", With(fail_with_result)),
    Row(TaskCancelShown, "tasks/cancel", Set("status", || json!("cancelled"))),
    Row(TaskNotificationWithoutStatus, "notifications/tasks", Remove("status")),
];

fn complete_failure(task: &mut Object) {
    if task.get("status") == Some(&json!("failed")) {
        task.insert("status".to_owned(), json!("completed"));
    }
}

fn mute_failure(task: &mut Object) {
    if task.get("status") == Some(&json!("failed")) {
        task.shift_remove("statusMessage");
    }
}

fn name_as_before(task: &mut Object) {
    let ttl = task.shift_remove("ttlMs").unwrap_or(Value::Null);
    task.insert("ttl".to_owned(), ttl);
}

/// A tool that fails is told as if the protocol had.
fn fail_with_result(task: &mut Object) {
    if task.get("result").is_some_and(|result| result["isError"] == json!(true)) {
        task.insert("status".to_owned(), json!("failed"));
    }
}
