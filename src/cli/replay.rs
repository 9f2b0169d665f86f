//! The command line that shows a finding again: everything that bears on it, quoted for a shell.

use std::time::Duration;

use super::args::JudgeArgs;
use super::http::HttpArgs;

/// The part up to the selection: the program and the options that bear on what a case sees.
pub(super) fn prefix(args: &JudgeArgs) -> String {
    let mut words = vec!["mcp-conformance".to_owned()];
    let judging = &args.judging;
    if let Some(cases) = &args.scope.cases {
        words.push(format!("--cases {}", quoted(&cases.to_string_lossy())));
    }
    if judging.call_destructive {
        words.push("--call-destructive".to_owned());
    }
    if judging.safe {
        words.push("--safe".to_owned());
    }
    if let Some(hints) = &judging.hints {
        words.push(format!("--hints {}", quoted(&hints.to_string_lossy())));
    }
    if judging.seed != 0 {
        words.push(format!("--seed {}", judging.seed));
    }
    if judging.timeout != Duration::from_secs(5) {
        words.push(format!("--timeout {}", compact(judging.timeout)));
    }
    if judging.startup_timeout != Duration::from_secs(30) {
        words.push(format!("--startup-timeout {}", compact(judging.startup_timeout)));
    }
    for (name, _) in &args.env {
        // A report is often public and a variable often a secret, so the value is taken from the shell.
        words.push(format!("--env {}=\"${{{}}}\"", quoted(name), name));
    }
    if let Some(directory) = &args.cwd {
        words.push(format!("--cwd {}", quoted(&directory.to_string_lossy())));
    }
    words.join(" ")
}

/// The server's part: ` -- ./my-server --flag`, with what says where it is reached before it.
pub(super) fn suffix(http: &HttpArgs, server: &[String]) -> String {
    let mut words = super::http::words(http);
    if !server.is_empty() {
        words.push("--".to_owned());
        words.extend(server.iter().map(|word| quoted(word)));
    }
    words.iter().fold(String::new(), |text, word| text + " " + word)
}

/// A duration without the spaces that would make it two words.
fn compact(duration: Duration) -> String {
    humantime::format_duration(duration).to_string().replace(' ', "")
}

/// A word as a POSIX shell reads it back.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::Args;

    fn args(words: &[&str]) -> JudgeArgs {
        Args::try_parse_from(["mcp-conformance"].iter().chain(words)).expect("it parses").judge
    }

    #[test]
    fn words_are_quoted_only_where_a_shell_would_read_them_otherwise() {
        assert_eq!(
            suffix(
                &HttpArgs::default(),
                &["node".to_owned(), "a b".to_owned(), "it's".to_owned(), "$x".to_owned(), String::new()]
            ),
            r" -- node 'a b' 'it'\''s' '$x' ''"
        );
        assert_eq!(
            suffix(&HttpArgs::default(), &["./my-server".to_owned(), "--root=/srv".to_owned()]),
            " -- ./my-server --root=/srv"
        );
    }

    #[test]
    fn what_bears_on_a_finding_is_repeated_and_nothing_else() {
        assert_eq!(prefix(&args(&["-v", "--jobs", "4", "--strict", "s"])), "mcp-conformance");
        assert_eq!(
            prefix(&args(&[
                "--safe",
                "--seed",
                "9",
                "--timeout",
                "1500ms",
                "--cwd",
                "a b",
                "--cases",
                "mine",
                "--hints",
                "h",
                "s"
            ])),
            "mcp-conformance --cases mine --safe --hints h --seed 9 --timeout 1s500ms --cwd 'a b'"
        );
    }

    #[test]
    fn the_value_of_a_variable_stays_out_of_the_report() {
        let text = prefix(&args(&["--env", "TOKEN=hush", "s"]));
        assert_eq!(text, "mcp-conformance --env TOKEN=\"${TOKEN}\"");
    }
}
