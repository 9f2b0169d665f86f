//! What a configuration file sets, as words of a command line.

use std::ffi::OsString;
use std::path::PathBuf;

use super::error::ConfigProblem;
use super::variables::Variables;

/// A key with the words that it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileSetting {
    /// The key.
    pub(super) key: String,
    /// The words; none for a flag that is off.
    pub(super) words: Vec<OsString>,
}

/// What a file or a profile of it sets.
#[derive(Debug, Clone, Default)]
pub(super) struct FileSettings {
    /// The keys, each once.
    pub(super) options: Vec<FileSetting>,
    /// The server.
    pub(super) server: Option<ServerTable>,
}

/// A string of a file, whose variables are not replaced yet.
#[derive(Debug, Clone)]
pub(super) struct TextValue {
    /// The string as it is in the file.
    pub(super) text: String,
    /// Its line and column, if they are known.
    pub(super) position: Option<(usize, usize)>,
}

/// A server as a file describes it.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerTable {
    /// The program and its arguments.
    pub(super) command: Vec<TextValue>,
    /// Environment variables.
    pub(super) env: Vec<(String, TextValue)>,
    /// The working directory.
    pub(super) cwd: Option<TextValue>,
    /// The URL.
    pub(super) url: Option<TextValue>,
    /// Headers of requests.
    pub(super) header: Vec<(String, TextValue)>,
    /// The environment variable that holds a bearer token.
    pub(super) bearer_env: Option<String>,
    /// The environment variable that holds the bearer token of another user.
    pub(super) second_bearer_env: Option<String>,
    /// The environment variable that holds a bearer token for another server.
    pub(super) foreign_bearer_env: Option<String>,
    /// Whether any certificate is accepted.
    pub(super) insecure: bool,
}

/// The server in words of a command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ServerWords {
    /// The options.
    pub(super) options: Vec<OsString>,
    /// The program and its arguments; none for a URL.
    pub(super) command: Vec<OsString>,
}

/// What is typed about the server of the file.
#[derive(Debug, Default)]
pub(super) struct TypedServerOptions {
    /// The names of headers, in lower case.
    pub(super) headers: Vec<String>,
    /// Whether there is a working directory.
    pub(super) cwd: bool,
    /// The options that name a variable with a token.
    pub(super) token_variables: Vec<&'static str>,
    /// Whether any certificate is accepted.
    pub(super) insecure: bool,
}

impl FileSettings {
    /// The settings of a file with those of a profile, which come first.
    pub(super) fn overridden_by(
        mut self,
        profile: FileSettings,
        conflicts: impl Fn(&str, &str) -> bool,
    ) -> FileSettings {
        self.options.retain(|base| {
            !profile
                .options
                .iter()
                .any(|own| own.key == base.key || (!own.words.is_empty() && conflicts(&own.key, &base.key)))
        });
        self.options.extend(profile.options);
        FileSettings { options: self.options, server: profile.server.or(self.server) }
    }
}

impl ServerTable {
    /// The words of the server. `folder` is where the file is: relative paths begin there; it is empty for the current
    /// folder.
    ///
    /// # Errors
    /// When a variable is not set or a value cannot be passed on.
    pub(super) fn words(
        &self,
        file: &str,
        folder: &std::path::Path,
        variables: &Variables,
        typed: &TypedServerOptions,
    ) -> Result<ServerWords, ConfigProblem> {
        let expand = |text: &TextValue| {
            let problem = |message: String| ConfigProblem { file: file.to_owned(), position: text.position, message };
            let expanded = variables.expand(&text.text).map_err(problem)?;
            if expanded.contains('\0') { Err(problem("it contains a null character".to_owned())) } else { Ok(expanded) }
        };
        let mut words = ServerWords::default();
        for word in &self.command {
            words.command.push(expand(word)?.into());
        }
        let mut option = |name: &str, value: String| words.options.push(format!("--{name}={value}").into());
        if !self.command.is_empty() {
            for (name, value) in &self.env {
                option("env", format!("{name}={}", expand(value)?));
            }
            let cwd = self.cwd.as_ref().map(expand).transpose()?;
            let cwd = cwd.map_or_else(|| folder.to_owned(), |cwd| folder.join(cwd));
            if !typed.cwd && cwd != PathBuf::new() {
                option("cwd", cwd.to_string_lossy().into_owned());
            }
        }
        if let Some(url) = &self.url {
            option("url", expand(url)?);
            for (name, value) in self.header.iter().filter(|(name, _)| !typed.headers.contains(&name.to_lowercase())) {
                option("header", format!("{name}: {}", expand(value)?));
            }
            for (name, variable) in [
                ("bearer-env", &self.bearer_env),
                ("second-bearer-env", &self.second_bearer_env),
                ("foreign-bearer-env", &self.foreign_bearer_env),
            ] {
                if let Some(variable) = variable.as_ref().filter(|_| !typed.token_variables.contains(&name)) {
                    option(name, variable.clone());
                }
            }
            if self.insecure && !typed.insecure {
                words.options.push("--insecure".into());
            }
        }
        Ok(words)
    }
}
