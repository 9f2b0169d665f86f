//! Quoting words of a command line for a POSIX shell.

use std::borrow::Cow;
use std::ffi::OsStr;

/// Words quoted for a POSIX shell. What is not Unicode cannot be shown and is replaced.
pub(crate) fn quote_shell_words<Word: AsRef<OsStr>>(words: impl IntoIterator<Item = Word>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| quoted(&word.as_ref().to_string_lossy())).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let quote = |text: &str| {
        let quoted = shlex::Quoter::new().allow_nul(true).quote(text).map(Cow::into_owned);
        quoted.expect("only a NUL could not be quoted")
    };
    match word.split_once('=') {
        // Only before a command does a shell read an assignment.
        Some((option, value)) if option.starts_with('-') && !value.is_empty() => {
            format!("{}={}", quote(option), quote(value))
        }
        _ => quote(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_would_change_them() {
        assert_eq!(quote_shell_words(["node", "a b", "it's", "$x", ""]), r#"node 'a b' "it's" '$x' ''"#);
        assert_eq!(quote_shell_words(["./my-server", "--root=/srv"]), "./my-server --root=/srv");
        assert_eq!(quote_shell_words(["A=b", "--root=a b", "a\0b"]), "'A=b' --root='a b' 'a\0b'");
    }
}
