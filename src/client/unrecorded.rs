//! A connection that records nothing: lines out, frames in.
//!
//! For thousands of calls, where a full record would take unlimited memory. Over standard streams there is one task
//! and no queue: waiting for a frame also writes the queued lines, so that neither side can block the other. Over
//! HTTP each line is a request.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::connection::{LaunchError, WaitOutcome};
use super::http::{EndReason, UnrecordedHttp, UnrecordedHttpOptions};
use super::long_message::LongMessage;
use super::process::{Process, ShutdownTimeouts};
use super::record::EntryObserver;
use super::wait_budget::WaitBudget;
use crate::limits::{EXIT_STATUS_TIMEOUT, LAST_STDERR_DELAY, LINE_FEED_TIMEOUT};
use crate::text::last_bytes;
use crate::transcript::{Entry, Event};
use crate::wire::{Frame, Splitter};

/// How much of standard error is kept, in bytes: its end explains why a server exited.
const MAX_STDERR_BYTES: usize = 16 << 10;
/// How long an unfinished line may grow before the server is disconnected, in bytes.
const MAX_UNFINISHED_LINE_BYTES: usize = 32 << 20;
/// How much is read at once, in bytes.
const READ_BUFFER_BYTES: usize = 64 << 10;

/// A connection that keeps nothing but unread input.
#[derive(Debug)]
pub(crate) struct UnrecordedConnection(Peer);

/// The server side of a connection.
#[derive(Debug)]
enum Peer {
    Streams(Box<Streams>),
    Http(Box<UnrecordedHttp>),
}

/// A server over its standard streams, or over a pipe in memory.
struct Streams {
    output: Box<dyn AsyncRead + Send + Unpin>,
    input: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    outgoing: Vec<u8>,
    written: usize,
    splitter: Splitter,
    message: LongMessage,
    buffer: Vec<u8>,
    /// The part of the buffer that was read and not yet split into lines.
    unread: Range<usize>,
    /// When it was read last, and how long the process took until it first wrote something.
    read_at: Instant,
    opening: Option<Duration>,
    /// The unfinished line at the end of the stream.
    last: Option<Frame>,
    process: Option<Process>,
    tasks: Vec<JoinHandle<()>>,
    errors: Arc<Mutex<String>>,
    closed: bool,
    /// Sees every line, if there is one, and when the connection was opened.
    observer: Option<EntryObserver>,
    opened_at: Instant,
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams")
            .field("unread", &self.unread.len())
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

impl UnrecordedConnection {
    /// Starts a command and connects to its standard streams.
    ///
    /// # Errors
    /// When the command cannot be started.
    pub(crate) fn start(program: &str, command: Command, observer: Option<EntryObserver>) -> Result<Self, LaunchError> {
        let (process, streams) =
            Process::start(command).map_err(|source| LaunchError::Start { program: program.to_owned(), source })?;
        let errors = Arc::new(Mutex::new(String::new()));
        let task = tokio::spawn(keep_the_end(streams.errors, Arc::clone(&errors)));
        let mut pipe = Streams::over(streams.output, streams.input, errors);
        pipe.process = Some(process);
        pipe.observer = observer;
        pipe.tasks.push(task);
        Ok(Self(Peer::Streams(Box::new(pipe))))
    }

    /// Connects to a server in this process; `server` runs at the other end of the pipe.
    #[must_use]
    pub(crate) fn in_process(pipe: DuplexStream, server: JoinHandle<()>, observer: Option<EntryObserver>) -> Self {
        let (output, input) = tokio::io::split(pipe);
        let mut pipe = Streams::over(output, input, Arc::default());
        pipe.observer = observer;
        pipe.tasks.push(server);
        Self(Peer::Streams(Box::new(pipe)))
    }

    /// Connects to a server over HTTP; nothing is sent before the first line. The connection itself answers the
    /// server's requests.
    #[must_use]
    pub(crate) fn over_http(options: UnrecordedHttpOptions) -> Self {
        Self(Peer::Http(Box::new(UnrecordedHttp::new(options))))
    }

    /// Queues a line, which is sent during the next wait.
    pub(crate) fn queue(&mut self, line: &[u8]) {
        match &mut self.0 {
            Peer::Streams(streams) => streams.queue(line),
            Peer::Http(http) => http.queue(line.into()),
        }
    }

    /// Queues a line that `write` appends to the output buffer, and returns it.
    pub(crate) fn queue_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Arc<[u8]> {
        match &mut self.0 {
            Peer::Streams(streams) => {
                let before = streams.outgoing.len();
                write(&mut streams.outgoing);
                let line = Arc::from(&streams.outgoing[before..]);
                streams.observe(|| sent(&streams.outgoing[before..]));
                streams.outgoing.push(b'\n');
                line
            }
            Peer::Http(http) => {
                let mut line = Vec::new();
                write(&mut line);
                let line: Arc<[u8]> = line.into();
                http.queue(Arc::clone(&line));
                line
            }
        }
    }

    /// The next line of the server; queued lines are sent meanwhile.
    pub(crate) async fn next(&mut self, limit: Duration) -> WaitOutcome<Frame> {
        match &mut self.0 {
            Peer::Streams(streams) => streams.next(limit).await,
            Peer::Http(http) => http.next(limit).await,
        }
    }

    /// Whether the server closed its output, exited or was disconnected.
    #[must_use]
    pub(crate) fn is_closed(&self) -> bool {
        match &self.0 {
            Peer::Streams(streams) => streams.closed,
            Peer::Http(http) => http.end_reason().is_some(),
        }
    }

    /// The id of the server's process, if the connection started one.
    #[must_use]
    pub(crate) fn process_id(&self) -> Option<i32> {
        match &self.0 {
            Peer::Streams(streams) => streams.process.as_ref().map(Process::id),
            Peer::Http(_) => None,
        }
    }

    /// Why an HTTP connection has ended, if it has.
    #[must_use]
    pub(crate) fn end_reason(&self) -> Option<&EndReason> {
        match &self.0 {
            Peer::Streams(_) => None,
            Peer::Http(http) => http.end_reason(),
        }
    }

    /// The end of the server's standard error.
    #[must_use]
    pub(crate) fn stderr(&self) -> String {
        match &self.0 {
            Peer::Streams(streams) => streams.errors.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            Peer::Http(_) => String::new(),
        }
    }

    /// How a server that closed its output ended, as text.
    pub(crate) async fn exit_description(&mut self) -> String {
        match &mut self.0 {
            Peer::Streams(streams) => streams.exit_description().await,
            Peer::Http(http) => http.end_reason().map_or_else(String::new, EndReason::describe),
        }
    }

    /// Ends the server: closes its input, waits, sends SIGTERM, waits, kills its process group. Over HTTP it only ends
    /// the session.
    pub(crate) async fn end(self, timeouts: ShutdownTimeouts) {
        match self.0 {
            Peer::Streams(mut streams) => {
                streams.input = None;
                if let Some(process) = &mut streams.process {
                    process.end(timeouts).await;
                }
            }
            Peer::Http(http) => http.end().await,
        }
    }
}

impl Streams {
    fn over<R, W>(output: R, input: W, errors: Arc<Mutex<String>>) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        Self {
            output: Box::new(output),
            input: Some(Box::new(input)),
            outgoing: Vec::new(),
            written: 0,
            splitter: Splitter::default(),
            message: LongMessage::default(),
            buffer: vec![0; READ_BUFFER_BYTES],
            unread: 0..0,
            read_at: Instant::now(),
            opening: None,
            last: None,
            process: None,
            tasks: Vec::new(),
            errors,
            closed: false,
            observer: None,
            opened_at: Instant::now(),
        }
    }

    /// Shows the observer what is sent or received.
    fn observe(&self, event: impl FnOnce() -> Event) {
        if let Some(observer) = &self.observer {
            observer(&Entry { at: self.opened_at.elapsed(), event: event() });
        }
    }

    /// Queues a line, which is written during the next wait; a newline is added.
    fn queue(&mut self, line: &[u8]) {
        self.observe(|| sent(line));
        self.outgoing.extend_from_slice(line);
        self.outgoing.push(b'\n');
    }

    /// The next line of the server; queued lines are written meanwhile.
    async fn next(&mut self, limit: Duration) -> WaitOutcome<Frame> {
        let mut budget = WaitBudget::new(limit);
        loop {
            if !self.unread.is_empty() {
                let bytes = &self.buffer[self.unread.clone()];
                if let Some((line, used)) = self.splitter.pull(bytes) {
                    self.unread.start += used;
                    let frame = line.parse();
                    self.message = LongMessage::default();
                    if let Some(observer) = &self.observer {
                        observer(&Entry { at: self.opened_at.elapsed(), event: Event::Received(frame.clone()) });
                    }
                    return WaitOutcome::Ready(frame);
                }
                self.unread = 0..0;
                self.closed |= self.splitter.pending() > MAX_UNFINISHED_LINE_BYTES;
                if self.closed {
                    self.last = self.splitter.finish();
                }
            }
            if let Some(frame) = self.last.take() {
                return WaitOutcome::Ready(frame);
            }
            if self.closed {
                return WaitOutcome::Closed;
            }
            if budget.is_exhausted() {
                return WaitOutcome::TimedOut;
            }
            if budget.poll(self.message.wait_for_room(self.splitter.pending())).await.is_none() {
                continue;
            }
            if budget.poll(self.step()).await.is_some() {
                continue;
            }
            if self.read_at.elapsed() >= LINE_FEED_TIMEOUT.max(self.opening.unwrap_or_default()) {
                self.last = self.splitter.take_unterminated();
            }
            // A child of the exited process may hold its output open for ever.
            self.closed |= self.process.as_ref().is_some_and(|process| process.status().is_some());
        }
    }

    /// Writes or reads once, whichever is possible.
    async fn step(&mut self) {
        if self.written < self.outgoing.len()
            && let Some(input) = &mut self.input
        {
            tokio::select! {
                biased;
                wrote = input.write(&self.outgoing[self.written..]) => match wrote {
                    Ok(count) if count > 0 => {
                        self.written += count;
                        if self.written == self.outgoing.len() {
                            self.outgoing.clear();
                            self.written = 0;
                            // A flush that fails shows as a closed output.
                            let _flushed = input.flush().await;
                        }
                    }
                    // A server that closed its input shows by its output what it does next.
                    _ => self.input = None,
                },
                read = self.output.read(&mut self.buffer) => self.take(read.unwrap_or(0)),
            }
        } else {
            let read = self.output.read(&mut self.buffer).await;
            // A read error ends the stream as its end does.
            self.take(read.unwrap_or(0));
        }
    }

    fn take(&mut self, count: usize) {
        self.read_at = Instant::now();
        self.opening.get_or_insert_with(|| self.opened_at.elapsed());
        self.unread = 0..count;
        // A read of nothing is the end of the stream.
        if count == 0 {
            self.last = self.splitter.finish();
            self.closed = true;
        }
    }

    /// How a server that closed its output ended, as text.
    async fn exit_description(&mut self) -> String {
        match &mut self.process {
            Some(process) => {
                let status = process.wait_for_exit(EXIT_STATUS_TIMEOUT).await;
                // The last of its standard error may still be on its way.
                tokio::time::sleep(LAST_STDERR_DELAY).await;
                status.unwrap_or_else(|| "it closed its output and keeps running".to_owned())
            }
            None => "it closed its output".to_owned(),
        }
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

fn sent(line: &[u8]) -> Event {
    Event::Sent { frame: Frame::parse(line), step_id: None }
}

async fn keep_the_end<R: AsyncRead + Unpin>(mut errors: R, stderr_tail: Arc<Mutex<String>>) {
    let mut buffer = vec![0; 4 << 10];
    while let Ok(count) = errors.read(&mut buffer).await {
        if count == 0 {
            return;
        }
        append(&stderr_tail, &String::from_utf8_lossy(&buffer[..count]));
        tokio::task::yield_now().await;
    }
}

fn append(stderr_tail: &Mutex<String>, more: &str) {
    let mut stderr_tail = stderr_tail.lock().unwrap_or_else(PoisonError::into_inner);
    stderr_tail.push_str(more);
    let excess = stderr_tail.len() - last_bytes(&stderr_tail, MAX_STDERR_BYTES).len();
    stderr_tail.drain(..excess);
}
