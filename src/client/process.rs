//! A server's process: started in its own process group, and never left behind.
//!
//! Every process group is remembered until it is known to be gone, so that an interrupted run can end them all. If
//! the system lets this process adopt orphans, those that left their group are found and ended as well.

use std::collections::BTreeSet;
use std::io;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::process_table::{ProcessEntry, processes, running_in_group};
use super::wait_budget::wait_at_most;
use crate::limits::{INSPECT_INTERVAL, KILLED_EXIT_TIMEOUT, ORPHAN_SEARCH_INTERVAL, ORPHAN_SEARCH_TIMEOUT};
use crate::transcript::ShutdownStep;

/// How long a server may take at each step of its shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShutdownTimeouts {
    /// After its standard input was closed.
    pub input_closed: Duration,
    /// After SIGTERM.
    pub sigterm: Duration,
}

/// The process groups that are alive.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn groups() -> std::sync::MutexGuard<'static, BTreeSet<i32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills every process that was started and has not ended yet. For the end of an interrupted run.
pub(crate) fn end_every_process() {
    for group in std::mem::take(&mut *groups()) {
        kill_group(group);
    }
    end_orphans();
}

fn kill_group(group: i32) {
    if let Some(pid) = Pid::from_raw(group) {
        // It may be gone already, which is the goal.
        let _gone = kill_process_group(pid, Signal::KILL);
    }
}

/// Asks the system to make orphaned descendants children of this process, so that [`end_every_process`] finds
/// those that left their server's process group. For a standalone program, not for the host of a library.
pub(crate) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        // Otherwise only the process groups are ended, which is all that other systems allow.
        let _unsupported = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
}

/// Kills the children of this process that it did not start: orphans that the system reparented to it.
fn end_orphans() {
    let Ok(own) = i32::try_from(std::process::id()) else { return };
    let began = Instant::now();
    // An orphan may have children of its own, which are reparented when it ends.
    while began.elapsed() < ORPHAN_SEARCH_TIMEOUT {
        let mut found = false;
        for entry in processes().into_iter().filter(|entry| entry.parent == own && entry.state != 'Z') {
            if let Some(pid) = Pid::from_raw(entry.pid) {
                found |= rustix::process::kill_process(pid, Signal::KILL).is_ok();
            }
        }
        if !found {
            return;
        }
        std::thread::sleep(ORPHAN_SEARCH_INTERVAL);
    }
}

/// The activity of a process and its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessActivity {
    /// Their processor time, including that of children that have ended, in ticks of the system's clock.
    pub(super) ticks: u64,
    /// Whether one of them is running now or waits for a disk.
    pub(super) busy: bool,
}

impl ProcessActivity {
    /// Whether nothing has been done since another look, and nothing is being done.
    fn is_none_since(self, before: Option<Self>) -> bool {
        !self.busy && before == Some(self)
    }
}

/// The activity of a process group and of children that have left it; `None` if the system does not show it.
fn group_activity(group: i32) -> Option<ProcessActivity> {
    let (mut members, mut others): (Vec<ProcessEntry>, Vec<ProcessEntry>) =
        processes().into_iter().partition(|entry| entry.group == group);
    let mut at = 0;
    while let Some(parent) = members.get(at).map(|member| member.pid) {
        let (children, rest): (Vec<ProcessEntry>, Vec<ProcessEntry>) =
            others.into_iter().partition(|entry| entry.parent == parent);
        members.extend(children);
        others = rest;
        at += 1;
    }
    (!members.is_empty()).then(|| ProcessActivity {
        ticks: members.iter().map(|member| member.ticks).sum(),
        busy: members.iter().any(|member| matches!(member.state, 'R' | 'D')),
    })
}

/// Completes when a process and its descendants have used no processor for a while: they wait. Never if the system does not
/// show that.
pub(crate) async fn process_waits(group: i32) {
    let mut before = None;
    loop {
        tokio::time::sleep(INSPECT_INTERVAL / 2).await;
        let Some(now) = group_activity(group) else { return std::future::pending().await };
        if now.is_none_since(before) {
            return;
        }
        before = Some(now);
    }
}

/// Watches a silent process, to distinguish one that is slow from one that does nothing at all.
#[derive(Debug)]
pub(super) struct Watchdog {
    /// How long it may do nothing at all.
    max_idle: Duration,
    /// Until when it may do so for longer.
    patient_until: Instant,
    active_at: Instant,
    inspected_at: Instant,
    activity: Option<ProcessActivity>,
}

impl Watchdog {
    /// Watches a process that may do nothing for `max_idle`, and at first for `patience` in any case.
    pub(super) fn new(max_idle: Duration, patience: Duration) -> Self {
        let now = Instant::now();
        Self { max_idle, patient_until: now + patience, active_at: now, inspected_at: now, activity: None }
    }

    /// Records a sign of life that was seen elsewhere.
    pub(super) fn note_activity(&mut self) {
        self.active_at = Instant::now();
    }

    /// Whether the process has been idle for too long. Never true if the system does not show activity.
    pub(super) fn is_expired(&mut self, process: &Process) -> bool {
        if self.inspected_at.elapsed() < INSPECT_INTERVAL {
            return false;
        }
        self.inspected_at = Instant::now();
        let activity = process.activity();
        if !activity.is_some_and(|activity| activity.is_none_since(self.activity)) {
            self.note_activity();
        }
        self.activity = activity;
        self.active_at.elapsed() >= self.max_idle && Instant::now() >= self.patient_until
    }
}

/// A running process that leads its own process group. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    group: i32,
    status: Option<String>,
}

/// The three standard streams of a process.
pub(super) struct Streams {
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
    pub(super) errors: ChildStderr,
}

impl Process {
    /// Starts a command in a process group of its own.
    pub(super) fn start(mut command: Command) -> io::Result<(Self, Streams)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
        let mut child = command.spawn()?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .ok_or_else(|| io::Error::other("the process has no id"))?;
        groups().insert(group);
        let missing = || io::Error::other("a standard stream of the process is missing");
        let streams = Streams {
            input: child.stdin.take().ok_or_else(missing)?,
            output: child.stdout.take().ok_or_else(missing)?,
            errors: child.stderr.take().ok_or_else(missing)?,
        };
        Ok((Self { child, group, status: None }, streams))
    }

    /// The process id, which is also that of its group.
    pub(super) fn id(&self) -> i32 {
        self.group
    }

    /// The activity of the process and its descendants, if the system shows it.
    pub(super) fn activity(&self) -> Option<ProcessActivity> {
        group_activity(self.group)
    }

    /// Waits for the process to end, at most `limit`; returns its exit status as text.
    pub(super) async fn wait_for_exit(&mut self, limit: Duration) -> Option<String> {
        if self.status.is_none()
            && let Some(Ok(status)) = wait_at_most(limit, self.child.wait()).await
        {
            self.status = Some(status.to_string());
        }
        self.status.clone()
    }

    /// The exit status as text, if the process has ended. The process is not reaped, so that its group id is not
    /// reused before the group is killed, unless [`Self::wait_for_exit`] has done so.
    pub(super) fn status(&self) -> Option<String> {
        if self.status.is_some() {
            return self.status.clone();
        }
        let pid = Pid::from_raw(self.group)?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(pid), options).ok()??;
        Some(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => format!("exit status: {code}"),
            (None, Some(signal)) => format!("signal: {signal}"),
            (None, None) => "unknown status".to_owned(),
        })
    }

    /// Sends SIGTERM; whether the process ends within `limit`.
    pub(super) async fn ends_on_sigterm(&mut self, limit: Duration) -> bool {
        self.signal(Signal::TERM);
        self.wait_for_exit(limit).await.is_some()
    }

    /// Ends what is left of a process that has exited: its process group. Returns the names of the processes in it that
    /// still ran after `limit`, if the system shows them.
    pub(super) async fn end_group(&mut self, limit: Duration) -> Option<Vec<String>> {
        let left = self.left_running(limit).await;
        kill_group(self.group);
        groups().remove(&self.group);
        left
    }

    async fn left_running(&self, limit: Duration) -> Option<Vec<String>> {
        let began = Instant::now();
        loop {
            // Those that have ended and that nobody reaps are still in the group.
            if test_kill_process_group(Pid::from_raw(self.group)?).is_err() {
                return Some(Vec::new());
            }
            let left = running_in_group(self.group)?;
            if left.is_empty() || began.elapsed() >= limit {
                return Some(left);
            }
            tokio::time::sleep(ORPHAN_SEARCH_INTERVAL).await;
        }
    }

    /// Ends a process whose input is already closed, and its group.
    pub(super) async fn end(&mut self, timeouts: ShutdownTimeouts) {
        let _step = self.exit(timeouts).await;
        let _left = self.end_group(Duration::ZERO).await;
    }

    /// Ends a process whose input is already closed: wait, SIGTERM, wait, SIGKILL of the group. A child may still hold the
    /// output, so [`Process::end_group`] follows.
    pub(super) async fn exit(&mut self, timeouts: ShutdownTimeouts) -> ShutdownStep {
        let step = if self.wait_for_exit(timeouts.input_closed).await.is_some() {
            ShutdownStep::StdinClosed
        } else {
            self.signal(Signal::TERM);
            if self.wait_for_exit(timeouts.sigterm).await.is_some() {
                ShutdownStep::Sigterm
            } else {
                ShutdownStep::Sigkill
            }
        };
        if step == ShutdownStep::Sigkill {
            kill_group(self.group);
            let _status = self.wait_for_exit(KILLED_EXIT_TIMEOUT).await;
        }
        step
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.group)
            && test_kill_process_group(pid).is_ok()
        {
            // It may end in between, which is the goal.
            let _gone = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if groups().remove(&self.group) {
            kill_group(self.group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_waits_that_has_used_no_processor_and_uses_none() {
        let seen = |ticks: u64, busy: bool| ProcessActivity { ticks, busy };
        assert!(seen(7, false).is_none_since(Some(seen(7, false))));
        assert!(!seen(7, false).is_none_since(None), "nothing is known of the time before");
        assert!(!seen(7, false).is_none_since(Some(seen(6, false))), "it has worked");
        assert!(!seen(7, true).is_none_since(Some(seen(7, true))), "it works, or waits for a disk");
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_is_not_shown_is_never_said_to_wait() {
        let waits = process_waits(i32::MAX);
        assert!(tokio::time::timeout(INSPECT_INTERVAL * 100, waits).await.is_err());
    }
}
