//! The server over any reader and writer: splits input into lines and writes output.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::connection::Connection;
use super::connection_state::Output;
use super::fault::{Fault, FaultSet};
use super::interception::{self, Interceptor};
use super::latency::LateOutputs;

/// The delay before the first byte of a slow server.
const SLOW_START_DELAY: Duration = Duration::from_millis(500);
/// How often [`Fault::IdleNotifications`] sends a notification.
const IDLE_NOTIFICATION_INTERVAL: Duration = Duration::from_millis(330);
/// The number of bytes that [`Fault::NoNewline`] writes without a newline.
const BYTES_WITHOUT_NEWLINE: usize = 8 << 20;
/// The size of the message of [`Fault::HugeLine`].
const HUGE_MESSAGE_BYTES: usize = 100 << 20;

/// The error of a server that an interceptor crashes: its process exits as if it had panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("index out of bounds: the len is 3 but the index is 57")]
pub struct Crash;

/// Serves one connection with these faults until its input ends.
///
/// Requests are answered in order, except those that wait for a task to end. The future needs a runtime with
/// timers only for such requests and for faults with a delay. On return, the writer has been flushed.
///
/// # Errors
///
/// Fails when the reader or the writer fails, for example because the client has gone away.
///
/// # Examples
///
/// ```
/// # use mcp_conformance::reference::{FaultSet, serve};
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let request = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
/// let mut answers = Vec::new();
/// serve(&request[..], &mut answers, &FaultSet::none()).await?;
/// assert_eq!(answers, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn serve<R, W>(reader: R, writer: W, faults: &FaultSet) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    serve_intercepted(reader, writer, faults, interception::none()).await
}

/// Like [`serve`], with an interceptor.
///
/// # Errors
/// As for [`serve`].
pub async fn serve_intercepted<R, W>(
    mut reader: R,
    writer: W,
    faults: &FaultSet,
    interceptor: Box<dyn Interceptor>,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut connection = Connection::new(faults, interceptor);
    let mut writer = MessageWriter::new(writer, faults);
    let mut lines = Lines::new(faults);
    let ends_when_it_logs = faults.contains(Fault::StderrNeeded) && faults.surroundings().has_no_standard_error;
    let mut flood: Option<Vec<u8>> = None;
    let mut slow = faults.contains(Fault::SlowStart);
    let mut late = LateOutputs::default();
    if faults.contains(Fault::NoNewline) {
        repeat(&mut writer, BYTES_WITHOUT_NEWLINE).await?;
        writer.flush().await?;
    }
    loop {
        while let Some(line) = lines.next() {
            if ends_when_it_logs {
                return writer.flush().await;
            }
            connection.holds_output = late.due().is_some();
            let outputs = connection.receive(&line);
            if slow && !outputs.is_empty() {
                tokio::time::sleep(SLOW_START_DELAY).await;
                slow = false;
            }
            for output in late.hold(&line, outputs, faults) {
                match output {
                    Output::Bytes(bytes) => writer.write_message(&bytes).await?,
                    Output::Huge { begin, end } => {
                        writer.write_all(&begin).await?;
                        repeat(&mut writer, HUGE_MESSAGE_BYTES).await?;
                        writer.write_all(&end).await?;
                    }
                    Output::Flood(line) => flood = Some(line.repeat(64)),
                    Output::Delay(delay) => {
                        writer.flush().await?;
                        tokio::time::sleep(delay).await;
                    }
                    Output::Freeze => {
                        writer.flush().await?;
                        std::future::pending::<()>().await;
                    }
                    Output::Crash => {
                        writer.flush().await?;
                        return Err(io::Error::other(Crash));
                    }
                    Output::Close => return writer.flush().await,
                }
            }
        }
        writer.flush().await?;
        if let Some(notifications) = &flood {
            let ended = tokio::select! {
                biased;
                read = lines.fill(&mut reader) => read? == 0,
                () = std::future::ready(()) => false,
            };
            if ended {
                return Ok(());
            }
            writer.write_all(notifications).await?;
            continue;
        }
        let Some(read) = read_more(&mut lines, &mut reader, &mut writer, &mut connection, &mut late).await? else {
            continue;
        };
        if read == 0 {
            break;
        }
    }
    let last = lines.rest();
    serve_end_of_input(last.as_deref(), &mut connection, &mut writer, faults).await
}

/// Reads more input, and returns the number of bytes; or writes delayed outputs that are due before, and returns none.
async fn read_more<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    lines: &mut Lines,
    reader: &mut R,
    writer: &mut MessageWriter<W>,
    connection: &mut Connection<'_>,
    late: &mut LateOutputs,
) -> io::Result<Option<usize>> {
    if let Some(due) = late.due() {
        let Ok(read) = tokio::time::timeout_at(due, lines.fill(reader)).await else {
            write_all(writer, late.take_due()).await?;
            return Ok(None);
        };
        return read.map(Some);
    }
    if connection.has_delayed_responses() {
        let Ok(read) = tokio::time::timeout(connection.hold_timeout(), lines.fill(reader)).await else {
            write_all(writer, connection.flush_delayed()).await?;
            return Ok(None);
        };
        return read.map(Some);
    }
    if let Some(outputs) = connection.idle_output() {
        let Ok(read) = tokio::time::timeout(IDLE_NOTIFICATION_INTERVAL, lines.fill(reader)).await else {
            write_all(writer, outputs).await?;
            return Ok(None);
        };
        return read.map(Some);
    }
    lines.fill(reader).await.map(Some)
}

/// Serves the last line, if it had no line ending, and writes what was delayed.
async fn serve_end_of_input<W: AsyncWrite + Unpin>(
    last: Option<&[u8]>,
    connection: &mut Connection<'_>,
    writer: &mut MessageWriter<W>,
    faults: &FaultSet,
) -> io::Result<()> {
    let mut outputs = last.map(|line| connection.receive(line)).unwrap_or_default();
    outputs.extend(connection.flush_delayed());
    write_all(writer, outputs).await?;
    if faults.contains(Fault::IgnoresEof) || ignores_sigterm(faults) {
        std::future::pending::<()>().await;
    }
    Ok(())
}

/// Whether a process with these faults ignores SIGTERM as well as the end of its input.
#[must_use]
pub fn ignores_sigterm(faults: &FaultSet) -> bool {
    faults.contains(Fault::IgnoresSigterm)
}

/// Whether a process with these faults ignores SIGTERM as long as its input is open.
#[must_use]
pub fn ignores_sigterm_before_eof(faults: &FaultSet) -> bool {
    ignores_sigterm(faults) || faults.contains(Fault::SigtermWaitsForEof)
}

/// Whether a process with these faults starts another one, `sleep`, and leaves it running when it exits.
#[must_use]
pub fn leaves_process(faults: &FaultSet) -> bool {
    faults.contains(Fault::LeavesProcess)
}

/// The line that a process with these faults writes to its standard error when it starts, if it does.
#[must_use]
pub fn stderr_line(faults: &FaultSet) -> Option<&'static [u8]> {
    if faults.contains(Fault::StderrLatin1) {
        return Some(b"[info] the caf\xe9 is open\n");
    }
    faults.contains(Fault::Awkward).then_some("[info] the caf\u{e9} is open\n".as_bytes())
}

/// What a process with these faults writes to its standard error: one megabyte, or nothing.
///
/// The write blocks if the client does not read standard error, so write this before you serve the
/// connection.
#[must_use]
pub fn stderr_noise(faults: &FaultSet) -> Option<String> {
    let line = "[debug] reference server: this line only exists to fill standard error\n";
    faults.contains(Fault::StderrNoise).then(|| line.repeat((1 << 20) / line.len()))
}

async fn write_all<W: AsyncWrite + Unpin>(writer: &mut MessageWriter<W>, outputs: Vec<Output>) -> io::Result<()> {
    for output in outputs {
        if let Output::Bytes(bytes) = output {
            writer.write_message(&bytes).await?;
        }
    }
    writer.flush().await
}

/// The writer of a connection, which writes a message at once, in pieces, or with those that follow it.
struct MessageWriter<W> {
    writer: W,
    /// Whether a message is written in pieces ([`Fault::WritesInPieces`]).
    in_pieces: bool,
    /// Whether messages are written when nothing is left to do ([`Fault::WritesTogether`]).
    together: bool,
    /// What was not written yet.
    kept: Vec<u8>,
}

/// How many pieces of a message are written.
const PIECES: usize = 9;

impl<W: AsyncWrite + Unpin> MessageWriter<W> {
    fn new(writer: W, faults: &FaultSet) -> Self {
        let (in_pieces, together) = (faults.contains(Fault::WritesInPieces), faults.contains(Fault::WritesTogether));
        Self { writer, in_pieces, together, kept: Vec::new() }
    }

    async fn write_message(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.together {
            self.kept.extend_from_slice(bytes);
            return Ok(());
        }
        if !self.in_pieces {
            return self.writer.write_all(bytes).await;
        }
        for piece in bytes.chunks((bytes.len() / PIECES).max(1)) {
            self.writer.write_all(piece).await?;
            self.writer.flush().await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Writes bytes that are no whole message, after what was kept.
    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let kept = std::mem::take(&mut self.kept);
        self.writer.write_all(&kept).await?;
        self.writer.write_all(bytes).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.write_all(&[]).await?;
        self.writer.flush().await
    }
}

/// Writes the letter `x` this often, in chunks.
async fn repeat<W: AsyncWrite + Unpin>(writer: &mut MessageWriter<W>, length: usize) -> io::Result<()> {
    let chunk = vec![b'x'; 64 << 10];
    let mut left = length;
    while left > 0 {
        let size = left.min(chunk.len());
        writer.write_all(&chunk[..size]).await?;
        left -= size;
    }
    Ok(())
}

/// Splits input into lines; a partial line survives a cancelled read.
#[derive(Debug, Default)]
struct Lines {
    buffer: Vec<u8>,
    /// The length of the prefix of the buffer that has no line ending.
    searched: usize,
    /// Whether what a read returns is decoded by itself ([`Fault::SplitCharactersLost`]).
    decodes_each_read: bool,
    /// Whether only the first line that a read returns is kept ([`Fault::OneLinePerRead`]).
    keeps_first_only: bool,
}

impl Lines {
    fn new(faults: &FaultSet) -> Self {
        Self {
            decodes_each_read: faults.contains(Fault::SplitCharactersLost),
            keeps_first_only: faults.contains(Fault::OneLinePerRead),
            ..Self::default()
        }
    }

    async fn fill<R: AsyncRead + Unpin>(&mut self, reader: &mut R) -> io::Result<usize> {
        self.buffer.reserve(4 << 10);
        let held = self.buffer.len();
        let read = reader.read_buf(&mut self.buffer).await?;
        if self.decodes_each_read {
            let decoded = String::from_utf8_lossy(&self.buffer.split_off(held)).into_owned();
            self.buffer.extend_from_slice(decoded.as_bytes());
        }
        Ok(read)
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        let found = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(length) = found.map(|offset| self.searched + offset) else {
            self.searched = self.buffer.len();
            return None;
        };
        self.searched = 0;
        let mut line: Vec<u8> = self.buffer.drain(..=length).collect();
        line.pop();
        if self.keeps_first_only {
            self.buffer.clear();
        }
        Some(line)
    }

    /// The last line, if the input ended without a line ending.
    fn rest(&mut self) -> Option<Vec<u8>> {
        self.searched = 0;
        (!self.buffer.is_empty()).then(|| std::mem::take(&mut self.buffer))
    }
}
