//! The HTTP requests under way on all connections to a server, which may serve one at a time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::transcript::Event;

/// The number of messages under way that several connections share.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessagesUnderWay(Arc<AtomicUsize>);

impl MessagesUnderWay {
    /// How many there are now.
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The messages under way of one connection, by the numbers of their HTTP requests.
#[derive(Debug, Default)]
pub(super) struct OwnMessages {
    numbers: BTreeSet<usize>,
    all: MessagesUnderWay,
}

impl OwnMessages {
    pub(super) fn among(all: MessagesUnderWay) -> Self {
        Self { numbers: BTreeSet::new(), all }
    }

    /// Counts a message that is sent, or one whose response has ended.
    pub(super) fn count(&mut self, event: &Event) {
        let before = self.numbers.len();
        match event {
            // A stream for the server's own messages is no work for it.
            Event::HttpRequest(request) if request.method == "POST" => {
                self.numbers.insert(request.number);
            }
            Event::HttpEnd(end) => {
                self.numbers.remove(&end.number);
            }
            _ => {}
        }
        match self.numbers.len() {
            now if now > before => self.all.0.fetch_add(1, Ordering::Relaxed),
            now => self.all.0.fetch_sub(before - now, Ordering::Relaxed),
        };
    }
}

impl Drop for OwnMessages {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.numbers.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{HttpEnd, HttpRequest};

    fn request(number: usize, method: &str) -> Event {
        Event::HttpRequest(HttpRequest { number, method: method.to_owned(), ..HttpRequest::default() })
    }

    fn end(number: usize) -> Event {
        Event::HttpEnd(Box::new(HttpEnd { number, ..HttpEnd::default() }))
    }

    #[test]
    fn messages_are_under_way_until_their_responses_or_their_connections_end() {
        let all = MessagesUnderWay::default();
        let (mut first, mut second) = (OwnMessages::among(all.clone()), OwnMessages::among(all.clone()));
        for (event, expected) in [
            (request(0, "POST"), 1),
            (request(1, "GET"), 1),
            (request(2, "POST"), 2),
            (end(1), 2),
            (end(0), 1),
            (end(0), 1),
        ] {
            first.count(&event);
            assert_eq!(all.count(), expected, "{event:?}");
        }
        second.count(&request(0, "POST"));
        assert_eq!(all.count(), 2);
        drop(first);
        assert_eq!(all.count(), 1);
        drop(second);
        assert_eq!(all.count(), 0);
    }
}
