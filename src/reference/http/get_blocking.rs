//! A fault of servers with one thread: nothing else is served while a GET stream is open.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Bytes, Frame};
use tokio::sync::watch;

use super::injection::has;
use super::response::HttpResponse;
use crate::reference::fault::FaultSet;
use crate::reference::fault::HttpFault::GetBlocksPosts;

/// How many GET streams are open, as far as a fault depends on it.
pub(super) struct OpenGetStreams(watch::Sender<usize>);

impl Default for OpenGetStreams {
    fn default() -> Self {
        Self(watch::channel(0).0)
    }
}

impl OpenGetStreams {
    /// Counts a response to GET until it is closed, if it is a stream.
    pub(super) fn count(&self, response: HttpResponse, faults: &FaultSet) -> HttpResponse {
        if !response.status().is_success() || !has(faults, GetBlocksPosts) {
            return response;
        }
        self.0.send_modify(|open| *open += 1);
        response.map(|body| CountedBody { body, open: self.0.clone() }.boxed())
    }

    /// Waits until no stream is open.
    pub(super) async fn wait_until_closed(&self) {
        let mut open = self.0.subscribe();
        let _never_dropped = open.wait_for(|open| *open == 0).await;
    }
}

/// The body of a stream that is counted until it is dropped.
struct CountedBody {
    body: BoxBody<Bytes, Infallible>,
    open: watch::Sender<usize>,
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }
}

impl Drop for CountedBody {
    fn drop(&mut self) {
        self.open.send_modify(|open| *open -= 1);
    }
}
