//! The state of the evaluation faults on a connection.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::Object;
use super::fault::{EvaluationFault, FaultSpec};
use super::trigger::{ServedCall, Trigger};

/// The number of recent calls that are stored.
const MAX_STORED_CALLS: usize = 512;
/// The maximum number of leaked processes, to protect the machine.
const MAX_CHILD_PROCESSES: usize = 48;
/// The maximum number of leaked bytes.
const MAX_RETAINED_BYTES: usize = 512 << 20;

/// The state of the evaluation faults on a connection.
#[derive(Default)]
pub(crate) struct State {
    pub(super) specs: Vec<&'static FaultSpec>,
    pub(super) served: Vec<ServedCall>,
    /// The number of valid calls by tool.
    pub(super) calls: BTreeMap<&'static str, u64>,
    /// How often a fault has been triggered.
    pub(super) times_triggered: u64,
    /// The tool that fails from now on, and its message.
    pub(super) broken_tool: Option<(&'static str, &'static str)>,
    pub(super) tool_added: bool,
    /// The pending changes to the current result.
    pub(super) change_result: Option<fn(&mut Object)>,
    pub(super) change_result_each_call: Option<fn(&mut Object, u64)>,
    /// The pending changes to the current response.
    pub(super) change_bytes: Option<fn(&mut Vec<u8>)>,
    pub(super) change_message: Option<fn(&mut Value)>,
    pub(super) delay: Option<Duration>,
    pub(super) swap_responses: bool,
    retained: Vec<Vec<u8>>,
    retained_bytes: usize,
    files: Vec<File>,
    children: Vec<Child>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("calls", &self.calls)
            .field("times_triggered", &self.times_triggered)
            .finish_non_exhaustive()
    }
}

impl State {
    /// The state of a new connection of a server with these faults.
    pub(crate) fn new(faults: &[EvaluationFault]) -> Self {
        let mut state = Self::default();
        state.specs.extend(faults.iter().map(|fault| fault.0));
        state
    }

    /// Stores a valid call.
    pub(super) fn store_call(&mut self, tool: &str, arguments: &Object) {
        let wanted = self.specs.iter().any(|spec| matches!(spec.trigger, Trigger::AfterCalls(_)));
        if wanted {
            if self.served.len() >= MAX_STORED_CALLS {
                self.served.remove(0);
            }
            self.served.push(ServedCall { tool: tool.to_owned(), arguments: arguments.clone(), draft_id: None });
        }
    }

    /// Stores the id that the last call returned.
    pub(super) fn store_result(&mut self, result: &Object) {
        let id = result.get("structuredContent").and_then(|structured| structured.get("draft_id"));
        if let (Some(served), Some(id)) = (self.served.last_mut(), id.and_then(Value::as_str)) {
            served.draft_id.get_or_insert_with(|| id.to_owned());
        }
    }

    pub(super) fn retain(&mut self, bytes: usize) {
        if self.retained_bytes < MAX_RETAINED_BYTES {
            self.retained_bytes += bytes;
            self.retained.push(vec![1; bytes]);
        }
    }

    pub(super) fn open(&mut self) {
        let opened = std::env::current_exe().and_then(File::open);
        self.files.extend(opened);
    }

    /// Leaks a process, which exits together with this one because its input ends.
    pub(super) fn spawn(&mut self) {
        if self.children.len() < MAX_CHILD_PROCESSES {
            let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            self.children.extend(child);
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        for child in &mut self.children {
            drop(child.stdin.take());
            // It exits when its input ends; `wait` prevents a zombie if this process continues.
            let _ended = child.wait();
        }
    }
}
