//! Servers over HTTP: the options that say where one is reached, and with what.

use std::fmt;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use mcp_conformance::client::Site;
use mcp_conformance::run::{HttpServer, Launcher, ServerCommand};

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

/// The server of a command line: its words, and how it is started where it is.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) http: &'a HttpArgs,
    pub(super) server: &'a [String],
    pub(super) env: &'a [(String, String)],
    pub(super) cwd: Option<&'a PathBuf>,
}

impl<'a> Named<'a> {
    /// Where it is reached, if it is over HTTP, and the command that starts it.
    fn place(self) -> Result<Option<(&'a str, &'a [String])>, CliError> {
        match (&self.http.url, self.server.first()) {
            (Some(url), _) => Ok(Some((url, self.server))),
            (None, Some(word)) if is_address(word) => match self.server.get(1) {
                Some(more) => Err(CliError::BehindAddress(more.clone())),
                None => Ok(Some((word, &[]))),
            },
            (None, _) => Ok(None),
        }
    }

    /// How it is reached.
    pub(super) fn launcher(self) -> Result<Launcher, CliError> {
        if let Some(directory) = self.cwd.filter(|directory| !directory.is_dir()) {
            return Err(CliError::Directory(directory.clone()));
        }
        let command = |words: &[String]| ServerCommand {
            command: words.to_vec(),
            environment: self.env.to_vec(),
            directory: self.cwd.cloned(),
        };
        let given = self.http;
        let Some((address, words)) = self.place()? else {
            if !given.header.is_empty() || given.bearer_env.is_some() || given.insecure {
                return Err(CliError::HttpWithoutUrl);
            }
            return Ok(Launcher::Command(command(self.server)));
        };
        let mut headers = Vec::new();
        for header in &given.header {
            let (name, value) = header.parts().ok_or(CliError::Header)?;
            headers.push((name.to_owned(), value.to_owned()));
        }
        if let Some(variable) = &given.bearer_env {
            let token = std::env::var(variable).ok().filter(|token| !token.trim().is_empty());
            let token = token.ok_or_else(|| CliError::NoToken(variable.clone()))?;
            headers.push(("Authorization".to_owned(), format!("Bearer {}", token.trim())));
        }
        let site = Site::new(address, &headers, given.insecure)?;
        Ok(Launcher::Http(HttpServer { site, command: (!words.is_empty()).then(|| command(words)) }))
    }
}

/// The options of a command that shows something again; values of headers are left to the reader.
pub(super) fn words(http: &HttpArgs) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(url) = &http.url {
        words.push(format!("--url {}", quoted(url)));
    }
    for (name, _) in http.header.iter().filter_map(Header::parts) {
        words.push(format!("--header '{name}: ...'"));
    }
    if let Some(variable) = &http.bearer_env {
        words.push(format!("--bearer-env {}", quoted(variable)));
    }
    if http.insecure {
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
        Args::try_parse_from(["mcp-conformance"].iter().chain(words)).expect("it parses").judge.named().launcher()
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
        assert_eq!(words(&args.http), ["--url http://localhost/", "--header 'X-Key: ...'"]);
    }
}
