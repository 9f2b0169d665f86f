//! The server over any pair of reader and writer: lines in, lines out, and nothing decided in between.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::connection::{Connection, Output};
use super::fault::{Fault, FaultSet};

/// What a slow server takes before it writes its first byte.
const SLOW_START_DELAY: Duration = Duration::from_millis(500);
/// How much is written without a newline by the fault that does so.
const BYTES_WITHOUT_NEWLINE: usize = 8 << 20;
/// The length of the message that is too long.
const HUGE_MESSAGE_BYTES: usize = 100 << 20;

/// The error of a server that a fault ends as a bug would: its process has to end as if it had panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("index out of bounds: the len is 3 but the index is 57")]
pub struct Crash;

/// Serves one connection until its input ends, with the faults that are switched on.
///
/// Requests are answered in the order in which they arrive, but for those that wait for a task to end. The
/// future needs a runtime with timers only where a fault takes its time, or such a request is made. When it is done, the writer has been flushed and is dropped.
///
/// # Errors
///
/// Fails when the reader or the writer does; a client that goes away while it is written to is such a
/// failure. A fault that crashes the server fails with [`Crash`] inside.
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
pub async fn serve<R, W>(mut reader: R, mut writer: W, faults: &FaultSet) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut connection = Connection::new(faults);
    let mut lines = Lines::default();
    let mut flood: Option<Vec<u8>> = None;
    let mut slow = faults.contains(Fault::SlowStart);
    if faults.contains(Fault::NoNewline) {
        repeat(&mut writer, BYTES_WITHOUT_NEWLINE).await?;
        writer.flush().await?;
    }
    loop {
        while let Some(line) = lines.next() {
            let outputs = connection.receive(&line);
            if slow && !outputs.is_empty() {
                tokio::time::sleep(SLOW_START_DELAY).await;
                slow = false;
            }
            for output in outputs {
                match output {
                    Output::Bytes(bytes) => writer.write_all(&bytes).await?,
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
        let read = if connection.has_delayed_responses() {
            let Ok(read) = tokio::time::timeout(connection.hold_timeout(), lines.fill(&mut reader)).await else {
                write_all(&mut writer, connection.flush_delayed()).await?;
                continue;
            };
            read?
        } else {
            lines.fill(&mut reader).await?
        };
        if read == 0 {
            break;
        }
    }
    let mut last = lines.rest().map(|line| connection.receive(&line)).unwrap_or_default();
    last.extend(connection.flush_delayed());
    write_all(&mut writer, last).await?;
    if faults.contains(Fault::IgnoresEof) || ignores_sigterm(faults) {
        std::future::pending::<()>().await;
    }
    Ok(())
}

/// Whether a process that serves these faults is to ignore SIGTERM as well as the end of its input.
#[must_use]
pub fn ignores_sigterm(faults: &FaultSet) -> bool {
    faults.contains(Fault::IgnoresSigterm)
}

/// What a process that serves these faults is to write to its standard error, a megabyte if anything.
///
/// A client that does not drain standard error leaves whoever writes this waiting, so it is best
/// written before the connection is served.
#[must_use]
pub fn stderr_noise(faults: &FaultSet) -> Option<String> {
    let line = "[debug] mock: nothing happened, and it is reported at length nevertheless\n";
    faults.contains(Fault::StderrNoise).then(|| line.repeat((1 << 20) / line.len()))
}

async fn write_all<W: AsyncWrite + Unpin>(writer: &mut W, outputs: Vec<Output>) -> io::Result<()> {
    for output in outputs {
        if let Output::Bytes(bytes) = output {
            writer.write_all(&bytes).await?;
        }
    }
    writer.flush().await
}

/// Writes one letter as often as it is told, a chunk at a time.
async fn repeat<W: AsyncWrite + Unpin>(writer: &mut W, length: usize) -> io::Result<()> {
    let chunk = vec![b'x'; 64 << 10];
    let mut left = length;
    while left > 0 {
        let size = left.min(chunk.len());
        writer.write_all(&chunk[..size]).await?;
        left -= size;
    }
    Ok(())
}

/// Input cut into lines; a partial line survives a read that was given up.
#[derive(Debug, Default)]
struct Lines {
    buffer: Vec<u8>,
    /// How much of the buffer is known to have no line ending.
    searched: usize,
}

impl Lines {
    async fn fill<R: AsyncRead + Unpin>(&mut self, reader: &mut R) -> io::Result<usize> {
        self.buffer.reserve(4 << 10);
        reader.read_buf(&mut self.buffer).await
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
        Some(line)
    }

    /// What is left when the input has ended without a line ending.
    fn rest(&mut self) -> Option<Vec<u8>> {
        self.searched = 0;
        (!self.buffer.is_empty()).then(|| std::mem::take(&mut self.buffer))
    }
}
