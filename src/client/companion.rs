//! A process that is only kept running: what it writes is kept as text, and nothing is asked of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::task::JoinHandle;

use super::connection::{LaunchError, Patience};
use super::process::Process;

/// How much of what it writes is kept, in bytes; of more, the newest.
const KEPT: usize = 64 << 10;

/// A running process of which only the end of its output is kept.
#[derive(Debug)]
pub struct Companion {
    process: Process,
    output: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
    /// Held open, as a closed input tells many a server to end.
    _input: tokio::process::ChildStdin,
}

impl Companion {
    /// Starts a command.
    ///
    /// # Errors
    /// When the command cannot be started.
    pub fn start(program: &str, command: Command) -> Result<Self, LaunchError> {
        let (process, streams) =
            Process::start(command).map_err(|source| LaunchError::Start { program: program.to_owned(), source })?;
        let output = Arc::new(Mutex::new(Vec::new()));
        let readers = vec![
            tokio::spawn(keep(streams.output, Arc::clone(&output))),
            tokio::spawn(keep(streams.errors, Arc::clone(&output))),
        ];
        Ok(Self { process, output, readers, _input: streams.input })
    }

    /// The status of the process in words, once it has ended.
    #[must_use]
    pub fn status(&self) -> Option<String> {
        self.process.status()
    }

    /// The id of the process.
    #[must_use]
    pub fn process_id(&self) -> i32 {
        self.process.id()
    }

    /// The status of the process in words, if it ends within a limit.
    pub async fn ended_within(&mut self, limit: Duration) -> Option<String> {
        self.process.ended_within(limit).await
    }

    /// The end of what it wrote to its output and its error stream.
    #[must_use]
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Ends it: waits, SIGTERM, waits, kills its group.
    pub async fn end(mut self, patience: Patience) {
        let _step = self.process.end(patience).await;
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        for reader in &self.readers {
            reader.abort();
        }
    }
}

async fn keep<R: AsyncRead + Unpin>(mut stream: R, output: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 8 << 10];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                output.extend_from_slice(&buffer[..count]);
                let excess = output.len().saturating_sub(KEPT);
                output.drain(..excess);
            }
        }
        tokio::task::yield_now().await;
    }
}
