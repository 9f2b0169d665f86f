//! The server under test: how it is started or reached.
//!
//! Each kind has a type of its own, so that an option which means nothing for a kind cannot be written. Nothing is
//! started or connected to here.

use std::ffi::OsString;
use std::fmt;
use std::num::NonZero;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};

use super::error::JudgeError;
use crate::client::{FurtherTokens, HttpEndpoint, InProcessServer};
use crate::plan::{HttpTarget, Launcher, ServerCommand};
use crate::reference::Fault;
use crate::scratch::ScratchFolder;
use crate::shell::quote_shell_words;
use crate::spec::Transport;

/// The server under test.
#[derive(Debug, Clone)]
#[must_use]
pub struct Server(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Command(ServerCommand),
    Http(HttpServer),
    InProcess(InProcessServer),
    Reference(Vec<Fault>),
}

impl Server {
    /// A server that is started as a process and speaks over its standard streams.
    ///
    /// The methods of [`ServerCommand`] set its arguments, its environment and its working directory.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use mcp_conformance::{Judge, Server};
    ///
    /// let server = Server::command("./my-server").arg("--stdio").env("API_KEY", "for-tests");
    /// let report = Judge::new(server).run_blocking()?;
    /// print!("{}", report.to_text());
    /// # Ok::<(), mcp_conformance::JudgeError>(())
    /// ```
    pub fn command(program: impl Into<OsString>) -> ServerCommand {
        ServerCommand::new(program)
    }

    /// A server that is reached over HTTP at this URL.
    ///
    /// The methods of [`HttpServer`] set its headers, its TLS options and the command that starts it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use mcp_conformance::{Judge, Server};
    ///
    /// let server = Server::http("http://127.0.0.1:3000/mcp")
    ///     .bearer_token_env("MY_SERVER_TOKEN")
    ///     .start_command(Server::command("./my-server").args(["--port", "3000"]));
    /// let report = Judge::new(server).run_blocking()?;
    /// # Ok::<(), mcp_conformance::JudgeError>(())
    /// ```
    pub fn http(url: impl Into<String>) -> HttpServer {
        HttpServer {
            url: url.into(),
            headers: Vec::new(),
            bearer_token_variable: None,
            second_bearer_token_variable: None,
            foreign_bearer_token_variable: None,
            further_tokens: FurtherTokens::default(),
            accepts_any_certificate: false,
            start_command: None,
        }
    }

    /// A server in this process: a function that serves one connection.
    ///
    /// A run opens several connections. For each, the function gets the server's end of a pipe, on a thread and a
    /// runtime of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::{Judge, Server};
    /// use tokio::io::{AsyncWriteExt, DuplexStream};
    ///
    /// // With the official SDK: `async { if let Ok(server) = MyServer.serve(pipe).await { server.waiting().await.ok(); } }`
    /// let server = Server::in_process(|mut pipe: DuplexStream| async move { pipe.write_all(b"hello\n").await });
    /// let report = Judge::new(server).run_blocking()?;
    /// assert!(report.to_text().contains("hello"));
    /// # Ok::<(), mcp_conformance::JudgeError>(())
    /// ```
    pub fn in_process<Serve, Served>(serve: Serve) -> Self
    where
        Serve: Fn(DuplexStream) -> Served + Send + Sync + 'static,
        Served: Future + 'static,
    {
        Self(Kind::InProcess(InProcessServer::new(serve)))
    }

    /// A server that `connect` opens a byte stream to, once per connection: a socket, or a pipe to a container.
    ///
    /// An error of `connect` is judged like a server that closes its output.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use mcp_conformance::{Judge, Server};
    /// use tokio::net::TcpStream;
    ///
    /// let server = Server::connect(|| TcpStream::connect("127.0.0.1:3001"));
    /// let report = Judge::new(server).run_blocking()?;
    /// # Ok::<(), mcp_conformance::JudgeError>(())
    /// ```
    pub fn connect<Connect, Connecting, Stream>(connect: Connect) -> Self
    where
        Connect: Fn() -> Connecting + Send + Sync + 'static,
        Connecting: Future<Output = std::io::Result<Stream>> + 'static,
        Stream: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let connect = Arc::new(connect);
        Self::in_process(move |mut pipe| {
            let connect = Arc::clone(&connect);
            async move {
                let mut stream = connect().await?;
                tokio::io::copy_bidirectional(&mut pipe, &mut stream).await
            }
        })
    }

    /// The built-in reference server, which conforms except for these faults: with it you test your use of this
    /// library.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::reference::Fault;
    /// use mcp_conformance::{Judge, Server, Settings};
    ///
    /// let settings = Settings { select: vec!["tools/call/*".to_owned()], ..Settings::default() };
    /// let server = Server::reference(["unknown-tool-succeeds".parse::<Fault>()?]);
    /// let report = Judge::new(server).settings(settings).run_blocking()?;
    /// let mut findings = report.results().filter(|result| !result.findings.is_empty());
    /// assert!(findings.any(|result| result.case == "tools/call/unknown-tool-rejected"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reference(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self(Kind::Reference(faults.into_iter().collect()))
    }

    /// The transport of the server.
    #[cfg_attr(not(feature = "harness"), expect(dead_code, reason = "only tests of single cases choose by it"))]
    pub(crate) fn transport(&self) -> Transport {
        match self.0 {
            Kind::Http(_) => Transport::Http,
            Kind::Command(_) | Kind::InProcess(_) | Kind::Reference(_) => Transport::Stdio,
        }
    }

    /// How a run connects to the server.
    pub(super) fn launcher(&self, max_rate: Option<NonZero<u32>>) -> Result<Launcher, JudgeError> {
        Ok(match &self.0 {
            Kind::Command(command) => Launcher::Command(checked(command)?),
            Kind::Http(server) => Launcher::Http(server.resolve(max_rate)?),
            Kind::InProcess(server) => Launcher::InProcess(server.clone()),
            Kind::Reference(faults) => Launcher::Reference(Arc::new(faults.iter().copied().collect())),
        })
    }

    /// The options of a command line that say how the server is started.
    pub(super) fn reproduce_options(&self) -> Vec<String> {
        let command = match &self.0 {
            Kind::Command(command) => Some(command),
            Kind::Http(server) => server.start_command.as_ref(),
            Kind::InProcess(_) | Kind::Reference(_) => None,
        };
        let Some(command) = command else { return Vec::new() };
        // A report is often public and a variable often a secret, so its value is taken from the shell.
        let variables = command.environment.iter().map(|(name, _)| {
            let name = name.to_string_lossy();
            format!("--env {}=\"${{{name}}}\"", quote_shell_words([&*name]))
        });
        let directory = command.directory.iter().map(|directory| format!("--cwd {}", quote_shell_words([directory])));
        variables.chain(directory).collect()
    }

    /// The end of a command line that names the server, with a space before each word.
    pub(super) fn reproduce_suffix(&self) -> String {
        let words = match &self.0 {
            Kind::Command(command) => vec!["--".to_owned(), quote_shell_words(&command.command)],
            Kind::Http(server) => server.reproduce_words(),
            Kind::InProcess(_) => Vec::new(),
            Kind::Reference(faults) => {
                let faults = faults.iter().map(|fault| format!("--fault {}", fault.name()));
                ["-- mcp-conformance serve".to_owned()].into_iter().chain(faults).collect()
            }
        };
        words.iter().fold(String::new(), |suffix, word| suffix + " " + word)
    }
}

impl From<ServerCommand> for Server {
    fn from(command: ServerCommand) -> Self {
        Self(Kind::Command(command))
    }
}

impl From<HttpServer> for Server {
    fn from(server: HttpServer) -> Self {
        Self(Kind::Http(server))
    }
}

/// A server that is reached over HTTP.
///
/// Made by [`Server::http`]. The values of headers appear in no report.
///
/// # Examples
///
/// ```
/// use mcp_conformance::{HttpServer, Server, ServerCommand};
///
/// // Starts the server first, and sends the token that a variable holds.
/// let command: ServerCommand = Server::command("node").args(["dist/index.js", "--port", "3000"]);
/// let server: HttpServer =
///     Server::http("http://127.0.0.1:3000/mcp").bearer_token_env("MY_TOKEN").start_command(command);
/// # let _server: Server = server.into();
/// ```
#[derive(Clone)]
#[must_use]
pub struct HttpServer {
    url: String,
    headers: Vec<(String, String)>,
    /// The environment variable that holds a bearer token.
    bearer_token_variable: Option<String>,
    /// The environment variable that holds the bearer token of another user.
    second_bearer_token_variable: Option<String>,
    /// The environment variable that holds a bearer token for another server.
    foreign_bearer_token_variable: Option<String>,
    /// The same tokens, as values.
    further_tokens: FurtherTokens,
    accepts_any_certificate: bool,
    start_command: Option<ServerCommand>,
}

impl HttpServer {
    /// Sends a header with every request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends the bearer token that this environment variable holds with every request.
    pub fn bearer_token_env(mut self, variable: impl Into<String>) -> Self {
        self.bearer_token_variable = Some(variable.into());
        self
    }

    /// Sends the bearer token of another user, which this environment variable holds, in cases that check whether the
    /// server keeps its users apart.
    pub fn second_bearer_token_env(mut self, variable: impl Into<String>) -> Self {
        self.second_bearer_token_variable = Some(variable.into());
        self
    }

    /// Sends a valid bearer token that was issued for another server, which this environment variable holds, in cases
    /// that check whether the server rejects it.
    pub fn foreign_bearer_token_env(mut self, variable: impl Into<String>) -> Self {
        self.foreign_bearer_token_variable = Some(variable.into());
        self
    }

    /// Sends these tokens where [`HttpServer::second_bearer_token_env`] and [`HttpServer::foreign_bearer_token_env`] would
    /// send those of the environment, which is one for all runs in a process. For the program.
    #[doc(hidden)]
    pub fn further_bearer_tokens(mut self, second_user: Option<String>, foreign: Option<String>) -> Self {
        self.further_tokens = FurtherTokens { second_user, foreign };
        self
    }

    /// Accepts any TLS certificate.
    pub fn insecure(mut self) -> Self {
        self.accepts_any_certificate = true;
        self
    }

    /// Starts the server with this command before the run, and ends it afterwards.
    pub fn start_command(mut self, command: ServerCommand) -> Self {
        self.start_command = Some(command);
        self
    }

    /// Reads the token and checks the URL and the headers.
    fn resolve(&self, max_rate: Option<NonZero<u32>>) -> Result<HttpTarget, JudgeError> {
        let command = self.start_command.as_ref().map(checked).transpose()?;
        let mut headers = self.headers.clone();
        if let Some(token) = token_of(self.bearer_token_variable.as_ref())? {
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        let given = self.further_tokens.clone();
        let tokens = FurtherTokens {
            second_user: token_of(self.second_bearer_token_variable.as_ref())?.or(given.second_user),
            foreign: token_of(self.foreign_bearer_token_variable.as_ref())?.or(given.foreign),
        };
        let endpoint = HttpEndpoint::with_further_tokens(&self.url, &headers, &tokens, self.accepts_any_certificate)?;
        if let Some(rate) = max_rate {
            endpoint.set_max_rate(rate.get().into());
        }
        Ok(HttpTarget { endpoint, command })
    }

    fn reproduce_words(&self) -> Vec<String> {
        let url = quote_shell_words([&self.url]);
        let mut words = Vec::new();
        if self.start_command.is_some() {
            words.push(format!("--url {url}"));
        }
        words.extend(self.headers.iter().map(|(name, _)| format!("--header '{name}: ...'")));
        for (option, variable) in [
            ("--bearer-env", &self.bearer_token_variable),
            ("--second-bearer-env", &self.second_bearer_token_variable),
            ("--foreign-bearer-env", &self.foreign_bearer_token_variable),
        ] {
            words.extend(variable.iter().map(|name| format!("{option} {}", quote_shell_words([name]))));
        }
        if self.accepts_any_certificate {
            words.push("--insecure".to_owned());
        }
        words.push("--".to_owned());
        words.push(self.start_command.as_ref().map_or(url, |command| quote_shell_words(&command.command)));
        words
    }
}

/// The token that an environment variable holds.
fn token_of(variable: Option<&String>) -> Result<Option<String>, JudgeError> {
    let Some(variable) = variable else { return Ok(None) };
    let token = std::env::var(variable).ok().filter(|token| !token.trim().is_empty());
    let token = token.ok_or_else(|| JudgeError::Token { variable: variable.clone() })?;
    Ok(Some(token.trim().to_owned()))
}

/// The values of headers may be secrets, so only their names are shown.
impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpServer")
            .field("url", &self.url)
            .field("headers", &names)
            .field("bearer_token_variable", &self.bearer_token_variable)
            .field("second_bearer_token_variable", &self.second_bearer_token_variable)
            .field("foreign_bearer_token_variable", &self.foreign_bearer_token_variable)
            .field("accepts_any_certificate", &self.accepts_any_certificate)
            .field("start_command", &self.start_command)
            .finish_non_exhaustive()
    }
}

/// A command whose working directory exists.
fn checked(command: &ServerCommand) -> Result<ServerCommand, JudgeError> {
    if let Some(directory) = &command.directory
        && !directory.is_dir()
    {
        return Err(JudgeError::Directory(directory.clone()));
    }
    let scratch = command.wants_scratch().then(ScratchFolder::create).transpose().map_err(JudgeError::Scratch)?;
    Ok(ServerCommand { scratch, ..command.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suffix(server: impl Into<Server>) -> String {
        server.into().reproduce_suffix()
    }

    #[test]
    fn the_suffix_names_each_kind_of_server() {
        assert_eq!(suffix(Server::command("node").args(["a b", "it's"])), r#" -- node 'a b' "it's""#);
        assert_eq!(suffix(Server::http("http://localhost/")), " -- http://localhost/");
        let started = Server::http("http://localhost/").start_command(Server::command("s").arg("--x"));
        assert_eq!(suffix(started), " --url http://localhost/ -- s --x");
        let fault = "image-data-url".parse::<Fault>().expect("a known fault");
        assert_eq!(suffix(Server::reference([fault])), " -- mcp-conformance serve --fault image-data-url");
        assert_eq!(suffix(Server::in_process(|_| async {})), "");
    }

    #[test]
    fn secrets_appear_neither_in_the_command_nor_in_debug_output() {
        let server = Server::http("http://localhost/").header("X-Key", "hush").bearer_token_env("TOKEN");
        let two = server.clone().second_bearer_token_env("OTHER").foreign_bearer_token_env("FOREIGN");
        let options = " --bearer-env TOKEN --second-bearer-env OTHER --foreign-bearer-env FOREIGN -- ";
        assert!(suffix(two).contains(options));
        let server = Server::from(server.start_command(Server::command("s").env("KEY", "hush").current_dir("a b")));
        assert_eq!(server.reproduce_options(), ["--env KEY=\"${KEY}\"", "--cwd 'a b'"]);
        assert_eq!(server.reproduce_suffix(), " --url http://localhost/ --header 'X-Key: ...' --bearer-env TOKEN -- s");
        assert!(!format!("{server:?}").contains("hush"));
    }

    #[test]
    fn an_environment_variable_without_a_token_is_an_error() {
        let server = Server::from(Server::http("http://localhost/").bearer_token_env("NO_SUCH_VARIABLE_HERE"));
        let error = server.launcher(None).expect_err("the variable is not set").to_string();
        assert!(error.contains("NO_SUCH_VARIABLE_HERE"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn arguments_that_are_not_unicode_reach_the_process_unchanged() {
        use std::os::unix::ffi::OsStringExt as _;
        let odd = OsString::from_vec(vec![b'a', 0xff]);
        let server = Server::from(Server::command("s").arg(odd.clone()).env("V", odd.clone()));
        match server.launcher(None) {
            Ok(Launcher::Command(command)) => {
                assert_eq!(command.command, [OsString::from("s"), odd.clone()]);
                assert_eq!(command.environment, [(OsString::from("V"), odd)]);
            }
            other => panic!("another kind of server: {other:?}"),
        }
    }
}
