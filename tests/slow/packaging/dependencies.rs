//! What the program is made of: the licences of its dependencies, and the bill of materials that a release has.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};
use toml::Table;

use super::{read, root};

/// Where `.ci/slow packages` writes what Cargo says of the dependencies.
fn written(name: &str) -> PathBuf {
    root().join("target/ci").join(name)
}

/// Whether that was written.
pub(super) fn are_written() -> bool {
    ["metadata.json", "tree.txt", "sbom.json"].iter().all(|name| written(name).is_file())
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// A licence expression of SPDX: alternatives, which are `OR` or an old slash, of what applies together.
struct Expression<'a> {
    words: Vec<&'a str>,
    next: usize,
}

impl<'a> Expression<'a> {
    /// Whether the expression is fulfilled by licences that are allowed alone; `used` gets those of them that it names.
    fn is_allowed(text: &str, allowed: &BTreeSet<String>, used: &mut BTreeSet<String>) -> Result<bool, String> {
        let text = text.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        let mut expression = Expression { words: text.split_whitespace().collect(), next: 0 };
        let is_allowed = expression.alternatives(allowed, used)?;
        match expression.take() {
            None => Ok(is_allowed),
            Some(word) => Err(format!("`{word}` is unexpected in `{text}`")),
        }
    }

    fn take(&mut self) -> Option<&'a str> {
        self.next += 1;
        self.words.get(self.next - 1).copied()
    }

    fn take_if(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.next) == Some(&word);
        self.next += usize::from(is_next);
        is_next
    }

    fn alternatives(&mut self, allowed: &BTreeSet<String>, used: &mut BTreeSet<String>) -> Result<bool, String> {
        let mut is_allowed = self.conjunction(allowed, used)?;
        while self.take_if("OR") {
            is_allowed |= self.conjunction(allowed, used)?;
        }
        Ok(is_allowed)
    }

    fn conjunction(&mut self, allowed: &BTreeSet<String>, used: &mut BTreeSet<String>) -> Result<bool, String> {
        let mut is_allowed = self.licence(allowed, used)?;
        while self.take_if("AND") {
            is_allowed &= self.licence(allowed, used)?;
        }
        Ok(is_allowed)
    }

    fn licence(&mut self, allowed: &BTreeSet<String>, used: &mut BTreeSet<String>) -> Result<bool, String> {
        let name = self.take().ok_or("the expression ends too early")?;
        if name == "(" {
            let is_allowed = self.alternatives(allowed, used)?;
            return if self.take_if(")") { Ok(is_allowed) } else { Err("a parenthesis is open".to_owned()) };
        }
        // An exception is allowed only by name.
        let name = if self.take_if("WITH") {
            format!("{name} WITH {}", self.take().ok_or("the exception is missing")?)
        } else {
            name.to_owned()
        };
        let is_allowed = allowed.contains(&name);
        if is_allowed {
            used.insert(name);
        }
        Ok(is_allowed)
    }
}

/// The packages whose licence the list does not allow, and the licences that it allows and no package has.
fn violations(metadata: &Value, allowed: &BTreeSet<String>) -> Vec<String> {
    let mut used = BTreeSet::new();
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let licence = package["license"].as_str().unwrap_or_default();
        match Expression::is_allowed(licence, allowed, &mut used) {
            Ok(true) => {}
            Ok(false) => found.push(format!("{}: {licence} is not allowed", package["name"])),
            Err(error) => found.push(format!("{}: {error}", package["name"])),
        }
    }
    found.extend(allowed.difference(&used).map(|name| format!("no package has the licence {name}")));
    found
}

pub(super) fn the_licences_are_allowed() -> Result<(), String> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    // The check sees what is wrong, and nothing else.
    for (licence, allowed, is_right) in [
        ("MIT OR Apache-2.0", &["MIT"][..], true),
        ("Apache-2.0/MIT", &["MIT"], true),
        ("MIT AND ISC", &["MIT"], false),
        ("(MIT OR GPL-3.0) AND ISC", &["MIT", "ISC"], true),
        ("MIT OR GPL-3.0 AND ISC", &["ISC"], false),
        ("Apache-2.0 WITH LLVM-exception", &["Apache-2.0"], false),
        ("MIT", &["MIT", "ISC"], false),
        ("(MIT", &["MIT"], false),
        ("MIT MIT", &["MIT"], false),
        ("", &["MIT"], false),
    ] {
        let metadata = json!({"packages": [{"name": "planted", "license": licence}]});
        let found = violations(&metadata, &names(allowed));
        if found.is_empty() != is_right {
            return Err(format!("`{licence}` with {allowed:?}: {found:?}"));
        }
    }
    let rules: Table = toml::from_str(&read(&root().join(".cargo/deny.toml"))?).map_err(|error| error.to_string())?;
    let allowed = rules["licenses"]["allow"].as_array().into_iter().flatten().filter_map(|name| name.as_str());
    let metadata = parse(&read(&written("metadata.json"))?)?;
    let found = violations(&metadata, &allowed.map(str::to_owned).collect());
    if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
}

/// The shape of a bill of materials, as far as this project writes it.
fn bill_schema() -> Value {
    let component = json!({
        "type": "object",
        "required": ["type", "bom-ref", "name", "version", "licenses", "purl"],
        "properties": {
            "type": {"enum": ["application", "library"]},
            "bom-ref": {"type": "string", "minLength": 1},
            "name": {"type": "string", "minLength": 1},
            "version": {"type": "string", "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+"},
            "hashes": {"type": "array", "minItems": 1, "items": {
                "type": "object",
                "required": ["alg", "content"],
                "properties": {"alg": {"const": "SHA-256"}, "content": {"type": "string", "pattern": "^[0-9a-f]{64}$"}},
                "additionalProperties": false
            }},
            "licenses": {"type": "array", "minItems": 1, "maxItems": 1, "items": {
                "type": "object",
                "required": ["expression"],
                "properties": {"expression": {"type": "string", "pattern": "^[A-Za-z0-9.() -]+$"}},
                "additionalProperties": false
            }},
            "purl": {"type": "string", "pattern": "^pkg:cargo/[^@]+@[^+]+$"},
            "externalReferences": {"type": "array", "items": {
                "type": "object",
                "required": ["type", "url"],
                "properties": {"type": {"const": "vcs"}, "url": {"type": "string", "pattern": "^https?://"}},
                "additionalProperties": false
            }},
            "properties": {"type": "array", "items": {"type": "object", "required": ["name", "value"]}}
        },
        "additionalProperties": false
    });
    json!({
        "type": "object",
        "required": ["bomFormat", "specVersion", "version", "serialNumber", "metadata", "components", "dependencies"],
        "properties": {
            "bomFormat": {"const": "CycloneDX"},
            "specVersion": {"const": "1.5"},
            "version": {"const": 1},
            "serialNumber": {"type": "string", "pattern": "^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
            "metadata": {"type": "object", "required": ["component"], "properties": {"component": component}},
            "components": {"type": "array", "uniqueItems": true, "items": component},
            "dependencies": {"type": "array", "uniqueItems": true, "items": {
                "type": "object",
                "required": ["ref", "dependsOn"],
                "properties": {"ref": {"type": "string"}, "dependsOn": {"type": "array", "uniqueItems": true}},
                "additionalProperties": false
            }}
        },
        "additionalProperties": false
    })
}

pub(super) fn the_bill_of_materials_is_complete() -> Result<(), String> {
    let bill = parse(&read(&written("sbom.json"))?)?;
    let validator = jsonschema::validator_for(&bill_schema()).map_err(|error| error.to_string())?;
    if let Some(error) = validator.iter_errors(&bill).next() {
        return Err(format!("at {}: {error}", error.instance_path()));
    }
    // It lists what Cargo compiles for the target, apart from the program itself, and nothing else.
    let tree = read(&written("tree.txt"))?;
    let compiled: BTreeSet<String> =
        tree.lines().skip(1).map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    let components = || bill["components"].as_array().into_iter().flatten();
    let name =
        |part: &Value| format!("{} v{}", part["name"].as_str().unwrap_or(""), part["version"].as_str().unwrap_or(""));
    let listed: BTreeSet<String> = components().map(name).collect();
    let differ: Vec<&String> = compiled.symmetric_difference(&listed).collect();
    if listed.len() < 50 || !differ.is_empty() || listed.len() != components().count() {
        return Err(format!("{} packages are listed, compiled or listed but not both: {differ:?}", listed.len()));
    }
    // Each package can be checked: what is downloaded has a sum. The edges lead to all of them.
    if let Some(bare) = components().find(|part| !part["hashes"].is_array()) {
        return Err(format!("{} has no sum", name(bare)));
    }
    let edges = || bill["dependencies"].as_array().into_iter().flatten();
    let mut reached: BTreeSet<&str> = bill["metadata"]["component"]["bom-ref"].as_str().into_iter().collect();
    let mut count = 0;
    while count < reached.len() {
        count = reached.len();
        let known = edges().filter(|edge| edge["ref"].as_str().is_some_and(|name| reached.contains(name)));
        let next: Vec<&str> = known
            .flat_map(|edge| edge["dependsOn"].as_array().into_iter().flatten())
            .filter_map(Value::as_str)
            .collect();
        reached.extend(next);
    }
    if count == listed.len() + 1 {
        Ok(())
    } else {
        Err(format!("the edges lead to {count} of {} packages", listed.len()))
    }
}
