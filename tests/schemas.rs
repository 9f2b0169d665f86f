//! The fuzzer's schemas held against the official JSON-Schema-Test-Suite, which is no part of this project:
//! `tests/schemas/install.sh` fetches it out of a published package. Where it is not there the trials are ignored,
//! unless `MCP_CONFORMANCE_SCHEMAS=required` is set.
//!
//! A group of the suite counts as satisfiable where the suite itself has a valid instance of its schema. Groups whose
//! references lead out of their schema are left out, and counted: nothing is ever fetched.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use mcp_conformance::fuzz::{Dialect, Domain, Random, SchemaError, ToolSchema};
use serde_json::Value;

use crate::trial;

/// The folders of the suite, and how their schemas are read where they do not say.
const DRAFTS: [(&str, Dialect); 2] = [("draft2020-12", Dialect::Draft202012), ("draft7", Dialect::Draft7)];

/// How many instances of a schema are made.
const INSTANCES: usize = 40;
/// What part of the satisfiable schemas has to generate, in thousandths.
const LEAST: usize = 970;
/// With fewer schemas than this it is not the suite.
const SCHEMAS: usize = 600;
/// References to what the suite expects a server of its own to give out.
const ELSEWHERE: &str = "localhost:1234";

pub(crate) fn trials() -> Vec<Trial> {
    let required = std::env::var_os("MCP_CONFORMANCE_SCHEMAS").is_some_and(|value| value == "required");
    let ignored = !required && !folder().is_dir();
    vec![
        trial("schemas/what-can-be-satisfied-is-generated", what_can_be_satisfied_is_generated)
            .with_ignored_flag(ignored),
    ]
}

/// Where the suite is: `SCHEMA_SUITE` names another one.
fn folder() -> PathBuf {
    std::env::var_os("SCHEMA_SUITE")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas/suite"), PathBuf::from)
}

/// A group of the suite: a schema, and instances of which it is known whether they are valid.
struct Group {
    name: String,
    schema: Value,
    dialect: Dialect,
    valid: Vec<Value>,
}

fn groups() -> Result<Vec<Group>, String> {
    let mut groups = Vec::new();
    for (draft, dialect) in DRAFTS {
        let mut pending = vec![folder().join(draft)];
        while let Some(folder) = pending.pop() {
            let told = |error: std::io::Error| format!("{}: {error}; run tests/schemas/install.sh", folder.display());
            for entry in fs::read_dir(&folder).map_err(told)? {
                let path = entry.map_err(told)?.path();
                if path.is_dir() {
                    pending.push(path);
                } else {
                    read(&path, draft, dialect, &mut groups)?;
                }
            }
        }
    }
    groups.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(groups)
}

fn read(path: &Path, draft: &str, dialect: Dialect, groups: &mut Vec<Group>) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let read: Vec<Value> = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    for group in read {
        let tests = group["tests"].as_array().into_iter().flatten();
        groups.push(Group {
            name: format!("{draft} {stem}: {}", group["description"].as_str().unwrap_or_default()),
            schema: group["schema"].clone(),
            dialect,
            valid: tests.filter(|test| test["valid"] == true).map(|test| test["data"].clone()).collect(),
        });
    }
    Ok(())
}

/// What came of the schema of a group.
enum Made {
    Instances,
    /// Its references lead elsewhere.
    Elsewhere,
    /// None, and why.
    Nothing(String),
    Invalid(Value),
}

fn make(group: &Group) -> Made {
    let schema = match ToolSchema::compile_for(&group.schema, group.dialect, Domain::Any) {
        Ok(schema) => schema,
        Err(SchemaError::RemoteReference { .. }) => return Made::Elsewhere,
        Err(_) if group.schema.to_string().contains(ELSEWHERE) => return Made::Elsewhere,
        Err(error) => return Made::Nothing(format!("failed to {error}")),
    };
    let validator = jsonschema::options()
        .with_draft(draft_of(schema.dialect()))
        .should_validate_formats(true)
        .offline()
        .build(&group.schema);
    let validator = match validator {
        Ok(validator) => validator,
        Err(error) => return Made::Nothing(error.to_string()),
    };
    let mut random = Random::new(1);
    for made in 0..INSTANCES {
        match schema.generate(&mut random) {
            Ok(instance) if validator.is_valid(&instance) => {}
            Ok(instance) => return Made::Invalid(instance),
            Err(error) => return Made::Nothing(format!("failed to {error} after {made}")),
        }
    }
    Made::Instances
}

fn draft_of(dialect: Dialect) -> jsonschema::Draft {
    match dialect {
        Dialect::Draft4 => jsonschema::Draft::Draft4,
        Dialect::Draft6 => jsonschema::Draft::Draft6,
        Dialect::Draft7 => jsonschema::Draft::Draft7,
        Dialect::Draft201909 => jsonschema::Draft::Draft201909,
        Dialect::Draft202012 => jsonschema::Draft::Draft202012,
    }
}

fn what_can_be_satisfied_is_generated() -> Result<(), String> {
    let groups = groups()?;
    let (mut made, mut impossible) = (0, 0);
    let (mut elsewhere, mut nothing) = (Vec::new(), Vec::new());
    let mut told = String::new();
    for group in &groups {
        if group.valid.is_empty() {
            impossible += 1;
            continue;
        }
        match make(group) {
            Made::Instances => made += 1,
            Made::Elsewhere => elsewhere.push(group.name.as_str()),
            Made::Nothing(why) => nothing.push(format!("{}: {why}", group.name)),
            Made::Invalid(instance) => {
                let _infallible = writeln!(told, "{} is not satisfied by {instance}", group.name);
            }
        }
    }
    let count = made + nothing.len();
    let figures = format!(
        "{made} of {count} satisfiable schemas generate; {} more refer to others, {impossible} have no valid instance\n\
         Nothing is made of\n{}\nReferences lead elsewhere in\n{}",
        elsewhere.len(),
        nothing.join("\n"),
        elsewhere.join("\n"),
    );
    if count < SCHEMAS || made * 1_000 < count * LEAST {
        let _infallible = writeln!(told, "{figures}");
    }
    if std::env::var_os("SCHEMA_FIGURES").is_some() {
        fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemas.txt"), &figures)
            .map_err(|error| error.to_string())?;
    }
    if told.is_empty() { Ok(()) } else { Err(told) }
}
