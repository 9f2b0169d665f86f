//! The catalogue of mutants, read from `catalogue.tsv`.

use std::sync::OnceLock;

/// The catalogue: a line for each mutant with its class, its name, what goes wrong, where it was seen, and the keyword
/// that it weakens.
const CATALOGUE: &str = include_str!("catalogue.tsv");

/// A mistake of a validator: a way in which it reads another schema than the one that is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mutant {
    /// The class, such as `bounds`.
    pub class: &'static str,
    /// The unique kebab-case name.
    pub name: &'static str,
    /// What a validator with the mistake does.
    pub description: &'static str,
    /// Where it was seen: an issue, or a file of a test suite.
    pub source: &'static str,
    /// The keyword without which the schema accepts all that a validator with the mistake accepts.
    pub weakens: Option<&'static str>,
}

/// Every mutant of the catalogue.
///
/// # Panics
///
/// Never: the catalogue is a part of the program, and a test reads it.
#[must_use]
pub fn mutants() -> &'static [Mutant] {
    static MUTANTS: OnceLock<Vec<Mutant>> = OnceLock::new();
    MUTANTS.get_or_init(|| {
        let lines = CATALOGUE.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let mut columns = line.split('\t');
                let mut next = || columns.next().expect("each line has five columns");
                let [class, name, description, source] = std::array::from_fn(|_| next());
                Mutant { class, name, description, source, weakens: Some(next()).filter(|keyword| *keyword != "-") }
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_catalogue_has_distinct_mutants_of_many_classes() {
        let names: HashSet<&str> = mutants().iter().map(|mutant| mutant.name).collect();
        let classes: HashSet<&str> = mutants().iter().map(|mutant| mutant.class).collect();
        assert_eq!(names.len(), mutants().len());
        assert!(names.len() >= 120 && classes.len() >= 12, "{} of {} classes", names.len(), classes.len());
        for mutant in mutants() {
            assert!(!mutant.description.is_empty() && mutant.source.contains('/'), "{}", mutant.name);
        }
    }
}
