//! Leave to keep a process of the server busy: so many have it at a time, and whoever is in a hurry gets it first.
//!
//! It owns who goes next, and nothing of what is done with the leave.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Who goes before whom; among equals, whoever asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Haste {
    /// More follows that waits for it.
    Urgent,
    /// Nothing waits for it.
    Usual,
}

/// So many permits, and who waits for one.
#[derive(Debug)]
pub(super) struct Permits(Mutex<Queue>);

#[derive(Debug)]
struct Queue {
    free: usize,
    asked: u64,
    waiting: BTreeMap<(Haste, u64), oneshot::Sender<Permit>>,
}

/// Leave to keep one process busy, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit(Arc<Permits>);

/// A place in the queue.
#[derive(Debug)]
pub(super) struct Asked {
    given: oneshot::Receiver<Permit>,
    /// Who waits keeps the queue.
    _permits: Arc<Permits>,
}

impl Permits {
    pub(super) fn new(free: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Queue { free, asked: 0, waiting: BTreeMap::new() })))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place in the queue, at once; the permit is there when its turn has come.
    pub(super) fn ask(self: &Arc<Self>, haste: Haste) -> Asked {
        let mut queue = self.queue();
        let (give, given) = oneshot::channel();
        if queue.free > 0 {
            queue.free -= 1;
            drop(queue);
            // The receiver is right here.
            let _given = give.send(Permit(Arc::clone(self)));
        } else {
            queue.asked += 1;
            let place = (haste, queue.asked);
            queue.waiting.insert(place, give);
        }
        Asked { given, _permits: Arc::clone(self) }
    }
}

impl Asked {
    /// Waits for the permit.
    pub(super) async fn given(self) -> Permit {
        self.given.await.expect("the queue is kept, and with it whoever gives the permit")
    }
}

impl Drop for Permit {
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
            // Where nobody waits there any more, the permit comes back and is dropped, which gives it to the next.
            let _unwanted = next.send(Permit(Arc::clone(&self.0)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Looks once whether a future is done.
    fn look<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> Option<T> {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn whoever_is_in_a_hurry_goes_first_and_then_whoever_asked_first() {
        let permits = Permits::new(1);
        let first = look(&mut Box::pin(permits.ask(Haste::Usual).given())).expect("one is free");
        let mut usual = Box::pin(permits.ask(Haste::Usual).given());
        let mut urgent = Box::pin(permits.ask(Haste::Urgent).given());
        let mut later = Box::pin(permits.ask(Haste::Urgent).given());
        for waiting in [&mut usual, &mut urgent, &mut later] {
            assert!(look(waiting).is_none());
        }
        drop(first);
        assert!(look(&mut usual).is_none());
        assert!(look(&mut later).is_none());
        drop(look(&mut urgent).expect("it is in a hurry and asked first"));
        assert!(look(&mut usual).is_none());
        drop(look(&mut later).expect("it is in a hurry"));
        assert!(look(&mut usual).is_some());
    }

    #[test]
    fn nothing_is_lost_to_one_who_waits_no_more() {
        let permits = Permits::new(1);
        let first = look(&mut Box::pin(permits.ask(Haste::Usual).given())).expect("one is free");
        let mut gone = Box::pin(permits.ask(Haste::Urgent).given());
        let mut patient = Box::pin(permits.ask(Haste::Usual).given());
        let mut given = Box::pin(permits.ask(Haste::Urgent).given());
        for waiting in [&mut gone, &mut patient, &mut given] {
            assert!(look(waiting).is_none());
        }
        drop(gone);
        drop(first);
        // It was given one, and leaves before it has seen it.
        drop(given);
        drop(look(&mut patient).expect("the others are gone"));
        assert!(look(&mut Box::pin(permits.ask(Haste::Usual).given())).is_some());
    }
}
