//! Servers over HTTP: the options that say where one is reached, and with what.

use std::fmt;

use clap::Args as ClapArgs;
use mcp_conformance::client::Site;
use mcp_conformance::run::{HttpServer, Launcher, ServerCommand};

use super::args::JudgeArgs;
use super::error::CliError;
use super::replay::quoted;

#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Servers over HTTP")]
pub(super) struct HttpArgs {
    /// Where the server is reached; a command after it is started first [default: standard input and output].
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,

    /// A header that goes with every request; may be repeated. Its value is never shown [default: none].
    #[arg(long, value_name = "NAME: VALUE")]
    pub(super) header: Vec<Header>,

    /// The variable that holds a bearer token, which is never shown [default: no token].
    #[arg(long, value_name = "VAR")]
    pub(super) bearer_env: Option<String>,

    /// Accepts any TLS certificate [default: certificates are verified].
    #[arg(long)]
    pub(super) insecure: bool,
}

/// A header as it was typed. That it is one is asked later, since a complaint about an argument repeats it.
#[derive(Clone)]
pub(super) struct Header(String);

impl From<String> for Header {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Header").field(&self.parts().map(|(name, _)| name)).finish()
    }
}

impl Header {
    /// Its name and its value.
    fn parts(&self) -> Option<(&str, &str)> {
        let (name, value) = self.0.split_once(':')?;
        (!name.trim().is_empty()).then_some((name.trim(), value.trim()))
    }
}

/// Whether a word is the address of a server.
pub(super) fn is_address(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    lower.starts_with("http://") || lower.starts_with("https://")
}

/// Where the server is reached, if it is over HTTP, and the command that starts it.
fn place(args: &JudgeArgs) -> Result<Option<(&str, &[String])>, CliError> {
    match (&args.http.url, args.server.first()) {
        (Some(url), _) => Ok(Some((url, &args.server))),
        (None, Some(word)) if is_address(word) => match args.server.get(1) {
            Some(more) => Err(CliError::BehindAddress(more.clone())),
            None => Ok(Some((word, &[]))),
        },
        (None, _) => Ok(None),
    }
}

/// How the server of the command line is reached.
pub(super) fn launcher(args: &JudgeArgs) -> Result<Launcher, CliError> {
    let command = |words: &[String]| ServerCommand {
        command: words.to_vec(),
        environment: args.env.clone(),
        directory: args.cwd.clone(),
    };
    let Some((address, words)) = place(args)? else {
        let given = &args.http;
        if !given.header.is_empty() || given.bearer_env.is_some() || given.insecure {
            return Err(CliError::HttpWithoutUrl);
        }
        return Ok(Launcher::Command(command(&args.server)));
    };
    let mut headers = Vec::new();
    for header in &args.http.header {
        let (name, value) = header.parts().ok_or(CliError::Header)?;
        headers.push((name.to_owned(), value.to_owned()));
    }
    if let Some(variable) = &args.http.bearer_env {
        let token = std::env::var(variable).ok().filter(|token| !token.trim().is_empty());
        let token = token.ok_or_else(|| CliError::NoToken(variable.clone()))?;
        headers.push(("Authorization".to_owned(), format!("Bearer {}", token.trim())));
    }
    let site = Site::new(address, &headers, args.http.insecure)?;
    Ok(Launcher::Http(HttpServer { site, command: (!words.is_empty()).then(|| command(words)) }))
}

/// The options of a command that shows something again; values of headers are left to the reader.
pub(super) fn words(args: &JudgeArgs) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(url) = &args.http.url {
        words.push(format!("--url {}", quoted(url)));
    }
    for (name, _) in args.http.header.iter().filter_map(Header::parts) {
        words.push(format!("--header '{name}: ...'"));
    }
    if let Some(variable) = &args.http.bearer_env {
        words.push(format!("--bearer-env {}", quoted(variable)));
    }
    if args.http.insecure {
        words.push("--insecure".to_owned());
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::Args;

    fn launched(words: &[&str]) -> Result<Launcher, CliError> {
        launcher(&Args::try_parse_from(["mcp-conformance"].iter().chain(words)).expect("it parses").judge)
    }

    #[test]
    fn an_address_is_told_apart_from_a_command() {
        assert!(
            matches!(launched(&["http://localhost:3000/mcp"]), Ok(Launcher::Http(server)) if server.command.is_none())
        );
        assert!(matches!(launched(&["./http-server", "http://x"]), Ok(Launcher::Command(_))));
        let both = launched(&["--url", "http://127.0.0.1:9/mcp", "--", "./server", "--port", "9"]);
        assert!(matches!(both, Ok(Launcher::Http(server)) if server.command.is_some()));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_to_do() {
        let told = |words: &[&str]| launched(words).expect_err("it is refused").to_string();
        assert!(told(&["http://localhost/mcp", "-v"]).contains("--url"));
        assert!(told(&["--insecure", "./server"]).contains("--url"));
        let told_of_header = told(&["--header", "X-Key hush", "http://localhost/"]);
        assert!(told_of_header.contains("'Name: value'") && !told_of_header.contains("hush"), "{told_of_header}");
        assert!(told(&["--url", "ftp://x/", "--", "./server"]).contains("http"));
        assert!(
            told(&["--bearer-env", "NO_SUCH_VARIABLE_HERE", "http://localhost/"]).contains("NO_SUCH_VARIABLE_HERE")
        );
    }

    #[test]
    fn values_of_headers_stay_out_of_a_replay() {
        let args = ["mcp-conformance", "--header", "X-Key: hush", "--url", "http://localhost/", "s"];
        let args = Args::try_parse_from(args).expect("it parses").judge;
        assert_eq!(words(&args), ["--url http://localhost/", "--header 'X-Key: ...'"]);
    }
}
