//! The time limits of the trials, each with what was measured on two cores without other load.
//!
//! A limit holds on a machine that starts the reference server as fast as the one it was measured on, and grows with the
//! time that this takes here. Only the slow suite reads the clock; a trial of the gate ends by itself.

use std::process::Stdio;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use super::program::program_command;

/// How long the reference server took to start and to end, in a build without optimization.
const USUAL_START: Duration = Duration::from_millis(60);

/// How much slower this machine is at most taken to be: a limit that grows for ever is none.
const MAX_FACTOR: f64 = 10.0;

/// How many starts are measured; the fastest counts, as the others shared the machine with something.
const STARTS: usize = 3;

/// A run against a program that is no server, without a timeout in it. Measured: 0.1 to 3 s.
pub(crate) const WITHOUT_TIMEOUT: Duration = Duration::from_secs(15);
/// A run that reaches the start-up timeout, or judges every case. Measured: 2 to 12 s.
pub(crate) const ALL_CASES: Duration = Duration::from_secs(45);
/// After this, a run is ended. Measured: 13 s for the longest.
pub(crate) const ANY_RUN: Duration = Duration::from_secs(120);
/// An idle server with the default timeouts, of which 5 s are waited by design. Measured: 6.0 s.
pub(crate) const IDLE_SERVER: Duration = Duration::from_secs(8);
/// Nearly all cases on a server that answers each request under another id. Measured: 11 s.
pub(crate) const WRONG_IDS: Duration = Duration::from_secs(16);
/// Three unanswered requests with a timeout of 5 s, waited for together. Measured: 7.4 s.
pub(crate) const UNANSWERED_TOGETHER: Duration = Duration::from_secs(13);
/// When a signal is sent to a run that goes on for much longer. Measured: the run would take 9 s.
pub(crate) const BEFORE_SIGNAL: Duration = Duration::from_millis(1500);
/// How long a process that was not killed may be left behind. Measured: 0.
pub(crate) const LEFT_BEHIND: Duration = Duration::from_millis(200);
/// How long a process that was killed may take until it is gone. Measured: 10 ms.
pub(crate) const KILLED: Duration = Duration::from_secs(10);
/// A run on a protected server that rejects everything, far below the start-up timeout. Measured: 2.1 s.
pub(crate) const REJECTION: Duration = Duration::from_secs(20);
/// How much earlier than `Retry-After` a request is early. Measured: at most 1 ms.
pub(crate) const RETRY_AFTER: Duration = Duration::from_millis(900);
/// Until a recorded server is gone whose client closed its output. Measured: 0.3 s.
pub(crate) const RECORDED_END: Duration = Duration::from_secs(60);
/// Fuzzing a server that hangs on some calls. Measured: 3.6 s.
pub(crate) const FUZZING_HANGS: Duration = Duration::from_secs(90);
/// Fuzzing a server that ends on some calls. Measured: 5 s.
pub(crate) const FUZZING_ENDS: Duration = Duration::from_secs(120);
/// Fuzzing a server that answers no call. Measured: 24 s.
pub(crate) const FUZZING_SILENCE: Duration = Duration::from_secs(60);
/// Until calls that become late are found, three seconds each. Measured: 12 s.
pub(crate) const LATE_CALLS: Duration = Duration::from_secs(30);
/// How much longer than its time limit fuzzing takes. Measured: 0.3 s.
pub(crate) const OVER_TIME_LIMIT: Duration = Duration::from_secs(3);
/// The median of runs of the fuzzer on validators with one mistake. Measured: 3 s.
pub(crate) const VALIDATOR: Duration = Duration::from_secs(5);
/// The list of a user's tests, which starts no server. Measured: 0.04 s.
#[cfg(feature = "harness")]
pub(crate) const TEST_LIST: Duration = Duration::from_secs(4);
/// A run on a server that takes 2 s for each answer, by the clock of the run. Measured: 64 s.
pub(crate) const SLOW_ANSWERS: Duration = Duration::from_secs(90);
/// A run on a server that takes 5 s for each answer, by the clock of the run: thirty answers.
pub(crate) const SLOWER_ANSWERS: Duration = Duration::from_secs(150);
/// A run on a server that takes 2 s for each message, one after the other, by the clock of the run. Measured: 148 s.
pub(crate) const SLOW_TURNS: Duration = Duration::from_secs(210);
/// A run on a server that takes 5 s for each call, by the clock of the run. Measured: 96 s.
pub(crate) const SLOW_CALLS: Duration = Duration::from_secs(135);
/// A run on a server that takes 1.3 s for each call of one tool, by the clock of the run. Measured: 12.4 s.
pub(crate) const SLOW_TOOL: Duration = Duration::from_secs(18);

/// A limit on this machine.
pub(crate) fn here(limit: Duration) -> Duration {
    limit.mul_f64(*FACTOR)
}

/// How much slower this machine is than the one on which the limits were measured, at least 1.
static FACTOR: LazyLock<f64> = LazyLock::new(|| {
    let start = || {
        let began = Instant::now();
        let status = program_command().arg("serve").stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(status.is_ok_and(|status| status.success()), "the reference server does not start");
        began.elapsed()
    };
    let fastest = (0..STARTS).map(|_| start()).min().unwrap_or(USUAL_START);
    (fastest.as_secs_f64() / USUAL_START.as_secs_f64()).clamp(1.0, MAX_FACTOR)
});
