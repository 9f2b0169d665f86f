//! A process that is only kept running: the end of its output is kept as text, and nothing is sent to it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::task::JoinHandle;

use super::connection::LaunchError;
use super::process::{Process, ShutdownTimeouts};

/// How much of its output is kept, in bytes; the newest part.
const MAX_OUTPUT_BYTES: usize = 64 << 10;

/// A running process, of whose output only the end is kept.
#[derive(Debug)]
pub(crate) struct BackgroundProcess {
    process: Process,
    output: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
    /// Kept open, because many servers exit when their standard input is closed.
    _input: tokio::process::ChildStdin,
}

impl BackgroundProcess {
    /// Starts a command.
    ///
    /// # Errors
    /// When the command cannot be started.
    pub(crate) fn start(program: &str, command: Command) -> Result<Self, LaunchError> {
        let (process, streams) =
            Process::start(command).map_err(|source| LaunchError::Start { program: program.to_owned(), source })?;
        let output = Arc::new(Mutex::new(Vec::new()));
        let readers = vec![
            tokio::spawn(keep_end(streams.output, Arc::clone(&output))),
            tokio::spawn(keep_end(streams.errors, Arc::clone(&output))),
        ];
        Ok(Self { process, output, readers, _input: streams.input })
    }

    /// The exit status as text, once the process has ended.
    #[must_use]
    pub(crate) fn status(&self) -> Option<String> {
        self.process.status()
    }

    /// The process id.
    #[must_use]
    pub(crate) fn process_id(&self) -> i32 {
        self.process.id()
    }

    /// The exit status as text, if the process ends within a limit.
    pub(crate) async fn wait_for_exit(&mut self, limit: Duration) -> Option<String> {
        self.process.wait_for_exit(limit).await
    }

    /// The end of its standard output and standard error.
    #[must_use]
    pub(crate) fn output(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Ends the process: waits, sends SIGTERM, waits, kills its process group.
    pub(crate) async fn end(mut self, timeouts: ShutdownTimeouts) {
        self.process.end(timeouts).await;
    }
}

impl Drop for BackgroundProcess {
    fn drop(&mut self) {
        for reader in &self.readers {
            reader.abort();
        }
    }
}

async fn keep_end<R: AsyncRead + Unpin>(mut stream: R, output: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 8 << 10];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                output.extend_from_slice(&buffer[..count]);
                let excess = output.len().saturating_sub(MAX_OUTPUT_BYTES);
                output.drain(..excess);
            }
        }
        tokio::task::yield_now().await;
    }
}
