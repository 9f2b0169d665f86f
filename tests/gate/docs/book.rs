//! The book as a whole: the pages of the sources and those that the program writes, whose links lead somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use tempfile::TempDir;

use super::{prose, targets};
use crate::support::pages::{pages, read, root};
use crate::support::program;

/// The anchors that a page's headings get: lower case, without punctuation, with hyphens for spaces.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| -> String {
        // A heading may name its anchor.
        if let Some((_, named)) = heading.strip_suffix('}').and_then(|heading| heading.split_once(" {#")) {
            return named.to_owned();
        }
        let kept = heading.to_lowercase();
        kept.chars()
            .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    headings.map(anchor).collect()
}

/// The pages that the program writes, as if they were among the sources.
fn generated() -> Result<BTreeMap<PathBuf, String>, String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let output = program(folder.path(), &["docs", "--output", ".", "--without-examples"])?.with_code(0)?;
    let listed = targets(&output.out);
    if listed.len() < 60 {
        return Err(format!("only {} pages are listed:\n{}", listed.len(), output.text));
    }
    let page = |path: &String| Ok((root().join("docs/src").join(path), read(&folder.path().join(path))?));
    listed.iter().map(page).collect()
}

/// A path without `..`, which need not exist.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            component => normal.push(component),
        }
    }
    normal
}

pub(super) fn links_lead_somewhere() -> Result<(), String> {
    let mut texts = generated()?;
    let written = texts.len();
    let mut files = pages()?;
    files.extend(["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    for file in files {
        let text = read(&file)?;
        if texts.insert(file.clone(), text).is_some() {
            return Err(format!("{} is among the sources, and the program writes it", file.display()));
        }
    }
    let anchors: BTreeMap<&PathBuf, BTreeSet<String>> =
        texts.iter().map(|(file, text)| (file, anchors(text))).collect();
    let (mut broken, mut checked) = (Vec::new(), 0);
    for (file, text) in &texts {
        for target in targets(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let folder = file.parent().unwrap_or(root());
            let path = if path.is_empty() { file.clone() } else { normal(&folder.join(path)) };
            let exists = match anchors.get(&path) {
                Some(anchors) => anchor.is_empty() || anchors.contains(anchor),
                None => path.exists() && anchor.is_empty(),
            };
            if !exists {
                broken.push(format!("{}: {target}", file.display()));
            }
        }
    }
    // Each case links to a requirement, and back.
    if checked < 1000 || written < 60 {
        return Err(format!("only {checked} links on {written} written pages were found"));
    }
    if broken.is_empty() { Ok(()) } else { Err(format!("links that lead nowhere:\n{}", broken.join("\n"))) }
}
