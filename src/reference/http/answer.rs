//! What goes back over HTTP.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;

use crate::reference::message::Refusal;

/// A whole answer.
pub(super) type Answer = Response<BoxBody<Bytes, Infallible>>;

/// A body that is written while it is read; it ends when its sender is dropped.
struct Written(mpsc::Receiver<Bytes>);

impl Body for Written {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// An answer without a body.
pub(super) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Empty::new().boxed());
    *answer.status_mut() = status;
    answer
}

/// An answer with a body of this type.
pub(super) fn full(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// A refusal in words that are no message.
pub(super) fn failed(status: StatusCode, words: &'static str) -> Answer {
    let mut answer = full(status, "text/plain; charset=utf-8", words);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        answer.headers_mut().insert(hyper::header::ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
    }
    answer
}

/// A refusal as an error that belongs to no request.
pub(super) fn refused(status: StatusCode, code: i64, words: &'static str) -> Answer {
    let error = Refusal::new(code, words).into_message(None, false);
    full(status, "application/json", error.to_string())
}

/// A stream of events.
pub(super) fn stream(body: mpsc::Receiver<Bytes>) -> Answer {
    let mut answer = Response::new(Written(body).boxed());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(hyper::header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    answer
}
