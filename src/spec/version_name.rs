//! How a server names a version of the protocol when a connection is opened.

use serde_json::Value;

use super::revision::Revision;

/// What the value of `protocolVersion`, or an element of `supportedVersions`, says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionName<'v> {
    /// A revision, or a draft or later date that can be one.
    Valid(&'v str),
    /// A known revision in another notation, such as the number 20251125.
    Altered(Revision),
    /// No version of the protocol, such as `latest`.
    Invalid,
}

impl<'v> VersionName<'v> {
    /// Reads a value, which a server may have omitted (null) or written in any type.
    pub(crate) fn of(value: &'v Value) -> Self {
        match value.as_str() {
            Some(text) if is_version(text) => Self::Valid(text),
            _ => altered(value).map_or(Self::Invalid, Self::Altered),
        }
    }

    /// Whether it means this revision, in any notation.
    pub(crate) fn means(self, revision: Revision) -> bool {
        match self {
            Self::Valid(text) => text == revision.as_str(),
            Self::Altered(altered) => altered == revision,
            Self::Invalid => false,
        }
    }
}

/// Whether a text is a known revision, a release candidate, a draft, or a date on which no revision was known yet.
fn is_version(text: &str) -> bool {
    let date = text.split_once("-rc").or_else(|| text.split_once("-RC")).map_or(text, |(date, _)| date);
    text.starts_with("DRAFT-") || date.parse::<Revision>().is_ok() || is_date(date) && is_later(date)
}

/// Whether a text has the form `YYYY-MM-DD`.
fn is_date(text: &str) -> bool {
    text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() })
}

/// Whether a date is later than that of every known revision.
fn is_later(date: &str) -> bool {
    Revision::ALL.iter().all(|revision| revision.as_str() < date)
}

/// The known revision whose digits a string or number has.
fn altered(value: &Value) -> Option<Revision> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    Revision::ALL.into_iter().find(|revision| digits(revision.as_str()) == digits(&text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn revisions_later_dates_and_drafts_are_versions() {
        for text in ["2025-11-25", "2024-10-07", "2099-12-31", "2026-07-28-rc.1", "DRAFT-2026-v1"] {
            assert_eq!(VersionName::of(&json!(text)), VersionName::Valid(text));
        }
    }

    #[test]
    fn a_revision_in_another_notation_is_recognized() {
        for value in [json!(20_251_125), json!("20251125"), json!("v2025-11-25"), json!("2025-11-25 ")] {
            assert_eq!(VersionName::of(&value), VersionName::Altered(Revision::V2025_11_25), "{value}");
            assert!(VersionName::of(&value).means(Revision::V2025_11_25));
        }
    }

    #[test]
    fn everything_else_is_no_version() {
        for value in [json!(null), json!("latest"), json!(5), json!({}), json!("2025-01-01"), json!("1.0"), json!("")] {
            assert_eq!(VersionName::of(&value), VersionName::Invalid, "{value}");
            assert!(!Revision::ALL.iter().any(|revision| VersionName::of(&value).means(*revision)));
        }
    }
}
