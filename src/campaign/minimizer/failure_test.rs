//! How to detect that a failure occurs again.

use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::check::fuzz::{FuzzExchange, OracleViolation};

/// How to detect that a failure occurs again.
#[derive(Debug, Clone)]
pub(in crate::campaign) enum FailureTest {
    /// In the response to the last call.
    Response,
    /// In lists that differ before and after the calls.
    ListChange,
    /// In the response to the last call when it is repeated.
    RepeatedCall,
    /// In another call, which no longer succeeds.
    Canary(FuzzCall),
    /// In growth while the calls are repeated.
    Growth,
    /// In responses that belong to another call when all calls are made concurrently.
    Concurrent,
}

/// What an oracle suspects: a violation, and the calls that may be its cause.
#[derive(Debug)]
pub(in crate::campaign) struct Suspicion {
    pub(in crate::campaign) test: FailureTest,
    pub(in crate::campaign) violation: OracleViolation,
    /// The call in whose response the failure shows, if it shows in one.
    pub(in crate::campaign) failing: Option<(FuzzCall, FuzzExchange)>,
    /// The calls before the failure, oldest first.
    pub(in crate::campaign) preceding: Vec<FuzzCall>,
}
