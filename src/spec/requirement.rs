//! The catalogue of requirements: the rules of the specification for servers, each with its level, its
//! revisions and the page that states it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

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

    /// The URL of the page on which `revision` states the rule.
    #[must_use]
    pub fn link(&self, revision: Revision) -> String {
        let places: Vec<&str> = self.source.split("; ").collect();
        // Of several equally good places the first one states the rule; the search takes the last.
        let wanted = places
            .iter()
            .rev()
            .filter(|place| {
                place.contains("{rev}")
                    || place.contains(revision.as_str())
                    || (revision.is_draft() && place.starts_with("history:"))
            })
            .max_by_key(|place| match () {
                () if place.contains(revision.as_str()) => 3,
                () if revision.is_draft() && place.starts_with("history:docs") => 3,
                () if revision.is_draft() => u8::from(place.starts_with("history:")) * 2,
                () if place.starts_with("docs/") => 2,
                () => 1,
            })
            .or(places.first())
            .copied()
            .unwrap_or_default();
        public_address(wanted, revision)
    }
}

/// The commit of the pre-release draft.
const DRAFT_COMMIT: &str = "ed35f718be83a2e3e1e568f7ba3562b81ed69c40";

/// Turns a place in the specification repository into a public URL.
fn public_address(place: &str, revision: Revision) -> String {
    const REPOSITORY: &str = "https://github.com/modelcontextprotocol/modelcontextprotocol/blob";
    // The draft never got a date: its page and its schema are in the history of the repository.
    let place = match (revision.is_draft(), place.split_once("{rev}/")) {
        (true, Some(("docs/specification/", rest))) => {
            let (page, anchor) = rest.split_once('#').unwrap_or((rest, ""));
            let name = page.rsplit('/').next().unwrap_or(page).trim_end_matches(".mdx");
            format!("history:docs/spec/{name}.md@ed35f718#{anchor}")
        }
        (true, Some(("schema/", rest))) => {
            format!("history:schema/{}@ed35f718", rest.split('#').next().unwrap_or(rest))
        }
        _ => place.replace("{rev}", revision.as_str()),
    };
    if let Some(rest) = place.strip_prefix("history:") {
        let (path, commit) = rest.split_once('@').unwrap_or((rest, DRAFT_COMMIT));
        let commit = commit.replacen("ed35f718", DRAFT_COMMIT, 1);
        let commit = commit.as_str();
        let (commit, anchor) = match commit.split_once('#') {
            Some((commit, anchor)) if path.starts_with("docs/") => (commit, format!("#{anchor}")),
            Some((commit, _)) => (commit, String::new()),
            None => (commit, String::new()),
        };
        return format!("{REPOSITORY}/{commit}/{path}{anchor}");
    }
    let (path, anchor) = match place.split_once('#') {
        Some((path, anchor)) => (path, format!("#{anchor}")),
        None => (place.as_str(), String::new()),
    };
    match path.strip_prefix("docs/specification/") {
        Some(page) => {
            let page = page.trim_end_matches(".mdx").trim_end_matches("/index");
            format!("https://modelcontextprotocol.io/specification/{page}{anchor}")
        }
        None => format!("{REPOSITORY}/main/{path}"),
    }
}

/// An error in the catalogue's own data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// A file of the catalogue cannot be parsed.
    #[error("failed to read the requirements in {file}: {source}")]
    Parse {
        /// The file.
        file: &'static str,
        /// The parser's error.
        source: toml::de::Error,
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
    requirement: Vec<Requirement>,
}

impl Catalogue {
    /// Reads the embedded catalogue.
    ///
    /// # Errors
    /// When the data is invalid; the test suite checks that it is valid.
    pub fn parse() -> Result<Self, CatalogueError> {
        let files = [
            ("cases/requirements/tools.toml", include_str!("../../cases/requirements/tools.toml")),
            ("cases/requirements/protocol.toml", include_str!("../../cases/requirements/protocol.toml")),
        ];
        let by_id = read(&files)?;
        let own =
            read(&[("cases/requirements/robustness.toml", include_str!("../../cases/requirements/robustness.toml"))])?;
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
        let parsed: File = toml::from_str(text).map_err(|source| CatalogueError::Parse { file, source })?;
        for requirement in parsed.requirement {
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
        assert_eq!(catalogue.iter().count(), 515);
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
    fn every_requirement_has_a_link_in_each_of_its_revisions() {
        for requirement in Catalogue::embedded().iter() {
            for revision in requirement.revisions().iter() {
                let link = requirement.link(revision);
                assert!(link.starts_with("https://") && !link.contains('{'), "{}: {link}", requirement.id);
            }
        }
    }
}
