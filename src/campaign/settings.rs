//! What a campaign is to do: the plan of the user, and what the run knows about the server.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::campaign::failures::failure_folder::FailureFolder;
use crate::campaign::limits::{DEFAULT_TIME, HTTP_SLOWDOWN};
use crate::check::fuzz::ResultRules;
use crate::plan::{CallBudget, FuzzPlan};
use crate::spec::{Revision, Transport};

/// What a campaign is to do.
#[derive(Debug)]
pub(crate) struct CampaignSettings<'p> {
    pub(crate) plan: &'p FuzzPlan,
    pub(crate) revision: Revision,
    pub(crate) transport: Transport,
    /// The seed of all random choices.
    pub(crate) seed: u64,
    /// The time limit of a request.
    pub(crate) timeout: Duration,
    /// The maximum number of server processes to call in parallel.
    pub(crate) jobs: usize,
    /// Whether there may be only one process at a time.
    pub(crate) is_single_process: bool,
    /// How long a process takes to start.
    pub(crate) startup: Duration,
    /// The `_meta` of requests, if the revision has no handshake.
    pub(crate) stateless_meta: Option<Value>,
    /// Whether the server has resources and prompts to list.
    pub(crate) has_resources: bool,
    pub(crate) has_prompts: bool,
    /// The folder of the failing calls of the server, unless the user wants none.
    pub(crate) failure_folder: Option<FailureFolder>,
    /// The rules of passive cases that results have to keep, if they are checked.
    pub(crate) result_rules: Option<Arc<ResultRules>>,
    /// Strings that error messages may contain: the server's command line, environment values and working directory.
    pub(crate) known_strings: Vec<String>,
}

impl CampaignSettings<'_> {
    /// The factor by which time limits are longer than usual.
    pub(super) fn slowdown(&self) -> u32 {
        if self.transport == Transport::Http { HTTP_SLOWDOWN } else { 1 }
    }

    /// The time limit of the campaign, without the time for shrinking failures.
    pub(crate) fn time(&self) -> Duration {
        /// The maximum factor by which the default time limit is longer than usual.
        const MAX_FACTOR: u64 = 10_000;
        let factor = self.plan.calls.usual().div_ceil(CallBudget::USUAL).clamp(1, MAX_FACTOR);
        let usual = DEFAULT_TIME * u32::try_from(factor).unwrap_or(1) * self.slowdown();
        self.plan.time.unwrap_or(usual)
    }

    /// A limit of time for a part of the campaign: longer than usual by as much as the time limit that the user set for
    /// the whole is longer than the default. So with enough time only counts decide, not the speed of the machine.
    pub(super) fn extended(&self, usual: Duration) -> Duration {
        /// The maximum factor.
        const MAX_FACTOR: f64 = 100.0;
        let factor = self.plan.time.map_or(1.0, |time| time.as_secs_f64() / DEFAULT_TIME.as_secs_f64());
        usual.mul_f64(factor.clamp(1.0, MAX_FACTOR))
    }

    /// Whether new sequences of calls are made. A shard has only some of the tools that belong together.
    pub(crate) fn makes_sequences(&self) -> bool {
        self.plan.sequences && self.plan.shard.is_none() && self.plan.replay.is_none()
    }

    /// The minimum time between two calls, if the user set a rate limit.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.plan.max_rate.map(|rate| Duration::from_secs_f64(1.0 / rate.max(0.001)))
    }
}
