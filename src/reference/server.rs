//! The server over any reader and writer: splits input into lines and writes output.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::connection::{Connection, Output};
use super::fault::{Fault, FaultSet};

/// The delay before the first byte of a slow server.
const SLOW_START_DELAY: Duration = Duration::from_millis(500);
/// The number of bytes that [`Fault::NoNewline`] writes without a newline.
const BYTES_WITHOUT_NEWLINE: usize = 8 << 20;
/// The size of the message of [`Fault::HugeLine`].
const HUGE_MESSAGE_BYTES: usize = 100 << 20;

/// The error of a server that a fault crashes: its process exits as if it had panicked.
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
/// Fails when the reader or the writer fails, for example because the client has gone away. A fault that
/// crashes the server returns an error that contains [`Crash`].
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

/// Whether a process with these faults ignores SIGTERM as well as the end of its input.
#[must_use]
pub fn ignores_sigterm(faults: &FaultSet) -> bool {
    faults.contains(Fault::IgnoresSigterm)
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

async fn write_all<W: AsyncWrite + Unpin>(writer: &mut W, outputs: Vec<Output>) -> io::Result<()> {
    for output in outputs {
        if let Output::Bytes(bytes) = output {
            writer.write_all(&bytes).await?;
        }
    }
    writer.flush().await
}

/// Writes the letter `x` this often, in chunks.
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

/// Splits input into lines; a partial line survives a cancelled read.
#[derive(Debug, Default)]
struct Lines {
    buffer: Vec<u8>,
    /// The length of the prefix of the buffer that has no line ending.
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

    /// The last line, if the input ended without a line ending.
    fn rest(&mut self) -> Option<Vec<u8>> {
        self.searched = 0;
        (!self.buffer.is_empty()).then(|| std::mem::take(&mut self.buffer))
    }
}
