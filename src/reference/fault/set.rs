//! Sets of faults that are enabled together.

use std::collections::BTreeSet;

use super::Fault;
use crate::reference::revision::Revision;

/// The faults that are enabled together. With the empty set the server conforms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultSet(BTreeSet<Fault>);

impl FaultSet {
    /// The empty set, for a conforming server.
    #[must_use]
    pub const fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Whether the fault is enabled.
    #[must_use]
    pub fn contains(&self, fault: Fault) -> bool {
        self.0.contains(&fault)
    }

    /// The enabled faults, in the order of the tables.
    pub fn iter(&self) -> impl Iterator<Item = Fault> {
        self.0.iter().copied()
    }

    /// Whether the fault is enabled and shows in this revision.
    pub(in crate::reference) fn is_active(&self, fault: Fault, revision: Revision) -> bool {
        self.contains(fault) && fault.revisions().contains(&revision)
    }
}

impl FromIterator<Fault> for FaultSet {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        Self(faults.into_iter().collect())
    }
}

impl From<Fault> for FaultSet {
    fn from(fault: Fault) -> Self {
        Self(BTreeSet::from([fault]))
    }
}
