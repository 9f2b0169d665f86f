//! The six revisions that the reference server supports.

use std::fmt;

/// A dated revision of the specification, ordered by date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-10-07, the draft before the first release.
    V2024_10_07,
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25, the last one with a handshake.
    V2025_11_25,
    /// 2026-07-28, the first one without a handshake.
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: &'static [Self] = &[
        Self::V2024_10_07,
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The date that identifies this revision in the protocol.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V2024_10_07 => "2024-10-07",
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether the revision is stateless: every request has metadata, and there is no handshake.
    #[must_use]
    pub const fn is_modern(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }

    /// The revision that `initialize` offers when the client requests this version.
    ///
    /// For an unknown version that is 2025-11-25, the last one with a handshake.
    pub(super) fn by_handshake(version: &str) -> Self {
        Self::ALL
            .iter()
            .copied()
            .find(|revision| !revision.is_modern() && revision.name() == version)
            .unwrap_or(Self::V2025_11_25)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
