//! The tokens of a JSON Pointer (RFC 6901): escaping the names of members, and reading them back.

/// A member's name as a token: `~` becomes `~0`, and `/` becomes `~1`.
pub(crate) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A token as a member's name.
pub(crate) fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_read_back() {
        for (name, token) in [("a/b", "a~1b"), ("~1", "~01"), ("~/", "~0~1"), ("", ""), ("é", "é")] {
            assert_eq!(escape(name), token);
            assert_eq!(unescape(token), name);
        }
    }
}
