//! Builds the next round of calls while the current round is in flight.
//!
//! The sources of calls are chosen in order (see [`call_source`](super::call_source)), so it does not matter who
//! builds the calls, or when. A dedicated thread builds them and also drops them: freeing memory that another thread
//! allocated is as expensive as allocating it, and the runtime's blocking threads would take turns.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use super::call_plan::CallPlan;
use super::call_source::{CallBuilder, CallSource};
use super::fuzz_call::FuzzCall;
use crate::check::fuzz::Call;

/// The calls of the long phase. A long round is built while the previous one is in flight, so it depends on the
/// responses before that one; a short round depends on all earlier responses.
#[derive(Default)]
pub(super) struct Prefetcher {
    thread: Option<BuilderThread>,
    next: Option<oneshot::Receiver<Vec<Arc<Call>>>>,
}

impl Prefetcher {
    /// The calls of the next round: those that were requested in advance, or else at most `limit` new ones. Empty if
    /// nothing can be built.
    pub(super) async fn next(&mut self, call_plan: &mut CallPlan, limit: u64) -> Vec<Arc<Call>> {
        match self.next.take() {
            Some(builder) => match builder.await {
                Ok(built) => built,
                Err(_) => self.thread.take().map_or_else(Vec::new, BuilderThread::propagate_panic),
            },
            None => call_plan.mixed(limit),
        }
    }

    /// Requests the round after the current one; `discarded` calls are dropped on the builder thread.
    pub(super) fn request(&mut self, call_plan: &mut CallPlan, limit: u64, discarded: Vec<FuzzCall>) {
        if self.thread.is_none() {
            // If the thread cannot start, each round is built on demand.
            self.thread = BuilderThread::start(call_plan.builder()).ok();
        }
        if let Some(thread) = &self.thread {
            let (send, receive) = oneshot::channel();
            let request = BuildRequest { sources: call_plan.sources(limit), discarded, built: send };
            self.next = Some(receive);
            thread.request_build(request);
        }
    }
}

/// A round to build.
struct BuildRequest {
    sources: Vec<CallSource>,
    /// Calls that are no longer needed.
    discarded: Vec<FuzzCall>,
    built: oneshot::Sender<Vec<Arc<Call>>>,
}

/// A thread that builds calls until it is dropped.
struct BuilderThread {
    requests: mpsc::Sender<BuildRequest>,
    thread: JoinHandle<()>,
}

impl BuilderThread {
    fn start(builder: &Arc<CallBuilder>) -> io::Result<Self> {
        let builder = Arc::clone(builder);
        let (requests, received) = mpsc::channel::<BuildRequest>();
        let thread = thread::Builder::new().name("calls".to_owned()).spawn(move || {
            for BuildRequest { sources, discarded, built } in received {
                drop(discarded);
                // The receiver is gone if the tool's time is over.
                let _unwanted = built.send(builder.build_all(&sources));
            }
        })?;
        Ok(Self { requests, thread })
    }

    /// Requests a round. If the thread has ended, the missing answer is noticed when it is awaited.
    fn request_build(&self, request: BuildRequest) {
        let _unmade = self.requests.send(request);
    }

    /// Resumes the panic of the thread, the only reason for it to end early.
    fn propagate_panic<T>(self) -> T {
        drop(self.requests);
        match self.thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("the thread runs until the sender is dropped"),
        }
    }
}
