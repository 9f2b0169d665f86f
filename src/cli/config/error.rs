//! The errors of configuration files.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::cli::config_file_name::FILE_NAME;

/// The least similarity of two names for which one is suggested for the other: one or two wrong letters.
const MIN_SIMILARITY: f64 = 0.8;

/// A problem in a configuration file, shown as `mcp-conformance.toml:3:1: unknown key `timout` (did you mean
/// `timeout`?)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct ConfigProblem {
    /// The file, as it was found.
    pub(super) file: String,
    /// The line and the column, counted from 1; `None` where the problem is with the file as a whole.
    pub(super) position: Option<(usize, usize)>,
    /// What is wrong.
    pub(super) message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some((line, column)) = self.position {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}", self.message)
    }
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ConfigError {
    /// The file cannot be read.
    #[error("failed to read the configuration {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is invalid.
    #[error("failed to read the configuration:\n{}", lines(.0))]
    Invalid(Vec<ConfigProblem>),
    /// A profile does not exist.
    #[error("{file} has no profile `{name}`{}", choices("its profiles are", known))]
    UnknownProfile {
        /// The file.
        file: String,
        /// The name.
        name: String,
        /// The profiles of the file.
        known: Vec<String>,
    },
    /// A profile without a file that could have it.
    #[error(
        "--profile {0}: there is no {name} here or in a folder above; `mcp-conformance init` writes one",
        name = FILE_NAME
    )]
    ProfileWithoutFile(String),
    /// The name of a server without a file that could have it.
    #[error(
        "--server {0} needs the file that lists it: add --config with the configuration file of an MCP client, such as `--config .mcp.json`"
    )]
    ServerWithoutFile(String),
    /// A server that the file of a client does not list, or no name where it lists several.
    #[error("{file}: {}{}", missing_server(name.as_deref()), choices("its servers are", known))]
    UnknownServer {
        /// The file.
        file: String,
        /// The name, if one was given.
        name: Option<String>,
        /// The servers of the file.
        known: Vec<String>,
    },
}

fn lines(problems: &[ConfigProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn choices(introduction: &str, names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("; {introduction} {}", names.join(", "))
}

fn missing_server(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("there is no server `{name}`"),
        None => "choose a server with --server NAME".to_owned(),
    }
}

/// The known name that is most similar to a wrong one, as the end of a message.
pub(super) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let nearest = known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    nearest.map_or_else(String::new, |(_, candidate)| format!(" (did you mean `{candidate}`?)"))
}
