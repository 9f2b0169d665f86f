//! The fuzzer's schema generator checked against the official JSON-Schema-Test-Suite, which is not part of this
//! repository: `tests/schemas/install.sh` installs it from a published package. If it is missing, the trials are ignored
//! unless `MCP_CONFORMANCE_SCHEMAS=required` is set.
//!
//! `CORPUS=<file> cargo test --test suite -- --ignored schemas/corpus` does the same for the inputSchema in each line of
//! a file, also violates each of its keywords, and tells the mutants of each schema apart from it. The figures go to
//! `corpus.txt`, the schemas and arguments to `corpus-arguments.jsonl` in Cargo's folder for temporary files, where
//! `tests/schemas/second_opinion.py` judges them with another validator.
//!
//! A group of the suite counts as satisfiable if the suite contains a valid instance of its schema. Groups with remote
//! references are excluded and counted: no schema is ever downloaded.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Trial, trial};
use mcp_conformance::fuzz::{
    Constraint, Dialect, Domain, Random, SchemaError, Telling, ToolSchema, Undecided, ViolationError, telling_arguments,
};
use serde_json::{Value, json};

/// The folders of the suite, and the dialect of schemas without `$schema`.
const DRAFTS: [(&str, Dialect); 2] = [("draft2020-12", Dialect::Draft202012), ("draft7", Dialect::Draft7)];

/// The number of instances generated for a schema.
const INSTANCES: usize = 40;
/// The minimum share of satisfiable schemas for which instances are generated, in thousandths.
const MIN_GENERATED_PERMILLE: usize = 970;
/// The number of instances that violate a keyword.
const VIOLATING_INSTANCES: usize = 5;
/// The minimum share of keywords with an effect that are violated, in thousandths.
const MIN_VIOLATED_PERMILLE: usize = 990;
/// The minimum share of the mutants that are told apart, in thousandths: of half of the schemas, and of each.
const MIN_TOLD_PERMILLE: (usize, usize) = (990, 950);
/// The minimum number of schemas in the suite.
const MIN_SCHEMAS: usize = 600;
/// The server of the remote references in the suite.
const REMOTE_SERVER: &str = "localhost:1234";

pub(crate) fn trials() -> Vec<Trial> {
    let required = std::env::var_os("MCP_CONFORMANCE_SCHEMAS").is_some_and(|value| value == "required");
    let ignored = !required && !folder().is_dir();
    vec![
        trial("schemas/instances-of-satisfiable-schemas-are-generated", instances_of_satisfiable_schemas_are_generated)
            .with_ignored_flag(ignored),
        trial("schemas/corpus", the_corpus).with_ignored_flag(true),
    ]
}

/// The folder of the suite; `SCHEMA_SUITE` overrides it.
fn folder() -> PathBuf {
    std::env::var_os("SCHEMA_SUITE")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas/suite"), PathBuf::from)
}

/// A group of the suite: a schema and its valid instances.
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
            let describe_error =
                |error: std::io::Error| format!("{}: {error}; run tests/schemas/install.sh", folder.display());
            for entry in fs::read_dir(&folder).map_err(describe_error)? {
                let path = entry.map_err(describe_error)?.path();
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
    let file_groups: Vec<Value> =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    for group in file_groups {
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

/// Statistics and problems of all schemas of a corpus.
#[derive(Debug, Default)]
struct CorpusStatistics {
    schemas: usize,
    valid: usize,
    keywords: usize,
    /// Keywords whose removal makes no further instance valid.
    without_effect: usize,
    violated: usize,
    invalid: usize,
    problems: Vec<String>,
    /// Keywords that may have an effect, but for which no violating instance was found.
    not_violated: Vec<String>,
    /// The mutants of each schema: how many are told apart in thousandths of those that are not proven to be equivalent,
    /// and the others.
    mutants: Vec<(usize, String)>,
    /// How many mutants there are, without those that are proven to be equivalent, and how many of them are told apart.
    told_of: (usize, usize),
    /// Each schema, its dialect, and the arguments with what was said of them.
    arguments: Vec<Value>,
}

impl CorpusStatistics {
    fn add(&mut self, name: &str, schema: &Value) {
        self.schemas += 1;
        let compiled = match ToolSchema::compile(schema, Dialect::Draft202012) {
            Ok(compiled) => compiled,
            Err(error) => return self.problems.push(format!("{name}: failed to {error}")),
        };
        if compiled.is_unsatisfiable() {
            return self.problems.push(format!("{name}: the schema is unsatisfiable"));
        }
        let Some(whole) = validator(schema, compiled.dialect()) else {
            return self.problems.push(format!("{name}: the schema has no validator"));
        };
        let mut judged = self.tell_mutants(name, &compiled);
        let mut random = Random::new(1);
        for _ in 0..INSTANCES {
            match compiled.generate(&mut random) {
                Ok(instance) if whole.is_valid(&instance) => {
                    self.valid += 1;
                    judged.push(json!([instance, true]));
                }
                Ok(instance) => self.problems.push(format!("{name}: {instance} is not valid")),
                Err(error) => self.problems.push(format!("{name}: failed to {error}")),
            }
        }
        for constraint in compiled.constraints() {
            self.keywords += 1;
            let generator = match compiled.violating(&constraint) {
                Ok(generator) => generator,
                Err(ViolationError::NoEffect | ViolationError::AdmitsNoMore) => {
                    self.without_effect += 1;
                    continue;
                }
                Err(error) => {
                    self.not_violated.push(format!("{name} {constraint}: failed to {error}"));
                    continue;
                }
            };
            self.violated += 1;
            let without = without(schema, &constraint).and_then(|without| validator(&without, compiled.dialect()));
            let Some(without) = without else {
                self.problems.push(format!("{name} {constraint}: the keyword cannot be removed"));
                continue;
            };
            for instance in (0..VIOLATING_INSTANCES).filter_map(|_| generator.generate(&mut random).ok()) {
                self.invalid += 1;
                if whole.is_valid(&instance) {
                    self.problems.push(format!("{name} {constraint}: {instance} is valid"));
                } else if !without.is_valid(&instance) {
                    self.problems.push(format!("{name} {constraint}: {instance} violates other keywords as well"));
                }
                judged.push(json!([instance, false]));
            }
        }
        let dialect = format!("{:?}", compiled.dialect());
        self.arguments.push(json!({"name": name, "dialect": dialect, "schema": schema, "arguments": judged}));
    }

    /// Tells the mutants of a schema apart; returns the arguments, each with whether they are valid.
    fn tell_mutants(&mut self, name: &str, schema: &ToolSchema) -> Vec<Value> {
        let Telling { arguments, untold, .. } = telling_arguments(schema, None);
        let mut told: Vec<_> = arguments.iter().flat_map(|telling| &telling.mutants).collect();
        told.sort_unstable();
        told.dedup();
        let not_found = untold.iter().filter(|mutant| mutant.reason == Undecided::NotFound);
        let not_found: Vec<String> = not_found.map(|mutant| format!("{} at {}", mutant.name, mutant.pointer)).collect();
        let count = told.len() + not_found.len();
        self.told_of = (self.told_of.0 + count, self.told_of.1 + told.len());
        if let Some(permille) = (told.len() * 1_000).checked_div(count) {
            self.mutants.push((permille, format!("{name} {} of {count}: {}", told.len(), not_found.join(", "))));
        }
        arguments.iter().map(|telling| json!([telling.arguments, telling.violates.is_none()])).collect()
    }

    /// What half of the schemas and each schema have at least, in thousandths; those with less than that follow.
    fn told(&mut self) -> (usize, usize, String) {
        self.mutants.sort();
        let median = self.mutants.get(self.mutants.len() / 2).map_or(0, |(permille, _)| *permille);
        let worst = self.mutants.first().map_or(0, |(permille, _)| *permille);
        let below = self.mutants.iter().filter(|(permille, _)| *permille < MIN_TOLD_PERMILLE.0);
        let below: Vec<String> = below.map(|(permille, text)| format!("{permille} {text}")).collect();
        (median, worst, below.join("\n"))
    }
}

/// The schema without one keyword, or without one name of `required`.
fn without(schema: &Value, constraint: &Constraint) -> Option<Value> {
    let mut schema = schema.clone();
    let place = schema.pointer_mut(&constraint.pointer)?;
    match (place, &constraint.name) {
        (place @ Value::Bool(_), _) => *place = Value::Bool(true),
        (Value::Object(keywords), Some(name)) => {
            let names = keywords.get_mut(&constraint.keyword)?.as_array_mut()?;
            names.retain(|known| known.as_str() != Some(name));
        }
        (Value::Object(keywords), None) => {
            keywords.remove(&constraint.keyword)?;
            // `enum` and `const` imply a type, so violating them violates `type` as well.
            if matches!(constraint.keyword.as_str(), "enum" | "const") {
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
    let path = std::env::var_os("CORPUS").ok_or("CORPUS is not set")?;
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", Path::new(&path).display()))?;
    let mut known: Vec<Value> = Vec::new();
    let mut statistics = CorpusStatistics::default();
    for line in text.lines() {
        let entry: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let schema = &entry["inputSchema"];
        if !known.contains(schema) {
            known.push(schema.clone());
            statistics.add(&format!("{} {}", entry["server"], entry["tool"]), schema);
        }
    }
    let (median, worst, below) = statistics.told();
    let CorpusStatistics { schemas, valid, keywords, without_effect, violated, invalid, .. } = statistics;
    let CorpusStatistics { problems, not_violated, mutants, told_of, arguments, .. } = statistics;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let lines: Vec<String> = arguments.iter().map(Value::to_string).collect();
    fs::write(folder.join("corpus-arguments.jsonl"), lines.join("\n")).map_err(|error| error.to_string())?;
    let figures = format!(
        "{schemas} schemas, {valid} valid instances; of {keywords} keywords {without_effect} have no effect, {violated} were violated \
         alone, {} were not; {invalid} invalid instances; {} problems\n{}\n{}\n\
         {} of {} mutants of {} schemas are told apart; median {median}, least {worst} of 1,000\n{below}",
        not_violated.len(),
        problems.len(),
        problems.join("\n"),
        not_violated.join("\n"),
        told_of.1,
        told_of.0,
        mutants.len(),
    );
    fs::write(folder.join("corpus.txt"), &figures).map_err(|error| error.to_string())?;
    let max_not_violated = (violated + not_violated.len()) * (1_000 - MIN_VIOLATED_PERMILLE) / 1_000;
    let is_told = median >= MIN_TOLD_PERMILLE.0 && worst >= MIN_TOLD_PERMILLE.1;
    let is_violated = problems.is_empty() && not_violated.len() <= max_not_violated;
    if is_told && is_violated && schemas > 0 { Ok(()) } else { Err(figures) }
}

/// The outcome of generating instances for the schema of a group.
enum GenerationOutcome {
    Instances,
    /// The schema has remote references.
    RemoteReference,
    /// No instance was generated, for this reason.
    Failed(String),
    Invalid(Value),
}

fn generate(group: &Group) -> GenerationOutcome {
    let schema = match ToolSchema::compile_for(&group.schema, group.dialect, Domain::Any) {
        Ok(schema) => schema,
        Err(SchemaError::RemoteReference { .. }) => return GenerationOutcome::RemoteReference,
        Err(_) if group.schema.to_string().contains(REMOTE_SERVER) => return GenerationOutcome::RemoteReference,
        Err(error) => return GenerationOutcome::Failed(format!("failed to {error}")),
    };
    let Some(validator) = validator(&group.schema, schema.dialect()) else {
        return GenerationOutcome::Failed("the schema has no validator".to_owned());
    };
    let mut random = Random::new(1);
    for generated in 0..INSTANCES {
        match schema.generate(&mut random) {
            Ok(instance) if validator.is_valid(&instance) => {}
            Ok(instance) => return GenerationOutcome::Invalid(instance),
            Err(error) => return GenerationOutcome::Failed(format!("failed to {error} after {generated}")),
        }
    }
    GenerationOutcome::Instances
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

fn instances_of_satisfiable_schemas_are_generated() -> Result<(), String> {
    let groups = groups()?;
    let (mut generated, mut without_valid_instance) = (0, 0);
    let (mut remote, mut failed) = (Vec::new(), Vec::new());
    let mut problems = String::new();
    for group in &groups {
        if group.valid.is_empty() {
            without_valid_instance += 1;
            continue;
        }
        match generate(group) {
            GenerationOutcome::Instances => generated += 1,
            GenerationOutcome::RemoteReference => remote.push(group.name.as_str()),
            GenerationOutcome::Failed(why) => failed.push(format!("{}: {why}", group.name)),
            GenerationOutcome::Invalid(instance) => {
                let _infallible = writeln!(problems, "{}: the generated {instance} is not valid", group.name);
            }
        }
    }
    let count = generated + failed.len();
    let figures = format!(
        "{generated} of {count} satisfiable schemas generate; {} more have remote references, {without_valid_instance} have no valid instance\n\
         No instance for\n{}\nRemote references in\n{}",
        remote.len(),
        failed.join("\n"),
        remote.join("\n"),
    );
    if count < MIN_SCHEMAS || generated * 1_000 < count * MIN_GENERATED_PERMILLE {
        let _infallible = writeln!(problems, "{figures}");
    }
    if std::env::var_os("SCHEMA_FIGURES").is_some() {
        fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemas.txt"), &figures)
            .map_err(|error| error.to_string())?;
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
