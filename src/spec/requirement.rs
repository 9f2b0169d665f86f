//! The catalogue of requirements: the rules of the specification for servers, each with its level, its
//! revisions and the page that states it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::{Revision, RevisionSet};

/// How strongly a requirement binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum Level {
    /// MUST or MUST NOT.
    Must,
    /// A rule of the revision's JSON Schema; it binds like a MUST.
    Schema,
    /// SHOULD or SHOULD NOT.
    Should,
    /// A permission or a remark; it cannot be violated.
    May,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Must => "MUST",
            Self::Schema => "SCHEMA",
            Self::Should => "SHOULD",
            Self::May => "MAY",
        })
    }
}

/// The transport to which a requirement applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Every transport.
    Any,
    /// Standard input and output only.
    Stdio,
    /// HTTP only.
    Http,
}

/// One rule of the specification, in this project's words.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Requirement {
    /// The name of the rule in the catalogue, in kebab-case.
    pub id: String,
    /// The part of the protocol that it belongs to.
    pub area: String,
    /// How strongly it binds.
    pub level: Level,
    revisions: Vec<Revision>,
    /// The transport to which it applies.
    pub transport: Transport,
    /// The condition under which it applies, as text.
    #[serde(default)]
    pub applies_if: String,
    /// Whether the text contains no RFC 2119 keyword, so that the level is this project's interpretation.
    #[serde(default)]
    pub derived: bool,
    /// The rule.
    pub text: String,
    /// Pages of the specification repository, separated by `; `, with `{rev}` for each revision.
    pub source: String,
}

impl Requirement {
    /// The revisions that state the rule.
    #[must_use]
    pub fn revisions(&self) -> RevisionSet {
        self.revisions.iter().copied().collect()
    }

    /// Whether a violation is a failure rather than a warning.
    #[must_use]
    pub fn binds(&self) -> bool {
        matches!(self.level, Level::Must | Level::Schema) && !self.derived
    }

    /// The URL of the page on which `revision` states the rule. 2024-10-07 has no pages of its own, so its links lead to
    /// the history of the specification's repository.
    #[must_use]
    pub fn link(&self, revision: Revision) -> String {
        let rank = |place: &&str| match (revision.is_draft(), place.strip_prefix("history:")) {
            (true, Some(path)) if path.starts_with("docs/") => Some(0),
            (true, Some(_)) => Some(1),
            (false, None) if is_of(place, revision) => Some(0),
            (_, None) if place.contains("{rev}") && place.starts_with("docs/") => Some(2),
            (_, None) if place.contains("{rev}") => Some(3),
            // A proposal for the specification is no page of another revision.
            (_, None) if place.starts_with("seps/") => Some(4),
            (false, Some(_)) | (_, None) => None,
        };
        // Of several equally good places the first one states the rule.
        let ranked = self.source.split("; ").filter_map(|place| Some((rank(&place)?, place)));
        match ranked.min_by_key(|(rank, _)| *rank) {
            Some((_, place)) => public_address(place, revision),
            None => format!("{SITE}/{revision}"),
        }
    }
}

/// The pages of the specification.
const SITE: &str = "https://modelcontextprotocol.io/specification";

/// The repository of the specification.
const REPOSITORY: &str = "https://github.com/modelcontextprotocol/modelcontextprotocol/blob";

/// The commit of the pre-release draft.
const DRAFT_COMMIT: &str = "ed35f718be83a2e3e1e568f7ba3562b81ed69c40";

/// Whether a place is a page or a schema of `revision` alone.
fn is_of(place: &str, revision: Revision) -> bool {
    ["docs/specification/", "schema/"]
        .iter()
        .filter_map(|folder| place.strip_prefix(folder))
        .any(|path| path.split('/').next() == Some(revision.as_str()))
}

/// Turns a place in the specification repository into a public URL.
fn public_address(place: &str, revision: Revision) -> String {
    let (path, anchor) = place.split_once('#').unwrap_or((place, ""));
    if revision.is_draft() {
        return draft_address(path, anchor);
    }
    let path = path.replace("{rev}", revision.as_str());
    if let Some(page) = path.strip_prefix("docs/specification/") {
        let page = page.trim_end_matches(".mdx").trim_end_matches("/index");
        return format!("{SITE}/{page}{}", fragment(anchor));
    }
    // Revisions since 2025-06-18 have a page that describes the types of their schema, with an anchor for each.
    if path.ends_with("/schema.ts") && revision >= Revision::V2025_06_18 && !anchor.is_empty() {
        return format!("{SITE}/{revision}/schema#{}", anchor.to_ascii_lowercase());
    }
    let anchor = if is_markdown(&path) { anchor } else { "" };
    format!("{REPOSITORY}/main/{path}{}", fragment(anchor))
}

/// The address of a place of the pre-release draft, whose pages and schema are in the history of the repository.
fn draft_address(path: &str, anchor: &str) -> String {
    // The anchor of a place in the history follows the commit.
    let path = path.split('@').next().unwrap_or(path);
    let path = match (path.strip_prefix("history:"), path.split_once("{rev}/")) {
        (Some(path), _) => path.to_owned(),
        (None, Some(("docs/specification/", page))) => {
            let name = page.rsplit('/').next().unwrap_or(page).trim_end_matches(".mdx");
            format!("docs/spec/{name}.md")
        }
        (None, Some((_, file))) => format!("schema/{file}"),
        (None, None) => return format!("{REPOSITORY}/main/{path}"),
    };
    let anchor = if is_markdown(&path) { anchor } else { "" };
    format!("{REPOSITORY}/{DRAFT_COMMIT}/{path}{}", fragment(anchor))
}

fn is_markdown(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "md")
}

fn fragment(anchor: &str) -> String {
    if anchor.is_empty() { String::new() } else { format!("#{anchor}") }
}

/// An error in the catalogue's own data.
///
/// # Examples
///
/// ```
/// use mcp_conformance::spec::{Catalogue, CatalogueError};
///
/// let catalogue: Result<Catalogue, CatalogueError> = Catalogue::parse();
/// assert!(catalogue.is_ok_and(|catalogue| catalogue.get("ping-empty-result").is_some()));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// A file of the catalogue cannot be parsed.
    #[error("failed to read the requirements in {file}: {source}")]
    Parse {
        /// The file.
        file: &'static str,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// Two entries share an id.
    #[error("the catalogue contains the requirement `{0}` twice")]
    DuplicateId(String),
}

/// Every requirement by id: those of the specification and, separately, those of this project.
#[derive(Debug)]
pub struct Catalogue {
    by_id: BTreeMap<String, Requirement>,
    own: BTreeMap<String, Requirement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// What the file is for, and what its members mean.
    #[serde(rename = "$comment")]
    _comment: IgnoredAny,
    requirements: Vec<Requirement>,
}

impl Catalogue {
    /// Reads the embedded catalogue.
    ///
    /// # Errors
    /// When the data is invalid; the test suite checks that it is valid.
    pub fn parse() -> Result<Self, CatalogueError> {
        let files = [
            ("cases/requirements/tools.json", include_str!("../../cases/requirements/tools.json")),
            ("cases/requirements/protocol.json", include_str!("../../cases/requirements/protocol.json")),
        ];
        let by_id = read(&files)?;
        let own =
            read(&[("cases/requirements/robustness.json", include_str!("../../cases/requirements/robustness.json"))])?;
        match own.keys().find(|id| by_id.contains_key(*id)) {
            Some(duplicate) => Err(CatalogueError::DuplicateId(duplicate.clone())),
            None => Ok(Self { by_id, own }),
        }
    }

    /// The embedded catalogue, parsed once.
    ///
    /// # Panics
    /// When the embedded data is invalid; the test suite checks that it is valid.
    pub fn embedded() -> &'static Self {
        static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
        CATALOGUE.get_or_init(|| Self::parse().expect("the embedded catalogue is valid"))
    }

    /// The requirement with that id, of the specification or of this project.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Requirement> {
        self.by_id.get(id).or_else(|| self.own.get(id))
    }

    /// The requirements of the specification, sorted by id.
    pub fn iter(&self) -> impl Iterator<Item = &Requirement> {
        self.by_id.values()
    }

    /// The requirements that this project adds to the specification, sorted by id.
    pub fn own(&self) -> impl Iterator<Item = &Requirement> {
        self.own.values()
    }
}

fn read(files: &[(&'static str, &str)]) -> Result<BTreeMap<String, Requirement>, CatalogueError> {
    let mut by_id = BTreeMap::new();
    for (file, text) in files {
        let parsed: File = serde_json::from_str(text).map_err(|source| CatalogueError::Parse { file, source })?;
        for requirement in parsed.requirements {
            if let Some(duplicate) = by_id.insert(requirement.id.clone(), requirement) {
                return Err(CatalogueError::DuplicateId(duplicate.id));
            }
        }
    }
    Ok(by_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_catalogue_is_complete() {
        let catalogue = Catalogue::parse().expect("the catalogue parses");
        assert_eq!(catalogue.iter().count(), 526);
        for requirement in catalogue.iter() {
            assert!(!requirement.revisions().is_empty(), "{}", requirement.id);
            assert!(!requirement.text.is_empty(), "{}", requirement.id);
        }
    }

    #[test]
    fn a_link_leads_to_the_page_of_the_revision() {
        let requirement = Catalogue::embedded().get("tools-call-unknown-tool-error").expect("it exists");
        assert_eq!(
            requirement.link(Revision::V2025_06_18),
            "https://modelcontextprotocol.io/specification/2025-06-18/server/tools#error-handling"
        );
    }

    #[test]
    fn a_place_of_the_revision_itself_comes_before_one_for_all_revisions() {
        let mut requirement = Catalogue::embedded().get("tools-call-unknown-tool-error").expect("it exists").clone();
        "history:docs/spec/a.md@ed35f718#b; docs/specification/{rev}/c.mdx#d; schema/2025-03-26/schema.ts#E; \
         docs/specification/2026-07-28/f/index.mdx"
            .clone_into(&mut requirement.source);
        let links = [
            (Revision::V2024_10_07, format!("{REPOSITORY}/{DRAFT_COMMIT}/docs/spec/a.md#b")),
            (Revision::V2024_11_05, format!("{SITE}/2024-11-05/c#d")),
            (Revision::V2025_03_26, format!("{REPOSITORY}/main/schema/2025-03-26/schema.ts")),
            (Revision::V2026_07_28, format!("{SITE}/2026-07-28/f")),
        ];
        for (revision, link) in links {
            assert_eq!(requirement.link(revision), link);
        }
    }

    #[test]
    fn without_a_place_of_the_revision_a_link_leads_to_its_first_page() {
        let mut requirement = Catalogue::embedded().get("tools-call-unknown-tool-error").expect("it exists").clone();
        "docs/specification/2025-11-25/c.mdx#d; schema/2025-11-25/schema.ts#E".clone_into(&mut requirement.source);
        assert_eq!(requirement.link(Revision::V2025_06_18), format!("{SITE}/2025-06-18"));
        assert_eq!(requirement.link(Revision::V2025_11_25), format!("{SITE}/2025-11-25/c#d"));
    }
}
