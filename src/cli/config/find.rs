//! Finds the configuration, and puts its words into a command line.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use clap::parser::ValueSource;
use mcp_conformance::FuzzSettings;

use super::client_file;
use super::error::{ConfigError, ConfigProblem};
use super::file::{self, ConfigFile};
use super::keys::{definition, keys};
use super::settings::{FileSetting, FileSettings, ServerTable, ServerWords, TypedServerOptions};
use super::variables::Variables;
use crate::cli::config_file_name::FILE_NAME;
use crate::cli::server::Header;

/// The subcommands that take the server from a configuration, with those keys that they do not take.
const SUBCOMMANDS: [(&str, &[&str]); 3] = [("doctor", &[]), ("hints", &[]), ("replay", &["revision"])];

/// The option with the folder of failing calls.
const REGRESSIONS: &str = "regressions";

/// A command line with the words of the configuration.
#[derive(Debug)]
pub(in crate::cli) struct Configured {
    /// The words, with those that were typed.
    pub(in crate::cli) words: Vec<OsString>,
    /// The configuration file, if there is one.
    pub(in crate::cli) file: Option<PathBuf>,
}

/// A server with the file that describes it.
struct ConfiguredServer {
    file: String,
    table: ServerTable,
    /// Where relative paths begin.
    folder: PathBuf,
    /// The folder of the project, if clients name it in their file.
    workspace: Option<PathBuf>,
}

/// Adds the words of the configuration to those that were typed. `matches` is what clap made of the typed words.
///
/// # Errors
/// When a configuration cannot be read or is invalid.
pub(in crate::cli) fn with_configuration(
    typed: Vec<OsString>,
    matches: &ArgMatches,
) -> Result<Configured, ConfigError> {
    let command = definition();
    let (matches, command, excluded, position) = match matches.subcommand() {
        None => (matches, &command, &[][..], 1),
        Some((name, matches)) => {
            let subcommand = SUBCOMMANDS.iter().find(|(known, _)| *known == name);
            let found = subcommand.zip(command.find_subcommand(name));
            let Some(((_, excluded), command)) = found else { return Ok(Configured { words: typed, file: None }) };
            (matches, command, *excluded, 2)
        }
    };
    let is_typed = |id: &str| is_typed(matches, id);
    let text = |id: &str| matches.get_one::<String>(id).map(String::as_str);
    let config = matches.get_one::<PathBuf>("config");
    let (mut settings, mut server, file) = match find(config, matches.get_flag("no_config")) {
        None => match text("profile") {
            Some(profile) => return Err(ConfigError::ProfileWithoutFile(profile.to_owned())),
            None => (FileSettings::default(), None, None),
        },
        Some(path) => {
            let (settings, server) = read(&path, text("profile"))?;
            (settings, server, Some(path))
        }
    };
    let client_config = config.filter(|path| !is_toml(path));
    match (client_config, text("server_name")) {
        (Some(path), name) => server = Some(read_client(path, name)?),
        (None, Some(name)) => return Err(ConfigError::ServerWithoutFile(name.to_owned())),
        (None, None) => {}
    }
    let all = keys(command);
    let key_of = |name: &str| all.iter().find(|key| key.name == name);
    // A typed option replaces the key of its name, and those that contradict it.
    settings.options.retain(|setting| {
        let Some(key) = key_of(&setting.key).filter(|key| !excluded.contains(&key.name.as_str())) else { return false };
        let contradicts = |name: &String| key_of(name).is_some_and(|other| is_typed(&other.id));
        !is_typed(&key.id) && !key.conflicts.iter().any(contradicts)
    });
    let mut words: Vec<OsString> = settings.options.into_iter().flat_map(|setting| setting.words).collect();
    let types_server = is_typed("server") || is_typed("url");
    let is_needed = !types_server && !matches.try_get_one::<bool>("list").is_ok_and(|list| list == Some(&true));
    let server = match server.filter(|_| is_needed) {
        Some(server) => server_words(&server, matches)?,
        None => ServerWords::default(),
    };
    words.extend(server.options);
    let mut all = typed;
    let has_dashes = all.last().is_some_and(|word| word == "--");
    let position = position.min(all.len());
    all.splice(position..position, words);
    if !server.command.is_empty() {
        all.extend((!has_dashes).then(|| OsString::from("--")));
        all.extend(server.command);
    }
    Ok(Configured { words: all, file })
}

fn is_typed(matches: &ArgMatches, id: &str) -> bool {
    // A subcommand has only some of the options.
    let is_known = matches.try_contains_id(id).is_ok();
    is_known && matches.value_source(id) == Some(ValueSource::CommandLine)
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// The configuration file: the one that is named, or the next one from the current folder upwards.
fn find(named: Option<&PathBuf>, is_off: bool) -> Option<PathBuf> {
    if let Some(path) = named.filter(|path| is_toml(path)) {
        return Some(path.clone());
    }
    let current = std::env::current_dir().ok().filter(|_| !is_off)?;
    let mut folder = PathBuf::new();
    for _ in current.ancestors() {
        let path = folder.join(FILE_NAME);
        if path.is_file() {
            return Some(path);
        }
        folder.push("..");
    }
    None
}

fn read(path: &Path, profile: Option<&str>) -> Result<(FileSettings, Option<ConfiguredServer>), ConfigError> {
    let text = read_text(path)?;
    let name = path.display().to_string();
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let ConfigFile { mut settings, mut profiles } = file::parse(&name, &text, &folder).map_err(ConfigError::Invalid)?;
    if let Some(profile) = profile {
        let Some(at) = profiles.iter().position(|(known, _)| known == profile) else {
            let known = profiles.into_iter().map(|(known, _)| known).collect();
            return Err(ConfigError::UnknownProfile { file: name, name: profile.to_owned(), known });
        };
        let keys = keys(&definition());
        let conflicts = |a: &str, b: &str| keys.iter().any(|key| key.name == a && key.conflicts.iter().any(|c| c == b));
        settings = settings.overridden_by(profiles.swap_remove(at).1, conflicts);
    }
    if folder != Path::new("") && !settings.options.iter().any(|setting| setting.key == REGRESSIONS) {
        // The folder of the project has the failing calls, from wherever the program is started.
        let default = FuzzSettings::default().regressions;
        let word = default.map(|default| format!("--{REGRESSIONS}={}", folder.join(default).display()).into());
        settings.options.push(FileSetting { key: REGRESSIONS.to_owned(), words: word.into_iter().collect() });
    }
    let server = settings.server.take();
    Ok((settings, server.map(|table| ConfiguredServer { file: name, table, folder, workspace: None })))
}

fn read_client(path: &Path, name: Option<&str>) -> Result<ConfiguredServer, ConfigError> {
    let table = client_file::server(path, &read_text(path)?, name)?;
    let folder = client_file::workspace(path);
    let workspace = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
    Ok(ConfiguredServer { file: path.display().to_string(), table, folder, workspace: Some(workspace) })
}

fn read_text(path: &Path) -> Result<String, ConfigError> {
    let text = fs::read_to_string(path);
    let text = text.map_err(|source: io::Error| ConfigError::Read { path: path.to_owned(), source })?;
    // Some editors write a byte order mark.
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

fn server_words(server: &ConfiguredServer, matches: &ArgMatches) -> Result<ServerWords, ConfigError> {
    let headers = matches.get_many::<Header>("header").into_iter().flatten();
    let typed = TypedServerOptions {
        headers: headers.filter_map(Header::name).map(str::to_lowercase).collect(),
        cwd: is_typed(matches, "cwd"),
        token_variables: [
            ("bearer-env", "bearer_env"),
            ("second-bearer-env", "second_bearer_env"),
            ("foreign-bearer-env", "foreign_bearer_env"),
        ]
        .into_iter()
        .filter(|(_, id)| is_typed(matches, id))
        .map(|(name, _)| name)
        .collect(),
        insecure: is_typed(matches, "insecure"),
    };
    let environment = |name: &str| std::env::var(name).ok();
    let variables = Variables { workspace: server.workspace.as_deref(), environment: &environment };
    let words = server.table.words(&server.file, &server.folder, &variables, &typed);
    words.map_err(|problem: ConfigProblem| ConfigError::Invalid(vec![problem]))
}
