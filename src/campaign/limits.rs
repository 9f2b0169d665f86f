//! How long, how often and how much in a fuzzing campaign: each limit that no option sets, in the order in which a
//! campaign meets them.
//!
//! The sizes of buffers and of reports are next to them. The limits of the rest of a run are in [`crate::limits`].

use std::time::Duration;

use crate::client::ShutdownTimeouts;

// The time of the campaign and of each tool.

/// The default time limit of fuzzing per revision.
pub(super) const DEFAULT_TIME: Duration = Duration::from_secs(60);

/// The factor by which time limits are longer over HTTP, where each call is an HTTP request.
pub(super) const HTTP_SLOWDOWN: u32 = 3;

/// The usual time limit of shrinking per revision, in addition to the time for fuzzing.
pub(super) const SHRINKING_TIME: Duration = Duration::from_secs(45);

/// The maximum time at the end for repeating failures that were seen once.
pub(super) const CONFIRMING_TIME: Duration = Duration::from_secs(10);

/// Of a time limit that the user set, one part in so many is kept for that.
pub(super) const CONFIRMING_SHARE: u32 = 10;

/// A tool's default time per call.
pub(super) const TIME_PER_CALL: Duration = Duration::from_millis(15);

/// A tool's default time per call for a mutant of its schema.
pub(super) const TIME_PER_MUTANT_CALL: Duration = Duration::from_millis(5);

/// The minimum time slice of a tool.
pub(super) const MIN_TIME_SLICE: Duration = Duration::from_millis(500);

/// How many even shares of the remaining time a tool may take at most: others may need less than theirs.
pub(super) const MAX_EVEN_SHARES: u32 = 2;

/// How many calls, one after the other, fit into the time slice of a slow tool.
pub(super) const MIN_CALLS_IN_SLICE: u32 = 4;

/// The maximum number of starts of the server.
pub(super) const MAX_STARTS: usize = 4_000;

// Several processes and calls at a time.

/// How much faster later calls of a tool are than its first one.
pub(super) const WARM_SPEEDUP: u32 = 8;

/// The cost of an additional process apart from its startup.
pub(super) const EXTRA_PROCESS_COST: Duration = Duration::from_millis(100);

/// The maximum number of processes for slow tools, if the user sets none.
pub(super) const MAX_SLOW_JOBS: usize = 8;

/// From which duration of its first call on a tool is slow: many of its calls are in flight in every phase.
pub(super) const SLOW_CALL: Duration = Duration::from_millis(250);

/// From which duration of its first call on the usual number of calls of a tool is in flight in every phase, not only in
/// the long one: 200 calls of a tenth of a second take 20 s one at a time. Below it the time of single calls is worth
/// more, which shows whether they become slower.
pub(super) const LONGER_CALL: Duration = Duration::from_millis(80);

/// As how many other tools one counts whose calls take that long: 200 calls of 80 ms, four at a time, take 4 s, and 200 of
/// 1 ms with what is checked between them a third of a second.
pub(super) const COST_OF_LONGER_TOOL: usize = 12;

/// The number of calls in flight, unless it is set. More make no published server answer faster, and each one in flight
/// when a server ends is a suspect.
pub(super) const CALLS_IN_FLIGHT: usize = 4;

/// The number of calls of a slow tool in flight: a call that takes a second mostly waits.
pub(super) const CALLS_OF_SLOW_TOOL_IN_FLIGHT: usize = 16;

/// How many calls of a slow tool are made at once before its other calls, one number after the other.
pub(super) const CALLS_AT_ONCE: [usize; 3] = [3, 10, 30];

/// How long one of these numbers of calls may take, by what the smaller one took.
pub(super) const MAX_TIME_OF_CALLS_AT_ONCE: Duration = Duration::from_secs(3);

/// How many fresh processes have to show what they show.
pub(super) const CALLS_AT_ONCE_REPETITIONS: usize = 2;

/// The number of calls per round.
pub(super) const CALLS_PER_ROUND: u64 = 32;

/// The maximum number of calls per round: four times the largest number of calls in flight, so that rounds rarely run
/// dry.
pub(super) const MAX_CALLS_PER_ROUND: u64 = 1_024;

/// From how many calls of a tool on there are checks that need several calls.
pub(super) const MIN_CALLS_FOR_REPETITION: u64 = 32;

// The calls of a tool.

/// The maximum number of constraints of a schema to violate.
pub(super) const MAX_CONSTRAINTS: usize = 400;

/// The maximum number of aimed violations per constraint; after these, violations are random.
pub(super) const MAX_VIOLATION_GOALS: usize = 8;

/// The maximum amount of schema text to process while compiling violations, in bytes: each constraint takes one pass
/// over the schema. Ten times what the largest of 687 published tools needs.
pub(super) const MAX_COMPILED_BYTES: usize = 8 << 20;

/// The maximum compile time for schemas that are slow in spite of that limit, so that a hostile schema costs no more.
pub(super) const MAX_COMPILE_TIME: Duration = Duration::from_secs(10);

/// How many different results of a tool are judged by the rules of passive cases; after these, only those of a new shape. Each
/// costs about as much as a call of a quick server.
pub(super) const MAX_JUDGED_RESULTS: usize = 512;

/// How many tools get texts of a million characters and more. Four calls take a server in Python a second.
pub(super) const MAX_LONG_TEXT_TOOLS: usize = 4;

// Waiting for responses.

/// The maximum first timeout, if the tool's slowest call is well below it.
pub(super) const FIRST_TIMEOUT: Duration = Duration::from_secs(1);

/// The factor of the first timeout over the slowest call so far.
pub(super) const SLOWEST_CALL_FACTOR: u32 = 4;

/// The minimum and maximum timeout of a call that is expected to hang, while shrinking.
pub(super) const SHRINK_TIMEOUT_RANGE: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(700)];

/// How long the right response may follow one with a wrong id.
pub(super) const WRONG_ID_TIMEOUT: Duration = Duration::from_millis(60);

/// The same, if no right response followed several wrong ids.
pub(super) const SHORT_WRONG_ID_TIMEOUT: Duration = Duration::from_millis(3);

/// After how many of them it is that short.
pub(super) const WRONG_IDS_BEFORE_SHORT_TIMEOUT: usize = 8;

/// The number of lines between two responses that may answer nothing before the server is stopped.
pub(super) const MAX_UNRELATED_LINES: usize = 5_000;

/// How long a call may wait because its arguments say so, unless the plain call of its tool waits longer.
pub(super) const MAX_ASKED_TIME: Duration = Duration::from_millis(100);

/// How long the response to the request behind a call may take, for late output of the call.
pub(super) const LATE_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// The time limit for repeating the calls that preceded an unanswered one.
pub(super) const MAX_HISTORY_REPLAY_TIME: Duration = Duration::from_secs(3);

/// The same for calls that take as long as [`LONGER_CALL`] or longer: 300 calls of a tenth of a second, four at a time.
pub(super) const LONGER_HISTORY_REPLAY_TIME: Duration = Duration::from_secs(8);

/// How often the unanswered call follows them: a server may have counted other requests as well.
pub(super) const CALLS_AFTER_HISTORY: usize = 8;

/// How often a call has to be late after other calls, and quick on a fresh process, for these calls to be the cause.
pub(super) const LATE_REPETITIONS: usize = 2;

// The processes of the server.

/// From which start on to keep a standby process: a failure that is already minimal takes four.
pub(super) const STARTS_BEFORE_STANDBY: usize = 5;

/// How long to read the pending output of a standby process before it is used.
pub(super) const STANDBY_QUIET_TIME: Duration = Duration::from_millis(1);

/// How long a process that is set aside gets to end. How it ends is not judged there.
pub(super) const SLOW_PROCESS_END_TIMEOUTS: ShutdownTimeouts =
    ShutdownTimeouts { input_closed: Duration::from_millis(20), sigterm: Duration::from_millis(50) };

/// How often a server may end the session.
pub(super) const MAX_LOST_SESSIONS: usize = 20;

// When a tool or the server is abandoned.

/// How often calls may end the server before the tool is abandoned.
pub(super) const MAX_SERVER_ENDS: usize = 12;

/// How many calls may go unanswered before the tool is abandoned.
pub(super) const MAX_UNANSWERED: usize = 3;

/// How many consecutive responses may be malformed before the tool is abandoned.
pub(super) const MAX_MALFORMED_IN_A_ROW: usize = 24;

/// How many calls, of any tool, use up the full timeout before later ones get less.
pub(super) const MAX_FULL_TIMEOUTS: usize = 3;

/// How many consecutive tools may be abandoned before the server is.
pub(super) const MAX_ABANDONED_TOOLS: usize = 3;

/// How many tools may leave the same malformed arguments unanswered before no other tool is called with them.
pub(super) const MAX_TOOLS_PER_MALFORMATION: usize = 2;

// Failures: how many are reported, and how far they are shrunk.

/// The maximum number of failures per tool to report.
pub(super) const MAX_FAILURES_PER_TOOL: usize = 48;

/// The maximum number of failures per tool to shrink; further ones are reported as observed.
pub(super) const MAX_SHRUNK_PER_TOOL: usize = 12;

/// The maximum number of attempts per failure.
pub(super) const MAX_SHRINK_ATTEMPTS: usize = 3_000;

/// The usual time limit per failure.
pub(super) const MAX_SHRINK_TIME: Duration = Duration::from_secs(12);

/// The maximum number of attempts if another tool fails in the same way, as the root cause is likely the same.
pub(super) const MAX_BRIEF_ATTEMPTS: usize = 32;

/// The time limit in that case.
pub(super) const MAX_BRIEF_SHRINK_TIME: Duration = Duration::from_millis(300);

/// How often to confirm the minimal counterexample of a failure. That of a warning is confirmed once.
pub(super) const CONFIRMATIONS: usize = 3;

/// Other values of each argument are tried if the server starts within this time.
pub(super) const QUICK_START: Duration = Duration::from_millis(300);

/// How many calls before a failure may be its cause if it shows late.
pub(super) const MAX_LATE_CALLS: usize = 8;

// Oracles that need more than one response.

/// How many tools to call again after the calls of a tool.
pub(super) const MAX_CANARIES: usize = 16;

/// Calls that take longer are not repeated.
pub(super) const MAX_CANARY_DURATION: Duration = Duration::from_millis(250);

/// By how much the same call has to take longer than at first to have become slower.
pub(super) const MIN_CALL_SLOWDOWN: Duration = Duration::from_millis(2);

/// By how much most calls of a tool have to take longer than four times its first one to deserve a closer look.
pub(super) const MIN_SLOWDOWN_SINCE_FIRST_CALL: Duration = Duration::from_millis(50);

/// By how much a call of the last rounds has to take longer than one of the first for growth to be suspected.
pub(super) const MIN_ROUND_SLOWDOWN: Duration = Duration::from_millis(1);

/// How often the same calls are repeated to see growth, in blocks.
pub(super) const GROWTH_BLOCKS: usize = 28;

/// The number of calls per block; the calls of all blocks are the same.
pub(super) const CALLS_PER_BLOCK: usize = 16;

/// After which time a block ends early.
pub(super) const MAX_BLOCK_TIME: Duration = Duration::from_millis(2_500);

/// How many times as long as at first it may take to read all lists again before they are not compared; besides
/// [`MAX_LIST_DELAY`], as a busy machine is slower for a while.
pub(super) const MAX_LIST_SLOWDOWN: u32 = 8;

/// See [`MAX_LIST_SLOWDOWN`]. The time of one page on a server that answers three seconds late.
pub(super) const MAX_LIST_DELAY: Duration = Duration::from_secs(3);

/// The time limit of the blocks.
pub(super) const MAX_GROWTH_TIME: Duration = Duration::from_secs(5);

/// The number of blocks that are run in up to three times as long: fewer prove nothing.
pub(super) const MIN_GROWTH_BLOCKS: usize = 16;

/// How many calls of other tools are in flight beside those of a tool whose responses may be swapped.
pub(super) const MAX_TOOLS_TO_SWAP_WITH: usize = 4;

/// How many calls are compared for swapped responses.
pub(super) const MAX_SWAP_CANDIDATES: usize = 40;

/// The usual time limit for choosing them.
pub(super) const MAX_SWAP_PICKING_TIME: Duration = Duration::from_millis(400);

/// How often they are made concurrently.
pub(super) const SWAP_ATTEMPTS: usize = 3;

// Calls in sequences.

/// The maximum number of calls in sequences, and how many more may shrink and confirm what they show.
pub(super) const MAX_SEQUENCE_CALLS: usize = 600;

/// Their time limit over stdio; over HTTP it is longer.
pub(super) const MAX_SEQUENCE_TIME: Duration = Duration::from_secs(20);

/// The maximum number of failing sequences that are shrunk.
pub(super) const MAX_INVESTIGATIONS: usize = 24;

/// The maximum number of sequences to try while one is shrunk.
pub(super) const MAX_SEQUENCE_ATTEMPTS: usize = 24;

/// How long a confirming run waits before each call: a server may apply changes later.
pub(super) const SETTLING_TIME: Duration = Duration::from_millis(400);

/// How many calls are kept for deleting what was created.
pub(super) const CLEANING_CALLS: usize = 200;

/// How long deleting may take.
pub(super) const CLEANING_TIME: Duration = Duration::from_secs(5);
