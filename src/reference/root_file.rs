//! A tool that reads files within the roots of the client. Without roots it reads none.

use std::fs;
use std::path::{Component, Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::call::ToolOutput;
use super::fault::{Fault, FaultSet};
use super::message::Object;
use super::revision::Revision;

/// The name of the tool.
pub(super) const TOOL: &str = "read_file";

/// The length of the longest file that it reads, in bytes.
const MAX_BYTES: u64 = 4 << 10;

/// Whether the server has the tool.
pub(super) fn is_served(revision: Revision, faults: &FaultSet) -> bool {
    [Fault::Awkward, Fault::ReadsOutsideRoots, Fault::FollowsLinksOutOfRoots]
        .into_iter()
        .any(|fault| faults.is_active(fault, revision))
}

/// Reads the file that the arguments name, with these roots.
pub(super) fn read(roots: &[Value], arguments: &Object, revision: Revision, faults: &FaultSet) -> ToolOutput {
    let path = Path::new(arguments.get("path").and_then(Value::as_str).unwrap_or_default());
    let roots: Vec<PathBuf> = roots.iter().filter_map(|root| folder(root.get("uri")?.as_str()?)).collect();
    let is_within = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    let is_allowed = if faults.is_active(Fault::ReadsOutsideRoots, revision) {
        roots.iter().any(|root| path.to_string_lossy().starts_with(&*root.to_string_lossy()))
    } else if faults.is_active(Fault::FollowsLinksOutOfRoots, revision) {
        is_within(path) && !path.components().any(|part| part == Component::ParentDir)
    } else {
        path.canonicalize().is_ok_and(|path| is_within(&path))
    };
    let text = is_allowed.then(|| text_of(path)).flatten();
    text.map_or_else(|| ToolOutput::failure("There is no such file within the roots."), ToolOutput::text)
}

/// The text of a short file.
fn text_of(path: &Path) -> Option<String> {
    let about = fs::metadata(path).ok().filter(|about| about.is_file() && about.len() <= MAX_BYTES)?;
    fs::read_to_string(path).ok().filter(|text| text.len() as u64 == about.len())
}

/// The folder that a root names, if it exists.
fn folder(uri: &str) -> Option<PathBuf> {
    let path = percent_decode_str(uri.strip_prefix("file://")?).decode_utf8().ok()?;
    Path::new(&*path).canonicalize().ok()
}
