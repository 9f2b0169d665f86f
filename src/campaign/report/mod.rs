//! What a campaign reports of each tool: the counts of its calls by class of response, and what was not tested.

pub(super) mod counts;
pub(super) mod untested;
