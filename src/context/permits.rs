//! Permits for keeping server processes busy: a limited number, granted by priority.
//!
//! It is responsible for the order only, not for what is done with a permit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The priority of a request; requests of equal priority are granted in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// Many cases wait for it, one after the other, so that it takes longest.
    Queue,
    /// Other work depends on it.
    High,
    /// Nothing depends on it.
    Normal,
}

/// A fixed number of permits, and the queue of requests.
#[derive(Debug)]
pub(crate) struct ProcessPermits(Mutex<Queue>);

#[derive(Debug)]
struct Queue {
    free: usize,
    requested: u64,
    waiting: BTreeMap<(Priority, u64), oneshot::Sender<ProcessPermit>>,
}

/// Permission to keep one process busy, until dropped.
#[derive(Debug)]
pub(crate) struct ProcessPermit(Arc<ProcessPermits>);

/// A request in the queue.
#[derive(Debug)]
pub(crate) struct PermitRequest {
    granted: oneshot::Receiver<ProcessPermit>,
    /// Keeps the queue alive while waiting.
    _permits: Arc<ProcessPermits>,
}

impl ProcessPermits {
    pub(crate) fn new(free: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Queue { free, requested: 0, waiting: BTreeMap::new() })))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of permits that nobody has or waits for.
    pub(super) fn free(&self) -> usize {
        self.queue().free
    }

    /// Adds permits, which are granted to waiting requests first.
    pub(crate) fn add(self: &Arc<Self>, count: usize) {
        (0..count).for_each(|_| drop(ProcessPermit(Arc::clone(self))));
    }

    /// Queues a request immediately; the permit arrives when it is granted.
    pub(crate) fn request(self: &Arc<Self>, priority: Priority) -> PermitRequest {
        let mut queue = self.queue();
        let (grant, granted) = oneshot::channel();
        if queue.free > 0 {
            queue.free -= 1;
            drop(queue);
            // The receiver is still in scope.
            let _granted = grant.send(ProcessPermit(Arc::clone(self)));
        } else {
            queue.requested += 1;
            let place = (priority, queue.requested);
            queue.waiting.insert(place, grant);
        }
        PermitRequest { granted, _permits: Arc::clone(self) }
    }
}

impl PermitRequest {
    /// Waits for the permit.
    pub(crate) async fn granted(self) -> ProcessPermit {
        self.granted.await.expect("the queue outlives its requests")
    }
}

impl Drop for ProcessPermit {
    fn drop(&mut self) {
        let next = {
            let mut queue = self.0.queue();
            let next = queue.waiting.pop_first();
            if next.is_none() {
                queue.free += 1;
            }
            next
        };
        if let Some((_, next)) = next {
            // If the receiver is gone, the returned permit is dropped, which grants it to the next request.
            let _unwanted = next.send(ProcessPermit(Arc::clone(&self.0)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Polls a future once.
    fn poll_once<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> Option<T> {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn permits_are_granted_by_priority_and_then_in_order() {
        let permits = ProcessPermits::new(1);
        let first = poll_once(&mut Box::pin(permits.request(Priority::Normal).granted())).expect("one is free");
        let mut usual = Box::pin(permits.request(Priority::Normal).granted());
        let mut urgent = Box::pin(permits.request(Priority::High).granted());
        let mut later = Box::pin(permits.request(Priority::High).granted());
        for waiting in [&mut usual, &mut urgent, &mut later] {
            assert!(poll_once(waiting).is_none());
        }
        drop(first);
        assert!(poll_once(&mut usual).is_none());
        assert!(poll_once(&mut later).is_none());
        drop(poll_once(&mut urgent).expect("it has high priority and came first"));
        assert!(poll_once(&mut usual).is_none());
        drop(poll_once(&mut later).expect("it has high priority"));
        assert!(poll_once(&mut usual).is_some());
    }

    #[test]
    fn abandoned_requests_do_not_lose_permits() {
        let permits = ProcessPermits::new(1);
        let first = poll_once(&mut Box::pin(permits.request(Priority::Normal).granted())).expect("one is free");
        let mut abandoned = Box::pin(permits.request(Priority::High).granted());
        let mut waiting_request = Box::pin(permits.request(Priority::Normal).granted());
        let mut granted = Box::pin(permits.request(Priority::High).granted());
        for waiting in [&mut abandoned, &mut waiting_request, &mut granted] {
            assert!(poll_once(waiting).is_none());
        }
        drop(abandoned);
        drop(first);
        // The permit was granted but not yet received.
        drop(granted);
        drop(poll_once(&mut waiting_request).expect("the other requests are gone"));
        assert!(poll_once(&mut Box::pin(permits.request(Priority::Normal).granted())).is_some());
    }
}
