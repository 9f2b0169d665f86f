//! The six revisions of the Model Context Protocol that are judged, in order of age.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How a connection is opened and where requests carry their context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Era {
    /// An `initialize` handshake opens the connection (up to 2025-11-25).
    Handshake,
    /// Every request carries its context in `_meta` (from 2026-07-28).
    Stateless,
}

/// A dated revision of the protocol, ordered by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Revision {
    /// The pre-release draft, whose tool results are in `toolResult`.
    #[serde(rename = "2024-10-07")]
    V2024_10_07,
    /// The first release.
    #[serde(rename = "2024-11-05")]
    V2024_11_05,
    /// Adds audio content, tool annotations and batches.
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    /// Adds structured results and resource links, removes batches.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// Adds icons and tasks, names a default schema dialect.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// The stateless revision: no handshake, `_meta` on every request.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 6] = [
        Self::V2024_10_07,
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision that opens a connection with a handshake.
    pub const LATEST_HANDSHAKE: Self = Self::V2025_11_25;

    /// The name on the wire, such as `2025-06-18`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_10_07 => "2024-10-07",
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era of the revision.
    #[must_use]
    pub fn era(self) -> Era {
        if self == Self::V2026_07_28 { Era::Stateless } else { Era::Handshake }
    }

    /// Whether the revision was never released: it is judged on request only.
    #[must_use]
    pub fn is_draft(self) -> bool {
        self == Self::V2024_10_07
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is not a revision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a revision; use 2024-10-07, 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 or 2026-07-28")]
pub struct UnknownRevision(pub String);

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text).ok_or_else(|| UnknownRevision(text.to_owned()))
    }
}

/// A set of revisions.
///
/// Written as a revision (`2025-06-18`), a closed range (`2024-11-05..2025-06-18`, both ends
/// included) or a range open on one side (`2025-06-18..`, `..2025-11-25`); several are joined by
/// commas.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Ord, Eq, Default)]
pub struct RevisionSet(u8);

impl RevisionSet {
    /// The set of every revision.
    pub const ALL: Self = Self(0b0011_1111);

    /// Whether the set contains `revision`.
    #[must_use]
    pub fn contains(self, revision: Revision) -> bool {
        self.0 & (1 << revision as u8) != 0
    }

    /// The set with `revision` added.
    #[must_use]
    pub fn with(self, revision: Revision) -> Self {
        Self(self.0 | (1 << revision as u8))
    }

    /// The revisions in both sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The revisions in either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The shortest notation of the set: neighbours are written as a range.
    #[must_use]
    pub fn compact(self) -> String {
        let mut parts: Vec<(Revision, Revision)> = Vec::new();
        for revision in self.iter() {
            match parts.last_mut() {
                Some((_, last)) if *last as u8 + 1 == revision as u8 => *last = revision,
                _ => parts.push((revision, revision)),
            }
        }
        let part = |(first, last): (Revision, Revision)| {
            if first == last { first.to_string() } else { format!("{first}..{last}") }
        };
        parts.into_iter().map(part).collect::<Vec<_>>().join(", ")
    }

    /// The revisions of the set, oldest first.
    pub fn iter(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().filter(move |r| self.contains(*r))
    }
}

impl FromIterator<Revision> for RevisionSet {
    fn from_iter<I: IntoIterator<Item = Revision>>(revisions: I) -> Self {
        revisions.into_iter().fold(Self::default(), Self::with)
    }
}

impl FromStr for RevisionSet {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut set = Self::default();
        for part in text.split(',').map(str::trim) {
            let (first, last) = match part.split_once("..") {
                Some((first, last)) => (first, last),
                None => (part, part),
            };
            let first = if first.is_empty() { Revision::ALL[0] } else { first.parse()? };
            let last = if last.is_empty() { Revision::V2026_07_28 } else { last.parse()? };
            set = set.union(Revision::ALL.into_iter().filter(|r| *r >= first && *r <= last).collect());
        }
        Ok(set)
    }
}

impl fmt::Display for RevisionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Revision::as_str).collect();
        f.write_str(&names.join(", "))
    }
}

impl Serialize for RevisionSet {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.compact())
    }
}

impl<'de> Deserialize<'de> for RevisionSet {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_includes_both_of_its_ends() {
        let set: RevisionSet = "2024-11-05..2025-06-18".parse().expect("a range");
        assert_eq!(set.to_string(), "2024-11-05, 2025-03-26, 2025-06-18");
    }

    #[test]
    fn an_open_range_extends_to_the_newest_or_the_oldest() {
        let newest: RevisionSet = "2025-11-25..".parse().expect("a range");
        assert_eq!(newest.to_string(), "2025-11-25, 2026-07-28");
        let oldest: RevisionSet = "..2024-11-05".parse().expect("a range");
        assert_eq!(oldest.to_string(), "2024-10-07, 2024-11-05");
    }

    #[test]
    fn a_set_is_written_with_ranges_and_parsed_again() {
        for text in ["2024-11-05..2025-06-18", "2024-10-07, 2025-03-26..2025-06-18, 2026-07-28", "2025-11-25"] {
            assert_eq!(text.parse::<RevisionSet>().map(RevisionSet::compact), Ok(text.to_owned()));
        }
    }

    #[test]
    fn commas_join_sets() {
        let set: RevisionSet = "2024-10-07, 2025-11-25..".parse().expect("a list");
        assert_eq!(set.iter().count(), 3);
    }

    #[test]
    fn an_unknown_revision_is_named_in_the_error() {
        let error = "2025-01-01".parse::<RevisionSet>().expect_err("no revision");
        assert!(error.to_string().contains("`2025-01-01`"), "{error}");
    }
}
