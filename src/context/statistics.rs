//! What a run measures: the processes that it started, and where its time went.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::answer_times::ResponseWaits;
use crate::check::milliseconds;
use crate::event::{Timing, Waits};

/// The measurements of a run so far.
#[derive(Debug, Default)]
pub(super) struct Statistics(Mutex<Measurements>);

#[derive(Debug, Default)]
struct Measurements {
    launches: usize,
    startups: Vec<Duration>,
    judging: Duration,
    /// How long connections took to close.
    ending: Duration,
}

impl Statistics {
    fn measurements(&self) -> MutexGuard<'_, Measurements> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more process.
    pub(super) fn count_launch(&self) {
        self.measurements().launches += 1;
    }

    /// Adds the time until the first line of a process, if it wrote one.
    pub(super) fn add_startup(&self, startup: Option<Duration>) {
        self.measurements().startups.extend(startup);
    }

    /// Adds time that judging took.
    pub(super) fn add_judging(&self, time: Duration) {
        self.measurements().judging += time;
    }

    /// Adds the time that a connection took to close.
    pub(super) fn add_ending(&self, time: Duration) {
        self.measurements().ending += time;
    }

    /// The measurements as the report has them, after a run of this duration; `hosted` processes of an HTTP server
    /// were not counted yet.
    pub(super) fn timing(&self, wall: Duration, hosted: usize, responses: ResponseWaits) -> Timing {
        let measurements = self.measurements();
        let waits = Waits {
            answered: responses.answered,
            answered_ms: milliseconds(responses.for_answers),
            unanswered: responses.unanswered,
            unanswered_ms: milliseconds(responses.in_vain),
            ending_ms: milliseconds(measurements.ending),
        };
        Timing {
            wall_ms: milliseconds(wall),
            launches: measurements.launches + hosted,
            startup_ms: milliseconds(median(measurements.startups.clone())),
            judging_ms: milliseconds(measurements.judging),
            own_cpu_ms: own_cpu_ms(),
            waits: Some(waits),
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The CPU time of this process so far, if the operating system reports it.
fn own_cpu_ms() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    // Fields 14 and 15 of the file, in ticks of 10 ms.
    let ticks: u32 = fields.get(11)?.parse::<u32>().ok()? + fields.get(12)?.parse::<u32>().ok()?;
    Some(f64::from(ticks) * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_startup_time_is_the_median_of_all_processes() {
        let statistics = Statistics::default();
        for startup in [Some(30), None, Some(10), Some(20)] {
            statistics.count_launch();
            statistics.add_startup(startup.map(Duration::from_millis));
        }
        let timing = statistics.timing(Duration::from_secs(1), 2, ResponseWaits::default());
        assert_eq!((timing.launches, timing.wall_ms, timing.startup_ms), (6, 1000.0, 20.0));
    }
}
