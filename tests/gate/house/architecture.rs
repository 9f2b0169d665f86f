//! The declared architecture: what each module may import, and the known exceptions.

/// The declarations that the rules compare the sources with.
pub(super) struct Architecture {
    /// Each top-level module with the modules that it may import, from the top of the crate to its bottom.
    pub(super) modules: &'static [(&'static str, &'static [&'static str])],
    /// An import that the order of the modules does not allow: importer, imported, reason.
    pub(super) import_exceptions: &'static [(&'static str, &'static str, &'static str)],
    /// Packages and types with the modules that may use them.
    pub(super) restricted_packages: &'static [(&'static str, &'static [&'static str])],
    /// Modules that have no durations of their own: those are in the table of limits.
    pub(super) modules_without_durations: &'static [&'static str],
    /// Files that are in a circle of imports: their top-level module, the files, the reason.
    pub(super) circles: &'static [(&'static str, &'static [&'static str], &'static str)],
    pub(super) long_files: &'static [&'static str],
    pub(super) long_functions: &'static [&'static str],
    /// Types with `impl` blocks in too many files.
    pub(super) scattered_impls: &'static [&'static str],
}

/// An architecture without any declaration, for the planted violations.
pub(super) const EMPTY: Architecture = Architecture {
    modules: &[],
    import_exceptions: &[],
    restricted_packages: &[],
    modules_without_durations: &[],
    circles: &[],
    long_files: &[],
    long_functions: &[],
    scattered_impls: &[],
};

/// What the crate looks like. A list of exceptions may only shrink: an entry that is no longer needed fails as well.
pub(super) const ARCHITECTURE: Architecture = Architecture {
    modules: &[
        ("main", &["cli"]),
        (
            "lib",
            &[
                "judge",
                "run",
                "context",
                "plan",
                "check",
                "report",
                "client",
                "transcript",
                "case",
                "baseline",
                "verdict",
                "wire",
                "spec",
                "json_pointer",
                "text",
            ],
        ),
        (
            "cli",
            &[
                "judge",
                "run",
                "context",
                "plan",
                "report",
                "event",
                "transcript",
                "case",
                "baseline",
                "verdict",
                "reference",
                "spec",
                "text",
            ],
        ),
        ("harness", &["judge", "report", "event", "case", "verdict"]),
        ("guided", &["fuzz", "wire", "spec"]),
        (
            "judge",
            &["run", "plan", "report", "client", "event", "case", "baseline", "reference", "shard", "spec", "shell"],
        ),
        (
            "run",
            &[
                "campaign",
                "session",
                "context",
                "inventory",
                "plan",
                "check",
                "client",
                "event",
                "transcript",
                "case",
                "fuzz",
                "verdict",
                "wire",
                "shard",
                "spec",
                "limits",
                "percent",
                "shell",
                "text",
            ],
        ),
        (
            "session",
            &["context", "plan", "client", "transcript", "fuzz", "wire", "reference", "spec", "limits", "text"],
        ),
        ("context", &["plan", "check", "client", "event", "transcript", "verdict", "spec", "limits"]),
        ("inventory", &["plan", "event", "transcript", "case", "fuzz", "spec", "limits", "text"]),
        (
            "campaign",
            &[
                "plan",
                "check",
                "client",
                "event",
                "transcript",
                "case",
                "fuzz",
                "sequence",
                "verdict",
                "wire",
                "spec",
                "fnv",
                "json_pointer",
                "limits",
                "text",
            ],
        ),
        ("plan", &["client", "case", "reference", "shard", "spec", "shell"]),
        (
            "check",
            &[
                "transcript",
                "case",
                "fuzz",
                "sequence",
                "verdict",
                "wire",
                "spec",
                "json_pointer",
                "line_diff",
                "shell",
                "text",
            ],
        ),
        ("report", &["event", "baseline", "verdict", "shard", "spec", "fnv", "line_diff", "percent", "text"]),
        ("client", &["transcript", "wire", "limits", "percent", "text"]),
        ("event", &["verdict", "spec"]),
        ("transcript", &["wire"]),
        ("case", &["sequence", "baseline", "verdict", "wire", "spec", "json_pointer"]),
        ("fuzz", &["json_pointer", "percent"]),
        ("sequence", &["json_pointer"]),
        ("baseline", &["verdict", "spec"]),
        ("verdict", &["spec"]),
        ("wire", &[]),
        ("reference", &["fnv"]),
        ("shard", &["fnv"]),
        ("spec", &[]),
        ("fnv", &[]),
        ("json_pointer", &[]),
        ("limits", &[]),
        ("percent", &[]),
        ("shell", &[]),
        ("line_diff", &[]),
        ("text", &[]),
    ],
    import_exceptions: &[],
    restricted_packages: &[
        ("askama", &["report"]),
        ("clap", &["cli"]),
        ("clap_complete", &["cli"]),
        ("clap_mangen", &["cli"]),
        ("hyper", &["client", "reference"]),
        ("indicatif", &["report"]),
        ("jsonc_parser", &["case", "cli"]),
        ("jsonschema", &["case", "check", "fuzz", "reference"]),
        // Experimental: it may change in a minor release.
        ("jsonschema::canonical", &["fuzz"]),
        ("libtest_mimic", &["harness"]),
        ("proptest", &["fuzz"]),
        ("quick_junit", &["report"]),
        ("reqwest", &["client"]),
        ("rustls", &["client"]),
        ("std::fs", &["campaign", "case", "cli", "client", "context", "run"]),
        ("std::net", &["cli", "client"]),
        ("std::process::Command", &[]),
        ("std::time::Instant", &["client"]),
        ("toml", &["cli"]),
        ("unicode_width", &["report"]),
        ("tokio", &["campaign", "cli", "client", "context", "guided", "judge", "reference", "run", "session"]),
    ],
    modules_without_durations: &["campaign", "client", "context", "inventory", "run", "session"],
    circles: &[],
    long_files: &[],
    long_functions: &[],
    scattered_impls: &[],
};

/// What only the slow suite uses, and what supports it: clocks, threads, processes and the network.
pub(super) const MEANS_OF_THE_SLOW_SUITE: [(&str, &[&str]); 6] = [
    ("rustix", &["slow"]),
    ("std::net", &["slow"]),
    ("std::process::Command", &["slow", "support"]),
    ("std::thread", &["slow"]),
    ("std::time::Instant", &["slow", "support"]),
    ("tokio", &["slow", "support"]),
];

/// What the suite looks like.
pub(super) const ARCHITECTURE_OF_TESTS: Architecture = Architecture {
    modules: &[
        ("main", &["gate", "slow", "support"]),
        ("gate", &["support"]),
        ("slow", &["support"]),
        ("support", &[]),
    ],
    restricted_packages: &MEANS_OF_THE_SLOW_SUITE,
    ..EMPTY
};
