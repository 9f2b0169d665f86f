//! Collects the arguments that tell the mutants of a schema apart from it.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::super::{
    constraint::Constraint,
    coverage::CoverageGoal,
    schema::{ToolSchema, ViolationError},
};
use super::catalogue::mutants;
use super::choices::interleave;
use super::documents::Difference;
use super::edit::Edits;
use super::proof::{Prover, Validity};
use super::site::{Site, sites};
use super::{arrays, choices, depth, documents, numbers, objects, text, types};
use crate::json_pointer::{self, unescape};

/// The maximum number of valid instances from which variation starts.
const MAX_BASES: usize = 24;
/// How many goals are tried at most for instances with more places.
const MAX_GOALS_TRIED: usize = 200;
/// The maximum number of varied arguments that are validated.
const MAX_CANDIDATES: usize = 6_000;
/// How many keywords are proven to have no effect at most.
const MAX_PROOFS: usize = 24;
/// How many bundles are tried for valid arguments.
const MAX_BUNDLES_TRIED: usize = 6;

/// Arguments on which a schema and some of its mutants differ.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TellingArguments {
    /// The arguments.
    pub arguments: Value,
    /// The one constraint that they violate; none if they are valid.
    pub violates: Option<Constraint>,
    /// The mutants that these arguments tell from the schema: the JSON pointer of the subschema, and the name.
    pub mutants: Vec<(String, &'static str)>,
}

/// The arguments that tell the mutants of a schema apart from it, and the mutants that none of them tells.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Telling {
    /// The arguments, the most telling first.
    pub arguments: Vec<TellingArguments>,
    /// The mutants without such arguments, in the order of the schema.
    pub untold: Vec<UntoldMutant>,
}

/// A mutant without arguments that tell it from the schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct UntoldMutant {
    /// The JSON pointer of the subschema.
    pub pointer: String,
    /// The name of the mutant.
    pub name: &'static str,
    /// Why.
    pub reason: Undecided,
}

/// Why no arguments tell a mutant from the schema.
///
/// # Examples
///
/// ```
/// use mcp_conformance::fuzz::{Dialect, TellingArguments, ToolSchema, Undecided, UntoldMutant, telling_arguments};
/// use serde_json::json;
///
/// let size = json!({"type": "integer", "minimum": 1, "maximum": 10});
/// let schema = json!({"type": "object", "properties": {"size": size}, "required": ["size"]});
/// let schema = ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema");
/// let telling = telling_arguments(&schema, Some(&json!({"size": 4})));
/// for TellingArguments { arguments, violates, .. } in &telling.arguments {
///     assert_eq!(violates.is_none(), schema.is_valid(arguments), "{arguments}");
/// }
/// for UntoldMutant { pointer, name, reason, .. } in &telling.untold {
///     match reason {
///         Undecided::Equivalent => println!("{name} at {pointer} accepts the same arguments"),
///         other => println!("{name} at {pointer}: {other:?}"),
///     }
/// }
/// // A validator that takes the smallest size as too small.
/// let smallest = |one: &&TellingArguments| one.mutants.iter().any(|(_, name)| *name == "minimum-exclusive");
/// assert_eq!(telling.arguments.iter().find(smallest).expect("it is told").arguments["size"], 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Undecided {
    /// It is proven that the mutant accepts the same arguments as the schema.
    Equivalent,
    /// None were found; there may or may not be such arguments.
    NotFound,
}

/// A varied value, before it is classified.
struct Candidate {
    pointer: String,
    location: String,
    mutant: &'static str,
    arguments: Value,
}

/// Arguments that tell the mutants of a schema apart from it, the most telling first.
///
/// Starts from valid arguments: `served` ones, that the tool is known to serve, before generated ones. The same schema
/// and the same served arguments have the same result.
///
/// # Examples
///
/// ```
/// use mcp_conformance::fuzz::{Dialect, Mutant, Telling, ToolSchema, mutants, telling_arguments};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"count": {"type": "integer", "maximum": 10}}});
/// let schema = ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema");
/// let Telling { arguments, .. } = telling_arguments(&schema, None);
/// // Each shows a validator that makes a mistake, by what it accepts or rejects.
/// let (telling, told) = arguments.iter().find_map(|one| Some((one, one.mutants.first()?))).expect("some are told");
/// let Mutant { description, .. } = mutants().iter().find(|mutant| mutant.name == told.1).expect("it is listed");
/// assert_eq!(telling.violates.is_none(), schema.is_valid(&telling.arguments), "{description}");
/// ```
#[must_use]
pub fn telling_arguments(schema: &ToolSchema, served: Option<&Value>) -> Telling {
    let pool = valid_instances(schema, served);
    let sites = sites(schema, &pool);
    let mut lists: Vec<Vec<Candidate>> = Vec::new();
    for site in &sites {
        let own = of_site(site, &pool).into_iter().map(|edits| candidates(site, edits)).collect();
        lists.push(interleave(own));
    }
    for (at, edits) in depth::edits(&sites, |site| interleave(of_site(site, &pool))) {
        lists.push(candidates(&sites[at], edits));
    }
    // What was tried for each mutant, and whether it is known to be equivalent.
    let mut tried: BTreeMap<(String, &'static str), bool> = BTreeMap::new();
    for difference in documents::differences(schema, &sites) {
        let Difference { mutant, pointer, instances, is_equivalent } = difference;
        tried.insert((pointer.clone(), mutant), is_equivalent);
        let candidate = |arguments| Candidate { pointer: pointer.clone(), location: String::new(), mutant, arguments };
        lists.push(instances.into_iter().map(candidate).collect());
    }
    let mut candidates = interleave(lists);
    for candidate in &candidates {
        tried.entry((candidate.pointer.clone(), candidate.mutant)).or_default();
    }
    candidates.truncate(MAX_CANDIDATES);
    let arguments = Collection::new(schema).collect(candidates);
    for mutant in arguments.iter().flat_map(|telling| &telling.mutants) {
        tried.remove(mutant);
    }
    Telling { arguments, untold: untold(schema, tried) }
}

/// The mutants that no arguments tell from the schema, with the reason: one that only weakens a keyword is equivalent if
/// the keyword is proven to have no effect.
fn untold(schema: &ToolSchema, tried: BTreeMap<(String, &'static str), bool>) -> Vec<UntoldMutant> {
    let weakened: HashMap<&str, &str> =
        mutants().iter().filter_map(|mutant| Some((mutant.name, mutant.weakens?))).collect();
    let mut proven: HashMap<(String, &str), bool> = HashMap::new();
    let mut is_without_effect = |pointer: &str, keyword: &'static str| {
        if proven.len() >= MAX_PROOFS && !proven.contains_key(&(pointer.to_owned(), keyword)) {
            return false;
        }
        *proven.entry((pointer.to_owned(), keyword)).or_insert_with(|| {
            let constraint = Constraint { pointer: pointer.to_owned(), keyword: keyword.to_owned(), name: None };
            matches!(schema.violating(&constraint), Err(ViolationError::NoEffect))
        })
    };
    let untold = tried.into_iter().map(|((pointer, name), is_equivalent)| {
        let mut by_keyword = || weakened.get(name).is_some_and(|keyword| is_without_effect(&pointer, keyword));
        let reason = if is_equivalent || by_keyword() { Undecided::Equivalent } else { Undecided::NotFound };
        UntoldMutant { pointer, name, reason }
    });
    untold.collect()
}

/// Valid instances, from which the variation starts.
pub(in crate::fuzz) fn valid_instances(schema: &ToolSchema, served: Option<&Value>) -> Vec<Value> {
    let valid = schema.valid();
    let goals = valid.bundled_goals();
    let mut generated: Vec<Value> = goals.iter().take(MAX_BASES).filter_map(|goal| valid.cover(goal)).collect();
    generated.extend(instances_with_more_places(schema, &goals, &generated));
    // Values at all places are reached by as few instances as possible.
    generated.sort_by_key(|value| std::cmp::Reverse(value.as_object().map_or(0, serde_json::Map::len)));
    let mut pool = Vec::new();
    if let Some(served) = served.filter(|served| schema.is_valid(served)) {
        let mut overlaid = generated.iter().map(|value| overlay(value, served));
        pool.extend(overlaid.find(|value| schema.is_valid(value)));
        pool.push(served.clone());
    }
    pool.extend(schema.with_all_properties());
    pool.extend(generated);
    pool.extend(schema.minimal().ok());
    pool
}

/// Instances with places that none of the known ones has, such as the members of an item if every known array is empty.
fn instances_with_more_places(schema: &ToolSchema, goals: &[CoverageGoal], known: &[Value]) -> Vec<Value> {
    let valid = schema.valid();
    let mut places: HashSet<String> = HashSet::new();
    for instance in known {
        add_places(instance, &mut places);
    }
    let single = valid.coverage_goals();
    let mut more = Vec::new();
    for goal in goals.iter().skip(MAX_BASES).chain(&single).take(MAX_GOALS_TRIED) {
        let Some(instance) = valid.cover(goal) else { continue };
        let before = places.len();
        add_places(&instance, &mut places);
        if places.len() > before {
            more.push(instance);
        }
        if more.len() == MAX_BASES {
            break;
        }
    }
    more
}

/// Adds where an instance has a value, with `*` for any item.
fn add_places(instance: &Value, places: &mut HashSet<String>) {
    const MAX_PLACES: usize = 1_000;
    let mut pending = vec![(String::new(), instance)];
    while let Some((place, value)) = pending.pop().filter(|_| places.len() < MAX_PLACES) {
        match value {
            Value::Object(members) => {
                pending.extend(members.iter().map(|(name, value)| (json_pointer::join(&place, name), value)));
            }
            Value::Array(items) => pending.extend(items.iter().map(|item| (format!("{place}/*"), item))),
            _ => {}
        }
        places.insert(place);
    }
}

/// The members of both objects, those of `over` first.
fn overlay(value: &Value, over: &Value) -> Value {
    let (Some(members), Some(over)) = (value.as_object(), over.as_object()) else { return value.clone() };
    let mut members = members.clone();
    members.extend(over.iter().map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(members)
}

/// The items of the arrays at a site in all instances.
fn items_at(site: &Site<'_>, pool: &[Value]) -> Vec<Value> {
    let arrays = pool.iter().filter_map(|base| base.pointer(&site.location)?.as_array());
    arrays.flatten().take(64).cloned().collect()
}

/// The members of the objects at a site in all instances, each as it is first seen.
fn members_at(site: &Site<'_>, pool: &[Value]) -> serde_json::Map<String, Value> {
    let mut known = serde_json::Map::new();
    for (name, value) in pool.iter().filter_map(|base| base.pointer(&site.location)?.as_object()).flatten() {
        if !known.contains_key(name) {
            known.insert(name.clone(), value.clone());
        }
    }
    known
}

/// The edits of the value at a site, by kind.
fn of_site(site: &Site<'_>, pool: &[Value]) -> Vec<Edits> {
    let mut edits = choices::edits(site.keywords);
    match site.current {
        Value::Number(_) => edits.extend(numbers::edits(site.keywords, site.current)),
        Value::String(current) => edits.extend(text::edits(site.keywords, current)),
        Value::Array(items) => edits.extend(arrays::edits(site.keywords, items, &items_at(site, pool))),
        Value::Object(members) => edits.extend(objects::edits(site.keywords, members, &members_at(site, pool))),
        Value::Null | Value::Bool(_) => {}
    }
    // Arguments are objects by the protocol, whether a branch at the root says so or not.
    let is_branch_of_root = site.location.is_empty() && !site.keywords.contains_key("type");
    if !is_branch_of_root {
        edits.extend(types::edits(site.keywords, site.current));
    }
    edits
}

fn candidates(site: &Site<'_>, edits: Edits) -> Vec<Candidate> {
    let candidate = |edit: super::edit::Edit| Candidate {
        pointer: site.pointer.clone(),
        location: site.location.clone(),
        mutant: edit.mutant,
        arguments: site.with(edit.value),
    };
    edits.into_iter().map(candidate).collect()
}

/// The arguments that are proven to tell a mutant.
struct Collection<'s> {
    schema: &'s ToolSchema,
    found: Vec<TellingArguments>,
    /// For each arguments as text, their position.
    known: HashMap<String, Option<usize>>,
    /// For each bundle of valid arguments, its position and the properties of the root that it varies.
    bundles: Vec<(usize, Vec<String>)>,
}

impl<'s> Collection<'s> {
    fn new(schema: &'s ToolSchema) -> Self {
        Self { schema, found: Vec::new(), known: HashMap::new(), bundles: Vec::new() }
    }

    fn collect(mut self, candidates: Vec<Candidate>) -> Vec<TellingArguments> {
        let mut prover = Prover::new(self.schema);
        for candidate in candidates {
            let mutant = (candidate.pointer.clone(), candidate.mutant);
            let text = candidate.arguments.to_string();
            if let Some(known) = self.known.get(&text) {
                if let Some(found) =
                    known.and_then(|at| self.found.get_mut(at)).filter(|found| !found.mutants.contains(&mutant))
                {
                    found.mutants.push(mutant);
                }
                continue;
            }
            let at = match prover.classify(&candidate.arguments) {
                None => None,
                Some(Validity::Violates(constraint)) => Some(self.add(TellingArguments {
                    arguments: candidate.arguments,
                    violates: Some(constraint),
                    mutants: vec![mutant],
                })),
                Some(Validity::Valid) => Some(self.add_valid(candidate, mutant)),
            };
            self.known.insert(text, at);
        }
        self.found
    }

    fn add(&mut self, arguments: TellingArguments) -> usize {
        self.found.push(arguments);
        self.found.len() - 1
    }

    /// Adds valid arguments: into a bundle that varies other properties, as one call can show several rejections.
    fn add_valid(&mut self, candidate: Candidate, mutant: (String, &'static str)) -> usize {
        let property = candidate.location.split('/').nth(1).unwrap_or_default().to_owned();
        let name = unescape(&property);
        if let Some(value) = candidate.arguments.get(&name).filter(|_| !property.is_empty()) {
            let open = self.bundles.iter_mut().filter(|(_, varied)| !varied.contains(&property));
            for (at, varied) in open.take(MAX_BUNDLES_TRIED) {
                let mut merged = self.found[*at].arguments.clone();
                merged[&name] = value.clone();
                if self.schema.is_valid(&merged) {
                    self.found[*at].arguments = merged;
                    self.found[*at].mutants.push(mutant);
                    varied.push(property);
                    return *at;
                }
            }
            self.bundles.push((self.found.len(), vec![property]));
        }
        self.add(TellingArguments { arguments: candidate.arguments, violates: None, mutants: vec![mutant] })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::dialect::Dialect;
    use super::*;
    use serde_json::json;

    fn compile(properties: &Value) -> ToolSchema {
        let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
        ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema")
    }

    /// Schemas with every keyword for which there are mutants.
    fn schemas() -> Vec<ToolSchema> {
        let node = json!({
            "type": "object",
            "properties": {
                "size": {"type": "integer", "minimum": 0},
                "parts": {"type": "array", "items": {"$ref": "#/properties/tree"}},
            },
            "required": ["size"],
        });
        vec![
            compile(&json!({
                "i": {"type": "integer", "minimum": 2, "maximum": 90},
                "n": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 10},
                "m": {"type": "number", "multipleOf": 0.01},
                "k": {"type": "integer", "multipleOf": 5},
                "whole": {"type": "integer"},
                "real": {"type": "number"},
                "low": {"type": "number", "minimum": 0},
            })),
            compile(&json!({
                "s": {"type": "string", "minLength": 2, "maxLength": 5},
                "p": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
                "u": {"type": "string", "pattern": "[a-z]{2}"},
                "d": {"type": "string", "pattern": "^[a-z]+\\.(com|org|test)$"},
                "free": {"type": "string"},
            })),
            compile(&json!({
                "date-time": {"type": "string", "format": "date-time"},
                "date": {"type": "string", "format": "date"},
                "time": {"type": "string", "format": "time"},
                "email": {"type": "string", "format": "email"},
                "uri": {"type": "string", "format": "uri"},
                "uuid": {"type": "string", "format": "uuid"},
                "ipv4": {"type": "string", "format": "ipv4"},
                "ipv6": {"type": "string", "format": "ipv6"},
                "hostname": {"type": "string", "format": "hostname"},
            })),
            compile(&json!({
                "b": {"type": "boolean"},
                "a": {"type": "array", "items": {"type": "string"}},
                "o": {"type": "object"},
                "z": {"type": "null"},
                "t": {"type": ["string", "null"]},
                "any": {"description": "anything"},
                "es": {"enum": ["asc", "Desc"]},
                "en": {"enum": [0, 1, 2]},
                "ez": {"enum": [null, true]},
                "ef": {"enum": [[false], [true]]},
                "co": {"const": {"x": 1, "y": 2}},
                "ca": {"const": [1, 2]},
            })),
            compile(&json!({
                "tags": {"type": "array", "minItems": 2, "maxItems": 4, "uniqueItems": true, "items": {"type": "string"}},
                "values": {"type": "array", "uniqueItems": true},
                "pair": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}], "items": false},
                "list": {"type": "array", "items": {"type": "integer"}},
                "one": {"type": "array", "contains": {"const": "x"}},
                "few": {"type": "array", "contains": {"minimum": 10}, "minContains": 2, "maxContains": 3,
                        "items": {"type": "integer"}},
            })),
            compile(&json!({
                "labels": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"},
                           "additionalProperties": {"type": "string"}, "minProperties": 1, "maxProperties": 3},
                "meta": {"type": "object", "properties": {"n_total": {"maximum": 99}},
                         "patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": false},
                "card": {"type": "object",
                         "properties": {"number": {"type": "string"}, "name": {"type": "string"}},
                         "dependentRequired": {"number": ["name"]}},
                "sent": {"type": "object",
                         "properties": {"by": {"enum": ["post", "shop"]}, "street": {"type": "string"},
                                        "shop": {"type": "string"}},
                         "if": {"properties": {"by": {"const": "post"}}},
                         "then": {"required": ["street"]}, "else": {"required": ["shop"]}},
                "both": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                         "required": ["a", "b"]},
            })),
            compile(&json!({
                "exclusive": {"type": "integer", "oneOf": [{"multipleOf": 4}, {"multipleOf": 6}]},
                "either": {"anyOf": [{"type": "integer", "minimum": 10}, {"type": "integer", "maximum": 20}]},
                "all": {"allOf": [{"type": "integer"}, {"minimum": 1}], "not": {"const": 5}},
                "named": {"$ref": "#/properties/word", "maxLength": 6},
                "word": {"type": "string", "minLength": 1},
                "tree": node,
            })),
        ]
    }

    #[test]
    fn every_mutant_of_the_catalogue_is_told_from_some_schema_by_proven_arguments() {
        let mut told = HashSet::new();
        for schema in schemas() {
            let telling = telling_arguments(&schema, None);
            assert_eq!(telling, telling_arguments(&schema, None), "the same schema has the same arguments");
            for one in telling.arguments {
                assert_eq!(schema.is_valid(&one.arguments), one.violates.is_none(), "{}", one.arguments);
                told.extend(one.mutants.iter().map(|(_, name)| *name));
            }
        }
        let known: HashSet<&str> = mutants().iter().map(|mutant| mutant.name).collect();
        let mut untold: Vec<&str> = known.difference(&told).copied().collect();
        let mut unknown: Vec<&str> = told.difference(&known).copied().collect();
        untold.sort_unstable();
        unknown.sort_unstable();
        assert!(untold.is_empty() && unknown.is_empty(), "never told: {untold:?}; not in the catalogue: {unknown:?}");
    }

    #[test]
    fn items_are_varied_that_few_instances_have() {
        // Each of the first instances has an empty array.
        let port = json!({"type": "object", "properties": {"port": {"type": "integer", "minimum": 1, "maximum": 65535},
                          "protocol": {"enum": ["TCP", "UDP"]}}, "required": ["port"], "additionalProperties": false});
        let schema = json!({
            "type": "object",
            "properties": {
                "replicas": {"type": "integer", "minimum": 0, "maximum": 50},
                "ports": {"type": "array", "maxItems": 10, "items": port},
                "strategy": {"enum": ["rolling", "recreate", "canary"]},
                "surge": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]{1,3}%$"}]},
                "weight": {"type": "integer", "minimum": 1, "maximum": 100},
            },
            "required": ["replicas"],
            "additionalProperties": false,
            "allOf": [
                {"if": {"properties": {"strategy": {"const": "rolling"}}}, "then": {"required": ["surge"]}},
                {"if": {"required": ["strategy"], "properties": {"strategy": {"const": "canary"}}},
                 "then": {"required": ["weight"]}, "else": {"properties": {"weight": false}}},
            ],
        });
        let schema = ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema");
        let is_told = |telling: &TellingArguments| {
            telling.mutants.contains(&("/properties/ports/items/properties/port".to_owned(), "maximum-one-too-high"))
        };
        assert!(telling_arguments(&schema, None).arguments.iter().any(is_told));
    }

    /// The arguments for a mutant.
    fn told_by(schema: &Value, name: &str) -> Vec<TellingArguments> {
        let schema = ToolSchema::compile(schema, Dialect::Draft202012).expect("a usable schema");
        let telling = telling_arguments(&schema, None).arguments;
        telling.into_iter().filter(|one| one.mutants.iter().any(|(_, own)| *own == name)).collect()
    }

    #[test]
    fn members_of_another_branch_are_tried_and_null_is_no_absence() {
        let branch = |kind: &str, name: &str| {
            json!({"type": "object", "properties": {"kind": {"const": kind}, (name): {"type": "integer"}},
                   "required": ["kind", name], "additionalProperties": false})
        };
        let schema =
            json!({"type": "object", "properties": {"step": {"oneOf": [branch("wait", "ms"), branch("click", "x")]}}});
        for name in ["branch-members-mixed", "null-counts-as-absent"] {
            let has_both = |one: &TellingArguments| {
                let step = &one.arguments["step"];
                one.violates.is_some() && step.get("ms").is_some() && step.get("x").is_some()
            };
            assert!(told_by(&schema, name).iter().any(has_both), "{name}");
        }
    }

    #[test]
    fn a_condition_of_a_recursive_node_is_tried_inside_another_one() {
        let node = json!({
            "type": "object",
            "properties": {"kind": {"enum": ["file", "folder"]},
                           "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["kind"],
            "if": {"properties": {"kind": {"const": "file"}}},
            "then": {"properties": {"children": false}},
        });
        let schema =
            json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}});
        let is_inner = |one: &TellingArguments| {
            let root = &one.arguments["root"];
            let file = root.pointer("/children/0").filter(|child| child["kind"] == "file");
            root["kind"] == "folder" && file.is_some_and(|file| file.get("children").is_some())
        };
        assert!(told_by(&schema, "outermost-only").iter().any(|one| one.violates.is_some() && is_inner(one)));
    }

    #[test]
    fn what_breaks_a_format_as_well_breaks_the_pattern() {
        let moment = json!({"type": "string", "format": "date-time", "pattern": "Z$"});
        let schema = json!({"type": "object", "properties": {"at": moment}});
        let violates = |one: &TellingArguments| one.violates.as_ref().is_some_and(|own| own.keyword == "pattern");
        assert!(told_by(&schema, "pattern-ignored").iter().any(violates));
    }

    #[test]
    fn several_missing_members_are_one_violation() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                            "required": ["a", "b"]});
        assert!(told_by(&schema, "required-all-or-none").iter().any(|one| one.arguments == json!({})));
    }

    #[test]
    fn additional_members_are_told_by_values_that_break_nothing_else() {
        let urls =
            json!({"type": "object", "additionalProperties": {"type": "string", "format": "uri"}, "minProperties": 1});
        let schema = json!({"type": "object", "properties": {"files": urls}, "required": ["files"]});
        let is_valid = |one: &TellingArguments| one.violates.is_none();
        assert!(told_by(&schema, "additional-unusual-name").iter().any(is_valid));
        let closed = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false});
        assert!(told_by(&closed, "required-by-prefix").is_empty());
    }

    #[test]
    fn optional_members_are_tried_one_by_one_where_some_is_needed() {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "id": {"type": "integer"}},
                            "additionalProperties": false, "anyOf": [{"required": ["name"]}, {"required": ["id"]}]});
        let single = |one: &TellingArguments| {
            one.violates.is_none() && one.arguments.as_object().is_some_and(|own| own.len() == 1)
        };
        assert!(told_by(&schema, "every-property-required").iter().any(single));
        assert!(told_by(&schema, "untyped-value-restricted").is_empty(), "arguments are objects");
    }

    #[test]
    fn bounds_of_multiples_are_passed_by_a_multiple() {
        let schema = json!({"type": "object", "properties": {
            "tip": {"type": "integer", "minimum": 0, "maximum": 30, "multipleOf": 5}}});
        for (name, value) in [("minimum-ignored", -5), ("maximum-ignored", 35)] {
            assert!(told_by(&schema, name).iter().any(|one| one.arguments["tip"] == value), "{name}");
        }
    }

    #[test]
    fn variation_starts_from_arguments_that_are_served() {
        let schema = compile(&json!({"id": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}}));
        let telling = telling_arguments(&schema, Some(&json!({"id": "item-7", "limit": 9})));
        let about_limit =
            telling.arguments.iter().filter(|one| one.mutants.iter().any(|(pointer, _)| pointer.ends_with("limit")));
        let with_id = about_limit.clone().filter(|one| one.arguments["id"] == "item-7").count();
        assert!(with_id * 2 > about_limit.count(), "{with_id} of them have the served id");
    }

    #[test]
    fn a_mutant_without_telling_arguments_has_a_reason() {
        let reason = |properties: &Value, pointer: &str, name: &str| {
            let untold = telling_arguments(&compile(properties), None).untold;
            untold
                .into_iter()
                .find(|mutant| mutant.pointer == pointer && mutant.name == name)
                .map(|mutant| mutant.reason)
        };
        // The second branch accepts nothing that the first one does not.
        let wider = json!({"n": {"anyOf": [{"type": "integer"}, {"type": "integer", "minimum": 3}]}});
        assert_eq!(reason(&wider, "/properties/n", "any-of-branch-ignored"), None, "the first one is needed");
        let twice = json!({"n": {"anyOf": [{"type": "integer"}, {"type": "integer"}]}});
        assert_eq!(reason(&twice, "/properties/n", "any-of-branch-ignored"), Some(Undecided::Equivalent));
        // The other bound is stronger.
        let stronger = json!({"n": {"type": "integer", "minimum": 3, "allOf": [{"minimum": 5}]}});
        assert_eq!(reason(&stronger, "/properties/n", "minimum-ignored"), Some(Undecided::Equivalent));
        assert_eq!(reason(&stronger, "/properties/n/allOf/0", "minimum-one-too-low"), None, "it is told");
    }
}
