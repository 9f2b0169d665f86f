//! Hostile and broken servers over HTTP: no listener, HTML pages, redirect loops, floods, slow responses, other protocols.
//!
//! Every trial runs the real program against a small server on a raw socket, and checks its exit code, its output,
//! its duration and its memory usage.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::address::unused_address;
use super::hostile::{LONG_TIMEOUTS, Run, SHORT_TIMEOUTS};
use super::raw::{linger, listen, minimal_server, read, response, serve_response};
use crate::support::{Trial, limits, trial};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for server in broken_servers() {
        trials.push(trial(format!("hostile/http/{}", server.name), move || server.check()));
    }
    trials.push(trial(
        "hostile/http/a-redirect-to-another-origin-is-not-followed",
        a_redirect_to_another_origin_is_not_followed,
    ));
    trials.push(trial(
        "hostile/http/an-endpoint-of-another-origin-is-not-used",
        an_endpoint_of_another_origin_is_not_used,
    ));
    trials.push(trial("hostile/http/retry-after-is-respected", retry_after_is_respected));
    trials.push(trial("hostile/http/one-session-at-a-time-is-recognised", one_session_is_recognised));
    trials.push(trial(
        "hostile/http/a-certificate-is-verified-without-insecure",
        a_certificate_is_verified_without_insecure,
    ));
    trials.push(trial(
        "hostile/http/no-proxy-is-used-for-the-loopback-interface",
        no_proxy_is_used_for_the_loopback_interface,
    ));
    trials
}

/// A broken server, and what a run against it must print.
struct BrokenServer {
    name: &'static str,
    scheme: &'static str,
    start: fn() -> SocketAddr,
    expected: &'static [&'static str],
    limit: Duration,
}

impl BrokenServer {
    fn check(&self) -> Result<(), String> {
        let address = (self.start)();
        let run = Run::judge(&SHORT_TIMEOUTS, &[&format!("{}://{address}/mcp", self.scheme)])?;
        run.expect(2, &["NOT JUDGED"])?;
        run.expect(2, self.expected)?;
        run.expect_within(self.limit)
    }
}

#[expect(clippy::too_many_lines, reason = "a table with one row for each server")]
fn broken_servers() -> Vec<BrokenServer> {
    let row = |name, start, expected, limit| BrokenServer { name, scheme: "http", start, expected, limit };
    vec![
        row("connection-refused", unused_address, &["no server listens at", "is it running"], limits::WITHOUT_TIMEOUT),
        row(
            "not-found",
            || serve_response(|_| response("404 Not Found", &[], "")),
            &["HTTP status 404", "the path"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "not-found-page",
            || serve_response(|_| response("404 Not Found", &[("content-type", "text/html")], HTML_PAGE)),
            &["HTTP status 404 (text/html)", "the path"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "page",
            || serve_response(|_| response("200 OK", &[("content-type", "text/html; charset=utf-8")], HTML_PAGE)),
            &["HTTP status 200 (text/html", "a web page"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "internal-server-error",
            || serve_response(|_| response("500 Oops", &[], "")),
            &["HTTP status 500"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "tls-on-an-http-address",
            || raw_response(b"\x15\x03\x01\x00\x02\x02\x46"),
            &["does not answer in HTTP/1.1", "https://"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "http2-only",
            || raw_response(HTTP2_FRAMES),
            &["does not answer in HTTP/1.1", "HTTP/2"],
            limits::WITHOUT_TIMEOUT,
        ),
        BrokenServer {
            scheme: "https",
            ..row("no-tls", || listen(clear_text), &["does not speak TLS", "http://"], limits::WITHOUT_TIMEOUT)
        },
        BrokenServer {
            scheme: "https",
            ..row("no-tls-and-silent", || listen(silent), &["https://"], limits::ALL_CASES)
        },
        row(
            "another-protocol",
            || raw_response(b"SSH-2.0-OpenSSH_9.9\r\n"),
            &["does not answer in HTTP/1.1"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "closes-the-connection",
            || listen(|mut stream| read(&mut stream).map(drop)),
            &["closed the connection"],
            limits::WITHOUT_TIMEOUT,
        ),
        row("silent", || listen(silent), &["did not answer"], limits::ALL_CASES),
        row(
            "redirect-loop",
            || serve_response(|request| response("308 Permanent Redirect", &[("location", &request.target)], "")),
            &["HTTP status 308", "redirect", "/mcp"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "huge-body",
            || listen(|stream| endless_body(stream, "content-length: 1073741824", b"[0,")),
            MESSAGE_TOO_LONG,
            limits::ALL_CASES,
        ),
        row(
            "huge-page",
            || listen(|stream| endless_body(stream, "content-type: text/html", b"<br>")),
            MESSAGE_TOO_LONG,
            limits::ALL_CASES,
        ),
        row(
            "endless-body",
            || listen(|stream| endless_body(stream, "connection: close", b"[0,")),
            MESSAGE_TOO_LONG,
            limits::ALL_CASES,
        ),
        row(
            "invalid-chunks",
            || {
                raw_response(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}",
                )
            },
            &["chunk"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "truncated-body",
            || {
                raw_response(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{\"jsonrpc\":",
                )
            },
            &["closed the connection"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "header-without-end",
            || listen(|stream| flood(stream, b"HTTP/1.1 200 OK\r\nx: ", b"bomb")),
            HEADERS_TOO_LONG,
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "headers-without-end",
            || listen(|stream| flood(stream, b"HTTP/1.1 200 OK\r\n", b"x: y\r\n")),
            HEADERS_TOO_LONG,
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "contradictory-content-lengths",
            || raw_response(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 9\r\n\r\nabcd"),
            &["does not answer in HTTP/1.1"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "comments-without-end",
            || listen(|stream| endless_body(stream, STREAM_HEADERS, b": ping\n\n")),
            &["no JSON-RPC response", "--startup-timeout"],
            limits::ALL_CASES,
        ),
        row(
            "line-without-end",
            || listen(|stream| endless_body(stream, STREAM_HEADERS, b"data: data: ")),
            &["the server wrote"],
            limits::ALL_CASES,
        ),
        row(
            "messages-without-end",
            || {
                listen(|stream| {
                    endless_body(
                        stream,
                        STREAM_HEADERS,
                        b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n",
                    )
                })
            },
            &["exceeded the output limit"],
            limits::ALL_CASES,
        ),
        row(
            "dripping-head",
            || listen(|stream| drip(stream, b"")),
            &["did not answer", "--startup-timeout"],
            limits::ALL_CASES,
        ),
        row(
            "dripping-body",
            || listen(|stream| drip(stream, JSON_HEAD)),
            &["no JSON-RPC response", "--startup-timeout"],
            limits::ALL_CASES,
        ),
        row(
            "dripping-stream",
            || listen(|stream| drip(stream, STREAM_HEAD)),
            &["no JSON-RPC response", "--startup-timeout"],
            limits::ALL_CASES,
        ),
        row(
            "rate-limited",
            || serve_response(|_| response("429 Too Many Requests", &[("retry-after", "1")], "")),
            &["HTTP status 429", "Retry-After: 1"],
            limits::ALL_CASES,
        ),
        row(
            "rate-limited-for-a-day",
            || serve_response(|_| response("429 Too Many Requests", &[("retry-after", "86400")], "")),
            &["HTTP status 429", "Retry-After: 86400"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "token-required",
            || serve_response(|_| response("401 Unauthorized", &[], "")),
            &["HTTP status 401", "--bearer-env"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "accepted-and-silent",
            || serve_response(|_| response("202 Accepted", &[], "")),
            &["HTTP status 202"],
            limits::WITHOUT_TIMEOUT,
        ),
        row(
            "another-encoding",
            || {
                let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
                serve_response(move |_| response("200 OK", &headers, "\u{1f}\u{8b}\u{8}"))
            },
            &["gzip"],
            limits::WITHOUT_TIMEOUT,
        ),
    ]
}

const HTML_PAGE: &str = "<!doctype html><title>Welcome</title><h1>It works</h1>";

/// What an HTTP/2 server sends to an HTTP/1.1 client: empty settings, then GOAWAY with a protocol error.
const HTTP2_FRAMES: &[u8] =
    b"\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01";

const STREAM_HEADERS: &str = "content-type: text/event-stream\r\nconnection: close";
const JSON_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n";
const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const MESSAGE_TOO_LONG: &[&str] = &["exceeds the limit of 8 MiB"];
const HEADERS_TOO_LONG: &[&str] = &["the response headers are longer than the client reads"];

/// Reads a request and writes these bytes unchanged.
fn raw_response(bytes: &'static [u8]) -> SocketAddr {
    listen(move |mut stream| {
        read(&mut stream)?;
        stream.write_all(bytes)?;
        linger(&mut stream)
    })
}

/// Answers a TLS handshake as a server without TLS does.
fn clear_text(mut stream: TcpStream) -> io::Result<()> {
    let _hello = io::Read::read(&mut stream, &mut [0; 8 << 10])?;
    stream.write_all(&response("400 Bad Request", &[], ""))?;
    linger(&mut stream)
}

fn silent(mut stream: TcpStream) -> io::Result<()> {
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

/// Reads a request, writes the first bytes, and repeats the others until the connection closes.
fn flood(mut stream: TcpStream, first: &[u8], repeated: &[u8]) -> io::Result<()> {
    read(&mut stream)?;
    stream.write_all(first)?;
    let block = repeated.repeat((64 << 10) / repeated.len());
    loop {
        stream.write_all(&block)?;
    }
}

/// As [`flood`], in the body of a response.
fn endless_body(stream: TcpStream, headers: &str, repeated: &[u8]) -> io::Result<()> {
    let kind = if headers.contains("content-type") { "" } else { "content-type: application/json\r\n" };
    flood(stream, format!("HTTP/1.1 200 OK\r\n{kind}{headers}\r\n\r\n").as_bytes(), repeated)
}

/// Writes the first bytes at once, and then one byte per second.
fn drip(mut stream: TcpStream, first: &[u8]) -> io::Result<()> {
    read(&mut stream)?;
    stream.write_all(first)?;
    for byte in JSON_HEAD.iter().cycle() {
        stream.write_all(&[*byte])?;
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}

/// A server that counts its connections.
fn counting_server() -> (SocketAddr, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let address = listen(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    (address, count)
}

fn expect_no_connection(count: &AtomicUsize) -> Result<(), String> {
    match count.load(Ordering::Relaxed) {
        0 => Ok(()),
        more => Err(format!("the program connected to another origin {more} times")),
    }
}

fn a_redirect_to_another_origin_is_not_followed() -> Result<(), String> {
    let (other_origin, count) = counting_server();
    let location = format!("http://{other_origin}/mcp");
    let shown = location.clone();
    let address = serve_response(move |_| response("307 Temporary Redirect", &[("location", &location)], ""));
    let run = Run::judge(&SHORT_TIMEOUTS, &[&format!("http://{address}/mcp")])?;
    run.expect(2, &["NOT JUDGED", "HTTP status 307", "redirect", &shown])?;
    expect_no_connection(&count)
}

fn an_endpoint_of_another_origin_is_not_used() -> Result<(), String> {
    let (other_origin, count) = counting_server();
    let address = listen(move |mut stream| {
        let request = read(&mut stream)?;
        if request.method != "GET" {
            stream.write_all(&response("405 Method Not Allowed", &[], ""))?;
            return linger(&mut stream);
        }
        let event = format!("event: endpoint\ndata: http://{other_origin}/messages\n\n");
        stream.write_all(&[STREAM_HEAD, event.as_bytes()].concat())?;
        silent(stream)
    });
    let run = Run::judge(&SHORT_TIMEOUTS, &[&format!("http://{address}/sse")])?;
    run.expect(2, &["NOT JUDGED", "another origin", &other_origin.to_string()])?;
    expect_no_connection(&count)
}

/// A rate-limited request is repeated after the time that `Retry-After` names.
/// The refusal of a second session is neither an answer to an unknown version, nor one to a client without capabilities.
fn one_session_is_recognised() -> Result<(), String> {
    let opened = AtomicUsize::new(0);
    let address = serve_response(move |request| {
        let refusal = |message: &str| {
            let id = request.message().get("id").cloned().unwrap_or_default();
            let error = serde_json::json!({ "code": -32600, "message": message });
            let body = serde_json::json!({ "jsonrpc": "2.0", "id": id, "error": error });
            response("400 Bad Request", &[("content-type", "application/json")], &body.to_string())
        };
        if request.message()["method"] != "initialize" {
            let has_session = request.header("mcp-session-id") == Some("only");
            return if has_session { minimal_server(request) } else { refusal("no session") };
        }
        if opened.fetch_add(1, Ordering::Relaxed) > 0 {
            return refusal("Server already initialized");
        }
        let text = String::from_utf8(minimal_server(request)).unwrap_or_default();
        text.replacen("\r\n", "\r\nmcp-session-id: only\r\n", 1).into_bytes()
    });
    let mut options = vec!["--revision", "2025-11-25", "--select", "lifecycle/ping"];
    options.extend(["--select", "lifecycle/version-unknown", "--select", "lifecycle/version-agreed-again"]);
    options.extend(SHORT_TIMEOUTS);
    let run = Run::judge(&options, &[&format!("http://{address}/mcp")])?;
    run.expect(
        2,
        &["refuses another session, while one is open and after it has ended", "cases that could not be judged: 1"],
    )
}

fn retry_after_is_respected() -> Result<(), String> {
    let began: Arc<std::sync::OnceLock<Instant>> = Arc::default();
    let early = Arc::new(AtomicUsize::new(0));
    let (first, counted) = (Arc::clone(&began), Arc::clone(&early));
    let address = serve_response(move |request| {
        let since = first.get_or_init(Instant::now).elapsed();
        if since < limits::RETRY_AFTER {
            counted.fetch_add(1, Ordering::Relaxed);
            return response("429 Too Many Requests", &[("retry-after", "1")], "");
        }
        minimal_server(request)
    });
    let run =
        Run::judge(&[&LONG_TIMEOUTS[..], &["--revision", "2025-06-18"]].concat(), &[&format!("http://{address}/mcp")])?;
    if run.code == Some(2) {
        return Err(run.failure("the server is not judged"));
    }
    match early.load(Ordering::Relaxed) {
        1 => Ok(()),
        times => {
            Err(run
                .failure(&format!("the server received {times} requests before the time in Retry-After, expected 1")))
        }
    }
}

/// A TLS server with a self-signed certificate.
fn tls_server() -> Result<SocketAddr, String> {
    let describe_error = |error: &dyn std::fmt::Display| error.to_string();
    let certificate =
        rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).map_err(|error| describe_error(&error))?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(certificate.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| describe_error(&error))?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.cert.der().clone()], key)
        .map_err(|error| describe_error(&error))?;
    let config = Arc::new(config);
    Ok(listen(move |mut stream| {
        let mut session = rustls::ServerConnection::new(Arc::clone(&config)).map_err(io::Error::other)?;
        let mut tls = rustls::Stream::new(&mut session, &mut stream);
        let request = read(&mut tls)?;
        tls.write_all(&minimal_server(&request))?;
        tls.conn.send_close_notify();
        tls.flush()?;
        linger(&mut stream)
    }))
}

fn a_certificate_is_verified_without_insecure() -> Result<(), String> {
    let address = format!("https://{}/mcp", tls_server()?);
    let run = Run::judge(&SHORT_TIMEOUTS, &[&address])?;
    run.expect(2, &["NOT JUDGED", "certificate", "--insecure"])?;
    run.expect_within(limits::WITHOUT_TIMEOUT)?;
    let run = Run::judge(&[&LONG_TIMEOUTS[..], &["--insecure"]].concat(), &[&address])?;
    run.expect_within(limits::ALL_CASES)?;
    if run.code == Some(2) { Err(run.failure("the server is not judged")) } else { Ok(()) }
}

fn no_proxy_is_used_for_the_loopback_interface() -> Result<(), String> {
    let (other_origin, count) = counting_server();
    let address = serve_response(minimal_server);
    let proxy = format!("http://{other_origin}");
    let variables = [("http_proxy", proxy.as_str()), ("HTTP_PROXY", &proxy), ("all_proxy", &proxy)];
    let run = Run::judge_with_variables(&LONG_TIMEOUTS, &[&format!("http://{address}/mcp")], &variables)?;
    if run.code == Some(2) {
        return Err(run.failure("the server is not judged"));
    }
    expect_no_connection(&count)
}
