//! Faults in how HTTP is written and read, which the HTTP library cannot make.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpStream;

/// The header of a response that is sent in chunks.
const CHUNKED: &[u8] = b"transfer-encoding: chunked\r\n";

/// The header that is wrong next to it.
const LENGTH: &[u8] = b"content-length: 64\r\n";

/// How many bytes are on their way in each direction.
const BUFFER_BYTES: usize = 64 << 10;

/// The beginning of the headers of the protocol, on a line of their own.
const HEADER: &[u8] = b"\r\nmcp-";

/// What is read or written in place of the bytes of a connection.
type Change = fn(&[u8]) -> Vec<u8>;

/// A connection over which a `Content-Length` is sent with each response in chunks.
pub(super) fn with_length(stream: TcpStream) -> DuplexStream {
    changed(stream, <[u8]>::to_vec, add_length)
}

/// A connection over which white space before the values of headers is taken for a part of them.
pub(super) fn with_space(stream: TcpStream) -> DuplexStream {
    changed(stream, keep_space, <[u8]>::to_vec)
}

/// A connection over which other bytes are received and sent. The client and the library write the headers of a message at once.
fn changed(stream: TcpStream, receive: Change, send: Change) -> DuplexStream {
    let (near, far) = tokio::io::duplex(BUFFER_BYTES);
    let (mut from_client, mut to_client) = stream.into_split();
    let (mut responses, mut requests) = tokio::io::split(far);
    tokio::spawn(async move {
        copy(&mut from_client, &mut requests, receive).await;
        let _gone = requests.shutdown().await;
    });
    tokio::spawn(async move { copy(&mut responses, &mut to_client, send).await });
    near
}

/// Copies changed bytes until one of the two ends.
async fn copy(from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin), change: Change) {
    let mut part = vec![0; BUFFER_BYTES];
    while let Ok(count @ 1..) = from.read(&mut part).await {
        if to.write_all(&change(&part[..count])).await.is_err() {
            return;
        }
    }
}

/// What is received, with a character in place of a second space before the value of a header of the protocol.
fn keep_space(received: &[u8]) -> Vec<u8> {
    const SPACES: &[u8] = b":  ";
    let mut changed = received.to_vec();
    let lines = received.windows(HEADER.len()).enumerate().filter(|(_, window)| *window == HEADER);
    for (at, _) in lines {
        let line = at + HEADER.len();
        let name = received[line..].iter().position(|byte| *byte == b':').unwrap_or_default();
        if received[line + name..].starts_with(SPACES) {
            changed[line + name + SPACES.len() - 1] = b'_';
        }
    }
    changed
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
    fn only_space_that_is_no_separator_is_kept() {
        let head = b"POST / HTTP/1.1\r\nmcp-method:  ping \r\nmcp-name: a:  b\r\nhost:  c\r\n\r\n{}";
        let kept = b"POST / HTTP/1.1\r\nmcp-method: _ping \r\nmcp-name: a:  b\r\nhost:  c\r\n\r\n{}";
        assert_eq!(keep_space(head), kept);
        for without in [&b""[..], b"\r\nmcp-", b"\r\nmcp-name: ", b"\r\nmcp-name:"] {
            assert_eq!(keep_space(without), without);
        }
    }

    #[test]
    fn only_a_response_in_chunks_gets_a_length() {
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
        let changed = b"HTTP/1.1 200 OK\r\ncontent-length: 64\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
        assert_eq!(add_length(chunked), changed);
        let whole = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(add_length(whole), whole);
    }
}
