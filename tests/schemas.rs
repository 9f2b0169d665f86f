//! The fuzzer's schemas held against the official JSON-Schema-Test-Suite, which is no part of this project:
//! `tests/schemas/install.sh` fetches it out of a published package. Where it is not there the trials are ignored,
//! unless `MCP_CONFORMANCE_SCHEMAS=required` is set.
//!
//! `CORPUS=<file> cargo test --test suite -- --ignored schemas/corpus` does the same for the inputSchema in each line of
//! a file, and breaks every keyword in it, too.
//!
//! A group of the suite counts as satisfiable where the suite itself has a valid instance of its schema. Groups whose
//! references lead out of their schema are left out, and counted: nothing is ever fetched.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use mcp_conformance::fuzz::{Constraint, Dialect, Domain, Random, SchemaError, ToolSchema, ViolationError};
use serde_json::Value;

use crate::trial;

/// The folders of the suite, and how their schemas are read where they do not say.
const DRAFTS: [(&str, Dialect); 2] = [("draft2020-12", Dialect::Draft202012), ("draft7", Dialect::Draft7)];

/// How many instances of a schema are made.
const INSTANCES: usize = 40;
/// What part of the satisfiable schemas has to generate, in thousandths.
const LEAST: usize = 970;
/// How many instances break a keyword.
const BROKEN: usize = 5;
/// What part of the keywords that have an effect has to be broken, in thousandths.
const BREAKABLE: usize = 990;
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
        trial("schemas/corpus", the_corpus).with_ignored_flag(true),
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

/// What was made of all the schemas of a corpus.
#[derive(Debug, Default)]
struct Census {
    schemas: usize,
    valid: usize,
    sites: usize,
    /// Keywords without which the schema admits nothing more.
    idle: usize,
    broken: usize,
    invalid: usize,
    wrong: Vec<String>,
    /// Keywords that have an effect, as far as is known, and that nothing was found to break.
    unbroken: Vec<String>,
}

impl Census {
    fn take(&mut self, name: &str, schema: &Value) {
        self.schemas += 1;
        let compiled = match ToolSchema::compile(schema, Dialect::Draft202012) {
            Ok(compiled) => compiled,
            Err(error) => return self.wrong.push(format!("{name}: failed to {error}")),
        };
        if compiled.is_unsatisfiable() {
            return self.wrong.push(format!("{name}: nothing satisfies it"));
        }
        let Some(whole) = validator(schema, compiled.dialect()) else {
            return self.wrong.push(format!("{name}: no validator"));
        };
        let mut random = Random::new(1);
        for _ in 0..INSTANCES {
            match compiled.generate(&mut random) {
                Ok(instance) if whole.is_valid(&instance) => self.valid += 1,
                Ok(instance) => self.wrong.push(format!("{name}: {instance} is not valid")),
                Err(error) => self.wrong.push(format!("{name}: failed to {error}")),
            }
        }
        for site in compiled.constraints() {
            self.sites += 1;
            let generator = match compiled.violating(&site) {
                Ok(generator) => generator,
                Err(ViolationError::NoEffect | ViolationError::AdmitsNoMore) => {
                    self.idle += 1;
                    continue;
                }
                Err(error) => {
                    self.unbroken.push(format!("{name} {site}: failed to {error}"));
                    continue;
                }
            };
            self.broken += 1;
            let without = without(schema, &site).and_then(|without| validator(&without, compiled.dialect()));
            let Some(without) = without else {
                self.wrong.push(format!("{name} {site}: it cannot be taken away"));
                continue;
            };
            for instance in (0..BROKEN).filter_map(|_| generator.generate(&mut random).ok()) {
                self.invalid += 1;
                if whole.is_valid(&instance) {
                    self.wrong.push(format!("{name} {site}: {instance} is valid"));
                } else if !without.is_valid(&instance) {
                    self.wrong.push(format!("{name} {site}: {instance} breaks something else as well"));
                }
            }
        }
    }
}

/// The schema with one keyword taken away, or one name of those that are required.
fn without(schema: &Value, site: &Constraint) -> Option<Value> {
    let mut schema = schema.clone();
    let place = schema.pointer_mut(&site.pointer)?;
    match (place, &site.name) {
        (place @ Value::Bool(_), _) => *place = Value::Bool(true),
        (Value::Object(keywords), Some(name)) => {
            let names = keywords.get_mut(&site.keyword)?.as_array_mut()?;
            names.retain(|known| known.as_str() != Some(name));
        }
        (Value::Object(keywords), None) => {
            keywords.remove(&site.keyword)?;
            // A list of values says of which type they are, so that a type beside it is broken with it.
            if matches!(site.keyword.as_str(), "enum" | "const") {
                keywords.remove("type");
            }
        }
        _ => return None,
    }
    Some(schema)
}

fn validator(schema: &Value, dialect: Dialect) -> Option<jsonschema::Validator> {
    let options = jsonschema::options().with_draft(draft_of(dialect)).should_validate_formats(true).offline();
    options.build(schema).ok()
}

fn the_corpus() -> Result<(), String> {
    let path = std::env::var_os("CORPUS").ok_or("CORPUS names no file")?;
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", Path::new(&path).display()))?;
    let mut seen: Vec<Value> = Vec::new();
    let mut census = Census::default();
    for line in text.lines() {
        let entry: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let schema = &entry["inputSchema"];
        if !seen.contains(schema) {
            seen.push(schema.clone());
            census.take(&format!("{} {}", entry["server"], entry["tool"]), schema);
        }
    }
    let Census { schemas, valid, sites, idle, broken, invalid, wrong, unbroken } = census;
    let figures = format!(
        "{schemas} schemas, {valid} valid instances; of {sites} keywords {idle} have no effect, {broken} were broken \
         alone, {} were not; {invalid} invalid instances; {} wrong\n{}\n{}",
        unbroken.len(),
        wrong.len(),
        wrong.join("\n"),
        unbroken.join("\n"),
    );
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus.txt"), &figures)
        .map_err(|error| error.to_string())?;
    let most = (broken + unbroken.len()) * (1_000 - BREAKABLE) / 1_000;
    if wrong.is_empty() && unbroken.len() <= most && schemas > 0 { Ok(()) } else { Err(figures) }
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
    let Some(validator) = validator(&group.schema, schema.dialect()) else {
        return Made::Nothing("it has no validator".to_owned());
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
        _ => jsonschema::Draft::Draft202012,
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
