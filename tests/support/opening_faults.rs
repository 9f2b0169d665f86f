//! The faults of an opening: `opening/` shows that the real program finds them, so that no case in this process has to.

use mcp_conformance::spec::Revision;

/// Faults that end the process at the opening, each with the case that fails and the revision in which it does.
pub(crate) const ENDINGS: [(&str, &str, Revision); 1] =
    [("oldest-initialize-exits", "lifecycle/initialize-answered", Revision::V2024_11_05)];

/// Faults of the opening, each with the case that fails and the newest revision in which it does.
pub(crate) const FAULTS: [(&str, &str, Revision); 14] = [
    ("initialize-version-missing", "lifecycle/initialize-result", Revision::V2025_11_25),
    ("initialize-version-number", "lifecycle/initialize-result", Revision::V2025_11_25),
    ("initialize-version-latest", "lifecycle/version-form", Revision::V2025_11_25),
    ("initialize-capabilities-array", "lifecycle/initialize-result", Revision::V2025_11_25),
    ("initialize-empty", "lifecycle/initialize-content", Revision::V2025_11_25),
    ("initialize-without-server-info", "lifecycle/initialize-content", Revision::V2025_11_25),
    ("oldest-initialize-unanswered", "lifecycle/initialize-answered", Revision::V2024_11_05),
    ("discover-unanswered", "stateless/discover-served", Revision::V2026_07_28),
    ("discover-without-capabilities", "stateless/discover-shape", Revision::V2026_07_28),
    ("discover-versions-missing", "stateless/discover-shape", Revision::V2026_07_28),
    ("discover-versions-string", "stateless/discover-shape", Revision::V2026_07_28),
    ("discover-versions-latest", "stateless/discover-names-version", Revision::V2026_07_28),
    ("listed-version-rejected", "stateless/listed-version-served", Revision::V2026_07_28),
    ("unusable-version-listed", "stateless/listed-version-usable", Revision::V2026_07_28),
];
