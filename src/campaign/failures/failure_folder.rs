//! The folder of the failing calls of one server: saves them, reads those of earlier runs, and removes those that no
//! longer fail.
//!
//! A file that cannot be read, written or removed is a note in the report, never an error of the run.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::case::Regression;
use crate::event::SavedCalls;
use crate::fnv;

/// The name of the folder that is used unless the user chooses another one.
const DEFAULT_FOLDER: &str = ".mcp-conformance";
/// The maximum number of notes.
const MAX_PROBLEMS: usize = 4;
/// The maximum length of the name of a server's folder, without its hash.
const MAX_NAME_CHARS: usize = 60;

/// The folder of one server.
#[derive(Debug)]
pub(crate) struct FailureFolder {
    /// The folder of all servers, and the one of this server in it.
    root: PathBuf,
    path: PathBuf,
    report: Mutex<SavedCalls>,
    /// The files that this run wrote, and whether it created them.
    written: Mutex<BTreeMap<PathBuf, bool>>,
}

impl FailureFolder {
    /// The folder of the server with this name, below the folder of all servers.
    pub(crate) fn new(root: &Path, server: &str) -> Self {
        let path = root.join(folder_name(server));
        let report = SavedCalls::new(path.to_string_lossy().into_owned());
        Self { root: root.to_owned(), path, report: Mutex::new(report), written: Mutex::default() }
    }

    /// The saved calls of earlier runs, with the paths of their files.
    pub(in crate::campaign) fn read(&self) -> Vec<(PathBuf, Regression)> {
        let (read, problems) = Regression::read_all(&self.path);
        for problem in problems {
            self.add_problem(format!("a saved call is not tried: {problem}"));
        }
        read
    }

    /// Saves a failing call; returns the path of its file.
    pub(in crate::campaign) fn save(&self, file_name: &str, regression: &Regression) -> Option<String> {
        let path = self.path.join(file_name);
        let is_new = !path.exists();
        match self.write(&path, regression) {
            Ok(()) => {
                let shown = path.to_string_lossy().into_owned();
                // Two workers may find the same failure.
                if let Entry::Vacant(entry) = self.written().entry(path) {
                    entry.insert(is_new);
                    self.report().saved += 1;
                }
                Some(shown)
            }
            Err(error) => {
                self.add_problem(format!("failing calls are not saved: write {}: {error}", path.display()));
                None
            }
        }
    }

    /// Removes a file that this run created, because another one has the same cause; returns whether it did. The file of
    /// an earlier run stays.
    pub(super) fn withdraw(&self, path: &Path) -> bool {
        if self.written().get(path) != Some(&true) {
            return false;
        }
        match fs::remove_file(path) {
            Ok(()) => {
                self.written().remove(path);
                self.report().saved -= 1;
                true
            }
            Err(error) => {
                self.add_problem(format!("remove {}: {error}", path.display()));
                false
            }
        }
    }

    fn write(&self, path: &Path, regression: &Regression) -> io::Result<()> {
        if !self.root.try_exists()? {
            fs::create_dir_all(&self.root)?;
            // A folder that the user chose may be meant for the repository.
            if self.root.file_name().is_some_and(|name| name == DEFAULT_FOLDER) {
                fs::write(self.root.join(".gitignore"), "*\n")?;
            }
        }
        fs::create_dir_all(&self.path)?;
        let mut text = serde_json::to_string_pretty(regression)?;
        text.push('\n');
        fs::write(path, text)
    }

    /// Records that the call in a file no longer fails, and removes the file if `prune` says so; returns whether it
    /// was removed.
    pub(in crate::campaign) fn record_fixed(&self, path: &Path, prune: bool) -> bool {
        self.report().fixed += 1;
        if !prune {
            return false;
        }
        match fs::remove_file(path) {
            Ok(()) => {
                self.report().removed += 1;
                true
            }
            Err(error) => {
                self.add_problem(format!("remove {}: {error}", path.display()));
                false
            }
        }
    }

    fn add_problem(&self, problem: String) {
        let problems = &mut self.report().problems;
        if problems.len() < MAX_PROBLEMS && !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    /// What happened in the folder, if anything did.
    pub(crate) fn into_report(self) -> Option<SavedCalls> {
        let report = self.report.into_inner().unwrap_or_else(PoisonError::into_inner);
        (!report.is_empty()).then_some(report)
    }

    fn written(&self) -> MutexGuard<'_, BTreeMap<PathBuf, bool>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self) -> MutexGuard<'_, SavedCalls> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of the folder of a server: its own name, and a hash if that is no portable file name.
fn folder_name(server: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let safe: String = server.chars().map(|c| if is_plain(c) { c } else { '-' }).take(MAX_NAME_CHARS).collect();
    let is_portable = safe == server && safe.starts_with(|c: char| c.is_ascii_alphanumeric()) && !safe.ends_with('.');
    if is_portable && !is_reserved(&safe) {
        return safe;
    }
    let safe = safe.replace('.', "-");
    let safe = safe.trim_matches('-');
    let hash = hash(server.bytes());
    if safe.is_empty() { format!("{hash:08x}") } else { format!("{safe}-{hash:08x}") }
}

/// Whether Windows gives a name to a device.
fn is_reserved(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let numbered = |device: &str| stem.strip_prefix(device).is_some_and(|rest| rest.len() == 1);
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL") || numbered("COM") || numbered("LPT")
}

/// A hash that is the same on every machine (FNV-1a, folded to 32 bits).
pub(super) fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    fnv::hash(bytes) & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Revision;
    use serde_json::json;

    fn regression() -> Regression {
        Regression {
            format: Regression::FORMAT,
            case: "fuzz/crash".to_owned(),
            message: "the server ended".to_owned(),
            revision: Revision::V2025_11_25,
            tool: "echo".to_owned(),
            preceding: Vec::new(),
            arguments: Some(json!({"text": "A"})),
            raw: None,
            malformation: None,
            reused: Vec::new(),
            breaks_tool: None,
            repeat: None,
            concurrent: false,
            steps: Vec::new(),
            expectation: None,
        }
    }

    #[test]
    fn each_server_has_a_folder_of_its_own_with_a_portable_name() {
        assert_eq!(folder_name("everything-server_1.2"), "everything-server_1.2");
        let names =
            ["@scope/files", "-scope/files", "..", "../files", "", "Größe", "con", "nul.txt", "a.", "a b", "a-b"];
        let folders: Vec<String> = names.iter().map(|name| folder_name(name)).collect();
        for (at, folder) in folders.iter().enumerate() {
            assert!(folder.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)), "{folder}");
            assert!(!folder.starts_with('.') && !folder.is_empty() && !is_reserved(folder), "{folder}");
            assert!(!folders[..at].contains(folder), "{folder} of several servers");
        }
        assert!(folder_name(&"x".repeat(5_000)).len() < 80);
    }

    #[test]
    fn saved_calls_are_read_again_and_removed_once_they_no_longer_fail() {
        let parent = tempfile::tempdir().expect("a folder");
        let root = parent.path().join(DEFAULT_FOLDER);
        let folder = FailureFolder::new(&root, "files");
        assert!(folder.read().is_empty());
        let path = folder.save("crash.json", &regression()).expect("it is saved");
        assert_eq!(fs::read_to_string(root.join(".gitignore")).expect("it is written"), "*\n");
        assert!(path.contains("files"), "{path}");
        assert_eq!(folder.read(), [(PathBuf::from(&path), regression())]);
        assert!(FailureFolder::new(&root, "others").read().is_empty(), "it replays the calls of another server");
        assert!(!folder.record_fixed(Path::new(&path), false) && Path::new(&path).exists());
        assert!(folder.record_fixed(Path::new(&path), true) && !Path::new(&path).exists());
        let report = folder.into_report().expect("something happened");
        assert_eq!((report.saved, report.fixed, report.removed), (1, 2, 1));
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        assert!(FailureFolder::new(&root, "files").into_report().is_none());
    }

    #[test]
    fn only_a_file_that_this_run_created_is_withdrawn() {
        let parent = tempfile::tempdir().expect("a folder");
        let earlier = FailureFolder::new(parent.path(), "files");
        let old = earlier.save("old.json", &regression()).expect("it is saved");
        let folder = FailureFolder::new(parent.path(), "files");
        let [new, same] = ["new.json", "old.json"].map(|name| folder.save(name, &regression()).expect("it is saved"));
        assert_eq!(same, old);
        assert!(folder.withdraw(Path::new(&new)) && !Path::new(&new).exists());
        assert!(!folder.withdraw(Path::new(&old)) && Path::new(&old).exists());
        assert_eq!(folder.into_report().map(|report| report.saved), Some(1));
    }

    #[test]
    fn a_folder_that_the_user_chose_is_not_ignored() {
        let parent = tempfile::tempdir().expect("a folder");
        let root = parent.path().join("regressions");
        FailureFolder::new(&root, "files").save("crash.json", &regression()).expect("it is saved");
        assert!(!root.join(".gitignore").exists());
    }

    #[test]
    fn what_cannot_be_read_or_written_is_a_note() {
        let parent = tempfile::tempdir().expect("a folder");
        let root = parent.path().join("a-file");
        fs::write(&root, "").expect("it can be written");
        let folder = FailureFolder::new(&root, "files");
        assert_eq!((folder.save("a.json", &regression()), folder.save("a.json", &regression())), (None, None));
        let problems = folder.into_report().expect("a note").problems;
        assert!(matches!(problems.as_slice(), [one] if one.contains("failing calls are not saved")), "{problems:?}");

        let folder = FailureFolder::new(parent.path(), "files");
        let path = folder.save("a.json", &regression()).expect("it is saved");
        fs::write(&path, "{").expect("it can be written");
        assert!(folder.read().is_empty());
        assert!(!folder.record_fixed(&parent.path().join("missing.json"), true));
        assert_eq!(folder.into_report().expect("notes").problems.len(), 2);
    }
}
