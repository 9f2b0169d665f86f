//! HTTP headers and URLs.
//!
//! Properties: a value that is mirrored into a header is a valid header value and decodes to itself; every header of
//! any message has a valid value and a token as its name; the media type of any `content-type` has neither parameters
//! nor blanks; an accepted URL is an HTTP URL with a host.

#![no_main]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libfuzzer_sys::fuzz_target;
use mcp_conformance::internals::client::{HttpEndpoint, headers};
use mcp_conformance::internals::wire::Frame;

fn is_valid_value(value: &str) -> bool {
    value.bytes().all(|byte| matches!(byte, 0x20..=0x7e | b'\t')) && value.trim_matches([' ', '\t']) == value
}

fn decoded(value: &str) -> String {
    let wrapped = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let Some(wrapped) = wrapped else { return value.to_owned() };
    String::from_utf8(STANDARD.decode(wrapped).expect("it is Base64")).expect("it is UTF-8")
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&byte))
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);

    let encoded = headers::encoded(&text);
    assert!(is_valid_value(&encoded), "{encoded:?}");
    assert_eq!(decoded(&encoded).as_bytes(), text.as_bytes());

    let kind = headers::media_type(&text);
    assert!(!kind.contains(';') && kind.trim() == kind && kind == kind.to_ascii_lowercase(), "{kind:?}");

    // The first line is the result of tools/list, the second a message.
    let mut lines = bytes.splitn(2, |byte| *byte == b'\n');
    let mut json = || Frame::parse(lines.next().unwrap_or_default()).value.unwrap_or_default();
    let (listed, message) = (json(), json());
    for (name, value) in headers::stateless(&message, &text, &headers::mirrored(&listed)) {
        assert!(is_token(&name) && is_valid_value(&value), "{name:?}: {value:?}");
    }

    let mut parts = text.splitn(3, ' ');
    let mut part = || parts.next().unwrap_or_default().to_owned();
    let address = part();
    let header = (part(), part());
    if let Ok(site) = HttpEndpoint::new(&address, std::slice::from_ref(&header), false) {
        let host = site.address().strip_prefix("http://").or_else(|| site.address().strip_prefix("https://"));
        assert!(host.is_some_and(|host| !host.is_empty() && !host.starts_with('/')), "{address}");
    }
});
