//! What the judge must bear over HTTP: no server there, pages, proxies, loops, floods, drips, and no HTTP at all.
//!
//! Every trial drives the real program against a small server on a raw socket, and looks at its exit code,
//! its words, the time and the memory that it took.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::hostile::{IMPATIENT, LATER, PATIENT, Run, SOON};
use crate::raw::{answer, linger, listen, minimal_server, read, serve_response, unused_address};
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for bad in bad_servers() {
        trials.push(trial(format!("hostile/http/{}", bad.name), move || bad.is_borne()));
    }
    trials.push(trial("hostile/http/redirect-elsewhere", a_redirect_elsewhere_is_not_followed));
    trials.push(trial("hostile/http/endpoint-elsewhere", an_endpoint_elsewhere_is_not_used));
    trials.push(trial("hostile/http/retry-after", what_asks_to_wait_is_waited_for));
    trials.push(trial("hostile/http/certificate", a_certificate_is_verified_unless_told_otherwise));
    trials.push(trial("hostile/http/proxy", no_proxy_is_used_for_this_machine));
    trials
}

/// A server that the judge must bear, and what it must say of it.
struct Bad {
    name: &'static str,
    scheme: &'static str,
    start: fn() -> SocketAddr,
    says: &'static [&'static str],
    limit: Duration,
}

impl Bad {
    fn is_borne(&self) -> Result<(), String> {
        let address = (self.start)();
        let run = Run::of(&IMPATIENT, &[&format!("{}://{address}/mcp", self.scheme)])?;
        run.expect(2, &["NOT JUDGED"])?;
        run.expect(2, self.says)?;
        run.within(self.limit)
    }
}

#[expect(clippy::too_many_lines, reason = "a table, a row for each server")]
fn bad_servers() -> Vec<Bad> {
    let bad = |name, start, says, limit| Bad { name, scheme: "http", start, says, limit };
    vec![
        bad("refused", unused_address, &["no server listens at", "is it running"], SOON),
        bad(
            "not-found",
            || serve_response(|_| answer("404 Not Found", &[], "")),
            &["HTTP status 404", "the path"],
            SOON,
        ),
        bad(
            "not-found-page",
            || serve_response(|_| answer("404 Not Found", &[("content-type", "text/html")], PAGE)),
            &["HTTP status 404 (text/html)", "the path"],
            SOON,
        ),
        bad(
            "page",
            || serve_response(|_| answer("200 OK", &[("content-type", "text/html; charset=utf-8")], PAGE)),
            &["HTTP status 200 (text/html", "a web page"],
            SOON,
        ),
        bad("broken-server", || serve_response(|_| answer("500 Oops", &[], "")), &["HTTP status 500"], SOON),
        bad(
            "tls-in-clear-text",
            || raw(b"\x15\x03\x01\x00\x02\x02\x46"),
            &["does not answer in HTTP/1.1", "https://"],
            SOON,
        ),
        bad("http2-only", || raw(HTTP2), &["does not answer in HTTP/1.1", "HTTP/2"], SOON),
        Bad { scheme: "https", ..bad("no-tls", || listen(clear_text), &["does not speak TLS", "http://"], SOON) },
        Bad { scheme: "https", ..bad("no-tls-and-silent", || listen(silent), &["https://"], LATER) },
        bad("another-protocol", || raw(b"SSH-2.0-OpenSSH_9.9\r\n"), &["does not answer in HTTP/1.1"], SOON),
        bad("hangs-up", || listen(|mut stream| read(&mut stream).map(drop)), &["closed the connection"], SOON),
        bad("silent", || listen(silent), &["did not answer"], LATER),
        bad(
            "redirect-loop",
            || serve_response(|asked| answer("308 Permanent Redirect", &[("location", &asked.target)], "")),
            &["HTTP status 308", "redirect", "/mcp"],
            SOON,
        ),
        bad("huge-body", || listen(|stream| endless(stream, "content-length: 1073741824", b"[0,")), BEYOND, LATER),
        bad("huge-page", || listen(|stream| endless(stream, "content-type: text/html", b"<br>")), BEYOND, LATER),
        bad("endless-body", || listen(|stream| endless(stream, "connection: close", b"[0,")), BEYOND, LATER),
        bad(
            "invalid-chunks",
            || raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}"),
            &["chunk"],
            SOON,
        ),
        bad(
            "cut-short",
            || raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{\"jsonrpc\":"),
            &["closed the connection"],
            SOON,
        ),
        bad("header-without-end", || listen(|stream| flood(stream, b"HTTP/1.1 200 OK\r\nx: ", b"bomb")), HEADERS, SOON),
        bad(
            "headers-without-end",
            || listen(|stream| flood(stream, b"HTTP/1.1 200 OK\r\n", b"x: y\r\n")),
            HEADERS,
            SOON,
        ),
        bad(
            "lengths-that-differ",
            || raw(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 9\r\n\r\nabcd"),
            &["does not answer in HTTP/1.1"],
            SOON,
        ),
        bad(
            "comments-without-end",
            || listen(|stream| endless(stream, STREAM, b": ping\n\n")),
            &["no JSON-RPC response", "--startup-timeout"],
            LATER,
        ),
        bad(
            "line-without-end",
            || listen(|stream| endless(stream, STREAM, b"data: data: ")),
            &["the server wrote"],
            LATER,
        ),
        bad(
            "messages-without-end",
            || {
                listen(|stream| {
                    endless(stream, STREAM, b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n")
                })
            },
            &["exceed"],
            LATER,
        ),
        bad("dripping-head", || listen(|stream| drip(stream, b"")), &["did not answer", "--startup-timeout"], LATER),
        bad(
            "dripping-body",
            || listen(|stream| drip(stream, JSON)),
            &["no JSON-RPC response", "--startup-timeout"],
            LATER,
        ),
        bad(
            "dripping-stream",
            || listen(|stream| drip(stream, EVENTS)),
            &["no JSON-RPC response", "--startup-timeout"],
            LATER,
        ),
        bad(
            "always-too-much",
            || serve_response(|_| answer("429 Too Many Requests", &[("retry-after", "1")], "")),
            &["HTTP status 429", "Retry-After: 1"],
            LATER,
        ),
        bad(
            "too-much-for-today",
            || serve_response(|_| answer("429 Too Many Requests", &[("retry-after", "86400")], "")),
            &["HTTP status 429", "Retry-After: 86400"],
            SOON,
        ),
        bad(
            "locked",
            || serve_response(|_| answer("401 Unauthorized", &[], "")),
            &["HTTP status 401", "--bearer-env"],
            SOON,
        ),
        bad("accepted-and-silent", || serve_response(|_| answer("202 Accepted", &[], "")), &["HTTP status 202"], SOON),
        bad(
            "another-encoding",
            || {
                let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
                serve_response(move |_| answer("200 OK", &headers, "\u{1f}\u{8b}\u{8}"))
            },
            &["gzip"],
            SOON,
        ),
    ]
}

const PAGE: &str = "<!doctype html><title>Welcome</title><h1>It works</h1>";

/// The preface of HTTP/2: empty settings, then the end with `HTTP_1_1_REQUIRED`'s neighbour, a protocol error.
const HTTP2: &[u8] =
    b"\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01";

const STREAM: &str = "content-type: text/event-stream\r\nconnection: close";
const JSON: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n";
const EVENTS: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const BEYOND: &[&str] = &["exceeds the limit of 8 MiB"];
const HEADERS: &[&str] = &["the response headers are longer than the client reads"];

/// Reads a request and writes bytes as they stand.
fn raw(bytes: &'static [u8]) -> SocketAddr {
    listen(move |mut stream| {
        read(&mut stream)?;
        stream.write_all(bytes)?;
        linger(&mut stream)
    })
}

/// Answers whatever comes as a server does that expected HTTP.
fn clear_text(mut stream: TcpStream) -> io::Result<()> {
    let _hello = io::Read::read(&mut stream, &mut [0; 8 << 10])?;
    stream.write_all(&answer("400 Bad Request", &[], ""))?;
    linger(&mut stream)
}

fn silent(mut stream: TcpStream) -> io::Result<()> {
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

/// Reads a request, writes what comes first, and repeats the rest as long as anybody reads.
fn flood(mut stream: TcpStream, first: &[u8], again: &[u8]) -> io::Result<()> {
    read(&mut stream)?;
    stream.write_all(first)?;
    let block = again.repeat((64 << 10) / again.len());
    loop {
        stream.write_all(&block)?;
    }
}

/// As [`flood`], in the body of an answer.
fn endless(stream: TcpStream, headers: &str, again: &[u8]) -> io::Result<()> {
    let kind = if headers.contains("content-type") { "" } else { "content-type: application/json\r\n" };
    flood(stream, format!("HTTP/1.1 200 OK\r\n{kind}{headers}\r\n\r\n").as_bytes(), again)
}

/// Writes what comes first at once, and then a byte a second.
fn drip(mut stream: TcpStream, first: &[u8]) -> io::Result<()> {
    read(&mut stream)?;
    stream.write_all(first)?;
    for byte in JSON.iter().cycle() {
        stream.write_all(&[*byte])?;
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}

/// A server that counts who comes.
fn counting() -> (SocketAddr, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let address = listen(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    (address, count)
}

fn is_left_alone(count: &AtomicUsize) -> Result<(), String> {
    match count.load(Ordering::Relaxed) {
        0 => Ok(()),
        more => Err(format!("the judge went to another origin {more} times")),
    }
}

fn a_redirect_elsewhere_is_not_followed() -> Result<(), String> {
    let (elsewhere, count) = counting();
    let location = format!("http://{elsewhere}/mcp");
    let shown = location.clone();
    let address = serve_response(move |_| answer("307 Temporary Redirect", &[("location", &location)], ""));
    let run = Run::of(&IMPATIENT, &[&format!("http://{address}/mcp")])?;
    run.expect(2, &["NOT JUDGED", "HTTP status 307", "redirect", &shown])?;
    is_left_alone(&count)
}

fn an_endpoint_elsewhere_is_not_used() -> Result<(), String> {
    let (elsewhere, count) = counting();
    let address = listen(move |mut stream| {
        let asked = read(&mut stream)?;
        if asked.method != "GET" {
            stream.write_all(&answer("405 Method Not Allowed", &[], ""))?;
            return linger(&mut stream);
        }
        let event = format!("event: endpoint\ndata: http://{elsewhere}/messages\n\n");
        stream.write_all(&[EVENTS, event.as_bytes()].concat())?;
        silent(stream)
    });
    let run = Run::of(&IMPATIENT, &[&format!("http://{address}/sse")])?;
    run.expect(2, &["NOT JUDGED", "another origin", &elsewhere.to_string()])?;
    is_left_alone(&count)
}

/// A server that has too much to do at first is asked again once the time that it names has passed.
fn what_asks_to_wait_is_waited_for() -> Result<(), String> {
    let began: Arc<std::sync::OnceLock<Instant>> = Arc::default();
    let early = Arc::new(AtomicUsize::new(0));
    let (first, hasty) = (Arc::clone(&began), Arc::clone(&early));
    let address = serve_response(move |asked| {
        let since = first.get_or_init(Instant::now).elapsed();
        if since < Duration::from_millis(900) {
            hasty.fetch_add(1, Ordering::Relaxed);
            return answer("429 Too Many Requests", &[("retry-after", "1")], "");
        }
        minimal_server(asked)
    });
    let run = Run::of(&[&PATIENT[..], &["--revision", "2025-06-18"]].concat(), &[&format!("http://{address}/mcp")])?;
    if run.code == Some(2) {
        return Err(run.complain("the server is not judged"));
    }
    match early.load(Ordering::Relaxed) {
        1 => Ok(()),
        times => Err(run.complain(&format!("it was asked {times} times before it was ready"))),
    }
}

/// A server behind TLS with a certificate that nobody vouches for.
fn behind_tls() -> Result<SocketAddr, String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).map_err(|error| told(&error))?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| told(&error))?
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .map_err(|error| told(&error))?;
    let config = Arc::new(config);
    Ok(listen(move |mut stream| {
        let mut session = rustls::ServerConnection::new(Arc::clone(&config)).map_err(io::Error::other)?;
        let mut tls = rustls::Stream::new(&mut session, &mut stream);
        let asked = read(&mut tls)?;
        tls.write_all(&minimal_server(&asked))?;
        tls.conn.send_close_notify();
        tls.flush()?;
        linger(&mut stream)
    }))
}

fn a_certificate_is_verified_unless_told_otherwise() -> Result<(), String> {
    let address = format!("https://{}/mcp", behind_tls()?);
    let run = Run::of(&IMPATIENT, &[&address])?;
    run.expect(2, &["NOT JUDGED", "certificate", "--insecure"])?;
    run.within(SOON)?;
    let run = Run::of(&[&PATIENT[..], &["--insecure"]].concat(), &[&address])?;
    run.within(LATER)?;
    if run.code == Some(2) { Err(run.complain("the server is not judged")) } else { Ok(()) }
}

fn no_proxy_is_used_for_this_machine() -> Result<(), String> {
    let (elsewhere, count) = counting();
    let address = serve_response(minimal_server);
    let proxy = format!("http://{elsewhere}");
    let variables = [("http_proxy", proxy.as_str()), ("HTTP_PROXY", &proxy), ("all_proxy", &proxy)];
    let run = Run::with_variables(&PATIENT, &[&format!("http://{address}/mcp")], &variables)?;
    if run.code == Some(2) {
        return Err(run.complain("the server is not judged"));
    }
    is_left_alone(&count)
}
