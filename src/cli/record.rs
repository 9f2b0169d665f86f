//! `record`: sits between a client and a server over standard streams, and records what they write.
//!
//! It passes on every byte, signals and the exit status. What is recorded is parsed and written by a thread of its own,
//! so that a message waits for nothing but a copy of its bytes.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use mcp_conformance::internals::run::{StreamRecording, Writer};
use mcp_conformance::report::visible::visible;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::error::CliError;
use super::recording_args::RecordArgs;
use super::server::is_url;
use super::server_check;

/// How much is read at once, in bytes, and how many of these pieces may wait to be recorded (64 MiB).
const PIECE_BYTES: usize = 64 << 10;
const MAX_WAITING_PIECES: usize = 1_024;

/// How long the output of a process that has exited stays silent before it is no longer read: a child of it may hold it
/// open.
const SILENCE_AFTER_EXIT: Duration = Duration::from_millis(500);

/// The exit code for a server that a signal ended is this and the number of the signal, as shells have it.
const SIGNAL_EXIT_CODE: i32 = 128;

/// Runs the server of the command line and records it. The exit code is that of the server.
pub(super) fn record(args: &RecordArgs, line: &[OsString]) -> Result<ExitCode, CliError> {
    let program = &args.server[0];
    if is_url(program) {
        return Err(CliError::RecordUrl);
    }
    server_check::find_mistake(&args.server, line, None)?;
    let opened = File::options().create(true).append(true).open(&args.output);
    let file = opened.map_err(|source| CliError::Create { path: args.output.clone(), source })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let failed = |source| CliError::Record { program: program.to_string_lossy().into_owned(), source };
    let (status, written) = runtime.block_on(relay(&args.server, file)).map_err(failed)?;
    // A read of standard input that never ends must not delay the end.
    runtime.shutdown_background();
    if let Err(error) = written {
        // The exit code stays that of the server, for which the client waits.
        drop(writeln!(io::stderr(), "error: failed to write {}: {error}", visible(&args.output.display().to_string())));
    }
    Ok(ExitCode::from(exit_code(status)))
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(SIGNAL_EXIT_CODE + status.signal()?)).unwrap_or(SIGNAL_EXIT_CODE);
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// What is to be recorded.
enum Piece {
    Bytes(Writer, Duration, Vec<u8>),
    Closed(Writer, Duration),
    Exited(Duration, String),
}

/// Passes bytes on until the server ends; its exit status, and whether all was recorded.
async fn relay(words: &[OsString], file: File) -> io::Result<(ExitStatus, io::Result<()>)> {
    let mut signals = Signals::new()?;
    let mut command = Command::new(&words[0]);
    // In a group of its own, so that a signal to the group of this process reaches it once: by being passed on.
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let missing = || io::Error::other("a standard stream of the process is missing");
    let (input, output) = (child.stdin.take().ok_or_else(missing)?, child.stdout.take().ok_or_else(missing)?);
    let (pieces, recorded) = channel(MAX_WAITING_PIECES);
    let purpose = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let writing = tokio::task::spawn_blocking(move || write_pieces(&purpose, recorded, file));
    let began = Instant::now();
    let from_client = Relay::new(Writer::Client, began, pieces.clone());
    let from_server = Relay::new(Writer::Server, began, pieces.clone());
    let progress = Arc::clone(&from_server.progress);
    let client = tokio::spawn(from_client.run(tokio::io::stdin(), input));
    let server = tokio::spawn(async move {
        from_server.run(output, tokio::io::stdout()).await;
        close_standard_output();
    });
    let status = wait(&mut child, &mut signals).await?;
    finish(server, &progress).await;
    client.abort();
    // The recorder runs as long as there are senders.
    let _ended = client.await;
    let exited = Piece::Exited(began.elapsed(), status.to_string());
    // It fails only if the recorder has failed, which is reported.
    let _failed = pieces.send(exited).await;
    drop(pieces);
    Ok((status, writing.await.unwrap_or_else(|error| Err(io::Error::other(error)))))
}

/// Waits for the end of the server, and passes on signals.
async fn wait(child: &mut Child, signals: &mut Signals) -> io::Result<ExitStatus> {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    loop {
        tokio::select! {
            status = child.wait() => return status,
            signal = signals.next() => {
                if let Some(pid) = pid {
                    // A terminal interrupts the whole group. The server may have ended in between.
                    let _gone = match signal {
                        Signal::INT | Signal::HUP => kill_process_group(pid, signal),
                        _ => kill_process(pid, signal),
                    };
                }
            }
        }
    }
}

/// Waits until the output of a server that has exited ends, or is silent.
async fn finish(mut server: JoinHandle<()>, progress: &Progress) {
    loop {
        let before = progress.bytes.load(Ordering::Relaxed);
        if tokio::time::timeout(SILENCE_AFTER_EXIT, &mut server).await.is_ok() {
            return;
        }
        let is_silent = before == progress.bytes.load(Ordering::Relaxed);
        // A client that reads slowly gets everything.
        if is_silent && !progress.is_writing.load(Ordering::Relaxed) {
            server.abort();
            let _ended = server.await;
            return;
        }
    }
}

/// The signals that are passed on.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.hangup.recv() => Signal::HUP,
        }
    }
}

/// How far a relay is.
#[derive(Default)]
struct Progress {
    bytes: AtomicUsize,
    /// Whether it waits for the reader.
    is_writing: AtomicBool,
}

/// Passes on what one of both writes.
struct Relay {
    from: Writer,
    began: Instant,
    pieces: Sender<Piece>,
    progress: Arc<Progress>,
}

impl Relay {
    fn new(from: Writer, began: Instant, pieces: Sender<Piece>) -> Self {
        Self { from, began, pieces, progress: Arc::default() }
    }

    /// Passes on bytes until the writer closes the stream. If the reader closes it, the stream of the server is closed
    /// as well, while what a client writes on is read and dropped.
    async fn run(self, mut input: impl AsyncRead + Unpin, output: impl AsyncWrite + Unpin) {
        let mut output = Some(output);
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            // A stream that cannot be read is closed.
            let length = input.read(&mut buffer).await.unwrap_or(0);
            if length == 0 {
                break;
            }
            let bytes = &buffer[..length];
            // Recorded first, so that no answer precedes its request.
            self.record(Piece::Bytes(self.from, self.began.elapsed(), bytes.to_vec())).await;
            self.progress.is_writing.store(true, Ordering::Relaxed);
            if let Some(open) = &mut output
                && (open.write_all(bytes).await.is_err() || open.flush().await.is_err())
            {
                output = None;
            }
            self.progress.is_writing.store(false, Ordering::Relaxed);
            self.progress.bytes.fetch_add(length, Ordering::Relaxed);
            if output.is_none() && self.from == Writer::Server {
                break;
            }
        }
        self.record(Piece::Closed(self.from, self.began.elapsed())).await;
    }

    async fn record(&self, piece: Piece) {
        // It fails only if the recorder has failed, which is reported at the end: the bytes are passed on regardless.
        let _failed = self.pieces.send(piece).await;
    }
}

/// Lets the client see that the server has closed its output, although it runs on.
fn close_standard_output() {
    // If this fails, the client sees the end when the server exits.
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _unchanged = rustix::stdio::dup2_stdout(null);
    }
}

/// Writes what is recorded to the file, until nothing more can come.
fn write_pieces(purpose: &str, mut pieces: Receiver<Piece>, file: File) -> io::Result<()> {
    let time = humantime::format_rfc3339_millis(SystemTime::now());
    // The file may have more connections, of other processes.
    let (mut recording, opened) = StreamRecording::new(format!("{time} {}", std::process::id()), purpose);
    let mut file = BufWriter::new(file);
    writeln!(file, "{opened}")?;
    file.flush()?;
    while let Some(piece) = pieces.blocking_recv() {
        let lines = match piece {
            Piece::Bytes(from, at, bytes) => recording.push(from, at, &bytes),
            Piece::Closed(from, at) => recording.close(from, at),
            Piece::Exited(at, status) => vec![recording.exited(at, status)],
        };
        for line in lines {
            file.write_all(format!("{line}\n").as_bytes())?;
        }
        if pieces.is_empty() {
            file.flush()?;
        }
    }
    file.flush()
}
