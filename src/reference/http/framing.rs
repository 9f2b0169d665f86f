//! A fault in how responses are framed, which the HTTP library cannot make.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpStream;

/// The header of a response that is sent in chunks.
const CHUNKED: &[u8] = b"transfer-encoding: chunked\r\n";

/// The header that is wrong next to it.
const LENGTH: &[u8] = b"content-length: 64\r\n";

/// How many bytes are on their way in each direction.
const BUFFER_BYTES: usize = 64 << 10;

/// A connection over which a `Content-Length` is sent with each response in chunks.
pub(super) fn with_length(stream: TcpStream) -> DuplexStream {
    let (near, far) = tokio::io::duplex(BUFFER_BYTES);
    let (mut from_client, mut to_client) = stream.into_split();
    let (mut responses, mut requests) = tokio::io::split(far);
    tokio::spawn(async move {
        let _gone = tokio::io::copy(&mut from_client, &mut requests).await;
        let _gone = requests.shutdown().await;
    });
    tokio::spawn(async move {
        let mut part = vec![0; BUFFER_BYTES];
        while let Ok(count @ 1..) = responses.read(&mut part).await {
            // The library writes the headers of a response at once.
            if to_client.write_all(&add_length(&part[..count])).await.is_err() {
                return;
            }
        }
    });
    near
}

/// What is sent, with a length in front of each header that says that there are chunks.
fn add_length(sent: &[u8]) -> Vec<u8> {
    let mut changed = Vec::with_capacity(sent.len() + LENGTH.len());
    let mut left = sent;
    while let Some(at) = left.windows(CHUNKED.len()).position(|window| window == CHUNKED) {
        let (before, chunked) = left.split_at(at);
        let (header, after) = chunked.split_at(CHUNKED.len());
        changed.extend([before, LENGTH, header].concat());
        left = after;
    }
    changed.extend(left);
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_response_in_chunks_gets_a_length() {
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
        let changed = b"HTTP/1.1 200 OK\r\ncontent-length: 64\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
        assert_eq!(add_length(chunked), changed);
        let whole = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(add_length(whole), whole);
    }
}
