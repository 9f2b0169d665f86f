//! Faults of tasks.
//!
//! Names, revisions and descriptions only; see [`super`] for how the tables are joined.

macro_rules! task_faults {
    ($next:ident $($then:ident)*; $($rows:tt)*) => {
        $next! { $($then)*; $($rows)*
            // tasks of 2025-11-25
            TasksUndeclared, "tasks-undeclared", ONLY_2025_11_25, "accepts task requests without declaring the capability tasks";
            TaskMemberRejected, "task-member-rejected", ONLY_2025_11_25, "declares no tasks but rejects calls with a task member";
            TasksListUndeclared, "tasks-list-undeclared", ONLY_2025_11_25, "accepts tasks/list without declaring tasks.list";
            TasksListRejected, "tasks-list-rejected", ONLY_2025_11_25, "declares tasks.list but answers tasks/list with -32601";
            ForbiddenTaskServed, "forbidden-task-served", ONLY_2025_11_25, "accepts task requests for any tool, whatever its taskSupport";
            RequiredTaskCalledDirectly, "required-task-called-directly", ONLY_2025_11_25, "accepts plain calls of a tool whose taskSupport is required";
            TaskRequestAnsweredDirectly, "task-request-answered-directly", ONLY_2025_11_25, "answers task requests with the tool result";
            TaskCreatedWithoutTtl, "task-created-without-ttl", ONLY_2025_11_25, "omits ttl from a task that it creates";
            TaskStatusUnknown, "task-status-unknown", ONLY_2025_11_25, "returns \"status\": \"running\" from tasks/get";
            TaskListedWithoutStatus, "task-listed-without-status", ONLY_2025_11_25, "lists a task without its status";
            TaskStatusWithoutId, "task-status-without-id", ONLY_2025_11_25, "omits taskId from notifications/tasks/status";
            TaskIdReused, "task-id-reused", FROM_2025_11_25, "uses the same id for every task of a tool";
            TaskIdSequential, "task-id-sequential", FROM_2025_11_25, "uses sequential task ids";
            TaskCreatedEnded, "task-created-ended", ONLY_2025_11_25, "creates tasks in a terminal status";
            TaskRevives, "task-revives", ONLY_2025_11_25, "returns the status working for a task that has ended";
            TaskCreatedAtInvalid, "task-created-at-invalid", ONLY_2025_11_25, "writes createdAt of a task as \"today at noon\"";
            TaskGetWithoutTtl, "task-get-without-ttl", ONLY_2025_11_25, "omits ttl from the tasks/get result";
            TaskGetWithRelatedTask, "task-get-with-related-task", ONLY_2025_11_25, "adds related-task to the tasks/get result";
            TaskStatusWithRelatedTask, "task-status-with-related-task", ONLY_2025_11_25, "adds related-task to notifications/tasks/status";
            TaskDeletedOnEnd, "task-deleted-on-end", ONLY_2025_11_25, "deletes a task as soon as the client has seen it end";
            TaskResultUnanswered, "task-result-unanswered", ONLY_2025_11_25, "never answers tasks/result";
            TaskResultEarly, "task-result-early", ONLY_2025_11_25, "answers tasks/result while the task is still working";
            TaskResultDiffers, "task-result-differs", ONLY_2025_11_25, "returns a different result for a task than for a plain call";
            TaskResultWithoutContent, "task-result-without-content", ONLY_2025_11_25, "omits content from the tasks/result result";
            TaskResultWithoutRelatedTask, "task-result-without-related-task", ONLY_2025_11_25, "omits related-task from the tasks/result result";
            RelatedTaskWins, "related-task-wins", ONLY_2025_11_25, "uses related-task instead of taskId when they differ";
            UnknownTaskCode, "unknown-task-code", FROM_2025_11_25, "answers requests for an unknown task with -32603";
            TasksCursorUnchecked, "tasks-cursor-unchecked", ONLY_2025_11_25, "answers tasks/list with any cursor with the first page";
            TaskUnlisted, "task-unlisted", ONLY_2025_11_25, "omits the newest task from tasks/list";
            TaskCancelTwice, "task-cancel-twice", ONLY_2025_11_25, "accepts tasks/cancel for tasks that have ended";
            TaskCancelKeepsWorking, "task-cancel-keeps-working", ONLY_2025_11_25, "answers tasks/cancel but keeps the task working";
            TaskFailureReportedCompleted, "task-failure-reported-completed", ONLY_2025_11_25, "reports a task as completed although its tool failed";
            TaskFailureWithoutMessage, "task-failure-without-message", ONLY_2025_11_25, "omits statusMessage from a failed task";
            TaskInputWithoutRelatedTask, "task-input-without-related-task", ONLY_2025_11_25, "requests input for a task without related-task";
            TaskInputStuck, "task-input-stuck", ONLY_2025_11_25, "leaves a task in input_required after the client responded";
            TaskProgressLate, "task-progress-late", ONLY_2025_11_25, "reports progress for a task that has ended";
            TaskAsksClient, "task-asks-client", ONLY_2025_11_25, "requests a task from a client that did not declare tasks";
            TaskExtensionLegacy, "task-extension-legacy", ONLY_2025_11_25, "creates tasks from plain calls of clients with extensions";
            // the tasks extension of 2026-07-28
            TaskHandleUndeclared, "task-handle-undeclared", MODERN, "returns a task to a client that did not declare the extension";
            TaskHandleForLegacy, "task-handle-for-legacy", MODERN, "returns a task to a client that declares the old capability";
            TaskParamHonoured, "task-param-honoured", MODERN, "creates a task from a call with a task member";
            TaskMethodsUngated, "task-methods-ungated", MODERN, "accepts task methods from any client";
            TaskListenUngated, "task-listen-ungated", MODERN, "accepts task subscriptions from any client";
            TaskHandleComplete, "task-handle-complete", MODERN, "returns \"resultType\": \"complete\" with a new task";
            TaskGetTyped, "task-get-typed", MODERN, "returns \"resultType\": \"task\" from tasks/get";
            TaskHandleLegacyNames, "task-handle-legacy-names", MODERN, "writes the lifetime of a new task as ttl instead of ttlMs";
            TaskHandleEarly, "task-handle-early", MODERN, "returns tasks that tasks/get does not know yet";
            TaskHandleOnList, "task-handle-on-list", MODERN, "returns \"resultType\": \"task\" from tools/list";
            TaskCompletedWithoutResult, "task-completed-without-result", MODERN, "omits the result of a completed task";
            TaskToolErrorReportedFailed, "task-tool-error-reported-failed", MODERN, "reports a task as failed because of a tool error";
            TaskCancelShown, "task-cancel-shown", MODERN, "returns the status of the task from tasks/cancel";
            TaskResultServed, "task-result-served", MODERN, "still answers tasks/result";
            TaskCancelRejected, "task-cancel-rejected", MODERN, "answers tasks/cancel with -32603";
            TaskUpdateRejected, "task-update-rejected", MODERN, "answers tasks/update with -32603";
            TaskListenRejected, "task-listen-rejected", MODERN, "rejects subscriptions to a task";
            LegacyTasksAdvertised, "legacy-tasks-advertised", MODERN, "declares the capability tasks as well as the extension";
            TaskInputKeyReused, "task-input-key-reused", MODERN, "uses the same key for two input requests of a task";
            TaskNotificationWithoutStatus, "task-notification-without-status", MODERN, "omits the status from notifications/tasks";
        }
    };
}
