//! The mistakes of the application: what only a sequence of calls shows.

use super::application::KINDS;

/// A mistake of the tools of one kind of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateMistake {
    TitleCut,
    SizeOff,
    ListMissesLast,
    DeleteKeeps,
    DeleteStaysListed,
    RenameAffectsAll,
    DeleteRemovesNext,
    ReadOnce,
    RenameLost,
    RenameAfterDelete,
    RenameAppends,
    ListForgets,
    InternalErrorAfterDelete,
    CrashAfterDelete,
}

/// Each mistake with its name, the cases of which one has to report it, and the fewest calls that show it; those that
/// create what the object belongs to are not counted.
const MISTAKES: [(StateMistake, &str, &[&str], usize); 14] = [
    (StateMistake::TitleCut, "title-cut", &["fuzz/read-back"], 2),
    (StateMistake::SizeOff, "size-off", &["fuzz/read-back"], 2),
    (StateMistake::ListMissesLast, "list-misses-last", &["fuzz/created-unlisted"], 2),
    (StateMistake::DeleteKeeps, "delete-keeps", &["fuzz/deleted-served"], 3),
    (StateMistake::DeleteStaysListed, "delete-stays-listed", &["fuzz/deleted-listed"], 3),
    (StateMistake::RenameAffectsAll, "rename-affects-all", &["fuzz/other-object"], 6),
    (StateMistake::DeleteRemovesNext, "delete-removes-next", &["fuzz/other-object"], 4),
    (StateMistake::ReadOnce, "read-once", &["fuzz/repeated-read"], 3),
    (StateMistake::RenameLost, "rename-lost", &["fuzz/read-back"], 3),
    (StateMistake::RenameAfterDelete, "rename-after-delete", &["fuzz/deleted-served"], 3),
    (StateMistake::RenameAppends, "rename-appends", &["fuzz/idempotent"], 6),
    (StateMistake::ListForgets, "list-forgets", &["fuzz/read-only"], 5),
    (StateMistake::InternalErrorAfterDelete, "internal-error-after-delete", &["fuzz/internal-error"], 3),
    (StateMistake::CrashAfterDelete, "crash-after-delete", &["fuzz/crash"], 3),
];

/// A mistake of the tools of one kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateFault {
    pub(crate) noun: &'static str,
    pub(crate) mistake: StateMistake,
    name: &'static str,
    pub(crate) oracles: &'static [&'static str],
    pub(crate) fewest_calls: usize,
}

impl StateFault {
    /// The name in command lines: `project-read-once`.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.noun, self.name)
    }
}

/// Every fault. What prose says of an object has no names, so that nothing is compared with what was written.
pub(crate) fn all() -> Vec<StateFault> {
    let needs_members = [StateMistake::TitleCut, StateMistake::SizeOff, StateMistake::RenameLost];
    let of_kind = |noun: &'static str| {
        MISTAKES.iter().map(move |(mistake, name, oracles, fewest_calls)| StateFault {
            noun,
            mistake: *mistake,
            name,
            oracles,
            fewest_calls: *fewest_calls,
        })
    };
    let all = KINDS.iter().flat_map(|kind| of_kind(kind.noun));
    all.filter(|fault| fault.noun != "file" || !needs_members.contains(&fault.mistake)).collect()
}

/// The fault with this name.
pub(crate) fn find(name: &str) -> Option<StateFault> {
    all().into_iter().find(|fault| fault.name() == name)
}
