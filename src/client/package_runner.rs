//! The program that a package runner starts: `npx` often takes as long to resolve a package as the server takes to
//! start, and does so for each process, though it starts the same program every time.
//!
//! After the first start the program is looked up in the system's process table, and later processes are started
//! directly with the same arguments, environment and working directory. If anything about it is uncertain, the
//! runner is used again.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use tokio::process::Command;

use super::process_table::{ProcessEntry, processes};

/// Shells through which a runner may start a package's program.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ash", "busybox"];
/// The directory that contains packages.
const PACKAGE_DIRECTORY: &str = "node_modules";

/// A program that a package runner started, which can be started again without the runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackagedProgram {
    program: PathBuf,
    /// The arguments, beginning with the program name (`argv[0]`).
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: PathBuf,
}

/// Whether a command uses a package runner: `npx …`, `npm exec …` or `npm x …`.
#[must_use]
pub(crate) fn is_package_runner(command: &[OsString]) -> bool {
    let Some((program, arguments)) = command.split_first() else { return false };
    let mut arguments = arguments.iter().map(|argument| argument.to_str().unwrap_or_default());
    let first = arguments.find(|argument| !argument.starts_with('-'));
    match Path::new(program).file_name().and_then(OsStr::to_str) {
        Some("npx") => true,
        Some("npm") => matches!(first, Some("exec" | "x")),
        _ => false,
    }
}

impl PackagedProgram {
    /// The program that the runner with this process id has started and that still runs, if it can be identified with
    /// certainty: the only child, or the only child of its shell, with the same streams and within a package directory.
    #[must_use]
    pub(crate) fn of(runner: i32) -> Option<Self> {
        let entries = processes();
        let mut pid = only_child(&entries, runner)?;
        if is_shell(&fs::read(format!("/proc/{pid}/cmdline")).ok()?) {
            pid = only_child(&entries, pid)?;
        }
        let streams = |pid: i32| [0, 1].map(|at| fs::read_link(format!("/proc/{pid}/fd/{at}")).ok());
        let found = Self {
            program: fs::read_link(format!("/proc/{pid}/exe")).ok()?,
            arguments: nul_terminated(&fs::read(format!("/proc/{pid}/cmdline")).ok()?),
            environment: nul_terminated(&fs::read(format!("/proc/{pid}/environ")).ok()?)
                .into_iter()
                .map(variable)
                .collect(),
            directory: fs::read_link(format!("/proc/{pid}/cwd")).ok()?,
        };
        let shares_streams = streams(pid) == streams(runner) && !streams(pid).contains(&None);
        (shares_streams && found.has_original_arguments() && found.program.is_file()).then_some(found)
    }

    /// The command that starts it.
    #[must_use]
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some((name, arguments)) = self.arguments.split_first() {
            command.arg0(name).args(arguments);
        }
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.directory);
        command
    }

    /// Whether its arguments are still the original ones, since a program may overwrite them with a title: the first
    /// names the program, and the program or a file argument is within a package directory.
    fn has_original_arguments(&self) -> bool {
        let Some(name) = self.arguments.first().map(Path::new) else { return false };
        let is_named = name.file_name() == self.program.file_name()
            || self.directory.join(name).canonicalize().is_ok_and(|path| path == self.program);
        let is_package =
            |path: &Path| path.components().any(|part| part == Component::Normal(OsStr::new(PACKAGE_DIRECTORY)));
        let is_read = |argument: &OsString| {
            let path = self.directory.join(argument);
            is_package(&path) && path.is_file()
        };
        is_named && (is_package(&self.program) || self.arguments.iter().skip(1).any(is_read))
    }
}

fn only_child(entries: &[ProcessEntry], parent: i32) -> Option<i32> {
    let mut children = entries.iter().filter(|entry| entry.parent == parent && entry.state != 'Z');
    match (children.next(), children.next()) {
        (Some(child), None) => Some(child.pid),
        _ => None,
    }
}

/// Whether a command line is that of a shell with a command: `sh -c …`.
fn is_shell(line: &[u8]) -> bool {
    let nul_terminated = nul_terminated(line);
    let name = nul_terminated.first().and_then(|name| Path::new(name).file_name()).and_then(OsStr::to_str);
    name.is_some_and(|name| SHELLS.contains(&name)) && nul_terminated.get(1).is_some_and(|word| word == "-c")
}

/// Splits NUL-terminated strings.
fn nul_terminated(bytes: &[u8]) -> Vec<OsString> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    bytes.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect()
}

/// Splits an environment variable into name and value.
fn variable(word: OsString) -> (OsString, OsString) {
    let mut name = word.into_vec();
    // The first character belongs to the name in any case.
    let at = name.iter().skip(1).position(|byte| *byte == b'=').map_or(name.len(), |at| at + 1);
    let value = name.split_off(at).into_iter().skip(1).collect();
    (OsString::from_vec(name), OsString::from_vec(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_runner(line: &str) -> bool {
        is_package_runner(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn package_runners_are_known_by_their_names() {
        for line in ["npx -y a", "/usr/bin/npx a", "npm exec -- a", "npm --yes x a"] {
            assert!(is_runner(line), "{line}");
        }
        for line in ["", "node npx", "npm run exec", "npm", "./npx.sh", "uvx a"] {
            assert!(!is_runner(line), "{line}");
        }
    }

    #[test]
    fn process_table_strings_are_parsed() {
        assert_eq!(nul_terminated(b"sh\0-c\0a b\0"), ["sh", "-c", "a b"]);
        assert!(is_shell(b"/bin/sh\0-c\0a\0") && !is_shell(b"sh\0a\0") && !is_shell(b"node\0-c\0"));
        assert_eq!(variable("A=b=c".into()), ("A".into(), "b=c".into()));
        assert_eq!(variable("A=".into()), ("A".into(), "".into()));
        assert_eq!(variable("A".into()), ("A".into(), "".into()));
    }

    #[test]
    fn a_program_that_has_overwritten_its_arguments_is_not_started_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("node_modules/a.js");
        fs::create_dir_all(script.parent().expect("it has one")).expect("a folder");
        fs::write(&script, "").expect("a file");
        let with = |arguments: &[&str]| PackagedProgram {
            program: "/usr/bin/node".into(),
            arguments: arguments.iter().map(OsString::from).collect(),
            environment: Vec::new(),
            directory: folder.path().to_owned(),
        };
        assert!(with(&["node", "node_modules/a.js", "-v"]).has_original_arguments());
        assert!(with(&["node", "--import", "x", &script.display().to_string()]).has_original_arguments());
        for arguments in [&["node"][..], &["a-server"], &["node", "a.js"], &["node", "node_modules/b.js"], &[]] {
            assert!(!with(arguments).has_original_arguments(), "{arguments:?}");
        }
        let native = PackagedProgram { program: "/a/node_modules/b/bin/c".into(), ..with(&["c"]) };
        assert!(native.has_original_arguments());
    }
}
