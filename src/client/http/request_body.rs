//! Bodies of requests that are sent in parts: large ones, and those that a case asks for.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::direct_request::BodyTransfer;
use crate::limits::http::{BODY_PART, BODY_PART_PAUSE, BODY_PAUSE};

/// The body of a request, which is made anew for each attempt.
pub(super) fn body_of(bytes: &Bytes, transfer: BodyTransfer) -> reqwest::Body {
    if transfer == BodyTransfer::Whole {
        return bytes.clone().into();
    }
    let middle = middle(bytes);
    let parts = [bytes.slice(..middle), bytes.slice(middle..)].into_iter().filter(|part| !part.is_empty());
    reqwest::Body::wrap(PartedBody {
        parts: parts.collect(),
        length: (transfer == BodyTransfer::Paused).then_some(bytes.len()),
        pause_time: (transfer == BodyTransfer::Paused).then_some(BODY_PAUSE),
        pause: None,
        is_taken: Arc::default(),
    })
}

/// A large body in parts, with pauses in which a server's refusal arrives, and whether the connection has taken the last of them.
pub(super) fn large_body(bytes: Bytes) -> (reqwest::Body, Arc<AtomicBool>) {
    let (length, mut rest) = (bytes.len(), bytes);
    let mut parts = VecDeque::new();
    while !rest.is_empty() {
        parts.push_back(rest.split_to(rest.len().min(BODY_PART)));
    }
    let is_taken = Arc::new(AtomicBool::new(false));
    let body = PartedBody {
        parts,
        length: Some(length),
        pause_time: Some(BODY_PART_PAUSE),
        pause: None,
        is_taken: Arc::clone(&is_taken),
    };
    (reqwest::Body::wrap(body), is_taken)
}

/// Where a body is divided: inside its first character beyond ASCII, else in half.
fn middle(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !byte.is_ascii()).map_or(bytes.len() / 2, |at| at + 1)
}

/// A body that is sent in parts.
struct PartedBody {
    parts: VecDeque<Bytes>,
    /// The length that is announced.
    length: Option<usize>,
    /// The pause before each part but the first.
    pause_time: Option<Duration>,
    pause: Option<Pin<Box<Sleep>>>,
    /// Whether the connection has taken the last part.
    is_taken: Arc<AtomicBool>,
}

impl Body for PartedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(pause) = &mut self.pause {
            std::task::ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        let part = self.parts.pop_front();
        if self.parts.is_empty() {
            self.is_taken.store(true, Ordering::Relaxed);
        } else {
            self.pause = self.pause_time.map(|time| Box::pin(sleep(time)));
        }
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    /// A body without a length is sent in chunks.
    fn size_hint(&self) -> SizeHint {
        let exact = |length: usize| SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX));
        self.length.map_or_else(SizeHint::default, exact)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn a_large_body_is_taken_with_its_last_part() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime starts").block_on(async {
            let (mut body, is_taken) = large_body(vec![b'x'; BODY_PART + 1].into());
            assert_eq!(body.size_hint().exact(), u64::try_from(BODY_PART + 1).ok());
            for (length, last) in [(BODY_PART, false), (1, true)] {
                let part = body.frame().await.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
                assert_eq!((part.map(|part| part.len()), is_taken.load(Ordering::Relaxed)), (Some(length), last));
            }
            assert!(body.frame().await.is_none());
        });
    }

    #[test]
    fn a_body_in_parts_has_all_bytes_and_pauses_only_if_its_length_is_known() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime starts").block_on(async {
            for (transfer, pause) in [(BodyTransfer::Chunked, false), (BodyTransfer::Paused, true)] {
                let began = Instant::now();
                let body = body_of(&Bytes::from_static(b"{\"id\":1}"), transfer);
                assert_eq!(body.size_hint().exact(), pause.then_some(8), "{transfer:?}");
                let cut = body_of(&Bytes::from("\"é\""), transfer).frame().await.and_then(Result::ok);
                assert_eq!(&cut.and_then(|frame| frame.into_data().ok()).expect("a part")[..], b"\"\xc3");
                let sent = body.collect().await.expect("it is in memory").to_bytes();
                assert_eq!(&sent[..], b"{\"id\":1}");
                assert_eq!(began.elapsed() >= BODY_PAUSE, pause, "{transfer:?}");
            }
        });
    }
}
