//! What is known of a finding in the SDK that causes it.
//!
//! # Examples
//!
//! ```
//! use mcp_conformance::verdict::Upstream;
//!
//! let text = r#"{"why": "The array is parsed as one message.", "since": "1.11.0", "fixed": "1.12.1"}"#;
//! let upstream: Upstream = serde_json::from_str(text).expect("it has these members");
//! assert_eq!(upstream.to_string(), "The array is parsed as one message. Since 1.11.0, fixed in 1.12.1.");
//! ```

use serde::{Deserialize, Serialize};

/// Why an SDK behaves like this, and in which of its versions, as far as its source and its issues show.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Upstream {
    /// What in the SDK does it, in one sentence.
    pub why: String,
    /// The first version that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The first later version that does it no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<String>,
    /// The URL of the issue or pull request of the SDK that is about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue: Option<String>,
}

impl Upstream {
    /// The cause and the versions, as sentences.
    #[must_use]
    pub fn history(&self) -> String {
        let why = &self.why;
        match (&self.since, &self.fixed) {
            (Some(since), Some(fixed)) => format!("{why} Since {since}, fixed in {fixed}."),
            (Some(since), None) => format!("{why} Since {since}."),
            (None, Some(fixed)) => format!("{why} Fixed in {fixed}."),
            (None, None) => why.clone(),
        }
    }
}

impl std::fmt::Display for Upstream {
    /// The cause, the versions and the issue, as sentences.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.history())?;
        self.issue.iter().try_for_each(|issue| write!(formatter, " See {issue}"))
    }
}
