//! Attributes findings to the SDK of a server, where the same was measured on a clean server on that SDK.
//!
//! An SDK is recognized by what the server answers, without its cooperation, or by the packages that are installed for a
//! server which is started as a process. Responsible for what `cases/sdks/` lists,
//! and for accepting it; a finding that is not listed there is the author's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde::Deserialize;

use super::Report;
use crate::event::{InstalledPackage, PackageKind};
use crate::verdict::{Direction, Finding, Upstream};

/// The deviations that were measured, one file for each SDK.
const FILES: [&str; 10] = [
    include_str!("../../cases/sdks/fastmcp-2.json"),
    include_str!("../../cases/sdks/fastmcp-4.json"),
    include_str!("../../cases/sdks/go-1.json"),
    include_str!("../../cases/sdks/php-0.json"),
    include_str!("../../cases/sdks/python-1.json"),
    include_str!("../../cases/sdks/python-2.json"),
    include_str!("../../cases/sdks/rmcp.json"),
    include_str!("../../cases/sdks/ruby-1.json"),
    include_str!("../../cases/sdks/typescript-1.json"),
    include_str!("../../cases/sdks/typescript-2.json"),
];

/// What is known of an SDK.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sdk {
    /// Its name, with the major version.
    pub name: String,
    /// The version on which each deviation was seen, and the server.
    pub measured: String,
    /// How a server's author gets rid of the findings, as the end of a sentence.
    pub remedy: String,
    /// The SDKs that it is built on, whose answers it gives as well.
    #[serde(default)]
    instead_of: Vec<String>,
    /// The packages with which it is installed.
    packages: Vec<Package>,
    /// Sets of texts. A message of the server with all texts of a set proves the SDK.
    fingerprints: Vec<Vec<String>>,
    /// What in the SDK causes deviations, by a name.
    #[serde(default)]
    causes: BTreeMap<String, Upstream>,
    deviations: Vec<Deviation>,
}

/// A package of an SDK.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Package {
    kind: PackageKind,
    name: String,
    /// The major version that was measured.
    major: u64,
}

/// A finding on a clean server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Deviation {
    case: String,
    /// Texts that all appear in what the server did.
    shows: Vec<String>,
    /// Texts of one message of the finding itself, where others with the same words are the author's.
    #[serde(default)]
    evidence: Vec<String>,
    /// Sets of texts. A message with all texts of a set, anywhere in the run, proves that the SDK and not a handler of the
    /// author answers; none if authors have no say in it.
    #[serde(default)]
    proof: Vec<Vec<String>>,
    /// The name of its cause, if that is known.
    cause: Option<String>,
}

impl Sdk {
    /// All known SDKs.
    ///
    /// # Panics
    /// Never: the tests parse the embedded files.
    #[must_use]
    pub fn all() -> &'static [Self] {
        static ALL: OnceLock<Vec<Sdk>> = OnceLock::new();
        ALL.get_or_init(|| {
            FILES.iter().map(|text| serde_json::from_str(text).expect("an embedded file is valid")).collect()
        })
    }

    /// The SDK of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().iter().find(|sdk| sdk.name == name)
    }

    /// Whether a clean server on this SDK was measured to violate a case.
    #[must_use]
    pub fn deviates_from(&self, case: &str) -> bool {
        self.deviations.iter().any(|deviation| deviation.case == case)
    }

    /// What in the SDK makes it violate a case, where that is known; each cause once.
    #[must_use]
    pub fn causes_of(&self, case: &str) -> BTreeSet<&Upstream> {
        let of_case = self.deviations.iter().filter(|deviation| deviation.case == case);
        of_case.filter_map(|deviation| self.causes.get(deviation.cause.as_ref()?)).collect()
    }

    /// How a server's author gets rid of these findings of it, as the end of a sentence.
    #[must_use]
    pub fn remedy_for(&self, findings: &[&Finding]) -> String {
        let fixed = findings.iter().filter_map(|finding| finding.upstream.as_ref()?.fixed.as_deref());
        let Some(newest) = fixed.clone().max_by_key(|version| version_key(version)) else {
            return self.remedy.clone();
        };
        match (fixed.count(), findings.len()) {
            (some, all) if some == all => format!("upgrade to {newest} or later"),
            (some, _) => format!(
                "upgrade to {newest} or later, which fixes {some} of them, and accept the others with `--accept sdk`"
            ),
        }
    }

    /// Whether one of these packages is this SDK in the major version that was measured.
    fn is_installed(&self, installed: &[InstalledPackage]) -> bool {
        let is_major = |version: &str, major: u64| {
            version.split('.').next().and_then(|number| number.parse::<u64>().ok()) == Some(major)
        };
        installed.iter().any(|one| {
            let mut own = self.packages.iter();
            own.any(|known| known.kind == one.kind && known.name == one.name && is_major(&one.version, known.major))
        })
    }

    fn is_proven_by(&self, report: &Report) -> bool {
        self.fingerprints.iter().any(|set| is_in_one_message(report, set))
    }

    /// The deviations that a handler of the author cannot make, or that are proven not to be one's.
    fn proven_deviations(&'static self, report: &Report) -> Vec<&'static Deviation> {
        let is_proven =
            |known: &&Deviation| known.proof.is_empty() || known.proof.iter().any(|set| is_in_one_message(report, set));
        self.deviations.iter().filter(is_proven).collect()
    }
}

impl Deviation {
    fn is_made_by(&self, case: &str, finding: &Finding) -> bool {
        let mut received = finding.evidence.iter().filter(|item| item.direction == Direction::Received);
        self.case == case
            && contains_all(&finding.actual, &self.shows)
            && (self.evidence.is_empty() || received.any(|item| contains_all(&item.text, &self.evidence)))
    }
}

/// Whether a message of the server has all these texts.
fn is_in_one_message(report: &Report, parts: &[String]) -> bool {
    let evidence = report.results().flat_map(|result| &result.findings).flat_map(|finding| &finding.evidence);
    let mut received = evidence.filter(|item| item.direction == Direction::Received);
    received.any(|item| contains_all(&item.text, parts))
}

/// The numbers of a version, so that 1.10.0 is greater than 1.9.0.
fn version_key(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

fn contains_all(text: &str, parts: &[String]) -> bool {
    parts.iter().all(|part| text.contains(part.as_str()))
}

/// The packages of all known SDKs, by kind and name.
#[must_use]
pub fn known_packages() -> Vec<(PackageKind, &'static str)> {
    let packages = Sdk::all().iter().flat_map(|sdk| &sdk.packages);
    packages.map(|package| (package.kind, package.name.as_str())).collect()
}

/// Attributes the findings of a server to its SDK. Its answers prove which SDK it is on; if they prove none, the packages
/// that are installed for it do. An SDK that is not installed where another one is proves nothing: major versions of one
/// SDK give the same answers in part.
pub fn attribute(report: &mut Report, installed: &[InstalledPackage]) {
    let Some(sdk) = proven_sdk(report, installed).or_else(|| installed_sdk(installed)) else { return };
    let deviations = sdk.proven_deviations(report);
    for result in report.targets.iter_mut().flat_map(|target| &mut target.results) {
        for finding in &mut result.findings {
            if let Some(known) = deviations.iter().find(|known| known.is_made_by(&result.case, finding)) {
                finding.sdk = Some(sdk.name.clone());
                finding.upstream = known.cause.as_ref().and_then(|name| sdk.causes.get(name)).cloned().map(Box::new);
            }
        }
    }
}

/// The SDK that the answers of a server prove. Answers that fit several SDKs prove none, unless one of them is built on
/// the others.
fn proven_sdk(report: &Report, installed: &[InstalledPackage]) -> Option<&'static Sdk> {
    let mut proven: Vec<&'static Sdk> = Sdk::all().iter().filter(|sdk| sdk.is_proven_by(report)).collect();
    if Sdk::all().iter().any(|sdk| sdk.is_installed(installed)) {
        proven.retain(|sdk| sdk.is_installed(installed));
    }
    let below: Vec<&String> = proven.iter().flat_map(|sdk| &sdk.instead_of).collect();
    proven.retain(|sdk| !below.contains(&&sdk.name));
    if let [sdk] = proven.as_slice() { Some(sdk) } else { None }
}

/// The SDK that is installed. Of one that is built on another, only the other is certain: a server may use it alone.
fn installed_sdk(installed: &[InstalledPackage]) -> Option<&'static Sdk> {
    let mut found: Vec<&'static Sdk> = Sdk::all().iter().filter(|sdk| sdk.is_installed(installed)).collect();
    let names: Vec<&String> = found.iter().map(|sdk| &sdk.name).collect();
    found.retain(|sdk| !sdk.instead_of.iter().any(|below| names.contains(&below)));
    if let [sdk] = found.as_slice() { Some(sdk) } else { None }
}

/// Whose findings do not fail a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Accept {
    /// Those that the server's SDK causes, on every server.
    Sdk,
}

impl Accept {
    /// Accepts these findings of a report, so that only the others fail the run.
    pub fn apply(self, report: &mut Report) {
        match self {
            Self::Sdk => accept_sdk(report),
        }
    }
}

/// Accepts the findings that are attributed to the SDK.
fn accept_sdk(report: &mut Report) {
    for result in report.targets.iter_mut().flat_map(|target| &mut target.results) {
        for finding in &mut result.findings {
            if let (None, Some(sdk)) = (&finding.accepted, &finding.sdk) {
                finding.accepted = Some(format!("{sdk} does this on every server"));
            }
        }
    }
    let Some(mut comparison) = report.baseline.take() else { return };
    comparison.new.retain(|entry| {
        let results = report.results().filter(|result| result.case == entry.case);
        let mut open = results.flat_map(|result| &result.findings).filter(|finding| finding.accepted.is_none());
        open.any(|finding| finding.requirement == entry.requirement)
    });
    report.baseline = Some(comparison);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Conclusion, example};
    use crate::verdict::Evidence;

    const ZOD: &str = r#"{"jsonrpc":"2.0","id":12,"error":{"code":-32603,"message":"[\n  {\n    \"expected\": \"string\",\n    \"code\": \"invalid_type\",\n    \"path\": [\n      \"params\",\n      \"arguments\"\n    ]\n  }\n]"}}"#;

    /// What the SDK itself, and not a handler of the author, answers a call of an unknown tool.
    const NOT_FOUND: &str =
        r#"{"isError":true,"content":[{"type":"text","text":"MCP error -32602: Tool x not found"}]}"#;

    /// The example with only the calls of an unknown tool, which the server answers like this. `answers` are messages
    /// of other findings.
    fn report(actual: &str, answers: &[&str]) -> Report {
        let mut report = example();
        report.baseline = None;
        report.summary.as_mut().expect("a summary").problem = None;
        for result in report.targets.iter_mut().flat_map(|target| &mut target.results) {
            result.findings.iter_mut().for_each(|finding| finding.sdk = None);
        }
        for target in &mut report.targets {
            target.results.retain(|result| result.case == "tools/call/unknown-tool");
            for finding in target.results.iter_mut().flat_map(|result| &mut result.findings) {
                actual.clone_into(&mut finding.actual);
                for answer in answers {
                    finding.evidence.push(Evidence::new(Direction::Received, 1.0, (*answer).to_owned()));
                }
            }
        }
        attribute(&mut report, &[]);
        report
    }

    fn attributed(report: &Report) -> Vec<Option<&str>> {
        report.results().flat_map(|result| &result.findings).map(|finding| finding.sdk.as_deref()).collect()
    }

    #[test]
    fn every_file_says_what_was_measured() {
        for sdk in Sdk::all() {
            assert!(sdk.measured.contains("tests/servers/") && !sdk.remedy.is_empty(), "{}", sdk.name);
            assert!(!sdk.fingerprints.is_empty() && sdk.fingerprints.iter().all(|set| set.len() > 1), "{}", sdk.name);
            assert!(sdk.deviations.iter().all(|known| !known.shows.is_empty()), "{}", sdk.name);
            assert!(sdk.instead_of.iter().all(|name| Sdk::named(name).is_some()), "{}", sdk.name);
            let named: BTreeSet<&String> = sdk.deviations.iter().filter_map(|known| known.cause.as_ref()).collect();
            assert_eq!(
                named,
                sdk.causes.keys().collect(),
                "{}: each cause has a deviation, and each is there",
                sdk.name
            );
            for Upstream { why, issue, .. } in sdk.causes.values() {
                assert!(why.ends_with('.') && why.chars().count() <= 200, "{why}");
                assert!(issue.iter().all(|url| url.starts_with("https://github.com/")), "{issue:?}");
            }
            assert_eq!(Sdk::named(&sdk.name).map(|one| &one.measured), Some(&sdk.measured));
        }
    }

    #[test]
    fn a_measured_deviation_of_a_proven_sdk_is_not_the_authors() {
        let report = report("a result with isError true", &[ZOD, NOT_FOUND]);
        let all = attributed(&report);
        assert!(!all.is_empty() && all.iter().all(|sdk| *sdk == Some("TypeScript SDK 1")), "{all:?}");
    }

    #[test]
    fn what_the_sdk_was_not_seen_to_do_stays_the_authors() {
        assert!(attributed(&report("a result without isError", &[ZOD, NOT_FOUND])).iter().all(Option::is_none));
    }

    #[test]
    fn a_handler_of_the_author_answers_for_itself() {
        assert!(attributed(&report("a result with isError true", &[ZOD])).iter().all(Option::is_none));
    }

    #[test]
    fn an_sdk_replaces_the_one_that_it_is_built_on() {
        const UNKNOWN: &str = r#"{"result":{"content":[{"type":"text","text":"Unknown tool: x"}],"isError":true}}"#;
        const LOWER: &str = r#"{"id":1,"error":{"code":-32602,"message":"Invalid request parameters","data":""}}"#;
        const UPPER: &str = r#"{"result":{"tools":[{"name":"x","_meta":{"_fastmcp":{"tags":[]}}}]}}"#;
        for (answers, sdk) in [(&[UNKNOWN, LOWER][..], "Python SDK 1"), (&[UNKNOWN, LOWER, UPPER], "FastMCP 2")] {
            let all = report("a result with isError true", answers);
            assert!(attributed(&all).iter().all(|found| *found == Some(sdk)), "{sdk}: {:?}", attributed(&all));
        }
        let other = report("a result with isError true", &["\"isError\":true", LOWER, UPPER]);
        assert!(attributed(&other).iter().all(Option::is_none), "the finding has no message of the SDK");
    }

    #[test]
    fn without_a_proof_of_the_sdk_every_finding_is_the_authors() {
        let other = &ZOD.replace("invalid_type", "custom");
        assert!(attributed(&report("a result with isError true", &[other, NOT_FOUND])).iter().all(Option::is_none));
    }

    #[test]
    fn without_a_proof_the_installed_package_tells_the_sdk() {
        let package = |kind, name: &str, version: &str| InstalledPackage {
            kind,
            name: name.to_owned(),
            version: version.to_owned(),
        };
        let attributed_to = |installed: &[InstalledPackage]| {
            let mut report = report("a result with isError true", &[NOT_FOUND]);
            attribute(&mut report, installed);
            let all = attributed(&report);
            all.iter().map(|sdk| sdk.map(str::to_owned)).next().expect("the example has findings")
        };
        let typescript = package(PackageKind::Npm, "@modelcontextprotocol/sdk", "1.20.1");
        assert_eq!(attributed_to(&[]), None);
        assert_eq!(attributed_to(std::slice::from_ref(&typescript)).as_deref(), Some("TypeScript SDK 1"));
        let other = package(PackageKind::Npm, "@modelcontextprotocol/sdk", "3.0.0");
        assert_eq!(attributed_to(&[other]), None, "another major version");
        let rmcp = package(PackageKind::Cargo, "rmcp", "3.1.0");
        assert_eq!(attributed_to(&[typescript, rmcp]), None, "two SDKs");
        let of_both = [package(PackageKind::Pypi, "fastmcp", "2.14.7"), package(PackageKind::Pypi, "mcp", "1.30.0")];
        assert_eq!(installed_sdk(&of_both).map(|sdk| sdk.name.as_str()), Some("Python SDK 1"));
    }

    #[test]
    fn an_sdk_that_is_not_installed_where_another_is_proves_nothing() {
        let server = InstalledPackage {
            kind: PackageKind::Npm,
            name: "@modelcontextprotocol/server".to_owned(),
            version: "2.3.0".to_owned(),
        };
        let report = report("a result with isError true", &[ZOD, NOT_FOUND]);
        assert_eq!(proven_sdk(&report, &[]).map(|sdk| sdk.name.as_str()), Some("TypeScript SDK 1"));
        assert!(proven_sdk(&report, &[server]).is_none());
    }

    #[test]
    fn accepting_the_sdk_gates_on_the_authors_findings_alone() {
        let mut accepted = report("a result with isError true", &[ZOD, NOT_FOUND]);
        assert_eq!(Conclusion::of(&accepted), Conclusion::Failed);
        accept_sdk(&mut accepted);
        assert_eq!(Conclusion::of(&accepted), Conclusion::Passed);
        let mut authors = report("a result without isError", &[ZOD, NOT_FOUND]);
        accept_sdk(&mut authors);
        assert_eq!(Conclusion::of(&authors), Conclusion::Failed);
    }
}
