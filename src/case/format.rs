//! The additional string formats that the JSON Schemas of cases may use.
//!
//! Each asserts no more than the specification does: where two readings are fair, both are valid.

use jsonschema::ValidationOptions;

/// A format: its name, and whether a string has it.
type Format = (&'static str, fn(&str) -> bool);

/// The additional formats, by name.
pub(crate) const FORMATS: [Format; 6] = [
    ("base64", is_base64),
    ("absolute-uri", is_absolute_uri),
    ("iso-8601", is_iso_8601),
    ("mime-type", is_mime_type),
    ("clean-text", is_clean_text),
    ("no-control", has_no_control),
];

/// Adds the additional formats to a JSON Schema compiler.
#[must_use]
pub(crate) fn with_formats(options: ValidationOptions<'_>) -> ValidationOptions<'_> {
    FORMATS.into_iter().fold(options, |options, (name, fits)| options.with_format(name, fits))
}

/// The standard alphabet of RFC 4648, padded, without line breaks.
fn is_base64(text: &str) -> bool {
    let bytes = text.as_bytes();
    let padding = bytes.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
    let (body, _) = bytes.split_at(bytes.len() - padding);
    bytes.len().is_multiple_of(4) && body.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// A URI of RFC 3986 with its scheme: no relative reference, no character that has to be escaped.
fn is_absolute_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let scheme_fits = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    let escapes_fit = rest.split('%').skip(1).all(|after| {
        let bytes = after.as_bytes();
        bytes.len() >= 2 && bytes[..2].iter().all(u8::is_ascii_hexdigit)
    });
    let characters_fit = rest.bytes().all(|byte| {
        byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
    });
    scheme_fits && !rest.is_empty() && escapes_fit && characters_fit
}

/// A calendar date of ISO 8601, alone or with a time, with or without an offset from UTC, in the
/// extended or the basic form.
fn is_iso_8601(text: &str) -> bool {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let extended = date.contains('-');
    is_calendar_date(date, extended) && time.is_none_or(|time| is_time_with_zone(time, extended))
}

fn is_calendar_date(date: &str, extended: bool) -> bool {
    let Some(digits) = digits_of(date, if extended { "dddd-dd-dd" } else { "dddddddd" }) else { return false };
    let (year, month, day) = (digits / 10_000, digits / 100 % 100, digits % 100);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_time_with_zone(time: &str, extended: bool) -> bool {
    let Some(zone) = time.find(['Z', '+', '-']) else { return is_time(time, extended) };
    let (time, zone) = time.split_at(zone);
    let offset = zone.trim_start_matches(['+', '-']);
    let offset_fits = ["dd", "dd:dd", "dddd"].into_iter().any(|form| {
        zone.len() == offset.len() + 1
            && digits_of(offset, form).is_some_and(|digits| match form {
                "dd" => digits < 24,
                _ => digits / 100 < 24 && digits % 100 < 60,
            })
    });
    is_time(time, extended) && (zone == "Z" || offset_fits)
}

fn is_time(time: &str, extended: bool) -> bool {
    let (whole, fraction) = match time.split_once(['.', ',']) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (time, None),
    };
    let forms = if extended { ["dd:dd:dd", "dd:dd"] } else { ["dddddd", "dddd"] };
    let Some((form, digits)) = forms.into_iter().find_map(|form| Some((form, digits_of(whole, form)?))) else {
        return false;
    };
    let seconds = if form == forms[0] { digits } else { digits * 100 };
    let (hour, minute, second) = (seconds / 10_000, seconds / 100 % 100, seconds % 100);
    let fraction_fits = fraction.is_none_or(|f| !f.is_empty() && f.bytes().all(|byte| byte.is_ascii_digit()));
    // Midnight may be written as the end of a day, and a minute may have a leap second.
    (hour < 24 || seconds == 240_000) && minute < 60 && second <= 60 && fraction_fits
}

/// The digits of a string as one number, if the string is of a form in which `d` means a digit.
fn digits_of(text: &str, form: &str) -> Option<u32> {
    let fits = text.len() == form.len()
        && text
            .bytes()
            .zip(form.bytes())
            .all(|(byte, form)| if form == b'd' { byte.is_ascii_digit() } else { byte == form });
    fits.then(|| text.bytes().filter(u8::is_ascii_digit).fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
}

/// A media type: type, subtype and optional parameters.
fn is_mime_type(text: &str) -> bool {
    let mut parts = split_parameters(text).into_iter();
    let essence = parts.next().unwrap_or_default().trim_end_matches([' ', '\t']);
    let essence_fits = essence.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    essence_fits
        && parts.all(|parameter| {
            let Some((name, value)) = parameter.trim_matches([' ', '\t']).split_once('=') else { return false };
            let quoted = value.len() >= 2 && value.starts_with('"') && value.ends_with('"') && has_no_control(value);
            is_token(name) && (is_token(value) || quoted)
        })
}

/// Splits at each semicolon outside of quoted strings.
fn split_parameters(text: &str) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(|c: char| {
        let begins_escape = quoted && !escaped && c == '\\';
        let after_backslash = std::mem::replace(&mut escaped, begins_escape);
        if c == '"' && !after_backslash {
            quoted = !quoted;
        }
        c == ';' && !quoted
    })
    .collect()
}

fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

/// Text in which everything is visible: no control characters, no changes of the writing direction, nothing invisible.
///
/// Joiners and zero-width spaces are part of many scripts and of emoji, so one of them between two characters outside of
/// ASCII is valid; so are the tags in the flag of a region.
fn is_clean_text(text: &str) -> bool {
    let mut flag = false;
    let mut before = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let fits = match character {
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0001}' => {
                false
            }
            '\u{200b}'..='\u{200d}' => {
                [before, characters.peek().copied()].into_iter().all(|c| c.is_some_and(is_visible))
            }
            '\u{e0020}'..='\u{e007f}' => flag,
            _ => !is_control(character),
        };
        if !fits {
            return false;
        }
        flag = character == '\u{1f3f4}' || flag && ('\u{e0020}'..'\u{e007f}').contains(&character);
        before = Some(character);
    }
    true
}

/// Whether a character outside of ASCII is visible, or modifies one that is.
fn is_visible(character: char) -> bool {
    !character.is_ascii()
        && !matches!(character, '\u{80}'..='\u{a0}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Text without control characters, except tabs and line breaks.
fn has_no_control(text: &str) -> bool {
    !text.chars().any(is_control)
}

fn is_control(character: char) -> bool {
    character.is_control() && !matches!(character, '\t' | '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_format(fits: fn(&str) -> bool, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(fits(text), "{text:?} is rejected");
        }
        for text in bad {
            assert!(!fits(text), "{text:?} is accepted");
        }
    }

    #[test]
    fn base64_has_the_standard_alphabet_padding_and_no_line_breaks() {
        assert_format(
            is_base64,
            &["", "AAAA", "AA==", "AAA=", "ab+/"],
            &[
                "A",
                "AA",
                "AA=",
                "A===",
                "====",
                "=AAA",
                "AA=A",
                "ab-_",
                "AA==AAAA",
                "AAAA\n",
                "AAAA\nAAAA",
                "data:,AAAA",
            ],
        );
    }

    #[test]
    fn an_absolute_uri_has_a_scheme_and_no_unescaped_character() {
        assert_format(
            is_absolute_uri,
            &[
                "https://example.com/a?b#c",
                "file:///a%20b",
                "urn:x:y",
                "demo://resource/static/1",
                "a+b-c.d:e",
                "http://[::1]/",
            ],
            &[
                "",
                "x",
                "/a",
                "a.txt",
                "./a:b",
                "1a:b",
                ":b",
                "a:",
                "file:///a b",
                "a:b%2",
                "a:%zz",
                "a:{b}",
                "a:\u{e9}",
                "a:\n",
            ],
        );
    }

    #[test]
    fn an_iso_8601_time_is_a_date_with_or_without_time_and_offset() {
        assert_format(
            is_iso_8601,
            &[
                "2025-01-12",
                "2024-02-29",
                "2025-01-12T15:00",
                "2025-01-12T15:00:58",
                "2025-01-12T15:00:58Z",
                "2025-01-12T15:00:58.123456+02:00",
                "2025-01-12T15:00:58,5-0330",
                "2025-01-12T24:00:00Z",
                "2016-12-31T23:59:60Z",
                "2025-01-12T15:00+02",
                "20250112",
                "20250112T150058Z",
            ],
            &[
                "",
                "yesterday",
                "2025",
                "2025-13-01",
                "2025-02-29",
                "2025-01-00",
                "2025-1-2",
                "12/01/2025",
                "2025-01-12 15:00:58",
                "2025-01-12T",
                "2025-01-12T25:00",
                "2025-01-12T24:01",
                "2025-01-12T15:60",
                "2025-01-12T15:00:58.",
                "2025-01-12T15:00:58ZZ",
                "2025-01-12T15:00:58+24:00",
                "2025-01-12T15:00:58+-02",
                "1736694058",
                "2025-01-12T15:00:5\u{663}",
            ],
        );
    }

    #[test]
    fn a_mime_type_has_a_type_and_a_subtype() {
        assert_format(
            is_mime_type,
            &[
                "image/png",
                "application/vnd.api+json",
                "text/html; charset=utf-8",
                "text/x;a=\"b;c\" ;d=e",
                "TEXT/Plain",
            ],
            &[
                "",
                "png",
                "image/",
                "/png",
                "image/png/x",
                "image /png",
                "text/html; charset",
                "text/html;",
                "text/html; a=b c",
            ],
        );
    }

    #[test]
    fn clean_text_has_nothing_invisible() {
        assert_format(
            is_clean_text,
            &[
                "",
                "two\nlines\tand\r\nmore",
                "caf\u{e9}",
                "\u{1f9d1}\u{200d}\u{1f4bb} writes",
                "\u{2764}\u{fe0f}\u{200d}\u{1f525}",
                "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
                "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} England",
                "\u{5e9}\u{200f}!",
            ],
            &[
                "\u{1b}[31mred",
                "\u{0}",
                "\u{7f}",
                "\u{9b}31m",
                "a\u{202e}b",
                "a\u{2066}b\u{2069}",
                "a\u{200b}b",
                "\u{e9}\u{200b}\u{200c}\u{e9}",
                "\u{feff}a",
                "a\u{2060}b",
                "hello\u{e0068}\u{e0069}",
                "\u{1f3f4}\u{e0067}\u{e007f}\u{e0067}",
                "\u{e9}\u{200d}",
            ],
        );
    }

    #[test]
    fn no_control_rejects_control_characters_only() {
        assert_format(
            has_no_control,
            &["", "a\u{202e}b\u{200b}", "a\tb\r\n"],
            &["\u{8}", "\u{1b}", "\u{85}", "\u{7f}"],
        );
    }
}
