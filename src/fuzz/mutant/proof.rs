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

/// Arguments that break more constraints are left out.
const MAX_ERRORS: usize = 3;

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
        // A keyword that fails inside a reference or a condition may make others fail that depend on it.
        let mut constraints: Vec<Constraint> = Vec::new();
        for error in self.schema.valid().passes.iter_errors(arguments) {
            if constraints.len() == MAX_ERRORS {
                return None;
            }
            constraints.push(constraint_of(&error)?);
        }
        if constraints.is_empty() {
            return Some(Validity::Valid);
        }
        if lacks_several(&constraints) {
            return constraints.into_iter().next().map(Validity::Violates);
        }
        let only = constraints.into_iter().find(|constraint| self.is_only(constraint, arguments))?;
        (only.keyword != "format").then_some(Validity::Violates(only))
    }

    /// Whether the arguments are valid without this constraint. That they break `format` as well changes nothing: a
    /// validator need not assert it.
    fn is_only(&mut self, constraint: &Constraint, arguments: &Value) -> bool {
        let (schema, dialect) = (self.schema.schema(), self.schema.dialect());
        let Some(relaxed) = self.relaxed.get_mut(constraint) else { return false };
        if relaxed.is_none() {
            let Some(affordable) = self.affordable.checked_sub(1) else { return false };
            self.affordable = affordable;
            let document = constraint::relax(schema, constraint, dialect);
            *relaxed = document.and_then(|document| compile::validator(&document, dialect).ok());
        }
        let only_format = |relaxed: &Validator| {
            relaxed.iter_errors(arguments).all(|error| matches!(error.kind(), ValidationErrorKind::Format { .. }))
        };
        relaxed.as_ref().is_some_and(only_format)
    }
}

/// Whether several properties are missing from one object, and nothing else is wrong: the first says it for all.
fn lacks_several(constraints: &[Constraint]) -> bool {
    let is_same = |constraint: &Constraint| {
        constraint.keyword == "required" && constraint.name.is_some() && constraint.pointer == constraints[0].pointer
    };
    constraints.len() > 1 && constraints.iter().all(is_same)
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
