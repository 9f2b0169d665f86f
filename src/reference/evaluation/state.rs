//! What the hidden faults of a connection remember.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::row::Row;
use super::trigger::{Served, Trigger};
use crate::reference::fault::{Fault, FaultSet};
use crate::reference::message::Object;

/// How many earlier calls are remembered, the latest ones.
const REMEMBERED: usize = 512;
/// How many processes are left behind at most, for the sake of whoever tests with them.
const CHILDREN: usize = 48;
/// How many bytes are kept at most.
const RETAINED: usize = 512 << 20;

/// What the hidden faults of a connection remember.
#[derive(Default)]
pub(in crate::reference) struct State {
    pub(super) rows: Vec<&'static Row>,
    pub(super) served: Vec<Served>,
    /// How many calls fitted.
    pub(super) calls: u64,
    /// How often a fault with an effect that grows took effect.
    pub(super) struck: u64,
    /// The tool that fails from now on, and what it says.
    pub(super) spoiled: Option<(&'static str, &'static str)>,
    pub(super) grown: bool,
    /// What is to be done to the result in hand.
    pub(super) deform: Option<fn(&mut Object)>,
    pub(super) drift: Option<fn(&mut Object, u64)>,
    /// What is to be done to the answer in hand.
    pub(super) write: Option<fn(&mut Vec<u8>)>,
    pub(super) readdress: Option<fn(&mut Value)>,
    pub(super) delay: Option<Duration>,
    pub(super) swap: bool,
    retained: Vec<Vec<u8>>,
    retained_bytes: usize,
    files: Vec<File>,
    children: Vec<Child>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("calls", &self.calls).field("struck", &self.struck).finish_non_exhaustive()
    }
}

impl State {
    pub(in crate::reference) fn new(faults: &FaultSet) -> Self {
        let hidden = |fault| match fault {
            Fault::Evaluation(hidden) => Some(hidden.0),
            _ => None,
        };
        let mut state = Self::default();
        state.rows.extend(faults.iter().filter_map(hidden));
        state
    }

    /// Whether no hidden fault is switched on.
    pub(in crate::reference) fn is_idle(&self) -> bool {
        self.rows.is_empty()
    }

    /// Keeps a call in mind that fitted its tool.
    pub(super) fn remember(&mut self, tool: &str, arguments: &Object) {
        let wanted = self.rows.iter().any(|row| matches!(row.trigger, Trigger::After(_)));
        if wanted {
            if self.served.len() >= REMEMBERED {
                self.served.remove(0);
            }
            self.served.push(Served { tool: tool.to_owned(), arguments: arguments.clone(), draft_id: None });
        }
    }

    /// Keeps in mind what the last call returned.
    pub(in crate::reference) fn returned(&mut self, result: &Object) {
        let id = result.get("structuredContent").and_then(|structured| structured.get("draft_id"));
        if let (Some(served), Some(id)) = (self.served.last_mut(), id.and_then(Value::as_str)) {
            served.draft_id.get_or_insert_with(|| id.to_owned());
        }
    }

    pub(super) fn retain(&mut self, bytes: usize) {
        if self.retained_bytes < RETAINED {
            self.retained_bytes += bytes;
            self.retained.push(vec![1; bytes]);
        }
    }

    pub(super) fn open(&mut self) {
        let opened = std::env::current_exe().and_then(File::open);
        self.files.extend(opened);
    }

    /// Leaves a process behind that ends with this one, since its input does.
    pub(super) fn spawn(&mut self) {
        if self.children.len() < CHILDREN {
            let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            self.children.extend(child);
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        for child in &mut self.children {
            drop(child.stdin.take());
            // Without its input it ends at once; waiting leaves no zombie in a process that lives on.
            let _ended = child.wait();
        }
    }
}
