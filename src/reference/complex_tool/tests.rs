//! The hand-written validation agrees with the schemas.

use serde_json::Value;

use crate::fuzz::{Dialect, Random, ToolSchema};
use crate::reference::complex_tool;

fn agree(name: &str, schema: &Value) {
    let schema = ToolSchema::compile(schema, Dialect::Draft202012).expect("a usable schema");
    let check = |value: &Value| {
        let arguments = value.as_object().cloned().unwrap_or_default();
        complex_tool::check(name, &arguments).expect("a rich tool")
    };
    let mut random = Random::new(7);
    for obligation in schema.valid().coverage_goals() {
        if let Some(value) = schema.valid().cover(&obligation) {
            assert_eq!(check(&value), Ok(()), "{name} rejects {value}");
        }
    }
    for _ in 0..2_000 {
        let value = schema.generate(&mut random).expect("valid arguments");
        assert_eq!(check(&value), Ok(()), "{name} rejects {value}");
    }
    for constraint in schema.constraints() {
        let Ok(generator) = schema.violating(&constraint) else { continue };
        for _ in 0..100 {
            let Ok(value) = generator.generate(&mut random) else { continue };
            assert!(
                !value.is_object() || check(&value).is_err(),
                "{name} accepts {value}, which violates {constraint}"
            );
        }
    }
}

#[test]
fn the_validation_of_each_complex_tool_agrees_with_its_schema() {
    agree("search", &complex_tool::search_schemas().0);
    agree("transform", &complex_tool::transform_schemas().0);
    agree("draft_open", &complex_tool::draft_open_schemas().0);
    agree("draft_read", &complex_tool::draft_read_schemas().0);
}
