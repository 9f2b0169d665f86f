//! Faults of servers that read only the usual form of an HTTP request.

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, EXPECT, HeaderMap, TRANSFER_ENCODING};
use hyper::{Request, StatusCode};

use super::injection::has;
use super::response::{HttpResponse, text_error};
use crate::reference::fault::FaultSet;
use crate::reference::fault::HttpFault::{
    ChunkedEmpty, ConnectionCloseRejected, ContentTypeExact, ExpectRejected, FirstPartOnly, PartsDecoded,
};

/// Rejects a request whose headers a fault does not understand.
pub(super) fn reject(headers: &HeaderMap, faults: &FaultSet) -> Option<HttpResponse> {
    let is_in = |name, text: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()).is_some_and(|value| value.to_lowercase().contains(text))
    };
    if has(faults, ContentTypeExact) && is_in(CONTENT_TYPE, ";") {
        return Some(text_error(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the Content-Type must be application/json"));
    }
    if has(faults, ConnectionCloseRejected) && is_in(CONNECTION, "close") {
        return Some(text_error(StatusCode::BAD_REQUEST, "the connection must be kept alive"));
    }
    let rejects = has(faults, ExpectRejected) && is_in(EXPECT, "100-continue");
    rejects.then(|| text_error(StatusCode::EXPECTATION_FAILED, "the expectation is not supported"))
}

/// What a fault reads of a body; nothing if it is read as usual.
pub(super) async fn read_partly(request: &mut Request<Incoming>, faults: &FaultSet) -> Option<Bytes> {
    if has(faults, ChunkedEmpty) && request.headers().contains_key(TRANSFER_ENCODING) {
        return Some(Bytes::new());
    }
    if has(faults, PartsDecoded) {
        let mut text = String::new();
        while let Some(Ok(frame)) = request.body_mut().frame().await {
            text.extend(frame.into_data().map(|part| String::from_utf8_lossy(&part).into_owned()));
        }
        return Some(text.into());
    }
    if !has(faults, FirstPartOnly) {
        return None;
    }
    let first = request.body_mut().frame().await;
    Some(first.and_then(Result::ok).and_then(|frame| frame.into_data().ok()).unwrap_or_default())
}
