//! Addresses of servers: of one that runs already, which chose its port, and of one that the program under test starts,
//! which has to be told.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::support::describe_error;

/// A server of ours that runs already, until this is dropped.
pub(crate) struct RunningServer {
    child: Child,
    address: SocketAddr,
}

impl RunningServer {
    /// Starts `command --http 127.0.0.1:0 options`, and reads the port that it chose from its standard error.
    pub(crate) fn start(mut command: Command, options: &[&str]) -> Result<Self, String> {
        command.args(["--http", "127.0.0.1:0"]).args(options);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let mut lines = BufReader::new(child.stderr.take().expect("it is a pipe")).lines().map_while(Result::ok);
        let listening = lines.find_map(|line| {
            line.strip_prefix("listening at http://")?.strip_suffix("/mcp")?.parse::<SocketAddr>().ok()
        });
        // A full pipe would block the server.
        std::thread::spawn(move || lines.for_each(drop));
        let Some(address) = listening else {
            // It may have ended already.
            drop(child.kill());
            let status = child.wait().map_err(describe_error)?;
            return Err(format!("{command:?} says no address, and ends with {status}"));
        };
        Ok(Self { child, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it ended by itself.
    pub(crate) fn has_ended(&mut self) -> Result<bool, String> {
        Ok(self.child.try_wait().map_err(describe_error)?.is_some())
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Ports that no system gives to a socket that asks for any: those of Linux begin at 32768, those of macOS at 49152.
const TOLD_PORTS: std::ops::Range<u16> = 20_000..32_000;

/// An address at which nothing listens, for a server that the program under test starts, and that has to be told it.
///
/// No other socket of the machine gets it meanwhile by chance, no other trial of this process does, and trials in other
/// processes begin to look elsewhere.
pub(crate) fn unused_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    /// How far apart processes begin whose ids follow each other.
    const APART: u32 = 61;
    let count = u32::from(TOLD_PORTS.end - TOLD_PORTS.start);
    let begin = std::process::id().wrapping_mul(APART) % count;
    let is_free = |address: &SocketAddr| TcpListener::bind(address).is_ok();
    let candidates = TOLD_PORTS.map(|_| {
        let at = (begin + u32::from(NEXT.fetch_add(1, Ordering::Relaxed))) % count;
        let port = TOLD_PORTS.start + u16::try_from(at).expect("it is less than the number of ports");
        SocketAddr::from(([127, 0, 0, 1], port))
    });
    candidates.into_iter().find(is_free).expect("a port is free")
}
