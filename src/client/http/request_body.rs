//! The body of a request that a case makes directly, which may be sent in parts.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::direct_request::BodyTransfer;
use crate::limits::http::BODY_PAUSE;

/// The body of a request, which is made anew for each attempt.
pub(super) fn body_of(bytes: &[u8], transfer: BodyTransfer) -> reqwest::Body {
    if transfer == BodyTransfer::Whole {
        return bytes.to_vec().into();
    }
    let (first, second) = bytes.split_at(middle(bytes));
    let parts = [first, second].into_iter().filter(|part| !part.is_empty()).map(Bytes::copy_from_slice);
    reqwest::Body::wrap(PartedBody {
        parts: parts.collect(),
        length: (transfer == BodyTransfer::Paused).then_some(bytes.len()),
        pause: None,
    })
}

/// Where a body is divided: inside its first character beyond ASCII, else in half.
fn middle(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !byte.is_ascii()).map_or(bytes.len() / 2, |at| at + 1)
}

/// A body that is sent in parts, with a pause before each but the first if its length is announced.
struct PartedBody {
    parts: VecDeque<Bytes>,
    length: Option<usize>,
    pause: Option<Pin<Box<Sleep>>>,
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
        if self.length.is_some() && !self.parts.is_empty() {
            self.pause = Some(Box::pin(sleep(BODY_PAUSE)));
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
    fn a_body_in_parts_has_all_bytes_and_pauses_only_if_its_length_is_known() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime starts").block_on(async {
            for (transfer, pause) in [(BodyTransfer::Chunked, false), (BodyTransfer::Paused, true)] {
                let began = Instant::now();
                let body = body_of(b"{\"id\":1}", transfer);
                assert_eq!(body.size_hint().exact(), pause.then_some(8), "{transfer:?}");
                let cut = body_of("\"é\"".as_bytes(), transfer).frame().await.and_then(Result::ok);
                assert_eq!(&cut.and_then(|frame| frame.into_data().ok()).expect("a part")[..], b"\"\xc3");
                let sent = body.collect().await.expect("it is in memory").to_bytes();
                assert_eq!(&sent[..], b"{\"id\":1}");
                assert_eq!(began.elapsed() >= BODY_PAUSE, pause, "{transfer:?}");
            }
        });
    }
}
