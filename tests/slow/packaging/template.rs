//! The package that a Rust server can start from: it compiles with this version, its tests pass, and they fail once its
//! server violates a rule.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{folder, read, root, run};

/// What keeps the dependencies compiled between two runs.
const TARGET_FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/rust-template");

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|error| error.to_string())?;
    for entry in fs::read_dir(from).map_err(|error| format!("{}: {error}", from.display()))? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let copied = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &copied)?;
        } else {
            fs::copy(&path, copied).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Replaces a text that occurs once in a file.
fn replace(path: &Path, old: &str, new: &str) -> Result<(), String> {
    let text = read(path)?;
    if text.matches(old).count() != 1 {
        return Err(format!("`{old}` is not once in {}", path.display()));
    }
    fs::write(path, text.replace(old, new)).map_err(|error| error.to_string())
}

pub(super) fn the_template_is_tested() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    copy(&root().join("docs/rust-template"), folder)?;
    // The versions of this package, and this package instead of a published one: its version has to fit.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).map_err(|error| error.to_string())?;
    let path = format!("mcp-conformance = {{ path = \"{}\", version", root().display());
    replace(&folder.join("Cargo.toml"), "mcp-conformance = { version", &path)?;
    let test = |words: &[&str], code| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(folder).args(["test", "--quiet", "--test", "conformance", "--target-dir", TARGET_FOLDER]);
        run(cargo.env_remove("CARGO_TARGET_DIR").arg("--").args(words), code)
    };
    let passed = test(&[], 0)?;
    let count =
        passed.split("test result: ok. ").nth(1).and_then(|rest| rest.split_once(" passed")?.0.parse::<u32>().ok());
    if count.is_none_or(|count| count < 150) {
        return Err(format!("fewer cases pass than the template shows:\n{passed}"));
    }
    let serve = "    Thermometer.serve(stdio())";
    replace(&folder.join("src/main.rs"), serve, &format!("    println!(\"ready\");\n{serve}"))?;
    let failed = test(&["stdio/"], 101)?;
    if failed.contains("stdio/stdout-only-messages") { Ok(()) } else { Err(failed) }
}
