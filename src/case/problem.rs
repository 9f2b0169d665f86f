//! Problems in case files, with their positions.

use std::fmt;

/// A problem in a file.
///
/// Shown as `cases/x/y.jsonc:12:9: unknown requirement `tools-cal` (did you mean `tools-call`?)`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// The file, as the user named it.
    pub file: String,
    /// The line, counted from 1; 0 where the problem is with the file as a whole.
    pub line: usize,
    /// The column in characters, counted from 1; 0 where the problem is with the file as a whole.
    pub column: usize,
    /// The JSON pointer to the value that is wrong; empty also where nothing could be parsed.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
    /// The most similar valid name.
    pub suggestion: Option<String>,
}

impl Diagnostic {
    /// A problem with a file as a whole.
    pub(super) fn of_file(file: impl Into<String>, message: impl Into<String>) -> Self {
        let (file, message) = (file.into(), message.into());
        Self { file, line: 0, column: 0, pointer: String::new(), message, suggestion: None }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}", self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, " (did you mean `{suggestion}`?)"),
            None => Ok(()),
        }
    }
}

/// Files that cannot be used: every problem in every file, by file and line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.listing())]
pub struct LoadError {
    /// The problems; never none.
    pub faults: Vec<Diagnostic>,
}

impl LoadError {
    fn listing(&self) -> String {
        let lines: Vec<_> = self.faults.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }
}

/// A problem before its line is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnlocatedDiagnostic {
    /// The JSON pointer to the value.
    pub(super) pointer: String,
    /// Whether the name of the member is wrong rather than its value.
    pub(super) on_name: bool,
    /// What is wrong.
    pub(super) message: String,
    /// The most similar valid name.
    pub(super) suggestion: Option<String>,
}

impl UnlocatedDiagnostic {
    /// A problem with the value at `pointer`.
    pub(super) fn at(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), on_name: false, message: message.into(), suggestion: None }
    }

    /// A problem with the member at `pointer`, reported at its name.
    pub(super) fn on_name(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { on_name: true, ..Self::at(pointer, message) }
    }

    /// Adds the known name that is most similar to the one that was found.
    pub(super) fn nearest<'a>(mut self, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        self.suggestion = nearest(name, known).map(str::to_owned);
        self
    }
}

/// The known name that is most similar to a wrong one.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // 0.8 admits one or two wrong letters, and an unfinished name.
    const MIN_SIMILARITY: f64 = 0.8;
    let lower = name.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness >= MIN_SIMILARITY)
        .max_by(|(a, first), (b, second)| a.total_cmp(b).then_with(|| second.cmp(first)))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_shows_its_position_and_a_suggestion() {
        let flaw = UnlocatedDiagnostic::at("/requirements/0", "unknown requirement `tools-cal`")
            .nearest("tools-cal", ["tools-call", "ping"]);
        let fault = Diagnostic {
            file: "cases/x/y.jsonc".to_owned(),
            line: 12,
            column: 9,
            pointer: flaw.pointer,
            message: flaw.message,
            suggestion: flaw.suggestion,
        };
        assert_eq!(
            fault.to_string(),
            "cases/x/y.jsonc:12:9: unknown requirement `tools-cal` (did you mean `tools-call`?)"
        );
        assert_eq!(Diagnostic::of_file("cases", "holds nothing").to_string(), "cases: holds nothing");
    }

    #[test]
    fn the_nearest_name_is_similar() {
        assert_eq!(nearest("reslt", ["request", "result", "error"]), Some("result"));
        assert_eq!(nearest("Tools", ["tools", "stdio"]), Some("tools"));
        assert_eq!(nearest("xyz", ["result", "error"]), None);
    }
}
