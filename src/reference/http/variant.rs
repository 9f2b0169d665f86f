//! Conforming variants of the server that only show over HTTP: in media types and content codings.

use hyper::StatusCode;
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};

use super::injection::has;
use super::response::{HttpResponse, text_error};
use crate::reference::fault::FaultSet;
use crate::reference::fault::HttpFault::{IdentityRequired, MediaTypesUpperCase};

/// Rejects a client that does not ask for uncompressed responses.
pub(super) fn reject_encoding(headers: &HeaderMap, faults: &FaultSet) -> Option<HttpResponse> {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let rejects = has(faults, IdentityRequired) && accepted != Some("identity");
    rejects.then(|| text_error(StatusCode::NOT_ACCEPTABLE, "the client must accept only uncompressed responses"))
}

/// Writes the media type of a response in another spelling that means the same.
pub(super) fn respell_media_type(mut response: HttpResponse, faults: &FaultSet) -> HttpResponse {
    if has(faults, MediaTypesUpperCase) {
        let respelled = match response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes) {
            Some(b"application/json") => "Application/JSON ; Charset=UTF-8",
            Some(b"text/event-stream") => "Text/Event-Stream;Charset=UTF-8",
            _ => return response,
        };
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(respelled));
    }
    response
}
