//! Sets of faults that are enabled together.

use std::collections::BTreeSet;

use super::Fault;
use crate::reference::revision::Revision;

/// What a server finds where it is started. By default nothing is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Whether no variable of the environment names a locale.
    pub has_no_locale: bool,
    /// Whether nobody reads standard error.
    pub has_no_standard_error: bool,
}

/// The faults that are enabled together. With the empty set the server conforms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultSet {
    faults: BTreeSet<Fault>,
    surroundings: Surroundings,
}

impl FaultSet {
    /// The empty set, for a conforming server.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            faults: BTreeSet::new(),
            surroundings: Surroundings { has_no_locale: false, has_no_standard_error: false },
        }
    }

    /// The same faults of a server that is started in these surroundings, on which some faults depend.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_conformance::reference::{Fault, FaultSet, Surroundings, serve};
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let surroundings = Surroundings { has_no_locale: true, has_no_standard_error: false };
    /// let faults = FaultSet::from(Fault::LocaleOutput).started_in(surroundings);
    /// let request = "{\"jsonrpc\":\"2.0\",\"id\":\"é\",\"method\":\"ping\"}\n";
    /// let mut answers = Vec::new();
    /// serve(request.as_bytes(), &mut answers, &faults).await?;
    /// assert_eq!(answers, b"{\"jsonrpc\":\"2.0\",\"id\":\"?\",\"result\":{}}\n");
    /// # Ok::<(), std::io::Error>(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn started_in(self, surroundings: Surroundings) -> Self {
        Self { surroundings, ..self }
    }

    /// What the server found where it was started.
    pub(in crate::reference) fn surroundings(&self) -> Surroundings {
        self.surroundings
    }

    /// Whether the fault is enabled.
    #[must_use]
    pub fn contains(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// The enabled faults, in the order of the tables.
    pub fn iter(&self) -> impl Iterator<Item = Fault> {
        self.faults.iter().copied()
    }

    /// Whether the fault is enabled and shows in this revision.
    pub(in crate::reference) fn is_active(&self, fault: Fault, revision: Revision) -> bool {
        self.contains(fault) && fault.revisions().contains(&revision)
    }
}

impl FromIterator<Fault> for FaultSet {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        Self { faults: faults.into_iter().collect(), ..Self::none() }
    }
}

impl From<Fault> for FaultSet {
    fn from(fault: Fault) -> Self {
        Self { faults: BTreeSet::from([fault]), ..Self::none() }
    }
}
