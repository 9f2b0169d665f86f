//! Fixed renders of the example report: `reports/golden/`, rewritten by `UPDATE_GOLDEN=1`.

use std::fs;
use std::path::Path;

use similar::TextDiff;

/// Holds a render against the file of that name.
pub(super) fn compare(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, actual).expect("the golden folder can be written");
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected != actual {
        let diff = TextDiff::from_lines(&expected, actual);
        panic!("{name} drifted (UPDATE_GOLDEN=1 rewrites it)\n{}", diff.unified_diff());
    }
}
