//! Percent-encoding (RFC 3986, section 2.1), by what may stay as it is.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All but the unreserved characters (section 2.3).
const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// All but unreserved characters and slashes.
const PATH: AsciiSet = UNRESERVED.remove(b'/');

/// All but what separates the parts of an address.
const ADDRESS: AsciiSet = PATH.remove(b':').remove(b'#').remove(b'?').remove(b'=').remove(b'&');

/// A value as a part of an address.
pub(crate) fn encode(value: &str) -> String {
    utf8_percent_encode(value, &UNRESERVED).to_string()
}

/// A path, whose slashes stay.
pub(crate) fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, &PATH).to_string()
}

/// An address, in which only what has no place in any is encoded.
pub(crate) fn encode_address(address: &str) -> String {
    utf8_percent_encode(address, &ADDRESS).to_string()
}

/// A text with its escapes decoded; unchanged if the result is not UTF-8.
pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_kept_is_not_encoded() {
        let text = "a-._~/:#?=& é%";
        assert_eq!(encode(text), "a-._~%2F%3A%23%3F%3D%26%20%C3%A9%25");
        assert_eq!(encode_path(text), "a-._~/%3A%23%3F%3D%26%20%C3%A9%25");
        assert_eq!(encode_address(text), "a-._~/:#?=&%20%C3%A9%25");
        assert_eq!(decode(&encode(text)), text);
    }

    #[test]
    fn what_is_no_escape_is_left_as_it_is() {
        for (text, decoded) in [("%", "%"), ("%2", "%2"), ("%zz", "%zz"), ("%41%", "A%"), ("%ff", "%ff")] {
            assert_eq!(decode(text), decoded);
        }
    }
}
