//! Whose a finding is: the author's of the server, the SDK's, or a question of interpretation.
//!
//! Their order is that in which formats show them: first what the author has to fix, then what the SDK causes, and then
//! what fair readers of the specification may see differently.

use crate::verdict::{Finding, Verdict};

/// Whose a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Attribution {
    /// The author's of the server.
    Author,
    /// The SDK's, whose clean server does the same.
    Sdk,
    /// A question of interpretation: the specification states the rule without a keyword such as MUST, so that a
    /// violation only warns.
    Interpretation,
}

impl Attribution {
    /// Whose this finding is.
    #[must_use]
    pub(super) fn of(finding: &Finding) -> Self {
        match (&finding.sdk, finding.derived, finding.verdict) {
            (Some(_), ..) => Self::Sdk,
            // What fails although its level is inferred is allowed by no interpretation.
            (None, true, Verdict::Warn) => Self::Interpretation,
            (None, ..) => Self::Author,
        }
    }

    /// The name in reports.
    #[must_use]
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Author => "author",
            Self::Sdk => "SDK",
            Self::Interpretation => "interpretation",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn what_fails_is_not_a_question_of_interpretation() {
        let report = example();
        let mut finding = report.targets[0].results[1].findings[0].clone();
        (finding.derived, finding.verdict, finding.sdk) = (true, Verdict::Fail, None);
        assert_eq!(Attribution::of(&finding), Attribution::Author);
        finding.verdict = Verdict::Warn;
        assert_eq!(Attribution::of(&finding), Attribution::Interpretation);
        finding.sdk = Some("Python SDK 1".to_owned());
        assert_eq!(Attribution::of(&finding), Attribution::Sdk);
        (finding.derived, finding.sdk) = (false, None);
        assert_eq!(Attribution::of(&finding), Attribution::Author);
    }
}
