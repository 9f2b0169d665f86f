//! What a report says of the folder of saved failing calls.

use super::visible::excerpt;
use crate::event::SavedCalls;

/// The sentences, each one line.
pub(super) fn lines(saved: &SavedCalls) -> Vec<String> {
    const MAX_CHARS: usize = 200;
    let mut lines = Vec::new();
    if saved.saved > 0 {
        let count =
            if saved.saved == 1 { "1 failing call".to_owned() } else { format!("{} failing calls", saved.saved) };
        let folder = excerpt(&saved.folder, MAX_CHARS, 0);
        lines.push(format!("{count} saved in {folder}, to be tried first in the next run"));
    }
    let left = saved.fixed.saturating_sub(saved.removed);
    if saved.removed > 0 {
        lines.push(match saved.removed {
            1 => "1 call of an earlier run was removed, because it no longer fails".to_owned(),
            count => format!("{count} calls of earlier runs were removed, because they no longer fail"),
        });
    }
    if left > 0 {
        lines.push(match left {
            1 => "1 saved call no longer fails: --prune removes it".to_owned(),
            count => format!("{count} saved calls no longer fail: --prune removes them"),
        });
    }
    lines.extend(saved.problems.iter().map(|problem| format!("note: {}", excerpt(problem, MAX_CHARS, 0))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_and_what_happened_in_it_are_named() {
        let saved = |saved, fixed, removed, problem: Option<&str>| SavedCalls {
            saved,
            fixed,
            removed,
            problems: problem.map(str::to_owned).into_iter().collect(),
            ..SavedCalls::new(".mcp-conformance/files".to_owned())
        };
        assert_eq!(
            lines(&saved(1, 3, 1, Some("it is read-only"))),
            [
                "1 failing call saved in .mcp-conformance/files, to be tried first in the next run",
                "1 call of an earlier run was removed, because it no longer fails",
                "2 saved calls no longer fail: --prune removes them",
                "note: it is read-only",
            ]
        );
        assert_eq!(lines(&saved(0, 1, 0, None)), ["1 saved call no longer fails: --prune removes it"]);
        assert!(lines(&saved(0, 0, 0, None)).is_empty());
    }
}
