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
use crate::raw_text::RawText;

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

/// The body of a request that carries a message. What is repeated in it is one part, many times.
#[derive(Debug, Clone)]
pub(super) struct RequestBody(VecDeque<Bytes>);

impl RequestBody {
    /// The number of bytes.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// All bytes at once.
    pub(super) fn whole(mut self) -> Bytes {
        match self.0.pop_front() {
            Some(only) if self.0.is_empty() => only,
            first => first.into_iter().chain(self.0).flatten().collect(),
        }
    }

    /// A large body in parts, with pauses in which a server's refusal arrives, and whether the connection has taken the last of
    /// them.
    pub(super) fn in_parts(self) -> (reqwest::Body, Arc<AtomicBool>) {
        let length = Some(self.len());
        let mut parts = VecDeque::new();
        for mut rest in self.0 {
            while !rest.is_empty() {
                parts.push_back(rest.split_to(rest.len().min(BODY_PART)));
            }
        }
        let is_taken = Arc::new(AtomicBool::new(false));
        let (pause_time, taken) = (Some(BODY_PART_PAUSE), Arc::clone(&is_taken));
        let body = PartedBody { parts, length, pause_time, pause: None, is_taken: taken };
        (reqwest::Body::wrap(body), is_taken)
    }
}

impl From<RawText> for RequestBody {
    fn from(text: RawText) -> Self {
        let (before, (repeated, times), after) = text.into_parts();
        let mut parts = VecDeque::from([Bytes::from(before)]);
        let part = Bytes::from(vec![repeated; times.min(BODY_PART)]);
        for begin in (0..times).step_by(BODY_PART) {
            parts.push_back(part.slice(..part.len().min(times - begin)));
        }
        if !after.is_empty() {
            parts.push_back(after.into());
        }
        Self(parts)
    }
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
            let (mut body, is_taken) = RequestBody::from(RawText::from(vec![b'x'; BODY_PART + 1])).in_parts();
            assert_eq!(body.size_hint().exact(), u64::try_from(BODY_PART + 1).ok());
            for (length, last) in [(BODY_PART, false), (1, true)] {
                let part = body.frame().await.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
                assert_eq!((part.map(|part| part.len()), is_taken.load(Ordering::Relaxed)), (Some(length), last));
            }
            assert!(body.frame().await.is_none());
        });
    }

    #[test]
    fn what_is_repeated_in_a_body_is_sent_as_often() {
        let (before, after) = ("{\"".to_owned(), "\"}".to_owned());
        for times in [1, BODY_PART, 2 * BODY_PART + 7] {
            let body = RequestBody::from(RawText::with_repeated(before.clone(), b'k', times, after.clone()));
            let text = format!("{before}{}{after}", "k".repeat(times));
            assert_eq!(body.len(), text.len());
            assert!(body.clone().whole() == text.as_bytes());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
            let sent = runtime.expect("a runtime starts").block_on(body.in_parts().0.collect());
            assert!(sent.expect("it is in memory").to_bytes() == text.as_bytes());
        }
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
