//! The structure of the sources: which module imports which, and how long files and functions are.
//!
//! `house/architecture.rs` declares what is allowed and lists the known exceptions. Each rule is also run on a planted
//! violation, which it must report.

mod architecture;
mod public_names;
mod rules;
mod source_tree;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::support::{Trial, trial};
use architecture::{ARCHITECTURE, ARCHITECTURE_OF_TESTS, Architecture, EMPTY, MEANS_OF_THE_SLOW_SUITE};
use public_names::names_without_example;
use rules::{
    Rule, check_circles, check_durations, check_file_lengths, check_function_lengths, check_impl_blocks, check_imports,
    check_modules, check_packages,
};
use source_tree::{SourceTree, read_sources};

const RULES: [(&str, Rule); 8] = [
    ("house/modules-are-declared", check_modules),
    ("house/imports-point-down", check_imports),
    ("house/packages-stay-in-their-modules", check_packages),
    ("house/limits-are-in-their-table", check_durations),
    ("house/files-import-each-other-in-no-circle", check_circles),
    ("house/files-are-short", check_file_lengths),
    ("house/functions-are-short", check_function_lengths),
    ("house/impl-blocks-are-in-few-files", check_impl_blocks),
];

/// The rules that the tests keep to as well: the gate uses neither the clock nor the network, and starts no process.
const RULES_FOR_TESTS: [(&str, Rule); 3] = [
    ("house/tests/modules-are-declared", check_modules),
    ("house/tests/imports-point-down", check_imports),
    ("house/tests/the-gate-keeps-to-its-means", check_packages),
];

static TESTS: LazyLock<Result<SourceTree, String>> = LazyLock::new(|| SourceTree::parse(&test_sources()?));

static SOURCES: LazyLock<Result<SourceTree, String>> =
    LazyLock::new(|| SourceTree::parse(&read_sources(&source_folder())?));

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = RULES
        .into_iter()
        .map(|(name, rule)| {
            trial(name, move || {
                let tree = SOURCES.as_ref().map_err(Clone::clone)?;
                expect_none(&rule(tree, &ARCHITECTURE))
            })
        })
        .collect();
    trials.extend(RULES_FOR_TESTS.map(|(name, rule)| {
        trial(name, move || expect_none(&rule(TESTS.as_ref().map_err(Clone::clone)?, &ARCHITECTURE_OF_TESTS)))
    }));
    for planted in planted_violations() {
        trials.push(trial(format!("house/planted/{}", planted.name), move || planted.check()));
    }
    trials.push(trial("house/every-public-name-is-in-an-example", || {
        expect_none(&names_without_example(&read_sources(&source_folder())?)?)
    }));
    trials.push(trial("house/planted/names-without-example", find_planted_names));
    trials.push(trial("house/a-checkout-below-a-folder-named-src-is-checked", check_copy_below_src));
    trials
}

/// Names that only seem to be in an example: in a hidden line, in text, in a block that is not compiled.
fn find_planted_names() -> Result<(), String> {
    const LIBRARY: &str = "//! `Told` is text.\n//!\n//! ```text\n//! Shown\n//! ```\n//!\n//! ```\n//! # Unseen\n\
        //! Used Renamed\n//! ```\n\npub mod inner;\nmod private;\n#[doc(hidden)]\npub mod internals;\n\
        pub use private::{Used, Own as Renamed, Told};\npub struct Shown;\npub fn Unseen() {}\nstruct Private;\n";
    const INNER: &str =
        "pub enum Deep {}\n#[doc(hidden)]\npub enum Hidden {}\n#[macro_export]\nmacro_rules! called { () => {} }\n";
    let sources: Vec<_> = [("lib.rs", LIBRARY), ("inner/mod.rs", INNER), ("internals.rs", "pub struct Internal;")]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into();
    let found = names_without_example(&sources)?;
    let expected = ["Shown", "Told", "Unseen", "called", "inner::Deep"].map(|name| format!("{name} is in no example"));
    if found == expected { Ok(()) } else { Err(format!("found {found:#?}")) }
}

fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The sources of the suite. Its root is a program.
fn test_sources() -> Result<Vec<(String, String)>, String> {
    let all = read_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"))?;
    let is_of_suite = |path: &str| ["gate/", "slow/", "support/"].iter().any(|folder| path.starts_with(folder));
    Ok(all
        .into_iter()
        .filter_map(|(path, text)| match path.as_str() {
            "suite.rs" => Some(("main.rs".to_owned(), text)),
            path if is_of_suite(path) => Some((path.to_owned(), text)),
            _ => None,
        })
        .collect())
}

fn expect_none(violations: &[String]) -> Result<(), String> {
    if violations.is_empty() { Ok(()) } else { Err(violations.join("\n")) }
}

/// Sources that violate one rule, or that only seem to.
struct Planted {
    name: &'static str,
    rule: Rule,
    architecture: Architecture,
    sources: Vec<(&'static str, String)>,
    /// A part of the violation to be reported; none where the sources are right.
    expected: Option<&'static str>,
}

impl Planted {
    fn check(&self) -> Result<(), String> {
        let sources: Vec<_> = self.sources.iter().map(|(path, text)| ((*path).to_owned(), text.clone())).collect();
        let violations = (self.rule)(&SourceTree::parse(&sources)?, &self.architecture);
        match self.expected {
            None => expect_none(&violations),
            Some(expected) if violations.iter().any(|violation| violation.contains(expected)) => Ok(()),
            Some(expected) => Err(format!("expected a violation with {expected:?}, found {violations:?}")),
        }
    }
}

fn planted_violations() -> Vec<Planted> {
    let mut planted = planted_modules();
    planted.extend(planted_imports());
    planted.extend(planted_knowledge());
    planted.extend(planted_packages());
    planted.extend(planted_means_of_the_gate());
    planted.extend(planted_durations());
    planted.extend(planted_circles());
    planted.extend(planted_sizes());
    planted
}

fn planted_modules() -> Vec<Planted> {
    const DECLARED: Architecture = Architecture { modules: &[("upper", &["lower"]), ("lower", &[])], ..EMPTY };
    const UPWARD: Architecture = Architecture { modules: &[("lower", &[]), ("upper", &["lower"])], ..EMPTY };
    let planted = |name, architecture, files: &[&'static str], expected| Planted {
        name,
        rule: check_modules,
        architecture,
        sources: files.iter().map(|path| (*path, String::new())).collect(),
        expected: Some(expected),
    };
    vec![
        planted("unknown-module", DECLARED, &["upper.rs", "lower.rs", "new/mod.rs"], "the module new is unknown"),
        planted("missing-module", DECLARED, &["upper.rs"], "the declared module lower has no source"),
        planted("upward-declaration", UPWARD, &["upper.rs", "lower.rs"], "upper is declared to import lower"),
    ]
}

fn planted_imports() -> Vec<Planted> {
    const LOWER: Architecture =
        Architecture { modules: &[("lib", &["upper"]), ("upper", &["lower"]), ("lower", &[])], ..EMPTY };
    const EXCEPTION: Architecture =
        Architecture { import_exceptions: &[("lower", "upper", "the reason of this exception")], ..LOWER };
    const UNDECLARED: Option<&str> = Some("lower may not import upper");
    let planted = |name, architecture, code: &str, expected| Planted {
        name,
        rule: check_imports,
        architecture,
        sources: vec![
            ("lib.rs", "mod upper; mod lower; pub use upper::Item; pub mod internals { pub use crate::upper; }".into()),
            ("upper.rs", "pub struct Item; impl Item { pub fn new() {} } pub mod inner { pub fn call() {} }".into()),
            ("lower/mod.rs", "mod file;".into()),
            ("lower/file.rs", code.into()),
        ],
        expected,
    };
    vec![
        planted("import", LOWER, "use crate::upper::Item;", UNDECLARED),
        planted("import-of-a-module", LOWER, "use crate::upper;", UNDECLARED),
        planted("grouped-import", LOWER, "use crate::{lower::{self}, upper::{inner::{call}}};", UNDECLARED),
        planted("glob-import", LOWER, "use crate::upper::*;", UNDECLARED),
        planted("renamed-import", LOWER, "use crate::upper as other;", UNDECLARED),
        planted("re-export", LOWER, "pub(crate) use crate::upper::Item;", UNDECLARED),
        planted("import-with-super", LOWER, "use super::super::upper::Item;", UNDECLARED),
        planted("import-in-a-function", LOWER, "fn call() { use crate::upper::Item; }", UNDECLARED),
        planted("import-by-the-name-of-the-library", LOWER, "use mcp_conformance::upper::Item;", UNDECLARED),
        planted("import-from-the-crate-root", LOWER, "use crate::Item;", UNDECLARED),
        planted("import-from-internals", LOWER, "use crate::internals::upper::inner;", UNDECLARED),
        planted("path-in-an-expression", LOWER, "fn call() { crate::upper::inner::call() }", UNDECLARED),
        planted("path-in-a-type", LOWER, "type List = Vec<crate::upper::Item>;", UNDECLARED),
        planted("path-in-a-macro", LOWER, "fn call() { println!(\"{}\", crate::upper::inner::call()) }", UNDECLARED),
        planted("path-in-an-attribute", LOWER, "#[serde(with = \"crate::upper::inner\")] struct A;", UNDECLARED),
        planted("import-after-a-test-module", LOWER, "#[cfg(test)]\nmod tests {}\nuse crate::upper::Item;", UNDECLARED),
        planted("import-in-a-test-module", LOWER, "#[cfg(test)]\nmod tests { use crate::upper::Item; }", None),
        planted("import-in-a-comment", LOWER, "// use crate::upper::Item;\n/// crate::upper::Item\nfn call() {}", None),
        planted("excepted-import", EXCEPTION, "use crate::upper::Item;", None),
        planted("unneeded-import-exception", EXCEPTION, "", Some("no longer needed")),
    ]
}

/// What a session and the context of a run do not know, by the declared architecture.
fn planted_knowledge() -> Vec<Planted> {
    let planted = |name, path, code: &str, expected| Planted {
        name,
        rule: check_imports,
        architecture: ARCHITECTURE,
        sources: vec![
            ("lib.rs", "mod session; mod context; mod inventory; mod case; mod plan;".into()),
            ("session.rs", "mod planted;".into()),
            ("context.rs", "mod planted;".into()),
            ("inventory.rs", "pub struct Inventory;".into()),
            ("case.rs", "pub struct Case;".into()),
            ("plan.rs", "pub struct Plan;".into()),
            (path, code.into()),
        ],
        expected,
    };
    let (session, context) = ("session/planted.rs", "context/planted.rs");
    vec![
        planted("session-with-a-case", session, "use crate::case::Case;", Some("session may not import case")),
        planted("context-with-a-case", context, "use crate::case::Case;", Some("context may not import case")),
        planted(
            "context-with-an-inventory",
            context,
            "fn fill(inventory: &crate::inventory::Inventory) {}",
            Some("context may not import inventory"),
        ),
        planted("context-with-a-plan", context, "use crate::plan::Plan;", None),
    ]
}

fn planted_packages() -> Vec<Planted> {
    const TOKIO: Architecture = Architecture { restricted_packages: &[("tokio", &[])], ..EMPTY };
    const INSTANT: Architecture = Architecture { restricted_packages: &[("std::time::Instant", &[])], ..EMPTY };
    const UNUSED: Architecture = Architecture { restricted_packages: &[("tokio", &["check"])], ..EMPTY };
    let planted = |name, architecture, code: &str, expected| Planted {
        name,
        rule: check_packages,
        architecture,
        sources: vec![("check/planted.rs", code.into())],
        expected,
    };
    vec![
        planted("package", TOKIO, "use tokio::time::sleep;", Some("check may not use tokio")),
        planted(
            "package-in-an-expression",
            TOKIO,
            "fn call() { tokio::spawn(async {}); }",
            Some("check may not use tokio"),
        ),
        planted(
            "package-in-a-macro",
            TOKIO,
            "fn call() { join!(::tokio::spawn(call)) }",
            Some("check may not use tokio"),
        ),
        planted(
            "type",
            INSTANT,
            "use std::{fmt, time::{Duration, Instant}};",
            Some("check may not use std::time::Instant"),
        ),
        planted("type-by-its-module", INSTANT, "use std::time; fn now() { time::Instant::now(); }", Some("Instant")),
        planted("variable-named-like-a-package", TOKIO, "fn call(tokio: u8) -> u8 { tokio }", None),
        planted("unneeded-package", UNUSED, "", Some("check is declared to use tokio, but does not")),
    ]
}

fn planted_means_of_the_gate() -> Vec<Planted> {
    let planted = |name, code: &str, expected| {
        Planted {
        name,
        rule: check_packages,
        architecture: Architecture { restricted_packages: &MEANS_OF_THE_SLOW_SUITE, ..EMPTY },
        sources: vec![
            ("gate/planted.rs", code.into()),
            // What each of them is declared for.
            (
                "slow/used.rs",
                "use std::{net::TcpListener, process::Command, thread::sleep, time::Instant};\nuse rustix::process::Pid;\nuse tokio::net::TcpStream;".into(),
            ),
            ("support/used.rs", "use std::{process::Command, time::Instant};\nuse tokio::sync::watch;".into()),
        ],
        expected,
    }
    };
    vec![
        planted(
            "gate-with-a-clock",
            "fn call() { std::time::Instant::now(); }",
            Some("gate may not use std::time::Instant"),
        ),
        planted(
            "gate-that-sleeps",
            "use std::thread; fn call() { thread::sleep(limit) }",
            Some("gate may not use std::thread"),
        ),
        planted("gate-with-a-listener", "use std::net::TcpListener;", Some("gate may not use std::net")),
        planted(
            "gate-with-a-process",
            "use std::process::{Command, Stdio};",
            Some("gate may not use std::process::Command"),
        ),
        planted("gate-with-a-runtime", "fn call() { tokio::spawn(async {}); }", Some("gate may not use tokio")),
        planted("gate-with-the-program", "use crate::support::program;", None),
    ]
}

fn planted_durations() -> Vec<Planted> {
    const ARCHITECTURE: Architecture = Architecture { modules_without_durations: &["run"], ..EMPTY };
    const FOUND: Option<&str> = Some("a duration outside of the table of limits");
    let planted = |name, file, code: &str, expected| Planted {
        name,
        rule: check_durations,
        architecture: ARCHITECTURE,
        sources: vec![(file, code.into())],
        expected,
    };
    let run = |name, code: &str, expected| planted(name, "run/planted.rs", code, expected);
    vec![
        run("constant-duration", "const WAIT: Duration = other::WAIT;", FOUND),
        run("constant-duration-in-a-function", "fn call() { const WAIT: std::time::Duration = OTHER; }", FOUND),
        run("constant-duration-of-a-type", "impl Item { const WAITS: [Duration; 2] = OTHERS; }", FOUND),
        run("duration-of-a-literal", "fn call() { sleep(Duration::from_secs(2)) }", FOUND),
        run("duration-of-literals", "fn call() { sleep(std::time::Duration::from_millis(2 * (1_000 + 1))) }", FOUND),
        run(
            "duration-of-a-literal-in-a-macro",
            "fn call() { select! { () = sleep(Duration::from_secs(2)) => {} } }",
            FOUND,
        ),
        run(
            "duration-of-a-value",
            "fn call() { sleep(Duration::from_secs(plan.wait)); join!(Duration::from_secs(a)) }",
            None,
        ),
        run(
            "duration-in-a-test-module",
            "#[cfg(test)]\nmod tests { const WAIT: Duration = Duration::from_secs(2); }",
            None,
        ),
        planted(
            "duration-in-the-table",
            "limits.rs",
            "pub(crate) const WAIT: Duration = Duration::from_secs(2);",
            None,
        ),
    ]
}

fn planted_circles() -> Vec<Planted> {
    const LISTED: Architecture = Architecture { circles: &[("part", &["part/a.rs", "part/b.rs"], "reason")], ..EMPTY };
    const A_USES_B: (&str, &str) = ("part/a.rs", "use super::b::B; pub struct A;");
    const B_USES_A: (&str, &str) = ("part/b.rs", "pub struct B; fn call() -> super::a::A { super::a::A }");
    let planted = |name, architecture, sources: &[(&'static str, &str)], expected| Planted {
        name,
        rule: check_circles,
        architecture,
        sources: sources.iter().map(|(path, text)| (*path, (*text).to_owned())).collect(),
        expected,
    };
    let declarations = ("part/mod.rs", "mod a; mod b; mod c;");
    let reexports = ("part/mod.rs", "mod a; mod b; pub use a::A; pub(crate) use self::b::*;");
    vec![
        planted(
            "circle-of-two-files",
            EMPTY,
            &[declarations, A_USES_B, B_USES_A],
            Some("part/a.rs -> part/b.rs -> part/a.rs"),
        ),
        planted(
            "circle-of-three-files",
            EMPTY,
            &[
                declarations,
                A_USES_B,
                ("part/b.rs", "pub struct B; use super::c::C;"),
                ("part/c.rs", "pub struct C; use super::a::A;"),
            ],
            Some("part/a.rs -> part/b.rs -> part/c.rs -> part/a.rs"),
        ),
        planted(
            "circle-through-re-exports",
            EMPTY,
            &[
                reexports,
                ("part/a.rs", "use super::B; pub struct A;"),
                ("part/b.rs", "use crate::part::A; pub struct B;"),
            ],
            Some("part/a.rs -> part/b.rs -> part/a.rs"),
        ),
        planted(
            "circle-with-the-parent",
            EMPTY,
            &[("part/mod.rs", "mod a; use a::A; pub struct P;"), ("part/a.rs", "use super::P; pub struct A;")],
            Some("part/a.rs -> part/mod.rs -> part/a.rs"),
        ),
        planted(
            "re-exports-without-a-circle",
            EMPTY,
            &[reexports, ("part/a.rs", "use super::B; pub struct A;"), ("part/b.rs", "pub struct B;")],
            None,
        ),
        planted("listed-circle", LISTED, &[declarations, A_USES_B, B_USES_A], None),
        planted(
            "unneeded-circle-exception",
            LISTED,
            &[declarations, A_USES_B, ("part/b.rs", "pub struct B;")],
            Some("part/a.rs is in no circle any more"),
        ),
    ]
}

fn planted_sizes() -> Vec<Planted> {
    const LISTED: Architecture = Architecture {
        long_files: &["part.rs"],
        long_functions: &["part.rs call"],
        scattered_impls: &["part::Item"],
        ..EMPTY
    };
    let planted = |name, rule, architecture, text: String, expected| {
        let mut sources = vec![("part.rs", text)];
        for path in ["part/a.rs", "part/b.rs", "part/c.rs"] {
            sources.push((path, "impl super::Item { fn call() {} }".to_owned()));
        }
        Planted { name, rule, architecture, sources, expected }
    };
    let item = |impls: &str| format!("mod a; mod b; mod c; pub struct Item; {impls}");
    let lines = |count: usize| "//\n".repeat(count);
    let function = |count: usize| format!("fn call() {{\n{}}}\n", lines(count));
    let tests = |count: usize| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", lines(count));
    let unneeded = Some("is listed as an exception, but is none any more");
    vec![
        planted("long-file", check_file_lengths, EMPTY, lines(601), Some("part.rs: 601 lines")),
        planted("long-test-module", check_file_lengths, EMPTY, lines(600) + &tests(100), None),
        planted("listed-long-file", check_file_lengths, LISTED, lines(601), None),
        planted("unneeded-file-exception", check_file_lengths, LISTED, lines(600), unneeded),
        planted("long-function", check_function_lengths, EMPTY, function(79), Some("part.rs call: 81 lines")),
        planted("short-function", check_function_lengths, EMPTY, function(78), None),
        planted(
            "long-method",
            check_function_lengths,
            EMPTY,
            format!("impl Item {{ {} }}", function(79)),
            Some("part.rs Item::call"),
        ),
        planted("listed-long-function", check_function_lengths, LISTED, function(79), None),
        planted("unneeded-function-exception", check_function_lengths, LISTED, function(78), unneeded),
        planted(
            "impl-in-four-files",
            check_impl_blocks,
            EMPTY,
            item("impl Item {}"),
            Some("part::Item: `impl` blocks"),
        ),
        planted("impl-in-three-files", check_impl_blocks, EMPTY, item(""), None),
        planted("listed-impl", check_impl_blocks, LISTED, item("impl Item {}"), None),
        planted("unneeded-impl-exception", check_impl_blocks, LISTED, item(""), unneeded),
    ]
}

/// The rules do not depend on the folders above the checkout.
fn check_copy_below_src() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let root = folder.path().join("src/checkout/src");
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        let parent = path.parent().expect("a source is in a folder");
        std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text)).map_err(|error| error.to_string())
    };
    for (path, text) in read_sources(&source_folder())? {
        write(&path, &text)?;
    }
    let tree = SourceTree::parse(&read_sources(&root)?)?;
    for (name, rule) in RULES {
        expect_none(&rule(&tree, &ARCHITECTURE)).map_err(|violations| format!("{name}: {violations}"))?;
    }
    write("check/planted.rs", "use crate::run::Plan;\nuse tokio::time::sleep;\n")?;
    let tree = SourceTree::parse(&read_sources(&root)?)?;
    for (rule, expected) in
        [(check_imports as Rule, "check may not import run"), (check_packages, "check may not use tokio")]
    {
        if !rule(&tree, &ARCHITECTURE).iter().any(|violation| violation.contains(expected)) {
            return Err(format!("the planted violation is not reported: {expected}"));
        }
    }
    Ok(())
}
