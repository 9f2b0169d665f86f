//! Mutants that are schemas themselves: a branch that is not read, a `oneOf` read as `anyOf`.
//!
//! The canonical form subtracts the schema from the mutant, and the mutant from the schema; what remains is what tells
//! them apart.

use std::sync::Arc;

use jsonschema::canonical::{CanonicalSchema, Satisfiability};
use serde_json::Value;

use super::super::{
    compile, expansion,
    generator::{Class, Generator},
    hint::Hints,
    schema::{ToolSchema, restrict_to},
    source::{Random, Simplest},
};
use super::site::Site;

/// The maximum number of mutated schemas.
const MAX_MUTANTS: usize = 64;
/// Schemas with more cases are not subtracted.
const MAX_CASES: u64 = 32;
/// How many instances of a difference are tried.
const INSTANCES: u64 = 4;

/// A schema that a wrong validator reads instead of the published one.
struct Document {
    mutant: &'static str,
    /// The JSON pointer of the mutated subschema.
    pointer: String,
    schema: Value,
}

/// What subtraction says of a mutated schema.
pub(super) struct Difference {
    pub(super) mutant: &'static str,
    pub(super) pointer: String,
    /// Instances on which it and the schema differ.
    pub(super) instances: Vec<Value>,
    /// Whether it is proven that they accept the same instances.
    pub(super) is_equivalent: bool,
}

/// For each mutated schema, how it differs from the schema.
pub(super) fn differences(schema: &ToolSchema, sites: &[Site<'_>]) -> Vec<Difference> {
    let Some(own) = canonical(schema.schema(), schema) else { return Vec::new() };
    let hints = Hints::collect(schema.schema());
    let mut found = Vec::new();
    for document in documents(schema.schema(), sites).into_iter().take(MAX_MUTANTS) {
        let Some(mutant) = canonical(&document.schema, schema) else { continue };
        let Ok(validator) = compile::validator(&document.schema, schema.dialect()) else { continue };
        let validator = Arc::new(validator);
        let valid = schema.valid();
        let (mut instances, mut empty) = (Vec::new(), 0);
        for (from, without, passes, fails) in
            [(&mutant, &own, &validator, &valid.passes), (&own, &mutant, &valid.passes, &validator)]
        {
            let Ok(difference) = from.subtract(without) else { continue };
            if difference.satisfiability() == Satisfiability::No {
                empty += 1;
                continue;
            }
            let Ok(plan) = compile::compile(&[difference], schema.dialect(), &hints) else { continue };
            let generator = Generator {
                plan: Arc::new(plan),
                class: Class::Valid,
                domain: valid.domain,
                passes: Arc::clone(passes),
                fails: Some(Arc::clone(fails)),
                attempts: 4,
            };
            // What the search for the simplest one does not find, another source does not find either: it ends in the same
            // search, which takes long for recursive schemas.
            let Ok(simplest) = generator.generate(&mut Simplest) else { continue };
            let further = (0..INSTANCES).filter_map(|seed| generator.generate(&mut Random::new(seed)).ok());
            instances.extend(std::iter::once(simplest).chain(further));
        }
        let Document { mutant, pointer, .. } = document;
        // What depends on more than the accepted instances is not a part of the canonical form.
        let is_equivalent = empty == 2 && !schema.has_unevaluated();
        found.push(Difference { mutant, pointer, instances, is_equivalent });
    }
    found
}

/// The canonical form of a schema within the domain, if it is small enough to be subtracted.
fn canonical(document: &Value, schema: &ToolSchema) -> Option<CanonicalSchema> {
    let expansion = expansion::limit_expansion(document);
    if !expansion.variants.is_empty() || expansion.cases > MAX_CASES {
        return None;
    }
    let whole = compile::canonicalize(document, schema.dialect()).ok()?;
    Some(restrict_to(&whole, schema.dialect(), schema.valid().domain))
}

/// The mutated schemas, in the order of the sites.
fn documents(schema: &Value, sites: &[Site<'_>]) -> Vec<Document> {
    let mut documents = Vec::new();
    for site in sites {
        let mut mutate = |mutant: &'static str, change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
            let mut mutated = schema.clone();
            if let Some(keywords) = mutated.pointer_mut(&site.pointer).and_then(Value::as_object_mut) {
                change(keywords);
                documents.push(Document { mutant, pointer: site.pointer.clone(), schema: mutated });
            }
        };
        let branches = |keyword: &str| site.keywords.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
        let replace = |from: &'static str, to: &'static str| {
            move |keywords: &mut serde_json::Map<String, Value>| {
                if let Some(list) = keywords.shift_remove(from) {
                    keywords.insert(to.to_owned(), list);
                }
            }
        };
        if branches("oneOf") > 0 && !site.keywords.contains_key("anyOf") {
            mutate("one-of-as-any-of", &replace("oneOf", "anyOf"));
        }
        if branches("anyOf") > 0 && !site.keywords.contains_key("oneOf") {
            mutate("any-of-as-one-of", &replace("anyOf", "oneOf"));
        }
        for (keyword, mutant) in
            [("oneOf", "one-of-branch-ignored"), ("anyOf", "any-of-branch-ignored"), ("allOf", "all-of-branch-ignored")]
        {
            for at in (0..branches(keyword)).filter(|_| branches(keyword) > 1) {
                mutate(mutant, &move |keywords| {
                    if let Some(list) = keywords.get_mut(keyword).and_then(Value::as_array_mut) {
                        list.remove(at);
                    }
                });
            }
        }
        for (keyword, mutant) in [
            ("anyOf", "any-of-ignored"),
            ("oneOf", "one-of-ignored"),
            ("not", "not-ignored"),
            ("$ref", "reference-ignored"),
        ] {
            if site.keywords.contains_key(keyword) {
                mutate(mutant, &move |keywords| {
                    keywords.shift_remove(keyword);
                });
            }
        }
        if site.keywords.contains_key("$ref") && site.keywords.len() > 1 {
            mutate("reference-siblings-ignored", &|keywords| keywords.retain(|keyword, _| keyword.starts_with('$')));
        }
    }
    documents
}
