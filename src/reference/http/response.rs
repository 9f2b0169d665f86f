//! HTTP responses.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;

use crate::reference::message::RpcError;

/// An HTTP response.
pub(super) type HttpResponse = Response<BoxBody<Bytes, Infallible>>;

/// A body that is streamed from a channel; it ends when the sender is dropped.
struct ChannelBody(mpsc::Receiver<Bytes>);

impl Body for ChannelBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A body that passes on another one in pieces of a few bytes.
struct PieceBody {
    whole: BoxBody<Bytes, Infallible>,
    rest: Bytes,
}

/// The length of a piece of a short body, in bytes; one of a long body is longer.
const PIECE_BYTES: usize = 7;
/// The most pieces of what a body has at once.
const MAX_PIECES: usize = 64;

impl Body for PieceBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            match Pin::new(&mut self.whole).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                ended_or_pending => return ended_or_pending,
            }
        }
        let length = PIECE_BYTES.max(self.rest.len() / MAX_PIECES).min(self.rest.len());
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }
}

/// A response whose body comes in pieces of a few bytes.
pub(super) fn in_pieces(mut response: HttpResponse) -> HttpResponse {
    if !response.body().is_end_stream() {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    response.map(|whole| PieceBody { whole, rest: Bytes::new() }.boxed())
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> HttpResponse {
    let mut response = Response::new(Empty::new().boxed());
    *response.status_mut() = status;
    response
}

/// A response with a body of this media type.
pub(super) fn full(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = Response::new(Full::new(body.into()).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An error response with plain text.
pub(super) fn text_error(status: StatusCode, message_text: &'static str) -> HttpResponse {
    let mut response = full(status, "text/plain; charset=utf-8", message_text);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(hyper::header::ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
    }
    response
}

/// An error response with a JSON-RPC error without an id.
pub(super) fn rpc_error(status: StatusCode, code: i64, message_text: &'static str) -> HttpResponse {
    let error = RpcError::new(code, message_text).into_message(None, false);
    full(status, "application/json", error.to_string())
}

/// An event stream.
pub(super) fn stream(body: mpsc::Receiver<Bytes>) -> HttpResponse {
    let mut response = Response::new(ChannelBody(body).boxed());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(hyper::header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}
