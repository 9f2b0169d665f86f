//! Schema mutants: what validators get wrong, and the arguments that show it.
//!
//! A wrong validator accepts another schema than the one that is published: a mutant of it, with a bound off by one, a
//! pattern without anchors, a `oneOf` read as `anyOf`. For each part of a schema and each mutant of it, this module
//! derives arguments on which the two differ, nearest to the boundary: invalid ones that the mutant accepts, and valid
//! ones that it rejects. Validation proves which of the two they are; what breaks more than one keyword is left out.
//!
//! `catalogue` lists the mutants, `site` finds where in a valid instance a subschema applies, `numbers`, `text`, `types`,
//! `choices`, `arrays`, `objects` and `depth` vary the value there, `documents` subtracts mutated schemas, `proof`
//! classifies the results, and `telling` collects them.

mod arrays;
mod catalogue;
mod choices;
mod depth;
mod documents;
mod edit;
mod numbers;
mod objects;
mod proof;
pub(super) mod site;
mod telling;
mod text;
mod types;

pub use catalogue::{Mutant, mutants};
pub(super) use telling::valid_instances;
pub use telling::{Telling, TellingArguments, Undecided, UntoldMutant, telling_arguments};
