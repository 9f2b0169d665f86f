//! Finds which packages are installed for a server that is started as a process: below its folders, where its command names a
//! file.
//!
//! Reads names of files, manifests and lock files, and runs nothing. Which packages are of interest is up to the report.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::event::{InstalledPackage, PackageKind};
use crate::limits::{
    MAX_COMMAND_WORDS, MAX_FOLDERS_ABOVE, MAX_PACKAGE_FILE_BYTES, MAX_PYTHON_PACKAGES, MAX_SCRIPT_HEAD_BYTES,
};
use crate::plan::{Launcher, ServerCommand};

/// The folder next to `Cargo.lock` where Cargo builds, unless it is told otherwise.
const CARGO_TARGET: &str = "target";

/// The packages by kind and name of which it is asked whether they are installed.
type Wanted<'a> = &'a [(PackageKind, &'a str)];

/// The wanted packages that are installed for a server; none if it is not started as a process.
#[must_use]
pub fn installed_packages(launcher: &Launcher, wanted: &[(PackageKind, &str)]) -> Vec<InstalledPackage> {
    let command = match launcher {
        Launcher::Command(command) => Some(command),
        Launcher::Http(target) => target.command.as_ref(),
        Launcher::Reference(_) | Launcher::InProcess(_) => None,
    };
    command.map(|command| packages_of(command, wanted)).unwrap_or_default()
}

fn packages_of(command: &ServerCommand, wanted: Wanted<'_>) -> Vec<InstalledPackage> {
    let current = command.directory.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    let mut found: Vec<InstalledPackage> = Vec::new();
    for (at, word) in command.command.iter().take(MAX_COMMAND_WORDS).enumerate() {
        let Some(file) = file_named(&current, word, at == 0) else { continue };
        for package in packages_for(&file, wanted) {
            if !found.contains(&package) {
                found.push(package);
            }
        }
    }
    found
}

/// The file that a word of a command names: relative to the working directory, or the program on the search path.
fn file_named(current: &Path, word: &OsStr, is_program: bool) -> Option<PathBuf> {
    let path = Path::new(word);
    if is_program && path.components().count() == 1 {
        let folders = std::env::var_os("PATH")?;
        return std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|path| path.is_file());
    }
    Some(current.join(path)).filter(|path| path.is_file())
}

/// The packages that a file can import: those of the nearest folder above it that has some.
fn packages_for(file: &Path, wanted: Wanted<'_>) -> Vec<InstalledPackage> {
    let Some(kind) = kind_of(file) else { return Vec::new() };
    // A program of a Python environment is often a link to one elsewhere, so both places are looked at.
    let resolved = fs::canonicalize(file).ok();
    let places = [Some(file), resolved.as_deref().filter(|resolved| *resolved != file)];
    let of = |place: &Path| {
        let mut folders = place.ancestors().skip(1).take(MAX_FOLDERS_ABOVE);
        folders.find_map(|folder| {
            // A program that Cargo did not build there may be written in any language.
            let can_import = kind != PackageKind::Cargo || place.starts_with(folder.join(CARGO_TARGET));
            Some(packages_in(folder, kind, wanted)).filter(|found| can_import && !found.is_empty())
        })
    };
    places.into_iter().flatten().find_map(of).unwrap_or_default()
}

/// The kind of packages that a program or a script is made of, by its name and how it begins.
fn kind_of(file: &Path) -> Option<PackageKind> {
    let mut head = Vec::new();
    File::open(file).ok()?.take(MAX_SCRIPT_HEAD_BYTES).read_to_end(&mut head).ok()?;
    let name = file.file_name()?.to_string_lossy();
    let extension = file.extension().unwrap_or_default().to_string_lossy();
    let first_line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let interpreter = String::from_utf8_lossy(first_line.strip_prefix(b"#!").unwrap_or_default());
    if name.starts_with("python") || extension == "py" || interpreter.contains("python") {
        return Some(PackageKind::Pypi);
    }
    let is_script = ["js", "mjs", "cjs", "ts", "mts", "cts"].contains(&&*extension);
    if is_script || ["node", "bun", "deno", "tsx"].iter().any(|program| interpreter.contains(program)) {
        return Some(PackageKind::Npm);
    }
    let is_binary = [&b"\x7fELF"[..], b"\xcf\xfa\xed\xfe"].iter().any(|magic| head.starts_with(magic));
    is_binary.then_some(PackageKind::Cargo)
}

/// The wanted packages that are installed in a folder.
fn packages_in(folder: &Path, kind: PackageKind, wanted: Wanted<'_>) -> Vec<InstalledPackage> {
    let known: Vec<&str> = wanted.iter().filter(|(of, _)| *of == kind).map(|(_, name)| *name).collect();
    let mut found = Vec::new();
    match kind {
        PackageKind::Npm => {
            for name in known {
                let manifest = folder.join("node_modules").join(name).join("package.json");
                if let Some(version) = read(&manifest).and_then(|text| version_in_json(&text)) {
                    add(&mut found, kind, name, &version);
                }
            }
        }
        PackageKind::Pypi => {
            for (name, version) in python_packages(folder).into_iter().chain(python_packages(&folder.join(".venv"))) {
                if known.contains(&name.as_str()) {
                    add(&mut found, kind, &name, &version);
                }
            }
        }
        PackageKind::Cargo => {
            let lock = read(&folder.join("Cargo.lock")).unwrap_or_default();
            for name in known {
                for version in locked_versions(&lock, name) {
                    add(&mut found, kind, name, version);
                }
            }
        }
    }
    found
}

fn add(found: &mut Vec<InstalledPackage>, kind: PackageKind, name: &str, version: &str) {
    let package = InstalledPackage { kind, name: name.to_owned(), version: version.to_owned() };
    if !found.contains(&package) {
        found.push(package);
    }
}

/// The packages of a Python environment with their versions, by the folders `NAME-VERSION.dist-info`.
fn python_packages(environment: &Path) -> Vec<(String, String)> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_PYTHON_PACKAGES);
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    };
    let libraries = environment.join("lib");
    let pythons = names(&libraries).into_iter().filter(|name| name.starts_with("python3"));
    let entries = pythons.flat_map(|python| names(&libraries.join(python).join("site-packages")));
    let split = |entry: String| {
        let (name, version) = entry.strip_suffix(".dist-info")?.split_once('-')?;
        Some((name.to_owned(), version.to_owned()))
    };
    let mut packages: Vec<(String, String)> = entries.filter_map(split).collect();
    packages.sort_unstable();
    packages
}

/// The versions of a package in a `Cargo.lock`, where the line with the version follows that with the name.
fn locked_versions<'t>(lock: &'t str, name: &str) -> Vec<&'t str> {
    let value = |line: &'t str, key: &str| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"');
    let lines: Vec<&str> = lock.lines().collect();
    lines
        .windows(2)
        .filter(|pair| value(pair[0], "name") == Some(name))
        .filter_map(|pair| value(pair[1], "version"))
        .collect()
}

fn version_in_json(text: &str) -> Option<String> {
    let manifest: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(manifest.get("version")?.as_str()?.to_owned())
}

/// The text of a file, unless it is too large.
fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_PACKAGE_FILE_BYTES + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= MAX_PACKAGE_FILE_BYTES).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes files below a folder.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("it is created");
            fs::write(path, text).expect("it is written");
        }
        folder
    }

    /// What is found for a command in a folder, as `NAME VERSION`.
    fn found(folder: &Path, command: &[&str]) -> Vec<String> {
        let command = ServerCommand::new(command[0]).args(&command[1..]).current_dir(folder);
        let wanted =
            [(PackageKind::Npm, "@modelcontextprotocol/sdk"), (PackageKind::Pypi, "mcp"), (PackageKind::Cargo, "rmcp")];
        let packages = installed_packages(&Launcher::Command(command), &wanted);
        packages.iter().map(|package| format!("{} {}", package.name, package.version)).collect()
    }

    #[test]
    fn the_nearest_node_modules_above_a_script_count() {
        let sdk = "node_modules/@modelcontextprotocol/sdk/package.json";
        let folder = folder(&[
            ("app/dist/index.js", ""),
            (&format!("app/{sdk}"), r#"{"name": "@modelcontextprotocol/sdk", "version": "1.20.1"}"#),
            (sdk, r#"{"version": "2.0.0"}"#),
            ("other/index.js", ""),
        ]);
        assert_eq!(
            found(folder.path(), &["no-such-program", "app/dist/index.js"]),
            ["@modelcontextprotocol/sdk 1.20.1"]
        );
        assert_eq!(found(folder.path(), &["no-such-program", "other/index.js"]), ["@modelcontextprotocol/sdk 2.0.0"]);
        assert_eq!(found(folder.path(), &["no-such-program", "--stdio"]), Vec::<String>::new());
    }

    #[test]
    fn a_python_environment_names_its_packages() {
        let folder = folder(&[
            (".venv/bin/my-server", "#!/srv/.venv/bin/python\n"),
            (".venv/lib/python3.12/site-packages/mcp-1.9.0.dist-info/METADATA", ""),
            (".venv/lib/python3.12/site-packages/mcp_other-7.0.0.dist-info/METADATA", ""),
            ("src/server.py", ""),
        ]);
        assert_eq!(found(folder.path(), &[".venv/bin/my-server"]), ["mcp 1.9.0"]);
        // Without its interpreter in the command, the environment of the project counts.
        assert_eq!(found(folder.path(), &["no-such-program", "src/server.py"]), ["mcp 1.9.0"]);
    }

    #[test]
    fn a_lock_file_above_a_binary_names_the_crate() {
        let lock = "version = 4\n\n[[package]]\nname = \"rmcp\"\nversion = \"3.9.0\"\ndependencies = []\n\n[[package]]\nname = \"rmcp-macros\"\nversion = \"9.0.0\"\n";
        let (built, foreign) = ("target/debug/server", "tools/node_modules/server/bin/server");
        let folder = folder(&[("Cargo.lock", lock), (built, "\u{7f}ELF"), (foreign, "\u{7f}ELF")]);
        assert_eq!(found(folder.path(), &[built]), ["rmcp 3.9.0"]);
        assert_eq!(found(folder.path(), &[foreign]), Vec::<String>::new(), "Cargo did not build it");
    }

    #[test]
    fn a_file_that_is_no_manifest_or_too_large_names_nothing() {
        let sdk = "node_modules/@modelcontextprotocol/sdk/package.json";
        for text in ["", "[]", r#"{"version": 1}"#, &" ".repeat(5 << 20)] {
            let folder = folder(&[("index.js", ""), (sdk, text)]);
            assert_eq!(found(folder.path(), &["no-such-program", "index.js"]), Vec::<String>::new());
        }
    }
}
