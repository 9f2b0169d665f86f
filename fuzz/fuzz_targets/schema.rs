//! Any JSON as a tool's inputSchema: the first line is the schema, the rest are the choices.
//!
//! Properties, checked by an independent validator: the schema is compiled or rejected; generated arguments are valid;
//! those that violate a constraint or contain a deliberate mistake are not; the same choices give the same arguments.

#![no_main]

use jsonschema::Draft;
use libfuzzer_sys::fuzz_target;
use mcp_conformance::fuzz::{Mistake, Bytes, Dialect, ToolSchema};
use mcp_conformance::internals::wire::Frame;

/// How many constraints of a schema are violated.
const MAX_CONSTRAINTS: usize = 4;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let Ok(schema) = Frame::parse(parts.next().unwrap_or_default()).value else { return };
    let choices = parts.next().unwrap_or_default();
    let Ok(compiled) = ToolSchema::compile(&schema, Dialect::Draft202012) else { return };
    let draft = match compiled.dialect() {
        Dialect::Draft4 => Draft::Draft4,
        Dialect::Draft6 => Draft::Draft6,
        Dialect::Draft7 => Draft::Draft7,
        Dialect::Draft201909 => Draft::Draft201909,
        Dialect::Draft202012 => Draft::Draft202012,
        other => panic!("{other:?} has no validator"),
    };
    let validator = jsonschema::options().with_draft(draft).should_validate_formats(true).build(&schema);
    let validator = validator.expect("a compiled schema is valid");
    let draw = || compiled.generate(&mut Bytes::new(choices));
    if let Ok(value) = draw() {
        assert!(value.is_object() && validator.is_valid(&value), "{value} is not valid");
        assert_eq!(draw().as_ref(), Ok(&value));
    }
    for constraint in compiled.constraints().iter().take(MAX_CONSTRAINTS) {
        let Ok(generator) = compiled.violating(constraint) else { continue };
        if let Ok(value) = generator.generate(&mut Bytes::new(choices)) {
            assert!(!validator.is_valid(&value), "{value} does not violate {constraint}");
        }
    }
    for breakage in [Mistake::MissingRequired, Mistake::WrongType, Mistake::OutsideEnum, Mistake::ExtraProperty] {
        if let Some(invalid) = compiled.with_mistake(breakage) {
            assert!(!validator.is_valid(&invalid.arguments), "{invalid:?}");
        }
    }
});
