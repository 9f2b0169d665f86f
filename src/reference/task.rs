//! Tasks: their status, and their representation in each revision.
//!
//! A task makes progress when the client requests its status: each request is one step. No clock is needed
//! except for timestamps.

use std::hash::{BuildHasher as _, RandomState};
use std::time::SystemTime;

use serde_json::{Value, json};

use super::message::{Object, RpcError, object};
use super::revision::Revision;

/// The `_meta` key that names the task of a message.
pub(super) const RELATED: &str = "io.modelcontextprotocol/related-task";
/// The identifier of the extension (2026-07-28).
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The number of steps in a phase of work.
const STEPS_PER_PHASE: u64 = 2;

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    pub(super) const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The outcome of a call that became a task.
pub(super) type Outcome = Result<Object, RpcError>;

/// A call that continues after its response.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) status: Status,
    /// The outcome that it will have at the end.
    pub(super) outcome: Outcome,
    pub(super) progress_token: Option<Value>,
    /// The total number of times that it requests input.
    pub(super) input_rounds: usize,
    /// The number of times that it has requested input.
    pub(super) inputs_requested: usize,
    /// The number of steps, in total and in the current phase.
    pub(super) steps: u64,
    phase_steps: u64,
    /// The lifetime in milliseconds.
    ttl: Value,
    created: String,
    updated: String,
}

impl Task {
    pub(super) fn new(id: String, outcome: Outcome, ttl: Value) -> Self {
        let created = timestamp(SystemTime::now());
        Self {
            id,
            status: Status::Working,
            outcome,
            progress_token: None,
            input_rounds: 0,
            inputs_requested: 0,
            steps: 0,
            phase_steps: 0,
            ttl,
            updated: created.clone(),
            created,
        }
    }

    /// Changes the status, unless it is terminal.
    pub(super) fn move_to(&mut self, status: Status) {
        if !self.status.is_terminal() {
            self.status = status;
            self.phase_steps = 0;
            self.updated = timestamp(SystemTime::now());
        }
    }

    /// Works one step; true if the phase is complete.
    pub(super) fn work(&mut self) -> bool {
        self.steps += 1;
        self.phase_steps += 1;
        self.phase_steps >= STEPS_PER_PHASE
    }

    /// Ends the task with its outcome. In 2025-11-25 a tool error makes the task fail; later only a protocol
    /// error does.
    pub(super) fn finish(&mut self, revision: Revision) {
        let failed = match &self.outcome {
            Ok(result) => !revision.is_modern() && result.get("isError") == Some(&json!(true)),
            Err(_) => true,
        };
        self.move_to(if failed { Status::Failed } else { Status::Completed });
    }

    /// The task object of a message.
    pub(super) fn to_object(&self, revision: Revision) -> Object {
        let (ttl, interval) = if revision.is_modern() { ("ttlMs", "pollIntervalMs") } else { ("ttl", "pollInterval") };
        let text = match self.status {
            Status::Working => "The task is in progress.",
            Status::InputRequired => "The task waits for user input.",
            Status::Completed => "The task is complete.",
            Status::Failed => "The tool failed.",
            Status::Cancelled => "The task was cancelled.",
        };
        object(json!({
            "taskId": self.id,
            "status": self.status.as_str(),
            "statusMessage": text,
            "createdAt": self.created,
            "lastUpdatedAt": self.updated,
            ttl: self.ttl,
            interval: 50,
        }))
    }

    /// The task object with its result, error or input requests (2026-07-28).
    pub(super) fn to_detailed_object(&self) -> Object {
        let mut task = self.to_object(Revision::V2026_07_28);
        match (self.status, &self.outcome) {
            (Status::InputRequired, _) => {
                let request =
                    json!({"method": "elicitation/create", "params": elicitation_params(self.inputs_requested)});
                task.insert("inputRequests".to_owned(), json!({ self.key(): request }));
            }
            (Status::Completed, Ok(result)) => {
                let mut result = result.clone();
                result.insert("resultType".to_owned(), json!("complete"));
                task.insert("result".to_owned(), json!(result));
            }
            (Status::Failed, Err(error)) => {
                let error = json!({"code": error.code, "message": error.message});
                task.insert("error".to_owned(), error);
            }
            _ => {}
        }
        task
    }

    /// The key of the current input request.
    pub(super) fn key(&self) -> String {
        format!("word-{}", self.inputs_requested)
    }
}

/// The params of the elicitation of a task.
pub(super) fn elicitation_params(number: usize) -> Value {
    let schema = json!({"type": "object", "properties": {"word": {"type": "string"}}});
    json!({"mode": "form", "message": format!("Please say word {number}."), "requestedSchema": schema})
}

/// A random id of 128 bits, from the random keys of the standard library's hash maps.
pub(super) fn random_id() -> String {
    let half = || RandomState::new().hash_one(SystemTime::now());
    format!("{:016x}{:016x}", half(), half())
}

/// An RFC 3339 timestamp with milliseconds.
fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn timestamps_are_correct_for_any_date() {
        let at = |seconds: u64| timestamp(UNIX_EPOCH + Duration::from_millis(seconds * 1_000 + 7));
        assert_eq!(at(0), "1970-01-01T00:00:00.007Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_764_115_199), "2025-11-25T23:59:59.007Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.007Z");
    }

    #[test]
    fn a_terminal_status_never_changes() {
        let mut task = Task::new("a".to_owned(), Ok(Object::new()), json!(60_000));
        assert!(!task.work());
        assert!(task.work());
        task.finish(Revision::V2025_11_25);
        task.move_to(Status::Cancelled);
        assert_eq!(task.status, Status::Completed);
    }

    #[test]
    fn a_tool_error_only_makes_a_task_fail_in_2025_11_25() {
        let status = |revision| {
            let mut task = Task::new("a".to_owned(), Ok(object(json!({"isError": true}))), json!(null));
            task.finish(revision);
            task.status
        };
        assert_eq!(status(Revision::V2025_11_25), Status::Failed);
        assert_eq!(status(Revision::V2026_07_28), Status::Completed);
    }

    #[test]
    fn ids_differ() {
        assert_ne!(random_id(), random_id());
        assert_eq!(random_id().len(), 32);
    }
}
