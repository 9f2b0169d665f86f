//! What holds for every schema, tried on samples that use every keyword and on hostile ones.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::{Dialect, Domain, ToolSchema};

#[test]
fn hostile_schemas_cost_bounded_time_and_never_panic() {
    let nested = |wrap: &dyn Fn(Value) -> Value, levels: usize| {
        (0..levels).fold(json!({"type": "integer"}), |inner, _| wrap(inner))
    };
    let many = |count: usize, one: &dyn Fn(usize) -> Value| -> Map<String, Value> {
        (0..count)
            .map(|rank| (format!("p{rank}"), one(rank)))
            .collect()
    };
    let branches = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|rank| json!({"properties": {"kind": {"const": rank}, "v": {"minimum": rank}}, "required": ["kind"]}))
            .collect()
    };
    let conditions: Vec<Value> = (0..60)
        .map(|rank| {
            json!({
                "if": {"properties": {format!("p{rank}"): {"const": 1}}},
                "then": {"required": [format!("q{rank}")]},
                "else": {"properties": {format!("q{rank}"): {"type": "string"}}}
            })
        })
        .collect();
    let schemas = [
        (
            "properties",
            nested(
                &|inner| json!({"properties": {"a": inner}, "required": ["a"]}),
                30,
            ),
        ),
        (
            "items",
            nested(&|inner| json!({"items": inner, "minItems": 1}), 40),
        ),
        (
            "wide items",
            nested(
                &|inner| json!({"items": inner, "minItems": 50, "type": "array"}),
                12,
            ),
        ),
        ("not", nested(&|inner| json!({"not": inner}), 90)),
        (
            "allOf",
            nested(&|inner| json!({"allOf": [inner, {"minimum": 1}]}), 30),
        ),
        (
            "anyOf",
            nested(&|inner| json!({"anyOf": [inner, {"type": "string"}]}), 30),
        ),
        (
            "oneOf",
            nested(&|inner| json!({"oneOf": [inner, {"type": "string"}]}), 30),
        ),
        (
            "if",
            nested(
                &|inner| json!({"if": inner, "then": {"minimum": 1}, "else": {"maxLength": 3}}),
                20,
            ),
        ),
        (
            "unique",
            json!({"type": "array", "items": {"type": "boolean"}, "minItems": 5, "uniqueItems": true}),
        ),
        ("long", json!({"type": "array", "minItems": 1_000_000_000})),
        (
            "long text",
            json!({"type": "string", "minLength": 4_000_000_000_u64}),
        ),
        (
            "properties wanted",
            json!({"type": "object", "minProperties": 1_000_000}),
        ),
        (
            "regex",
            json!({"type": "string", "pattern": "^((a+)+)+$", "minLength": 200}),
        ),
        (
            "regex bomb",
            json!({"type": "string", "pattern": "^((x{100}){100}){100}$"}),
        ),
        (
            "contradiction",
            json!({"type": "integer", "minimum": 5, "exclusiveMaximum": 5}),
        ),
        (
            "bignum",
            json!({"type": "number", "minimum": 1e308, "multipleOf": 1e-9}),
        ),
        (
            "cycle",
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        ),
        ("self", json!({"$ref": "#"})),
        (
            "endless",
            json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
        ),
        (
            "two selves",
            json!({"anyOf": [{"type": "null"}, {"properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}}, "required": ["l", "r"]}]}),
        ),
        (
            "branching selves",
            json!({"properties": {"x": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}}}),
        ),
        (
            "many properties",
            json!({"properties": many(2_000, &|_| json!({"type": "string"}))}),
        ),
        (
            "many patterns",
            json!({"patternProperties": many(100, &|rank| json!({"minimum": rank}))}),
        ),
        (
            "many values",
            json!({"enum": (0..10_000).collect::<Vec<u32>>()}),
        ),
        ("many branches", json!({"oneOf": branches(100)})),
        ("conditions", json!({"allOf": conditions})),
        (
            "dependent",
            json!({"dependentRequired": many(80, &|rank| json!([format!("p{}", rank + 1)]))}),
        ),
        (
            "dynamic",
            json!({"$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}, "unevaluatedProperties": false}),
        ),
    ];
    for (name, schema) in schemas {
        let start = Instant::now();
        let compiled = ToolSchema::compile_for(&schema, Dialect::Draft202012, Domain::Any);
        let spent = start.elapsed();
        let mut outcome = String::new();
        if let Ok(compiled) = &compiled {
            outcome = format!("{:?}", compiled.minimal().map(|v| v.to_string().len()));
            let mut random = super::Random::new(3);
            for _ in 0..5 {
                if let Ok(value) = compiled.generate(&mut random) {
                    assert!(compiled.is_valid(&value), "{name}");
                }
            }
        }
        eprintln!(
            "{name}: compiled {:?} in {spent:?}, all {:?} {outcome}",
            compiled.as_ref().err(),
            start.elapsed()
        );
        if let Ok(compiled) = &compiled {
            for site in compiled.sites().iter().take(3) {
                let start = Instant::now();
                let outcome = compiled.violating(site).map(|_| ());
                eprintln!("   {site}: {outcome:?} {:?}", start.elapsed());
            }
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{name}");
    }
}
