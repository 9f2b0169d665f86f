//! How long, how often and how much: each limit of time, number and size that a run keeps to and that no option sets.
//!
//! They are in the order in which a run meets them. The limits of fuzzing are in `campaign`, and the sizes of buffers are
//! next to them.

use std::time::Duration;

// Connections: processes, their streams, and how they end.

/// How often the clock is read during a wait.
pub(crate) const WAIT_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How much longer than requested a poll may take; any time beyond it was spent by this program.
pub(crate) const MAX_POLL_OVERRUN: Duration = Duration::from_millis(50);

/// How often a process is inspected for signs of work.
pub(crate) const INSPECT_INTERVAL: Duration = Duration::from_millis(500);

/// How long a server that does not read is waited for until a message is given up, unless its answers take longer.
pub(crate) const SEND_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause after each byte of a line that is written in pieces: long enough for the server to read it before the next.
pub(crate) const PIECE_INTERVAL: Duration = Duration::from_millis(1);

/// How long nothing may follow a message without a line feed before it is read, unless the server took longer to open.
pub(crate) const LINE_FEED_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a long message waits for the end of others: a server that never ends one must not stop all.
pub(crate) const MAX_WAIT_FOR_ROOM: Duration = Duration::from_secs(1);

/// After how many polls without output an exited process counts as closed, though a child process keeps its output open.
pub(crate) const QUIET_POLLS_AFTER_EXIT: usize = 5;

/// How many requests of a server are answered in a connection that is not recorded.
pub(crate) const MAX_ANSWERED_REQUESTS: usize = 2_000;

/// How long a process whose output is closed gets to exit before it is ended: it has exited or is about to.
pub(crate) const CLOSED_OUTPUT_EXIT_TIMEOUT: Duration = Duration::from_millis(50);

/// How long to wait for the exit status of a process that closed its output, or that stopped answering over HTTP.
pub(crate) const EXIT_STATUS_TIMEOUT: Duration = Duration::from_millis(300);

/// How long the last of the standard error of a process that has exited may be on its way.
pub(crate) const LAST_STDERR_DELAY: Duration = Duration::from_millis(2);

/// How long what an ended process wrote is read; a stream that stays open is dropped.
pub(crate) const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(200);

/// How long a process that was killed gets to disappear.
pub(crate) const KILLED_EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long orphans are searched for, in case they multiply while they are killed.
pub(crate) const ORPHAN_SEARCH_TIMEOUT: Duration = Duration::from_secs(3);

/// How long to wait between two of these searches, or of those for what an exited process has left running.
pub(crate) const ORPHAN_SEARCH_INTERVAL: Duration = Duration::from_millis(5);

/// How deep properties are searched for those that headers mirror.
pub(crate) const MAX_MIRRORED_DEPTH: usize = 16;

/// How many properties headers mirror.
pub(crate) const MAX_MIRRORED: usize = 64;

/// The limits of connections over HTTP.
#[cfg(feature = "http")]
pub(crate) mod http {
    use std::time::Duration;

    /// How long opening a connection may take.
    pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

    /// How long an idle connection is kept. Many servers close one after five seconds, and a request that is sent at the
    /// same moment would get no response.
    pub(crate) const MAX_CONNECTION_IDLE_TIME: Duration = Duration::from_secs(4);

    /// How often a request is repeated for a server that asks the client to slow down.
    pub(crate) const MAX_RETRIES: usize = 3;

    /// The first wait before such a repetition, if the server does not say how long.
    pub(crate) const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);

    /// The longest wait before such a repetition.
    pub(crate) const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);

    /// How often a broken stream is resumed.
    pub(crate) const MAX_RESUMPTIONS: usize = 5;

    /// How long to wait before a stream is resumed, if the server does not say.
    pub(crate) const DEFAULT_RECONNECT_DELAY: Duration = Duration::from_millis(100);

    /// The longest wait before a stream is resumed.
    pub(crate) const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(2);

    /// How long a response to a direct request is read.
    pub(crate) const MAX_READ_TIME: Duration = Duration::from_secs(60);

    /// How many events of a stream are kept.
    pub(crate) const MAX_EVENTS: usize = 1_000;

    /// How long to wait for a message without a response to arrive, unless the server took longer to open.
    pub(crate) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(2);

    /// How long to wait for the first event of a subscription before it is cancelled, unless the server took longer to open.
    pub(crate) const FIRST_EVENT_TIMEOUT: Duration = Duration::from_millis(500);

    /// How long the client pauses between the parts of a body.
    pub(crate) const BODY_PAUSE: Duration = Duration::from_millis(300);

    /// The size of the parts in which a large body is sent, in bytes.
    pub(crate) const BODY_PART: usize = 64 << 10;

    /// How long a large body pauses between its parts. A server that refuses the rest closes the connection, and its answer
    /// is lost if the client still writes.
    pub(crate) const BODY_PART_PAUSE: Duration = Duration::from_millis(1);

    /// Above which size the body of a request is sent on a connection of its own, in bytes: less than servers allow by
    /// default.
    pub(crate) const LARGE_BODY: usize = 64 << 10;

    /// How long a request may take to reach the server before it is cancelled: this, or this part of what the opening took.
    pub(crate) const ARRIVAL_TIMEOUT: Duration = Duration::from_millis(50);
    pub(crate) const ARRIVAL_SHARE_OF_OPENING: u32 = 4;

    /// How long ending a session may take, unless the server took longer to open.
    pub(crate) const SESSION_END_TIMEOUT: Duration = Duration::from_secs(1);

    /// How often a connection gets a new session: a server that answers everything with 404 has no end of them.
    pub(crate) const MAX_RENEWALS: usize = 20;

    /// How often a connection asks whether its session has ended: a server may answer many requests with 404.
    pub(crate) const MAX_SESSION_CHECKS: usize = 200;

    /// How much of the responses is read that open a new session, in bytes; nothing in their results is used.
    pub(crate) const MAX_RENEWAL_BYTES: usize = 1 << 20;

    /// How long opening a new session may take, request by request.
    pub(crate) const RENEWAL_TIMEOUT: Duration = Duration::from_secs(10);

    /// How long the server may take to begin a stream for its own messages before requests are tried, unless it took longer to
    /// open.
    pub(crate) const GET_STREAM_HEAD_TIMEOUT: Duration = Duration::from_secs(1);

    /// How long a `ping` may take at least while such a stream is open until the stream is closed, to try without.
    pub(crate) const GET_STREAM_PING_TIMEOUT: Duration = Duration::from_secs(1);

    /// How many times longer than without a stream a `ping` may take while one is open.
    pub(crate) const GET_STREAM_PING_FACTOR: u32 = 4;

    /// How long a server gets to close connections that the client has closed: longer than most servers keep an idle one.
    pub(crate) const HALF_CLOSED_TIMEOUT: Duration = Duration::from_secs(8);

    /// From how many such connections on the server gets that time; some are always about to be closed.
    pub(crate) const MANY_HALF_CLOSED: usize = 20;

    /// How deep the causes of an error are followed.
    pub(crate) const MAX_CAUSES: usize = 16;
}

// Opening: starting the server, and finding the revisions that it supports.

/// How soon to look again whether a server over HTTP listens; each time twice as late as before.
pub(crate) const FIRST_LISTENING_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// How late to look again at most whether a server over HTTP listens.
pub(crate) const LISTENING_POLL_INTERVAL: Duration = Duration::from_millis(25);

/// How often a server over HTTP that has ended is restarted in a run.
pub(crate) const MAX_HTTP_RESTARTS: usize = 40;

/// How long an HTTP server that the client cannot restart gets to become reachable again.
pub(crate) const RECONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a process that has not written anything yet may be idle after the time for its response is over, unless the
/// fastest opening took long: one that still starts is at work, or waits for a processor.
pub(crate) const STARTING_IDLE_TIME: Duration = Duration::from_secs(2);

/// The share of the startup timeout after which an idle process is abandoned.
pub(crate) const IDLE_SHARE_OF_STARTUP: u32 = 6;

/// The time after which an idle process is abandoned at the earliest: one that waits for a neighbour or a network is idle
/// as well.
pub(crate) const MIN_IDLE_TIME: Duration = Duration::from_secs(5);

/// How many times longer than the fastest opening another one may take, idle or not, where that is longer than usual.
pub(crate) const FURTHER_OPENING_FACTOR: u32 = 4;

/// How long a server that has not answered the opening request has for another answer, unless another opening took long.
pub(crate) const OTHER_ANSWER_WAIT: Duration = Duration::from_secs(1);

/// How long a starting process counts as busy in any case.
pub(crate) const MAX_BUSY_TIME: Duration = Duration::from_secs(2);

/// How long a handshake may take at least once a session of another revision is open. No server is known to ignore one,
/// so this is longer than for a stateless opening.
pub(crate) const MIN_HANDSHAKE_TIME: Duration = Duration::from_secs(5);

/// How many times longer than the opening of another revision a handshake may take.
pub(crate) const HANDSHAKE_TIME_FACTOR: u32 = 4;

/// How long a stateless opening, which older servers may not answer, may take at least once another session is open.
pub(crate) const MIN_STATELESS_OPENING_TIME: Duration = Duration::from_secs(1);

/// How many times longer than the opening of another revision a stateless opening may take.
pub(crate) const STATELESS_OPENING_TIME_FACTOR: u32 = 2;

/// How long an opening may take at least after a handshake went unanswered: others are unlikely to do better.
pub(crate) const MIN_OPENING_TIME_AFTER_TIMEOUT: Duration = Duration::from_secs(1);

/// The share of the startup timeout that an opening may take after a handshake went unanswered.
pub(crate) const OPENING_SHARE_AFTER_TIMEOUT: u32 = 10;

/// How many words of a command are looked at for the packages that it runs.
pub(crate) const MAX_COMMAND_WORDS: usize = 32;

/// How many folders above a file are searched for packages.
pub(crate) const MAX_FOLDERS_ABOVE: usize = 10;

/// How many packages of a Python environment are looked at.
pub(crate) const MAX_PYTHON_PACKAGES: usize = 20_000;

/// The size of the files about packages that are read, in bytes (4 MiB).
pub(crate) const MAX_PACKAGE_FILE_BYTES: u64 = 4 << 20;

/// How much of a script is read for the program that runs it, in bytes.
pub(crate) const MAX_SCRIPT_HEAD_BYTES: u64 = 256;

/// How much of a line of a server's standard error is quoted, in characters.
pub(crate) const MAX_QUOTED_LINE_CHARS: usize = 200;

// Discovery: lists, first calls, the search for arguments, and further requests.

/// How many requests in a row go unanswered before a session is given up, and before discovery sends no more of a kind.
pub(crate) const MAX_UNANSWERED: usize = 2;

/// How many timeouts a server is waited for that stopped answering, until it is abandoned.
pub(crate) const TIMEOUTS_OF_SILENT_SERVER: u32 = 3;

/// How many requests of discovery are in flight.
pub(crate) const MAX_REQUESTS_IN_FLIGHT: usize = 4;

/// How often discovery sends a request whose result asks for input.
pub(crate) const MAX_DISCOVERY_INPUT_ROUNDS: usize = 4;

/// How many pages of a list discovery reads.
pub(crate) const MAX_DISCOVERY_PAGES: usize = 8;

/// How many resources discovery reads at first, and how many prompts it gets.
pub(crate) const MAX_FIRST_READS: usize = 3;

/// How long to wait for the next response, of the lists and then of the reads, and for the acknowledgement of a
/// subscription.
pub(crate) const LIST_TIMEOUT: Duration = Duration::from_secs(1);

/// How many times longer than for the fastest one so far to wait for each of these.
pub(crate) const FASTEST_ANSWER_FACTOR: u32 = 3;

/// How many tools are called a first time.
pub(crate) const MAX_FIRST_CALLS: usize = 256;

/// How many first calls are in flight, without those that are slow.
pub(crate) const MAX_CALLS_IN_FLIGHT: usize = 4;

/// How many first calls are in flight that are slow.
pub(crate) const MAX_SLOW_CALLS_IN_FLIGHT: usize = 32;

/// From which duration on a first call, and with it its tool, is slow: more calls are sent before it is answered.
pub(crate) const SLOW_CALL: Duration = Duration::from_secs(1);

/// How long first calls may take, as a fraction of the timeout of a request. Cases that use no tool run meanwhile.
pub(crate) const FIRST_CALL_TIME: (u32, u32) = (4, 5);

/// How many timeouts of a request they may take if no tool was served so soon, so that there is none to use instead.
pub(crate) const TIMEOUTS_OF_ONLY_TOOLS: u32 = 2;

/// How long to wait for the remaining first calls once all others are answered.
pub(crate) const UNANSWERED_CALL_TIMEOUT: Duration = Duration::from_millis(250);

/// How long to wait for the ends of the streams of answered calls, unless the fastest answer took longer.
pub(crate) const STREAM_END_TIMEOUT: Duration = Duration::from_millis(250);

/// How many tools are called once more to see which requests of the server belong to them.
pub(crate) const MAX_CALLS_FOR_REQUESTS: usize = 12;

/// The part of the timeout of a request that each call of the search for arguments may take: one second by default.
pub(crate) const SEARCH_CALL_TIMEOUT_DIVISOR: u32 = 5;

/// How many such parts the search for arguments may take: four seconds by default.
pub(crate) const MAX_SEARCH_CALL_TIMEOUTS: u32 = 4;

/// How many rounds the search for arguments has, each with one attempt per tool and prompt.
pub(crate) const MAX_SEARCH_ROUNDS: usize = 24;

/// How many attempts the search for arguments has per tool or prompt.
pub(crate) const MAX_SEARCH_ATTEMPTS: usize = 24;

/// How many values the search for arguments tries per property.
pub(crate) const MAX_SEARCH_VALUES: usize = 10;

/// How many arguments completions are asked for.
pub(crate) const MAX_COMPLETIONS: usize = 16;

/// How many sets of example arguments a tool has.
pub(crate) const MAX_EXAMPLE_SETS: usize = 24;

/// How many values are taken from a text that suggests some.
pub(crate) const MAX_SUGGESTED_VALUES: usize = 12;

/// The length of a suggested value, in bytes.
pub(crate) const MAX_SUGGESTED_VALUE_BYTES: usize = 200;

/// The length of the part of a text that is a list of suggested values, in bytes.
pub(crate) const MAX_SUGGESTED_LIST_BYTES: usize = 400;

/// How much of a text is searched for suggested values, in characters.
pub(crate) const MAX_SUGGESTING_CHARS: usize = 4_000;

/// How long further requests may take together.
pub(crate) const FURTHER_TIME: Duration = Duration::from_secs(4);

/// How long each further request may take, unless earlier answers took longer.
pub(crate) const FURTHER_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// How many further resources are read.
pub(crate) const MAX_FURTHER_RESOURCES: usize = 64;

/// How many further prompts are got.
pub(crate) const MAX_FURTHER_PROMPTS: usize = 32;

/// How many resources are read to which results link.
pub(crate) const MAX_LINKED_RESOURCES: usize = 16;

/// How many URIs are made of templates.
pub(crate) const MAX_EXPANSIONS: usize = 16;

/// How many URIs are made of one template.
pub(crate) const MAX_EXPANSIONS_PER_TEMPLATE: usize = 3;

/// How many further calls are made.
pub(crate) const MAX_FURTHER_CALLS: usize = 256;

/// How many further calls are made of one tool.
pub(crate) const MAX_FURTHER_CALLS_PER_TOOL: usize = 16;

/// How long the varied calls of one tool may take by the duration of its first call.
pub(crate) const FURTHER_TIME_PER_TOOL: Duration = Duration::from_secs(1);

/// How many goals are looked at for variants of arguments.
pub(crate) const MAX_VARIANT_GOALS: usize = 256;

/// How many requests are made per revision to discover hints.
pub(crate) const MAX_HINT_REQUESTS: usize = 400;

/// How long discovering hints may take per revision.
pub(crate) const HINT_TIME_PER_REVISION: Duration = Duration::from_secs(60);

/// From which duration on a response to a request for hints is slow.
pub(crate) const SLOW_HINT_RESPONSE: Duration = Duration::from_secs(1);

/// After how many slow responses a tool gets no hint.
pub(crate) const MAX_SLOW_HINT_RESPONSES: usize = 3;

/// How many hints are discovered.
pub(crate) const MAX_HINTS: usize = 200;

/// How many resources are read for hints, and how many prompts are got.
pub(crate) const MAX_HINT_PRIMITIVES: usize = 16;

/// How long to wait for unsolicited messages before the first request for hints, unless answers take longer.
pub(crate) const QUIET_TIME: Duration = Duration::from_millis(300);

// Cases: sessions, steps, and servers that are slow, silent or gone.

/// How many processes a server has at once, at first, that is slow to answer.
pub(crate) const FIRST_PROCESSES_OF_SLOW_SERVER: usize = 32;

/// How many processes it has at most: more are allowed while it opens them as fast as the first one, while half of the
/// machine's memory is free, and while there are files for their streams.
pub(crate) const MAX_PROCESSES_OF_SLOW_SERVER: usize = 256;

/// How many sessions it has at most over HTTP, where they share one process.
pub(crate) const MAX_SESSIONS_OF_SLOW_SERVER: usize = 400;

/// How many files a process of the server needs: its three streams, and one to see its end.
pub(crate) const FILES_PER_PROCESS: u64 = 4;

/// How many files a session over HTTP needs: a connection for requests, and one that is kept for the next, or a stream.
pub(crate) const FILES_PER_HTTP_SESSION: u64 = 2;

/// How many files everything else needs.
pub(crate) const OTHER_FILES: u64 = 200;

/// How many more sessions an HTTP server gets for each on which its opening, or its first slow answer, is as fast as any
/// while all others are at work.
pub(crate) const SESSIONS_PER_FAST_ANSWER: usize = 3;

/// On how many sessions of an HTTP server an answer after the opening is as fast as any before it gets more of them.
pub(crate) const MIN_FAST_ANSWERS: usize = 2;

/// How many times longer than the fastest opening, or slow answer, another one may take if the other sessions do not slow
/// it down.
pub(crate) const EQUALLY_FAST_FACTOR: f32 = 1.5;

/// From which average duration on cases run side by side on more sessions.
pub(crate) const SLOW_CASE: Duration = Duration::from_millis(400);

/// After how many cases their average duration is known.
pub(crate) const MIN_CASES_FOR_PACE: u32 = 3;

/// The least time after which a case on its own process is taken to wait; usually, as long as opening its session took.
pub(crate) const MIN_WORK_BEFORE_WAITING: Duration = Duration::from_millis(100);

/// How many further sessions cases run on.
pub(crate) const MAX_MORE_SESSIONS: usize = 8;

/// How many further sessions cases run on if the server answers slowly.
pub(crate) const MAX_MORE_SESSIONS_OF_SLOW_SERVER: usize = 32;

/// How many cases a further session is worth, and on how many processes those follow one another that ask for a fresh one.
pub(crate) const MIN_CASES_PER_SESSION: usize = 2;
pub(crate) const MAX_PROCESSES_IN_TURN: usize = 3;

/// How many requests of a case a further session is worth: opening one takes about as long as one of them.
pub(crate) const MIN_REQUESTS_PER_SESSION: usize = 2;

/// How many further sessions one case runs on.
pub(crate) const MAX_SESSIONS_PER_CASE: usize = 32;

/// How often a session that waits for its permit checks whether it is still needed.
pub(crate) const PERMIT_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How many processes may stay silent at startup before no more are started for single cases.
pub(crate) const MAX_SILENT_STARTS: usize = 2;

/// How often to restart the server after a case has ended it.
pub(crate) const MAX_RESTARTS_BY_CASES: usize = 40;

/// How often the server may stop answering before it is abandoned.
pub(crate) const MAX_SILENCES: usize = 2;

/// How many timeouts a tool is waited for that did not answer its first call: it may only be slow.
pub(crate) const TIMEOUTS_OF_UNANSWERED_TOOL: u32 = 6;

/// How many tools that did not answer are called again.
pub(crate) const MAX_UNANSWERED_TOOLS: usize = 3;

/// How many entries of a folder on the server's command line are looked at, and how many of its files are known values, of
/// different kinds.
pub(crate) const MAX_FOLDER_ENTRIES: usize = 1_000;
pub(crate) const MAX_FILES_OF_FOLDER: usize = 4;

/// How many items a case is repeated for.
pub(crate) const MAX_ITEMS: usize = 40;

/// The least time from which on an answer is slow, and how many slow ones take as long as opening a session, at most.
pub(crate) const SLOW_ANSWER: Duration = Duration::from_millis(500);
pub(crate) const SLOW_ANSWERS_PER_OPENING: u32 = 16;

/// How long a response is waited for once a request has gone unanswered, unless the server is known to be slower.
pub(crate) const TIMEOUT_AFTER_UNANSWERED: Duration = Duration::from_secs(2);

/// The least time that a response is waited for whose kind is known to go unanswered.
pub(crate) const MIN_REPEATED_WAIT: Duration = Duration::from_millis(100);

/// How much longer than its slowest answer a server gets for such a response.
pub(crate) const SLOWEST_ANSWER_FACTOR: u32 = 2;

/// How many timeouts of a request a response is waited for at most, of a server whose slowest answer took more than half of one.
pub(crate) const MAX_TIMEOUTS_OF_SLOW_SERVER: u32 = 4;

/// For how many messages sent before a request a server that is slow with each gets its time, before it is the turn of the
/// request.
pub(crate) const MAX_MESSAGES_AHEAD: usize = 32;

/// How long a response is waited for if a later request that asks the same was answered, unless an answer took longer.
pub(crate) const OVERTAKEN_WAIT: Duration = Duration::from_millis(250);

/// How long to wait for the right response after one with an altered id, unless the fastest answer took longer.
pub(crate) const LOOSE_ID_WAIT: Duration = Duration::from_millis(100);

/// How many responses may have the id of one request before they belong to others: a server may send each one twice.
pub(crate) const RESPONSES_PER_REQUEST: usize = 2;

/// How many requests of a method get the responses of a case. Further ones get the usual response, so that no server
/// repeats its request without end.
pub(crate) const MAX_CASE_RESPONSES: usize = 24;

/// How often a step sends a request whose results request input.
pub(crate) const MAX_INPUT_ROUNDS: usize = 6;

/// How many pages of a list a step reads.
pub(crate) const MAX_PAGES: usize = 64;

/// How many arguments are generated to find some that are not the minimal ones.
pub(crate) const MAX_OTHER_ARGUMENTS: usize = 20;

/// How long a call takes whose arguments are chosen to make it last.
pub(crate) const LASTING_CALL: Duration = Duration::from_secs(3);

/// The greatest value of an argument that says how much such a call does.
pub(crate) const MAX_LASTING_COUNT: f64 = 100.0;

/// How long a response is waited for that may not come, once later requests are answered.
pub(crate) const SETTLE: Duration = Duration::from_millis(25);

/// The same where the lack of a response is a finding.
pub(crate) const SETTLE_CHECKED: Duration = Duration::from_millis(60);

/// The same where a response is a finding, or nothing that was sent afterwards was answered.
pub(crate) const SETTLE_ALONE: Duration = Duration::from_millis(250);

/// The longest time that it is waited for, however slow the server is.
pub(crate) const SETTLE_LONGEST: Duration = Duration::from_secs(1);

/// The interval between the requests of a poll, at first.
pub(crate) const MIN_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The interval at most. The one that a server suggests is meant for longer work than the second that a case waits.
pub(crate) const MAX_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How often a poll sends its request at least.
pub(crate) const MIN_POLLS: u32 = 5;

/// How long the plain call of a tool waits if its arguments say how long: the first of them that the schema allows.
pub(crate) const SHORT_WAITS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// How long all requests of a step that repeats its request may take. If they would take longer, the case is skipped.
pub(crate) const REPEATED_REQUESTS_TIME: Duration = Duration::from_secs(10);

/// From when on the requests made so far tell how long all will take. The first ones may be slow on any server.
pub(crate) const REPEATED_REQUESTS_TRIAL: Duration = Duration::from_secs(2);

/// How long to read the response to a GET at least, which a server may keep open indefinitely, and for which share of the time
/// that its head took, if that is longer.
pub(crate) const GET_READ_TIME: Duration = Duration::from_millis(300);
pub(crate) const GET_READ_SHARE: u32 = 4;

/// How long to wait for the head of that response. A server that offers a stream may send the head with its first event,
/// so that silence is no fault; but one that is busy must not seem silent.
pub(crate) const GET_HEAD_TIME: Duration = Duration::from_secs(3);

// Confirmation: repeating what failed, and finding what it needs.

/// How many cases are confirmed at once.
pub(crate) const MAX_CONCURRENT_CONFIRMATIONS: usize = 16;

/// After how many failures in a row that all occurred again the others are not repeated: chance is not the explanation.
pub(crate) const MAX_CONFIRMED_IN_A_ROW: usize = 32;

/// How often cases that could not be judged may run again with the same result, before it is that of the server.
pub(crate) const MAX_FRUITLESS_RUNS: usize = 3;

/// How many sequences of cases to try until the shortest so far is reported.
pub(crate) const MAX_SEQUENCES: usize = 32;

/// How long to try sequences of cases until the shortest so far is reported.
pub(crate) const SEQUENCE_TIME_LIMIT: Duration = Duration::from_secs(30);

/// How long one repetition for a passive case may take. One that takes longer neither confirms nor refutes.
pub(crate) const REPETITION_TIME_LIMIT: Duration = Duration::from_secs(60);

/// How often to try parts of the cases that a passive case observed, until the fewest so far are reported.
pub(crate) const MAX_PARTS: usize = 12;

/// How long to try parts of the cases that a passive case observed, until the fewest so far are reported.
pub(crate) const PARTS_TIME_LIMIT: Duration = Duration::from_secs(30);

/// How many cases the text of a finding names; its command selects all of them.
pub(crate) const MAX_NAMED_CASES: usize = 3;

// Ending: shutting servers down, and what is kept of their output.

/// How long fuzzing gets to stop and to report its findings.
pub(crate) const FUZZING_STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a server gets to exit on its own where no case judges that.
pub(crate) const UNJUDGED_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(400);

/// How long a server gets at a step that it is known to ignore.
pub(crate) const IGNORED_STEP_TIMEOUT: Duration = Duration::from_millis(50);

/// How long a server gets at a step at most because it was slow to start.
pub(crate) const MAX_SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// How long a server over HTTP gets to exit once its input is closed. One that listens does not exit then.
pub(crate) const HTTP_INPUT_CLOSED_TIMEOUT: Duration = Duration::from_millis(50);

/// How long a server over HTTP gets to exit before its replacement starts.
pub(crate) const REPLACED_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(50);

/// The length of the output of one process, in bytes.
pub(crate) const MAX_PROCESS_STDERR: usize = 4_000;

/// The length of the output of all processes in a summary, in bytes.
pub(crate) const MAX_SUMMARY_STDERR: usize = 8_000;

/// The length of the output of all processes in a problem, in bytes.
pub(crate) const MAX_PROBLEM_STDERR: usize = 4_000;

/// How many cases the command of a finding selects. Where more are needed, it selects all: such a command can be read.
pub(crate) const MAX_SELECTED_CASES: usize = 12;
