//! What failed: one failure of each cause, the counters that end a campaign, and the folder of saved failures.

pub(super) mod failure;
pub(super) mod failure_counters;
pub(super) mod failure_folder;
pub(super) mod known_crashes;
pub(super) mod replay;
pub(super) mod saved_failure;
pub(super) mod shared_failures;
