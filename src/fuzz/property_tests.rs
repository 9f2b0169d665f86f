//! Properties that hold for every schema, tested on samples that use every keyword and on hostile schemas.

use std::time::{Duration, Instant};

use jsonschema::ValidationError;
use serde_json::{Map, Value, json};

use super::{Bytes, ChoiceSequence, Dialect, Domain, Random, Shrinker, Simplest, ToolSchema};

const SAMPLES: &str = include_str!("samples.json");

/// The keywords that the samples must use.
const KEYWORDS: [&str; 52] = [
    "$anchor",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

fn samples() -> Vec<(String, ToolSchema)> {
    let samples: Vec<Value> = serde_json::from_str(SAMPLES).expect("the samples are JSON");
    samples
        .iter()
        .map(|sample| {
            let schema = ToolSchema::compile(&sample["schema"], Dialect::Draft202012);
            let name = sample["name"].to_string();
            let schema = schema.unwrap_or_else(|error| panic!("{name}: failed to {error}"));
            (name, schema)
        })
        .collect()
}

/// A validator that is independent of the generator, except for the crate.
fn independent(schema: &ToolSchema) -> jsonschema::Validator {
    jsonschema::options()
        .with_draft(schema.dialect().draft())
        .should_validate_formats(true)
        .offline()
        .build(schema.schema())
        .expect("the samples are valid schemas")
}

#[test]
fn the_samples_use_every_keyword() {
    for keyword in KEYWORDS {
        assert!(SAMPLES.contains(&format!("\"{keyword}\": ")), "{keyword}");
    }
}

#[test]
fn every_generated_value_is_valid_whatever_the_source() {
    for (name, schema) in samples() {
        let validator = independent(&schema);
        let mut random = Random::new(11);
        let minimal = schema.minimal().expect("a simplest instance");
        assert!(validator.is_valid(&minimal), "{name}: {minimal}");
        for seed in 0..300 {
            let value = schema.generate(&mut random).expect("an instance");
            assert!(validator.is_valid(&value), "{name}: {value}");
            let bytes: Vec<u8> = (0..seed).map(|_| random.next_bits().to_le_bytes()[0]).collect();
            let value = schema.generate(&mut Bytes::new(&bytes)).expect("an instance");
            assert!(validator.is_valid(&value), "{name}: {value}");
        }
    }
}

#[test]
fn a_seed_and_its_recorded_choices_give_the_same_instance() {
    for (name, schema) in samples() {
        for seed in 0..50 {
            let mut choices = ChoiceSequence::record(seed);
            let first = schema.generate(&mut choices).expect("an instance");
            let again = schema.generate(&mut ChoiceSequence::replay(choices.into_choices()));
            assert_eq!(again.as_ref(), Ok(&first), "{name}");
            let drawn = schema.generate(&mut Random::new(seed));
            assert_eq!(drawn.as_ref(), Ok(&first), "{name}");
        }
    }
}

/// Whether one of the errors, or of their causes, is reported at the keyword.
fn blames(error: &ValidationError<'_>, location: &str) -> bool {
    use jsonschema::error::ValidationErrorKind as Kind;
    let nested = match error.kind() {
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            context.iter().flatten().any(|error| blames(error, location))
        }
        Kind::PropertyNames { error } => blames(error, location),
        _ => false,
    };
    let at = error.schema_path().as_str();
    // An error inside these is reported at whichever of them is checked first.
    let (around, keyword) = at.rsplit_once('/').unwrap_or(("", at));
    let gathers = matches!(keyword, "not" | "oneOf" | "contains" | "minContains" | "maxContains" | "unevaluatedItems");
    // A keyword with a subschema is violated by violating something in it.
    let inside = at.strip_prefix(location).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    nested || inside || gathers && location.starts_with(around)
}

#[test]
fn every_keyword_with_an_effect_is_violated_alone() {
    for (name, schema) in samples() {
        let validator = independent(&schema);
        let mut without_effect = Vec::new();
        for constraint in schema.constraints() {
            let generator = match schema.violating(&constraint) {
                Ok(generator) => generator,
                Err(super::ViolationError::NoEffect) => {
                    without_effect.push(constraint.to_string());
                    continue;
                }
                Err(super::ViolationError::AdmitsNoMore) => {
                    assert!(constraint.pointer.contains("/not"), "{name}{constraint}");
                    continue;
                }
                Err(error) => panic!("{name}{constraint}: failed to {error}"),
            };
            let location = match constraint.keyword.as_str() {
                "false" => constraint.pointer.clone(),
                keyword => format!("{}/{keyword}", constraint.pointer),
            };
            let indirect = matches!(
                constraint.keyword.as_str(),
                "$ref" | "$dynamicRef" | "$recursiveRef" | "if" | "dependentSchemas"
            ) || location.contains("/if/")
                // In this draft an error of the bound is reported at the flag that makes it exclusive.
                || schema.dialect() == Dialect::Draft4 && constraint.keyword == "minimum";
            let mut random = Random::new(5);
            let mut instances = vec![generator.generate(&mut Simplest).expect("a simplest one")];
            instances.extend((0..20).filter_map(|_| generator.generate(&mut random).ok()));
            assert_eq!(instances.len(), 21, "{name}{constraint}");
            for instance in instances {
                let errors: Vec<_> = validator.iter_errors(&instance).collect();
                assert!(!errors.is_empty(), "{name}{constraint}: {instance}");
                assert!(
                    indirect || errors.iter().any(|error| blames(error, &location)),
                    "{name}{constraint}: {instance} gives {errors:?}"
                );
            }
        }
        let expected: &[&str] = match name.as_str() {
            "\"scalars\"" => &["/properties/mode type"],
            "\"seven\"" => &["/definitions/t type"],
            _ => &[],
        };
        assert_eq!(without_effect, expected, "{name}");
    }
}

#[test]
fn every_boundary_and_branch_is_covered() {
    for (name, schema) in samples() {
        for goal in schema.valid().coverage_goals() {
            assert!(schema.valid().cover(&goal).is_some(), "{name}: {} {}", goal.path(), goal.description());
        }
    }
}

#[test]
fn shrinking_ends_at_the_simplest_instance_when_everything_fails() {
    for (name, schema) in samples() {
        let mut shrinker = Shrinker::new(schema.valid().clone(), ChoiceSequence::record(77))
            .unwrap_or_else(|| panic!("{name} gives no instance"));
        let mut steps = 0;
        while shrinker.simplify() {
            assert!(schema.is_valid(shrinker.current()), "{name}");
            steps += 1;
        }
        assert!(steps < 5_000, "{name}: {steps} steps");
    }
}

fn nested(levels: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(json!({"type": "integer"}), |inner, _| wrap(inner))
}

fn many(count: usize, one: impl Fn(usize) -> Value) -> Map<String, Value> {
    (0..count).map(|rank| (format!("p{rank}"), one(rank))).collect()
}

/// Schemas that are deep, long, or large.
fn excessive() -> Vec<(&'static str, Value)> {
    vec![
        ("deep objects", nested(30, |inner| json!({"properties": {"a": inner}, "required": ["a"]}))),
        ("deep arrays", nested(60, |inner| json!({"items": inner, "minItems": 1}))),
        ("deep negation", nested(60, |inner| json!({"not": inner}))),
        ("deep alternatives", nested(30, |inner| json!({"oneOf": [inner, {"type": "string"}]}))),
        ("deep conditions", nested(60, |inner| json!({"if": inner, "then": {"minimum": 1}, "else": {"maxLength": 3}}))),
        ("wide arrays", nested(12, |inner| json!({"items": inner, "minItems": 50, "type": "array"}))),
        (
            "too few values to be distinct",
            json!({"type": "array", "items": {"type": "boolean"}, "minItems": 5, "uniqueItems": true}),
        ),
        ("long array", json!({"type": "array", "minItems": 1_000_000_000})),
        ("long text", json!({"type": "string", "minLength": 4_000_000_000_u64})),
        ("many entries", json!({"type": "object", "minProperties": 1_000_000})),
        ("backtracking", json!({"type": "string", "pattern": "^((a+)+)+$", "minLength": 200})),
        ("large expression", json!({"type": "string", "pattern": "^((x{100}){100}){100}$"})),
        ("large numbers", json!({"type": "number", "minimum": 1e308, "multipleOf": 1e-9})),
    ]
}

/// Schemas whose references or alternatives multiply.
fn multiplying() -> Vec<(&'static str, Value)> {
    let either =
        |rank: usize| json!({"anyOf": [{"required": [format!("a{rank}")]}, {"required": [format!("b{rank}")]}]});
    let kind =
        |rank: usize| json!({"properties": {"kind": {"const": rank}, "v": {"minimum": rank}}, "required": ["kind"]});
    let condition = |rank: usize| {
        json!({
            "if": {"properties": {format!("p{rank}"): {"const": 1}}},
            "then": {"required": [format!("q{rank}")]},
            "else": {"properties": {format!("q{rank}"): {"type": "string"}}}
        })
    };
    vec![
        (
            "references in a circle",
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        ),
        ("itself", json!({"$ref": "#"})),
        (
            "references in a row",
            json!({"$ref": "#/$defs/p0", "$defs": many(2_000, |rank| json!({"$ref": format!("#/$defs/p{}", (rank + 1) % 2_000)}))}),
        ),
        (
            "entries in a row",
            json!({"$ref": "#/$defs/p0", "$defs": many(2_000, |rank| json!({"required": ["a"], "properties": {"a": {"$ref": format!("#/$defs/p{}", (rank + 1).min(1_999))}}}))}),
        ),
        (
            "requirements in a row",
            json!({"$ref": "#/$defs/p0", "$defs": many(2_000, |rank| json!({"minProperties": 1, "allOf": [{"$ref": format!("#/$defs/p{}", (rank + 1).min(1_999))}]}))}),
        ),
        ("endless descent", json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})),
        (
            "twice itself",
            json!({"anyOf": [{"type": "null"}, {"properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}}, "required": ["l", "r"]}]}),
        ),
        ("many properties", json!({"properties": many(1_000, |_| json!({"type": "string"}))})),
        ("many patterns", json!({"patternProperties": many(60, |rank| json!({"minimum": rank}))})),
        ("many values", json!({"enum": (0..10_000).collect::<Vec<u32>>()})),
        ("many branches", json!({"oneOf": (0..60).map(kind).collect::<Vec<_>>()})),
        ("many choices", json!({"type": "object", "allOf": (0..40).map(either).collect::<Vec<_>>()})),
        ("many conditions", json!({"type": "object", "allOf": (0..40).map(condition).collect::<Vec<_>>()})),
        ("many dependencies", json!({"dependentRequired": many(60, |rank| json!([format!("p{}", rank + 1)]))})),
    ]
}

#[test]
fn hostile_schemas_take_bounded_time_and_never_panic() {
    for (name, schema) in excessive().into_iter().chain(multiplying()) {
        let start = Instant::now();
        let Ok(compiled) = ToolSchema::compile_for(&schema, Dialect::Draft202012, Domain::Any) else {
            continue;
        };
        let mut random = Random::new(3);
        for _ in 0..5 {
            if let Ok(value) = compiled.generate(&mut random) {
                assert!(compiled.is_valid(&value), "{name}");
            }
        }
        for constraint in compiled.constraints().iter().take(2) {
            if let Ok(generator) = compiled.violating(constraint) {
                let value = generator.generate(&mut random).expect("was found before");
                assert!(!compiled.is_valid(&value), "{name}");
            }
        }
        // What is bounded takes 3 s at most, without optimization; what is not would take for ever.
        assert!(start.elapsed() < Duration::from_secs(120), "{name}");
    }
}

/// A value that exists at no depth is not searched at every depth: the stack of the calling thread may be small.
#[test]
fn a_schema_that_applies_to_its_own_entries_uses_little_stack() {
    let schema = json!({
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "v": {"typo": ["string", "null"], "fo?rmat": "date"}},
    });
    let loose = json!({"properties": {"next": {"$ref": "#"}, "v": {"typo": 0}}});
    for schema in [schema, loose] {
        let draw = move || {
            let schema = ToolSchema::compile(&schema, Dialect::Draft202012).expect("it is a schema");
            for constraint in schema.constraints() {
                if let Ok(generator) = schema.violating(&constraint) {
                    let _drawn = generator.generate(&mut Random::new(1));
                }
            }
            schema.generate(&mut Random::new(1)).is_ok()
        };
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(draw).expect("a thread starts");
        assert!(thread.join().expect("it ends"));
    }
}

#[test]
fn a_contradiction_is_distinguished_from_an_instance_that_is_too_large() {
    let minimal = |schemas: Vec<(&str, Value)>, wanted: &str| {
        let (_, schema) = schemas.into_iter().find(|(name, _)| *name == wanted).expect("a schema of that name");
        ToolSchema::compile_for(&schema, Dialect::Draft202012, Domain::Any).expect("usable").minimal()
    };
    assert_eq!(minimal(multiplying(), "endless descent"), Err(super::GenerationError::Unsatisfiable));
    assert_eq!(minimal(excessive(), "wide arrays"), Err(super::GenerationError::TooLarge));
}

#[test]
fn compiled_schemas_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<ToolSchema>();
    shared::<super::Generator>();
    shared::<Shrinker>();
}
