//! The record of one execution of the steps of an active case.

use std::collections::{BTreeMap, BTreeSet};

use crate::transcript::Transcript;

/// One execution of the steps of an active case.
#[derive(Debug, Clone)]
pub struct Execution {
    /// The tool that it was made for, or empty.
    pub label: String,
    /// Its number, as in the marks of its entries.
    pub number: usize,
    /// What was sent and received in it.
    pub transcript: Transcript,
    /// What discovery found on the shared connection, by the method of the list: the names of tools and
    /// prompts, the URIs of resources. A list that discovery did not read to its end is missing.
    pub discovered_lists: BTreeMap<&'static str, Vec<String>>,
    /// The methods of which the server answers no request at all.
    pub silent_methods: BTreeSet<String>,
    /// Why the steps could not be carried out as the case says.
    pub not_carried_out: Option<String>,
    /// Why nothing in it is judged: the situation that the case is about did not occur.
    pub not_applicable: Option<String>,
}

impl Execution {
    /// What it was made for, as the subjects of a finding.
    pub(super) fn subjects(&self) -> Vec<String> {
        if self.label.is_empty() { Vec::new() } else { vec![self.label.clone()] }
    }
}
