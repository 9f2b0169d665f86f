//! Who imports whom: the modules of the library may only name those that the architecture allows.

use std::path::{Path, PathBuf};

use libtest_mimic::Trial;

use crate::trial;

/// Each module with the modules and packages that it must not name.
const FORBIDDEN: [(&str, &[&str]); 11] = [
    (
        "spec",
        &[
            "crate::wire",
            "crate::case",
            "crate::check",
            "crate::client",
            "crate::run",
            "crate::report",
            "crate::reference",
            "tokio",
        ],
    ),
    ("wire", &["crate::spec", "crate::case", "crate::check", "crate::client", "crate::run", "crate::report", "tokio"]),
    ("transcript.rs", &["crate::case", "crate::check", "crate::client", "crate::run", "crate::report", "tokio"]),
    ("verdict.rs", &["crate::case", "crate::check", "crate::client", "crate::run", "crate::report", "tokio"]),
    ("event.rs", &["crate::case", "crate::check", "crate::client", "crate::run", "crate::report", "tokio"]),
    ("case", &["crate::check", "crate::client", "crate::run", "crate::report", "crate::reference", "tokio"]),
    ("check", &["crate::client", "crate::run", "crate::report", "crate::reference", "tokio", "std::time::Instant"]),
    ("fuzz", &["crate::client", "crate::run", "crate::report", "crate::reference", "crate::check", "tokio"]),
    ("client", &["crate::check", "crate::case", "crate::run", "crate::report", "crate::reference", "crate::spec"]),
    (
        "report",
        &[
            "crate::client",
            "crate::run",
            "crate::fuzz",
            "crate::reference",
            "crate::check",
            "tokio",
            "std::time::Instant",
        ],
    ),
    ("mock", &["crate::check", "crate::case", "crate::client", "crate::run", "crate::report"]),
];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("house/imports-point-one-way", || imports_point_one_way(&sources())),
        trial("house/a-forbidden-import-is-seen", a_forbidden_import_is_seen),
    ]
}

fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the sources are there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source is text");
                found.push((path, text));
            }
        }
    }
    found
}

fn imports_point_one_way(sources: &[(PathBuf, String)]) -> Result<(), String> {
    let mut wrong = Vec::new();
    for (path, text) in sources {
        let inside = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
        let module = inside.skip_while(|part| part != "src").nth(1).unwrap_or_default();
        let Some((_, forbidden)) = FORBIDDEN.iter().find(|(name, _)| *name == module) else { continue };
        // Tests beside the code may use what they like.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            if let Some(name) = forbidden.iter().find(|name| names(line, name)) {
                wrong.push(format!("{} names {name}: {}", path.display(), line.trim()));
            }
        }
    }
    if sources.is_empty() {
        return Err("no source was found".to_owned());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Whether a line names a module or package: `tokio::`, `crate::run::` or `use tokio;`.
fn names(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + name.len()..].chars().next();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
            && matches!(after, Some(':' | ';' | ' ' | ',') | None)
    })
}

fn a_forbidden_import_is_seen() -> Result<(), String> {
    let planted = [(PathBuf::from("src/check/planted.rs"), "use tokio::time::sleep;\n".to_owned())];
    match imports_point_one_way(&planted) {
        Err(told) if told.contains("tokio") => Ok(()),
        other => Err(format!("the planted import was not seen: {other:?}")),
    }
}
