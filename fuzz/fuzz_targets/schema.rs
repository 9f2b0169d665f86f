//! Any JSON as a tool's inputSchema: the first line is the schema, what follows are the choices.
//!
//! The laws, judged by a validator of its own: it is compiled or refused; what is generated is valid; what breaks a
//! keyword is not; arguments with one plain mistake are not; the same choices make the same arguments.

#![no_main]

use jsonschema::Draft;
use libfuzzer_sys::fuzz_target;
use mcp_conformance::fuzz::{Breakage, Bytes, Dialect, ToolSchema};
use mcp_conformance::internals::wire::Frame;

/// How many keywords of a schema are broken.
const SITES: usize = 4;

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
        other => panic!("{other:?} has no judge"),
    };
    let judge = jsonschema::options().with_draft(draft).should_validate_formats(true).build(&schema);
    let judge = judge.expect("what is compiled is a schema");
    let draw = || compiled.generate(&mut Bytes::new(choices));
    if let Ok(value) = draw() {
        assert!(value.is_object() && judge.is_valid(&value), "{value} is not valid");
        assert_eq!(draw().as_ref(), Ok(&value));
    }
    for site in compiled.sites().iter().take(SITES) {
        let Ok(generator) = compiled.violating(site) else { continue };
        if let Ok(value) = generator.generate(&mut Bytes::new(choices)) {
            assert!(!judge.is_valid(&value), "{value} does not break {site}");
        }
    }
    for breakage in [Breakage::MissingRequired, Breakage::WrongType, Breakage::OutsideEnum, Breakage::ExtraProperty] {
        if let Some(broken) = compiled.broken(breakage) {
            assert!(!judge.is_valid(&broken.arguments), "{broken:?}");
        }
    }
});
