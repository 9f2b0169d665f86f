//! Finds mistakes in the words that name a server, which would start something else or nothing at all.
//!
//! Each is found before anything is started. A program that is not there is reported by the run.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Subcommand as _};

use super::args::{Args, Command};
use super::server_mistake::ServerMistake;

/// Names of subcommands that may come later: a script that starts a program of that name would break then.
const RESERVED: [&str; 4] = ["check", "config", "test", "update"];

/// The programs that run scripts, by extension.
const INTERPRETERS: [(&str, &str); 10] = [
    ("cjs", "node"),
    ("js", "node"),
    ("mjs", "node"),
    ("ts", "npx tsx"),
    ("mts", "npx tsx"),
    ("py", "python3"),
    ("rb", "ruby"),
    ("php", "php"),
    ("jar", "java -jar"),
    ("sh", "sh"),
];

/// How many bytes of a file are read to see its interpreter.
const FIRST_LINE_BYTES: u64 = 512;

/// The least similarity at which a name is a mistyped subcommand.
const MIN_SIMILARITY: f64 = 0.9;

/// Looks for a mistake in the words of a server. `line` is the whole command line, which they end, and `cwd` the
/// server's working directory.
pub(super) fn find_mistake(server: &[OsString], line: &[OsString], cwd: Option<&Path>) -> Result<(), ServerMistake> {
    let Some(program) = server.first() else { return Ok(()) };
    // The server takes every word to the end of the line, so the position of the word before it is known.
    let before = line.len().checked_sub(server.len() + 1).and_then(|at| line.get(at));
    let name = program.to_string_lossy();
    if before.is_none_or(|word| word != "--") {
        check_name(&name)?;
        check_options(server)?;
    }
    // Relative programs begin in the working directory of the server.
    let path = if name.contains('/') { cwd.unwrap_or(Path::new("")).join(program) } else { PathBuf::from(program) };
    let is_path = name.contains('/') && path.exists();
    if !is_path && !is_on_path(program) {
        if is_address(&name) {
            return Err(ServerMistake::NoScheme(name.into_owned()));
        }
        if name.trim().contains(char::is_whitespace) {
            return Err(ServerMistake::QuotedCommand(name.into_owned()));
        }
        // A folder or a script of the current directory, without `./`.
        let here = cwd.unwrap_or(Path::new("")).join(program);
        if here.is_dir() || interpreter(&here).is_some() && here.is_file() {
            return check_file(&name, &here);
        }
    }
    if is_path { check_file(&name, &path) } else { Ok(()) }
}

/// A subcommand in the place of a server.
fn check_name(name: &str) -> Result<(), ServerMistake> {
    if Command::has_subcommand(name) {
        return Err(ServerMistake::MisplacedSubcommand(name.to_owned()));
    }
    if RESERVED.contains(&name) {
        return Err(ServerMistake::Reserved(name.to_owned()));
    }
    if name.contains(['/', '.', ' ']) || is_on_path(OsStr::new(name)) {
        return Ok(());
    }
    let command = Args::command();
    let similarity = |known: &clap::Command| strsim::jaro_winkler(known.get_name(), name);
    let nearest = command
        .get_subcommands()
        .filter(|known| similarity(known) >= MIN_SIMILARITY)
        .max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    match nearest {
        Some(nearest) => {
            Err(ServerMistake::MistypedSubcommand { name: name.to_owned(), nearest: nearest.get_name().to_owned() })
        }
        None => Ok(()),
    }
}

/// An option of this program among the arguments of the server.
fn check_options(server: &[OsString]) -> Result<(), ServerMistake> {
    let command = Args::command();
    let is_ours = |word: &str| {
        let name = word.strip_prefix("--").map(|option| option.split_once('=').map_or(option, |(name, _)| name));
        name.is_some_and(|name| command.get_arguments().any(|option| option.get_long() == Some(name)))
    };
    let words: Vec<&str> = server.iter().map_while(|word| word.to_str()).take_while(|word| *word != "--").collect();
    match words.iter().position(|word| is_ours(word)) {
        Some(at) => {
            Err(ServerMistake::OptionAfterCommand { option: words[at].to_owned(), server: words[..at].join(" ") })
        }
        None => Ok(()),
    }
}

/// A file that the system cannot start.
fn check_file(name: &str, path: &Path) -> Result<(), ServerMistake> {
    if path.is_dir() {
        let shown = if path.parent().is_none() { name } else { name.trim_end_matches('/') };
        return Err(ServerMistake::Directory(shown.to_owned()));
    }
    let script = |reason: &str, interpreter: &str| ServerMistake::Script {
        program: name.to_owned(),
        reason: reason.to_owned(),
        fix: format!("{interpreter} {}", name.trim_start_matches("./")),
    };
    match (is_executable(path), interpreter(path)) {
        (false, Some(interpreter)) => Err(script("it is not executable", interpreter)),
        (false, None) => Err(ServerMistake::NotExecutable(name.to_owned())),
        (true, interpreter) => match (first_line(path), interpreter) {
            (Some(line), _) if line.starts_with("#!") => match named_interpreter(&line) {
                Some(missing) if !Path::new(missing).exists() => {
                    Err(ServerMistake::NoInterpreter { program: name.to_owned(), interpreter: missing.to_owned() })
                }
                Some(_) | None => Ok(()),
            },
            (Some(_), Some(interpreter)) => Err(script("its first line names no interpreter", interpreter)),
            (None, _) | (Some(_), None) => Ok(()),
        },
    }
}

/// The interpreter for the extension of a file.
fn interpreter(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?;
    INTERPRETERS.iter().find(|(known, _)| *known == extension).map(|(_, interpreter)| *interpreter)
}

/// The beginning of the first line of a text file; `None` for anything else.
fn first_line(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FIRST_LINE_BYTES).read_to_end(&mut bytes).ok()?;
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    String::from_utf8(line.to_vec()).ok()
}

/// The program in a line that begins with `#!`.
fn named_interpreter(line: &str) -> Option<&str> {
    line.strip_prefix("#!")?.split_whitespace().next()
}

/// Whether a word is a host and a port, maybe with a path.
fn is_address(word: &str) -> bool {
    let (address, _) = word.split_once('/').unwrap_or((word, ""));
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let is_host = host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '[' | ']' | ':'));
    !host.is_empty() && is_host && port.parse::<u16>().is_ok()
}

/// Whether a name without a slash is a program that the system would find.
fn is_on_path(program: &OsStr) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
    found.is_some_and(|file| is_executable(&file))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    fn mistake(line: &str, server: &str) -> Option<ServerMistake> {
        find_mistake(&words(server), &words(line), None).err()
    }

    #[test]
    fn a_misplaced_subcommand_is_distinguished_from_a_server_of_its_name() {
        assert!(matches!(mistake("m --strict demo", "demo"), Some(ServerMistake::MisplacedSubcommand(_))));
        assert!(mistake("m -v serve --fault x", "serve --fault x").is_some());
        assert_eq!(mistake("m --strict -- demo", "demo"), None);
        assert_eq!(mistake("m --strict ./demo", "./demo"), None);
    }

    #[test]
    fn a_mistyped_subcommand_is_not_started() {
        let nearest = |name: &str| match mistake(&format!("m {name}"), name) {
            Some(ServerMistake::MistypedSubcommand { nearest, .. }) => Some(nearest),
            _ => None,
        };
        assert_eq!(nearest("demoo"), Some("demo".to_owned()));
        assert_eq!(nearest("explian"), Some("explain".to_owned()));
        assert_eq!(nearest("my-server"), None);
        assert!(matches!(
            mistake("m judge", "judge"),
            Some(ServerMistake::Reserved(_) | ServerMistake::MisplacedSubcommand(_))
        ));
        // A program that is there is started.
        assert_eq!(mistake("m sh", "sh"), None);
        assert_eq!(mistake("m -- demoo", "demoo"), None);
    }

    #[test]
    fn an_option_of_the_server_needs_two_dashes_if_it_is_also_one_of_this_program() {
        let error = mistake("m node s.mjs --strict", "node s.mjs --strict").expect("a mistake").to_string();
        assert!(error.contains("`mcp-conformance --strict ... -- node s.mjs`"), "{error}");
        assert!(mistake("m sh --report=json", "sh --report=json").is_some());
        assert_eq!(mistake("m -- sh --strict", "sh --strict"), None);
        assert_eq!(mistake("m sh --root x -- --strict", "sh --root x -- --strict"), None);
    }

    #[test]
    fn an_address_is_recognized() {
        for (word, expected) in [
            ("localhost:3000/mcp", true),
            ("127.0.0.1:80", true),
            ("[::1]:9/", true),
            ("server:latest", false),
            (":3000", false),
            ("C:/x", false),
            ("my-server", false),
        ] {
            assert_eq!(is_address(word), expected, "{word}");
        }
    }
}
