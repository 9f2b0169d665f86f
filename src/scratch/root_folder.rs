//! A folder that a client names as its root, with a file in it, and a file next to it that no server has to read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The name of the folder that is the root, and of the one next to it, whose path begins like that of the root.
const ROOT: &str = "root";
const OTHER: &str = "root-of-another";
/// The file in each of them.
const FILE: &str = "notes.txt";
/// The link in the root to the file in the other folder.
const LINK: &str = "link.txt";
/// What is in the files. The case that uses them looks for these texts.
const INSIDE: &str = "conformance: this file is within the root\n";
const OUTSIDE: &str = "conformance: this file is outside of the roots\n";

/// The folders; they are removed when it is dropped.
#[derive(Debug)]
pub(crate) struct RootFolder {
    /// Without links, as a server may compare it with the path that it resolves.
    path: String,
    _folder: TempDir,
}

impl RootFolder {
    /// Makes the folders with what is in them.
    pub(crate) fn create() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("mcp-conformance-").tempdir()?;
        let path = fs::canonicalize(folder.path())?;
        let path = path.to_str().ok_or_else(|| io::Error::other("its path is not Unicode"))?.to_owned();
        let made = Self { path, _folder: folder };
        made.restore()?;
        Ok(made)
    }

    /// Makes everything anew that a tool may have changed.
    pub(crate) fn restore(&self) -> io::Result<()> {
        for (folder, text) in [(ROOT, INSIDE), (OTHER, OUTSIDE)] {
            let folder = Path::new(&self.path).join(folder);
            if folder.exists() {
                fs::remove_dir_all(&folder)?;
            }
            fs::create_dir(&folder)?;
            fs::write(folder.join(FILE), text)?;
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(self.outside_file(), self.link())?;
        Ok(())
    }

    /// The path of the root.
    pub(crate) fn root(&self) -> String {
        self.below([ROOT])
    }

    /// The path of the file in the root.
    pub(crate) fn inside_file(&self) -> String {
        self.below([ROOT, FILE])
    }

    /// The path of the file next to the root.
    pub(crate) fn outside_file(&self) -> String {
        self.below([OTHER, FILE])
    }

    /// A path of the same file that begins with the root.
    pub(crate) fn outside_file_by_parent(&self) -> String {
        self.below([ROOT, "..", OTHER, FILE])
    }

    /// The path of a link in the root to the same file; `None` where there are no such links.
    pub(crate) fn outside_file_by_link(&self) -> Option<String> {
        cfg!(unix).then(|| self.link())
    }

    /// Whether a folder contains both.
    pub(crate) fn is_in(&self, folder: &Path) -> bool {
        fs::canonicalize(folder).is_ok_and(|folder| Path::new(&self.path).starts_with(folder))
    }

    fn link(&self) -> String {
        self.below([ROOT, LINK])
    }

    fn below<const N: usize>(&self, names: [&str; N]) -> String {
        let path: PathBuf = [self.path.as_str()].into_iter().chain(names).collect();
        path.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_next_to_the_root_has_three_paths_and_comes_back() {
        let folder = RootFolder::create().expect("it can be made");
        let read = |path: &str| fs::read_to_string(path).expect("it can be read");
        assert!(folder.inside_file().starts_with(&folder.root()) && folder.outside_file().starts_with(&folder.root()));
        assert!(!Path::new(&folder.outside_file()).starts_with(folder.root()));
        for path in [folder.outside_file(), folder.outside_file_by_parent()] {
            assert_eq!(read(&path), OUTSIDE);
        }
        assert!(folder.outside_file_by_link().is_none_or(|path| read(&path) == OUTSIDE));
        fs::write(folder.inside_file(), "changed").expect("it can be written");
        fs::remove_file(folder.outside_file()).expect("it can be removed");
        folder.restore().expect("it can be made anew");
        assert_eq!(
            (read(&folder.inside_file()), read(&folder.outside_file())),
            (INSIDE.to_owned(), OUTSIDE.to_owned())
        );
        assert!(folder.is_in(Path::new("/")) && !folder.is_in(Path::new(&folder.root())));
        let root = folder.root();
        drop(folder);
        assert!(!Path::new(&root).exists());
    }
}
