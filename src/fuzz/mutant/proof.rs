//! Proves by validation whether arguments are valid, or which keyword alone they break.

use std::collections::HashMap;

use jsonschema::{Validator, error::ValidationErrorKind};
use serde_json::Value;

use super::super::{
    compile,
    constraint::{self, Constraint},
    schema::ToolSchema,
};

/// The maximum amount of schema text to compile for proofs, in bytes.
const MAX_COMPILED_BYTES: usize = 4 << 20;

/// Keywords that require properties next to others.
const DEPENDENCIES: [&str; 2] = ["dependentRequired", "dependencies"];

/// What validation says of arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Validity {
    Valid,
    /// Without this constraint they are valid.
    Violates(Constraint),
}

/// Classifies arguments.
pub(super) struct Prover<'s> {
    schema: &'s ToolSchema,
    /// For each constraint, the validator of the schema without it.
    relaxed: HashMap<Constraint, Option<Validator>>,
    /// How many more of them may be compiled.
    affordable: usize,
}

impl<'s> Prover<'s> {
    pub(super) fn new(schema: &'s ToolSchema) -> Self {
        let constraints = schema.constraints().into_iter();
        let affordable = MAX_COMPILED_BYTES / schema.schema().to_string().len().max(1);
        Self { schema, relaxed: constraints.map(|constraint| (constraint, None)).collect(), affordable }
    }

    /// The class of the arguments; none if they break several keywords, or one that a validator need not assert.
    pub(super) fn classify(&mut self, arguments: &Value) -> Option<Validity> {
        if !arguments.is_object() {
            return None;
        }
        let constraint = {
            let mut errors = self.schema.valid().passes.iter_errors(arguments);
            let Some(only) = errors.next() else { return Some(Validity::Valid) };
            if errors.next().is_some() {
                return None;
            }
            constraint_of(&only)?
        };
        if constraint.keyword == "format" {
            return None;
        }
        let (schema, dialect) = (self.schema.schema(), self.schema.dialect());
        let relaxed = self.relaxed.get_mut(&constraint)?;
        if relaxed.is_none() {
            self.affordable = self.affordable.checked_sub(1)?;
            let document = constraint::relax(schema, &constraint, dialect)?;
            *relaxed = compile::validator(&document, dialect).ok();
        }
        let holds = relaxed.as_ref().is_some_and(|relaxed| relaxed.is_valid(arguments));
        holds.then_some(Validity::Violates(constraint))
    }
}

/// The constraint that an error is about.
fn constraint_of(error: &jsonschema::ValidationError<'_>) -> Option<Constraint> {
    let path = error.schema_path().as_str();
    if matches!(error.kind(), ValidationErrorKind::FalseSchema) {
        return Some(Constraint { pointer: path.to_owned(), keyword: "false".to_owned(), name: None });
    }
    let ValidationErrorKind::Required { property } = error.kind() else {
        let (pointer, keyword) = path.rsplit_once('/')?;
        return Some(Constraint { pointer: pointer.to_owned(), keyword: keyword.to_owned(), name: None });
    };
    // A dependency of a property is reported like a required one.
    let dependency = DEPENDENCIES.iter().find_map(|keyword| {
        let (pointer, rest) = path.rsplit_once(&format!("/{keyword}"))?;
        (rest.is_empty() || rest.starts_with('/')).then_some((pointer, *keyword))
    });
    Some(match dependency {
        Some((pointer, keyword)) => Constraint { pointer: pointer.to_owned(), keyword: keyword.to_owned(), name: None },
        None => Constraint {
            pointer: path.rsplit_once('/')?.0.to_owned(),
            keyword: "required".to_owned(),
            name: Some(property.as_str()?.to_owned()),
        },
    })
}
