//! The server of a command line: the words that name it, and the options that say how to start or reach it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use mcp_conformance::{HttpServer, Server, ServerCommand};

use super::error::CliError;
use super::values::environment_variable;

/// The options that say how the server is started or reached.
#[derive(Debug, ClapArgs)]
pub(super) struct ServerArgs {
    #[command(flatten)]
    pub(super) process: ProcessArgs,
    #[command(flatten)]
    pub(super) http: HttpArgs,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Server process")]
pub(super) struct ProcessArgs {
    /// Environment variable for the server, in addition to the inherited ones; repeatable [default: none].
    #[arg(
        long,
        value_name = "NAME=VALUE",
        value_parser = OsStringValueParser::new().try_map(|text| environment_variable(&text))
    )]
    pub(super) env: Vec<(OsString, OsString)>,

    /// Working directory of the server [default: the current directory].
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,
}

#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "HTTP server")]
pub(super) struct HttpArgs {
    /// URL of the server; a command after it starts the server first [default: the server speaks over its standard
    /// streams].
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,

    /// Header of every request, whose value is never shown; repeatable [default: none].
    #[arg(long, value_name = "NAME: VALUE")]
    pub(super) header: Vec<Header>,

    /// Environment variable that holds a bearer token, which is never shown [default: no token].
    #[arg(long, value_name = "VAR")]
    pub(super) bearer_env: Option<String>,

    /// Environment variable that holds the bearer token of another user, for cases that check whether the server keeps
    /// its users apart; never shown [default: these cases are skipped].
    #[arg(long, value_name = "VAR")]
    pub(super) second_bearer_env: Option<String>,

    /// Environment variable that holds a valid bearer token that was issued for another server, which the server has to
    /// reject; never shown [default: this is not checked].
    #[arg(long, value_name = "VAR")]
    pub(super) foreign_bearer_env: Option<String>,

    /// Accept any TLS certificate [default: certificates are verified].
    #[arg(long)]
    pub(super) insecure: bool,
}

/// A header as it was typed. It is parsed later, as an error of clap would repeat its value.
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
    /// The name.
    pub(super) fn name(&self) -> Option<&str> {
        self.parts().map(|(name, _)| name)
    }

    /// The name and the value.
    fn parts(&self) -> Option<(&str, &str)> {
        let (name, value) = self.0.split_once(':')?;
        (!name.trim().is_empty()).then_some((name.trim(), value.trim()))
    }
}

impl ServerArgs {
    /// The server that these words name.
    pub(super) fn server(&self, words: &[OsString]) -> Result<Server, CliError> {
        match (&self.http.url, words) {
            (Some(url), []) => Ok(self.http.server(url)?.into()),
            (Some(url), command) => Ok(self.http.server(url)?.start_command(self.process.command(command)?).into()),
            (None, [url, rest @ ..]) if is_url(url) => match rest.first() {
                Some(word) => Err(CliError::WordAfterUrl(word.to_string_lossy().into_owned())),
                None => Ok(self.http.server(&url.to_string_lossy())?.into()),
            },
            (None, _) if self.http.is_used() => Err(CliError::HttpOptionWithoutUrl),
            (None, command) => Ok(self.process.command(command)?.into()),
        }
    }
}

impl ProcessArgs {
    fn command(&self, words: &[OsString]) -> Result<ServerCommand, CliError> {
        let (program, arguments) = words.split_first().ok_or(CliError::NoServer)?;
        let command = Server::command(program).args(arguments);
        let command = self.env.iter().fold(command, |command, (name, value)| command.env(name, value));
        Ok(match &self.cwd {
            Some(directory) => command.current_dir(directory),
            None => command,
        })
    }
}

impl HttpArgs {
    fn is_used(&self) -> bool {
        let variables = [&self.bearer_env, &self.second_bearer_env, &self.foreign_bearer_env];
        !self.header.is_empty() || variables.into_iter().any(Option::is_some) || self.insecure
    }

    fn server(&self, url: &str) -> Result<HttpServer, CliError> {
        let mut server = Server::http(url);
        for header in &self.header {
            let (name, value) = header.parts().ok_or(CliError::Header)?;
            server = server.header(name, value);
        }
        if let Some(variable) = &self.bearer_env {
            server = server.bearer_token_env(variable);
        }
        if let Some(variable) = &self.second_bearer_env {
            server = server.second_bearer_token_env(variable);
        }
        if let Some(variable) = &self.foreign_bearer_env {
            server = server.foreign_bearer_token_env(variable);
        }
        Ok(if self.insecure { server.insecure() } else { server })
    }
}

/// Whether a word is the URL of a server rather than a program.
pub(super) fn is_url(word: &OsStr) -> bool {
    let lower = word.to_string_lossy().to_ascii_lowercase();
    lower.starts_with("http://") || lower.starts_with("https://")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use mcp_conformance::Settings;
    use mcp_conformance::internals::judge::plan;
    use mcp_conformance::internals::run::Launcher;

    use super::*;
    use crate::cli::args::Args;

    fn launcher(words: &[&str]) -> Result<Launcher, CliError> {
        let args = Args::try_parse_from(["mcp-conformance"].iter().chain(words)).expect("it parses").judge;
        Ok(plan(&args.connection.server(&args.server)?, &Settings::default())?.launcher)
    }

    #[test]
    fn a_url_is_distinguished_from_a_command() {
        assert!(
            matches!(launcher(&["http://localhost:3000/mcp"]), Ok(Launcher::Http(server)) if server.command.is_none())
        );
        assert!(matches!(launcher(&["./http-server", "http://x"]), Ok(Launcher::Command(_))));
        let both = launcher(&["--url", "http://127.0.0.1:9/mcp", "--", "./server", "--port", "9"]);
        assert!(matches!(both, Ok(Launcher::Http(server)) if server.command.is_some()));
    }

    #[test]
    fn an_error_about_the_server_says_what_to_do() {
        let error = |words: &[&str]| launcher(words).expect_err("an error").to_string();
        assert!(error(&["http://localhost/mcp", "-v"]).contains("--url"));
        assert!(error(&["--insecure", "./server"]).contains("--url"));
        let header = error(&["--header", "X-Key hush", "http://localhost/"]);
        assert!(header.contains("'Name: value'") && !header.contains("hush"), "{header}");
        assert!(error(&["--url", "ftp://x/", "--", "./server"]).contains("http"));
        let token = error(&["--bearer-env", "NO_SUCH_VARIABLE_HERE", "http://localhost/"]);
        assert!(token.contains("NO_SUCH_VARIABLE_HERE"));
        assert!(error(&["--cwd", "/no/such/folder", "./server"]).contains("/no/such/folder"));
    }
}
