//! Small HTTP servers on raw sockets, for responses that no ordinary server sends.
//!
//! Each connection has a thread of its own; a listener lives as long as the test process.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// The maximum size of a request, in bytes.
const MAX_REQUEST_BYTES: usize = 16 << 20;

/// A request that was read from a socket.
#[derive(Debug, Clone, Default)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    /// The names are in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpRequest {
    /// The first value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The JSON-RPC message in the body.
    pub(crate) fn message(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Serves every connection to a free port on the loopback interface.
pub(crate) fn listen(serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port is found");
    let address = listener.local_addr().expect("a listener has an address");
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || {
                // The client may close the connection at any time; that is no error of the test.
                let _ended = serve(stream);
            });
        }
    });
    address
}

/// Responds to the one request of every connection; the bytes of the response are written unchanged.
pub(crate) fn serve_response(respond: impl Fn(&HttpRequest) -> Vec<u8> + Send + Sync + 'static) -> SocketAddr {
    listen(move |mut stream| {
        let request = read(&mut stream)?;
        stream.write_all(&respond(&request))?;
        linger(&mut stream)
    })
}

/// Reads a request, with its body if it has a content length.
pub(crate) fn read(stream: &mut impl Read) -> io::Result<HttpRequest> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 8 << 10];
    let mut more = |bytes: &mut Vec<u8>| -> io::Result<()> {
        let count = stream.read(&mut buffer)?;
        if count == 0 || bytes.len() > MAX_REQUEST_BYTES {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..count]);
        Ok(())
    };
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        more(&mut bytes)?;
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, target) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut request = HttpRequest { method, target, headers, body: Vec::new() };
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while bytes.len() < end + 4 + length {
        more(&mut bytes)?;
    }
    request.body = bytes[end + 4..].to_vec();
    Ok(request)
}

/// A complete response, after which the connection closes.
pub(crate) fn response(status: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        let _infallible = write!(text, "{name}: {value}\r\n");
    }
    text.push_str("\r\n");
    text.push_str(body);
    text.into_bytes()
}

/// Closes the sending half and reads the rest, so that the response is not lost to a reset.
pub(crate) fn linger(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown(std::net::Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    io::copy(stream, &mut io::sink()).map(drop)
}

/// The smallest server that can be judged: it supports every revision with a handshake, and has no capabilities.
pub(crate) fn minimal_server(request: &HttpRequest) -> Vec<u8> {
    let message = request.message();
    let json = [("content-type", "application/json")];
    if request.method != "POST" {
        return response("405 Method Not Allowed", &[("allow", "POST")], "");
    }
    let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else {
        return response("202 Accepted", &[], "");
    };
    let body = match message["method"].as_str() {
        Some("initialize") => serde_json::json!({ "jsonrpc": "2.0", "id": id, "result": {
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": {},
            "serverInfo": { "name": "smallest", "version": "1" },
        } }),
        Some("ping") => serde_json::json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
        _ => {
            serde_json::json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "Method not found" } })
        }
    };
    response("200 OK", &json, &body.to_string())
}
