//! A folder with a few files for servers that read files, made for one run and removed after it.

mod root_folder;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

pub(crate) use self::root_folder::RootFolder;

/// What stands for the folder in the command of a server and in the values of its environment.
const PLACEHOLDER: &str = "{scratch}";

/// A picture of one pixel in PNG format.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
    \0\0\0\rIDATx\xdac\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x56\xc7\x2f\x0d\0\0\0\0IEND\xaeB`\x82";

/// The folder; it is removed with its last clone.
#[derive(Debug, Clone)]
pub(crate) struct ScratchFolder {
    /// Without links, as a server may compare it with the path that it resolves.
    path: PathBuf,
    _folder: Arc<TempDir>,
}

impl PartialEq for ScratchFolder {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for ScratchFolder {}

impl ScratchFolder {
    /// Makes the folder, with a text, a table, some JSON and a picture in it, and a folder with one more text.
    pub(crate) fn create() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("mcp-conformance-").tempdir()?;
        let path = fs::canonicalize(folder.path())?;
        fs::write(path.join("data.json"), "{\n  \"name\": \"example\",\n  \"count\": 3\n}\n")?;
        fs::write(path.join("notes.txt"), "A first line.\nA second line with the word example.\n")?;
        fs::write(path.join("picture.png"), PICTURE)?;
        fs::write(path.join("table.csv"), "name,count\nexample,3\nother,5\n")?;
        fs::create_dir(path.join("folder"))?;
        fs::write(path.join("folder").join("more.txt"), "One more line.\n")?;
        Ok(Self { path, _folder: Arc::new(folder) })
    }

    /// Whether a word of a command, or the value of a variable, stands for the folder or for a path in it.
    pub(crate) fn is_meant_by(word: &OsStr) -> bool {
        word.to_str().is_some_and(|word| word.contains(PLACEHOLDER))
    }

    /// A word with the path of the folder in it.
    pub(crate) fn fill<'w>(&self, word: &'w OsStr) -> Cow<'w, OsStr> {
        match (word.to_str(), self.path.to_str()) {
            (Some(text), Some(path)) if text.contains(PLACEHOLDER) => {
                Cow::Owned(text.replace(PLACEHOLDER, path).into())
            }
            // A folder whose path is no Unicode can replace a whole word only.
            (Some(PLACEHOLDER), None) => Cow::Owned(self.path.clone().into_os_string()),
            _ => Cow::Borrowed(word),
        }
    }

    #[cfg(test)]
    fn path(&self) -> &std::path::Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_stands_in_words_and_is_removed_with_its_last_clone() {
        let folder = ScratchFolder::create().expect("the folder can be made");
        let path = folder.path().to_owned();
        let text = path.to_str().expect("a path in Unicode");
        assert_eq!(folder.fill("--root={scratch}/folder".as_ref()), OsStr::new(&format!("--root={text}/folder")));
        assert_eq!(folder.fill("--root".as_ref()), OsStr::new("--root"));
        assert!(ScratchFolder::is_meant_by("{scratch}".as_ref()) && !ScratchFolder::is_meant_by("scratch".as_ref()));
        assert!(path.join("notes.txt").is_file() && path.join("folder/more.txt").is_file());
        let clone = folder.clone();
        drop(folder);
        assert!(path.is_dir());
        drop(clone);
        assert!(!path.exists());
    }
}
