//! Where the events of a run go.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::event::{Event, Sink};
use crate::verdict::Totals;

/// The sink of a run, the results that went to it so far, and its first error.
pub(super) struct EventOutput {
    sink: Arc<Mutex<dyn Sink>>,
    outcome: Mutex<Outcome>,
}

#[derive(Default)]
struct Outcome {
    totals: Totals,
    error: Option<io::Error>,
}

impl EventOutput {
    pub(super) fn new(sink: Arc<Mutex<dyn Sink>>) -> Self {
        Self { sink, outcome: Mutex::default() }
    }

    fn outcome(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an event to the sink. A failing sink is reported at the end; the run continues.
    pub(super) fn emit(&self, event: &Event) {
        if let Event::CaseFinished(result) = event {
            self.outcome().totals.add(result.verdict);
        }
        let result = self.sink.lock().unwrap_or_else(PoisonError::into_inner).on(event);
        if let Err(error) = result {
            self.outcome().error.get_or_insert(error);
        }
    }

    /// The number of results per verdict.
    pub(super) fn totals(&self) -> Totals {
        self.outcome().totals
    }

    /// The first error of the sink.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.outcome().error.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails at every event, with the number of the event as the message.
    struct FailingSink(usize);

    impl Sink for FailingSink {
        fn on(&mut self, _: &Event) -> io::Result<()> {
            self.0 += 1;
            Err(io::Error::other(self.0.to_string()))
        }
    }

    #[test]
    fn the_first_error_of_the_sink_is_kept() {
        let output = EventOutput::new(Arc::new(Mutex::new(FailingSink(0))));
        for _ in 0..2 {
            output.emit(&Event::RunStarted { server: String::new() });
        }
        assert_eq!(output.take_error().map(|error| error.to_string()), Some("1".to_owned()));
    }
}
