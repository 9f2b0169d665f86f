//! Generates strings for the formats of JSON Schema, the simplest of each first.
//!
//! A tool may act on its arguments, so no URL leads beyond this machine: hosts are loopback addresses or names in
//! reserved top-level domains, and nothing listens on the ports.

use super::source::Source;

/// A format that can be generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Date,
    DateTime,
    Time,
    Duration,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Uri,
    Reference,
    UriTemplate,
    Uuid,
    JsonPointer,
    RelativeJsonPointer,
    Regex,
}

/// Strings that are invalid in one format or another; an empty one and a word are invalid in most.
pub(super) const INVALID_SAMPLES: [&str; 10] = ["x", "", "%", "(", "{", "~2", "\\", "a b", "-", "not a match \u{0}"];

impl Format {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "date" => Self::Date,
            "date-time" => Self::DateTime,
            "time" => Self::Time,
            "duration" => Self::Duration,
            "email" | "idn-email" => Self::Email,
            "hostname" | "idn-hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "uri" | "iri" => Self::Uri,
            "uri-reference" | "iri-reference" => Self::Reference,
            "uri-template" => Self::UriTemplate,
            "uuid" => Self::Uuid,
            "json-pointer" => Self::JsonPointer,
            "relative-json-pointer" => Self::RelativeJsonPointer,
            "regex" => Self::Regex,
            _ => return None,
        })
    }

    /// A string of this format with at least `min` characters if possible.
    pub(super) fn draw(self, source: &mut impl Source, min: usize) -> String {
        match self {
            Self::Date => date(source),
            Self::DateTime => format!("{}T{}", date(source), time(source)),
            Self::Time => time(source),
            Self::Duration => duration(source),
            Self::Email => {
                let length = 1 + source.index(8);
                let name = word(source, length, b"abz09");
                let tag = pick(source, &["", "+tag", ".b", "_", "'"]);
                let mut domain = hostname(source, 0);
                if !domain.contains('.') {
                    domain.push_str(".localhost");
                }
                let pad = min.saturating_sub(name.len() + tag.len() + domain.len() + 1);
                format!("{}{name}{tag}@{domain}", "a".repeat(pad.min(40)))
            }
            Self::Hostname => hostname(source, min),
            Self::Ipv4 => match source.below(8) {
                0 => "127.0.0.1".to_owned(),
                1 => "0.0.0.0".to_owned(),
                2 => "255.255.255.255".to_owned(),
                _ => {
                    let last = [1, 0, 255, 254][source.index(4)];
                    format!("127.{}.{}.{last}", source.below(256), source.below(256))
                }
            },
            Self::Ipv6 => pick(
                source,
                &[
                    "::1",
                    "::",
                    "0:0:0:0:0:0:0:1",
                    "0000:0000:0000:0000:0000:0000:0000:0001",
                    "::ffff:127.0.0.1",
                    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                ],
            )
            .to_owned(),
            Self::Uri => uri(source, min),
            Self::Reference => match source.below(6) {
                0 => pad("a", min),
                1 => pad("#", min),
                2 => pad("../b?c=d#", min),
                3 => pad("//localhost:9/", min),
                _ => uri(source, min),
            },
            Self::UriTemplate => {
                let base = ["a", "/{id}", "http://localhost:9/{a}{?b,c*}", "{+path}", "/"];
                pad(base[source.index(base.len())], min)
            }
            Self::Uuid => uuid(source),
            Self::JsonPointer => {
                let base = ["/a", "", "/a/0", "/~0~1", "/\u{e9}", "/__proto__"];
                let base = base[source.index(base.len())];
                if base.is_empty() && min > 0 { pad("/", min) } else { pad_some(base, min) }
            }
            Self::RelativeJsonPointer => {
                let base = ["0", "1/a", "0#", "2/0/b"];
                let base = base[source.index(base.len())];
                if base.len() < min { pad("0/", min) } else { base.to_owned() }
            }
            Self::Regex => {
                let base = ["a", "^a+$", "[a-z]*", "\\d{2}", "(a|b)"];
                let base = base[source.index(base.len())];
                if base.len() < min { pad("a", min) } else { base.to_owned() }
            }
        }
    }
}

fn pick<'a>(source: &mut impl Source, choices: &[&'a str]) -> &'a str {
    choices[source.index(choices.len())]
}

/// Extends `text` at its end to `min` characters.
fn pad(text: &str, min: usize) -> String {
    let missing = min.saturating_sub(text.chars().count());
    format!("{text}{}", "a".repeat(missing))
}

fn pad_some(text: &str, min: usize) -> String {
    if text.is_empty() { String::new() } else { pad(text, min) }
}

fn word(source: &mut impl Source, length: usize, letters: &[u8]) -> String {
    (0..length).map(|_| char::from(letters[source.index(letters.len())])).collect()
}

fn date(source: &mut impl Source) -> String {
    match source.below(4) {
        0 => format!("2024-{:02}-{:02}", 1 + source.below(12), 1 + source.below(28)),
        1 => pick(
            source,
            &["1970-01-01", "2024-02-29", "1999-12-31", "2038-01-19", "9999-12-31", "0001-01-01", "2000-02-29"],
        )
        .to_owned(),
        _ => format!("{:04}-{:02}-{:02}", 1900 + source.below(200), 1 + source.below(12), 1 + source.below(28)),
    }
}

fn time(source: &mut impl Source) -> String {
    let fraction = pick(source, &["", ".5", ".123456789", ".000"]);
    let zone = pick(source, &["Z", "+00:00", "-08:00", "+14:00", "+05:30"]);
    format!("{:02}:{:02}:{:02}{fraction}{zone}", source.below(24), source.below(60), source.below(60))
}

fn duration(source: &mut impl Source) -> String {
    let count = source.below(100);
    match source.below(6) {
        0 => format!("P{}D", count + 1),
        1 => format!("PT{count}S"),
        2 => format!("P{count}W"),
        3 => format!("P{count}Y2M3DT4H5M6S"),
        4 => format!("PT{count}H"),
        _ => "P0D".to_owned(),
    }
}

fn hostname(source: &mut impl Source, min: usize) -> String {
    let name = match source.below(6) {
        0 => "localhost".to_owned(),
        1 => "a.localhost".to_owned(),
        2 => "xn--nxasmq6b.localhost".to_owned(),
        3 => "a.invalid".to_owned(),
        _ => {
            let length = 1 + source.index(12);
            format!("{}.localhost", word(source, length, b"ab0z9"))
        }
    };
    let mut long = String::new();
    while long.len() + name.len() < min {
        let label = (min - long.len() - name.len() - 1).clamp(1, 60);
        long.push_str(&"a".repeat(label));
        long.push('.');
    }
    long + &name
}

fn uri(source: &mut impl Source, min: usize) -> String {
    // Nothing listens on the port of the discard protocol.
    let base = match source.below(9) {
        0 => "http://localhost:9/".to_owned(),
        1 => "https://127.0.0.1:9/a%20b?q=1&r=%C3%A9#frag".to_owned(),
        2 => "file:///tmp/a".to_owned(),
        3 => "urn:example:a".to_owned(),
        4 => "http://[::1]:9/".to_owned(),
        5 => "mailto:a@a.localhost".to_owned(),
        6 => "data:text/plain,a".to_owned(),
        _ => {
            let length = source.index(24);
            format!("http://localhost:9/{}", word(source, length, b"az09-_~"))
        }
    };
    pad(&base, min)
}

fn uuid(source: &mut impl Source) -> String {
    match source.below(4) {
        0 => format!("00000000-0000-4000-8000-{:012x}", source.below(1 << 48)),
        1 => "ffffffff-ffff-ffff-ffff-ffffffffffff".to_owned(),
        _ => format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            source.below(1 << 32),
            source.below(1 << 16),
            source.below(1 << 12),
            source.below(1 << 12),
            source.below(1 << 48)
        ),
    }
}
