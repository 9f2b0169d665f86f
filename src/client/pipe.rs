//! A lean connection: lines out, frames in, and nothing kept of either.
//!
//! For calls by the thousand, where a record of everything would be memory without end. Over standard streams
//! there is one task and no queue between: whoever waits for a frame also writes what is to be written
//! meanwhile, so that neither side can block the other. Over HTTP each line is a request.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::process::Command;
use tokio::task::JoinHandle;

use super::allotted::Allotted;
use super::connection::{LaunchError, Patience, Waited};
use super::http::{Over, Posts, PostsOrder};
use super::process::Process;
use crate::wire::{Frame, Line, Splitter};

/// How much of standard error is kept, in bytes: the end says why a server ended.
const STDERR: usize = 16 << 10;
/// How long a line may grow without end before the server is cut off, in bytes.
const LINE: usize = 32 << 20;
/// How much is read at once.
const BUFFER: usize = 64 << 10;
/// How long a process whose output is closed is given to say how it ended.
const EPITAPH: Duration = Duration::from_millis(300);

/// A connection that keeps nothing but what has not been read yet.
#[derive(Debug)]
pub struct Pipe(Peer);

/// What is at the other end.
#[derive(Debug)]
enum Peer {
    Streams(Box<Streams>),
    Http(Box<Posts>),
}

/// A server over its standard streams, or over a pipe in memory.
struct Streams {
    output: Box<dyn AsyncRead + Send + Unpin>,
    input: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    outgoing: Vec<u8>,
    written: usize,
    splitter: Splitter,
    buffer: Vec<u8>,
    /// The part of the buffer that was read and not yet split.
    unread: Range<usize>,
    /// The line that the stream ended in.
    last: Option<Frame>,
    process: Option<Process>,
    tasks: Vec<JoinHandle<()>>,
    errors: Arc<Mutex<String>>,
    closed: bool,
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams")
            .field("unread", &self.unread.len())
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

impl Pipe {
    /// Starts a command and connects to its standard streams.
    ///
    /// # Errors
    /// When the command cannot be started.
    pub fn start(program: &str, command: Command) -> Result<Self, LaunchError> {
        let (process, streams) =
            Process::start(command).map_err(|source| LaunchError::Start { program: program.to_owned(), source })?;
        let errors = Arc::new(Mutex::new(String::new()));
        let task = tokio::spawn(keep_the_end(streams.errors, Arc::clone(&errors)));
        let mut pipe = Streams::over(streams.output, streams.input, errors);
        pipe.process = Some(process);
        pipe.tasks.push(task);
        Ok(Self(Peer::Streams(Box::new(pipe))))
    }

    /// Connects to a server in this process; `server` runs it over the other end of the pipe.
    #[must_use]
    pub fn within(pipe: DuplexStream, server: JoinHandle<()>) -> Self {
        let (output, input) = tokio::io::split(pipe);
        let mut pipe = Streams::over(output, input, Arc::default());
        pipe.tasks.push(server);
        Self(Peer::Streams(Box::new(pipe)))
    }

    /// Connects to a server over HTTP; nothing is sent before the first line. What the server asks for is answered
    /// by the connection itself.
    #[must_use]
    pub fn over_http(order: PostsOrder) -> Self {
        Self(Peer::Http(Box::new(Posts::new(order))))
    }

    /// Puts up a line to be sent with the next wait.
    pub fn queue(&mut self, line: &[u8]) {
        match &mut self.0 {
            Peer::Streams(streams) => streams.queue(line),
            Peer::Http(posts) => posts.queue(line),
        }
    }

    /// Puts up a line that `write` appends to what is to be sent, and says how long it is: where lines go out by the
    /// thousand, each is written once.
    pub fn queue_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        match &mut self.0 {
            Peer::Streams(streams) => {
                let before = streams.outgoing.len();
                write(&mut streams.outgoing);
                let length = streams.outgoing.len() - before;
                streams.outgoing.push(b'\n');
                length
            }
            Peer::Http(posts) => {
                let mut line = Vec::new();
                write(&mut line);
                posts.queue(&line);
                line.len()
            }
        }
    }

    /// The next line that the server writes, while what is put up is written.
    pub async fn next(&mut self, limit: Duration) -> Waited<Frame> {
        loop {
            match self.next_unless(limit, |_| false).await {
                Waited::Came(Some(frame)) => return Waited::Came(frame),
                Waited::Came(None) => {}
                Waited::TimedOut => return Waited::TimedOut,
                Waited::Closed => return Waited::Closed,
            }
        }
    }

    /// The next line that the server writes and `take` does not take, which is asked before a line is parsed; nothing
    /// where it took all that came at once. Over HTTP there is nothing to be taken.
    pub async fn next_unless(
        &mut self,
        limit: Duration,
        take: impl FnMut(&[u8]) -> bool + Send,
    ) -> Waited<Option<Frame>> {
        match &mut self.0 {
            Peer::Streams(streams) => streams.next(limit, take).await,
            Peer::Http(posts) => match posts.next(limit).await {
                Waited::Came(frame) => Waited::Came(Some(frame)),
                Waited::TimedOut => Waited::TimedOut,
                Waited::Closed => Waited::Closed,
            },
        }
    }

    /// Whether the server closed its output, ended or was cut off.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match &self.0 {
            Peer::Streams(streams) => streams.closed,
            Peer::Http(posts) => posts.over().is_some(),
        }
    }

    /// The id of the process, if the server is one that was started with the connection.
    #[must_use]
    pub fn process_id(&self) -> Option<i32> {
        match &self.0 {
            Peer::Streams(streams) => streams.process.as_ref().map(Process::id),
            Peer::Http(_) => None,
        }
    }

    /// Why nothing more comes over HTTP, where that is so.
    #[must_use]
    pub fn over(&self) -> Option<&Over> {
        match &self.0 {
            Peer::Streams(_) => None,
            Peer::Http(posts) => posts.over(),
        }
    }

    /// The end of what the server wrote to its error stream.
    #[must_use]
    pub fn stderr(&self) -> String {
        match &self.0 {
            Peer::Streams(streams) => streams.errors.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            Peer::Http(_) => String::new(),
        }
    }

    /// How a server that closed its output ended, in words.
    pub async fn epitaph(&mut self) -> String {
        match &mut self.0 {
            Peer::Streams(streams) => streams.epitaph().await,
            Peer::Http(posts) => posts.over().map_or_else(String::new, Over::describe),
        }
    }

    /// Ends the server: closes its input, waits, sends SIGTERM, waits, kills its group. Over HTTP it ends the
    /// session, and the server runs on.
    pub async fn end(self, patience: Patience) {
        match self.0 {
            Peer::Streams(mut streams) => {
                streams.input = None;
                if let Some(process) = &mut streams.process {
                    let _step = process.end(patience).await;
                }
            }
            Peer::Http(posts) => posts.end().await,
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
            buffer: vec![0; BUFFER],
            unread: 0..0,
            last: None,
            process: None,
            tasks: Vec::new(),
            errors,
            closed: false,
        }
    }

    /// Puts up a line to be written with the next wait; a newline is added.
    fn queue(&mut self, line: &[u8]) {
        self.outgoing.extend_from_slice(line);
        self.outgoing.push(b'\n');
    }

    /// The next line that the server writes and `take` does not take, while what is put up is written.
    async fn next(&mut self, limit: Duration, mut take: impl FnMut(&[u8]) -> bool + Send) -> Waited<Option<Frame>> {
        let mut allotted = Allotted::new(limit);
        loop {
            let mut took = false;
            while !self.unread.is_empty() {
                let bytes = &self.buffer[self.unread.clone()];
                let Some((line, used)) = self.splitter.pull(bytes) else {
                    self.unread = 0..0;
                    self.closed |= self.splitter.pending() > LINE;
                    if self.closed {
                        self.last = self.splitter.finish();
                    }
                    break;
                };
                self.unread.start += used;
                match line {
                    Line::Whole(line) if take(line) => took = true,
                    line => return Waited::Came(Some(line.read())),
                }
            }
            if took {
                return Waited::Came(None);
            }
            if let Some(frame) = self.last.take() {
                return Waited::Came(Some(frame));
            }
            if self.closed {
                return Waited::Closed;
            }
            if allotted.is_over() {
                return Waited::TimedOut;
            }
            if allotted.glance(self.step()).await.is_none()
                && let Some(process) = &self.process
                && process.status().is_some()
            {
                // A child of the ended process may hold its output open for ever.
                self.closed = true;
            }
        }
    }

    /// Writes or reads once, whichever can be done.
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
                    // A server that closed its input says by its output what it does next.
                    _ => self.input = None,
                },
                read = self.output.read(&mut self.buffer) => self.take(read.unwrap_or(0)),
            }
        } else {
            let read = self.output.read(&mut self.buffer).await;
            // An error ends the stream as much as its end does.
            self.take(read.unwrap_or(0));
        }
    }

    fn take(&mut self, count: usize) {
        self.unread = 0..count;
        // Nothing was read at the end of the stream.
        if count == 0 {
            self.last = self.splitter.finish();
            self.closed = true;
        }
    }

    /// How a server that closed its output ended, in words.
    async fn epitaph(&mut self) -> String {
        match &mut self.process {
            Some(process) => {
                let status = process.ended_within(EPITAPH).await;
                // What it wrote last may still be on its way.
                tokio::time::sleep(Duration::from_millis(2)).await;
                status.unwrap_or_else(|| "it closed its output and runs on".to_owned())
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

async fn keep_the_end<R: AsyncRead + Unpin>(mut errors: R, kept: Arc<Mutex<String>>) {
    let mut buffer = vec![0; 4 << 10];
    while let Ok(count) = errors.read(&mut buffer).await {
        if count == 0 {
            return;
        }
        append(&kept, &String::from_utf8_lossy(&buffer[..count]));
        tokio::task::yield_now().await;
    }
}

fn append(kept: &Mutex<String>, more: &str) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push_str(more);
    let excess = kept.len().saturating_sub(STDERR);
    let excess = (excess..=kept.len()).find(|at| kept.is_char_boundary(*at)).unwrap_or(0);
    kept.drain(..excess);
}
