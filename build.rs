//! Lists the files of `cases/` that are embedded: the cases and the shapes, each with its text.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Of a directory, this notices that a file is added, removed or changed.
    println!("cargo:rerun-if-changed=cases");
    println!("cargo:rerun-if-changed=build.rs");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?);
    let target = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    let cases = root.join("cases");
    let mut files = Vec::new();
    collect(&cases, &mut files)?;
    files.sort();
    let mut list = "&[\n".to_owned();
    for file in files {
        let below = file.strip_prefix(&cases).map_err(io::Error::other)?;
        let name = below.to_str().ok_or(io::ErrorKind::InvalidData)?;
        let file = file.to_str().ok_or(io::ErrorKind::InvalidData)?;
        writeln!(list, "    ({name:?}, include_str!({file:?})),").map_err(io::Error::other)?;
    }
    list.push_str("]\n");
    fs::write(target.join("embedded_cases.rs"), list)
}

/// Collects the cases (`*.jsonc`) and the shapes (`shapes/*.json`) below a directory.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_shape = directory.file_name().is_some_and(|name| name == "shapes");
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|own| own == "jsonc" || is_shape && own == "json") {
            files.push(path);
        }
    }
    Ok(())
}
