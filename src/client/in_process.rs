//! A server in this process, given as a function that serves one connection.
//!
//! Each connection is served on its own thread with its own runtime: a server that blocks, panics or never ends
//! affects only that connection.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::DuplexStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::connection::LaunchError;

/// How much either side may write before the other reads, in bytes.
const CAPACITY: usize = 256 << 10;

type ServeFuture = Pin<Box<dyn Future<Output = ()>>>;

/// A function that serves a connection: it receives the server's end of a pipe, once for each connection.
#[derive(Clone)]
pub struct InProcessServer(Arc<dyn Fn(DuplexStream) -> ServeFuture + Send + Sync>);

impl fmt::Debug for InProcessServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Within").finish_non_exhaustive()
    }
}

impl InProcessServer {
    /// A server that runs until the future completes or its connection is dropped.
    pub fn new<Serve, Served>(serve: Serve) -> Self
    where
        Serve: Fn(DuplexStream) -> Served + Send + Sync + 'static,
        Served: Future + 'static,
    {
        let serve = Arc::new(serve);
        Self(Arc::new(move |pipe| {
            let serve = Arc::clone(&serve);
            Box::pin(async move {
                // Its result shows in the connection, and that is judged.
                let _ended = serve(pipe).await;
            })
        }))
    }

    /// Opens one more connection: returns the client's end of the pipe and a handle that finishes with the server.
    /// Aborting the handle ends the server at its next await.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub fn start(&self) -> Result<(DuplexStream, JoinHandle<()>), LaunchError> {
        let (client_stream, server_stream) = tokio::io::duplex(CAPACITY);
        let (ended, server) = oneshot::channel::<()>();
        let (cancel, cancelled) = oneshot::channel::<()>();
        let within = self.clone();
        let thread = std::thread::Builder::new().name("mcp-server".to_owned());
        let start_error = |source| LaunchError::Start { program: "the server within this process".to_owned(), source };
        let work = move || {
            // Dropped when the thread ends, even by a panic.
            let _ended = ended;
            // Without a runtime the connection closes at once, and that is judged.
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                tokio::select! {
                    () = (within.0)(server_stream) => {}
                    _given_up = cancelled => {}
                }
            });
            // A stuck task of the server must not keep the thread.
            runtime.shutdown_background();
        };
        thread.spawn(work).map_err(start_error)?;
        let server = tokio::spawn(async move {
            let _cancel = cancel;
            let _ended = server.await;
        });
        Ok((client_stream, server))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        runtime.block_on(work)
    }

    #[test]
    fn a_server_that_blocks_its_thread_does_not_block_this_one() {
        run(async {
            let (release, released) = std::sync::mpsc::channel::<()>();
            let released = std::sync::Arc::new(std::sync::Mutex::new(released));
            let within = InProcessServer::new(move |mut pipe: DuplexStream| {
                let released = std::sync::Arc::clone(&released);
                async move {
                    pipe.write_all(b"x").await.expect("there is room");
                    released.lock().expect("nothing panicked").recv().expect("it is released");
                }
            });
            let (mut pipe, server) = within.start().expect("a thread starts");
            let mut byte = [0];
            pipe.read_exact(&mut byte).await.expect("it wrote");
            assert!(!server.is_finished());
            let waited = tokio::time::timeout(Duration::from_millis(20), pipe.read(&mut byte)).await;
            assert!(waited.is_err(), "our clock goes on");
            release.send(()).expect("it is waited for");
            assert_eq!(pipe.read(&mut byte).await.expect("it ended"), 0);
            server.await.expect("it ended");
        });
    }

    #[test]
    fn a_server_whose_connection_is_dropped_ends_and_drops_its_values() {
        struct NotifyOnDrop(std::sync::mpsc::Sender<()>);
        impl Drop for NotifyOnDrop {
            fn drop(&mut self) {
                self.0.send(()).expect("it is waited for");
            }
        }
        let (sender, receiver) = std::sync::mpsc::channel();
        run(async {
            let within = InProcessServer::new(move |mut pipe: DuplexStream| {
                let guard = NotifyOnDrop(sender.clone());
                async move {
                    pipe.write_all(b"x").await.expect("there is room");
                    std::future::pending::<()>().await;
                    drop(guard);
                }
            });
            let (mut pipe, server) = within.start().expect("a thread starts");
            pipe.read_exact(&mut [0]).await.expect("it has begun");
            server.abort();
            drop(server.await);
        });
        receiver.recv().expect("it was dropped");
    }
}
