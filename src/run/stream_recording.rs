//! Turns the bytes that a client and a server exchange over standard streams into the lines of a transcript file.

use std::sync::Arc;
use std::time::Duration;

use crate::client::Secrets;
use crate::transcript::{ConnectionWriter, Entry, Event, Mask, opened_line};
use crate::wire::{Frame, Splitter};

/// Who wrote bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// The recording of one connection. It keeps no more than the unfinished line of each direction, of which there is a
/// limit.
pub struct StreamRecording {
    client: Splitter,
    server: Splitter,
    writer: ConnectionWriter,
}

impl StreamRecording {
    /// Begins the recording of a connection; the first line says what it is for. Values of environment variables whose
    /// names say that they are secret are masked.
    #[must_use]
    pub fn new(connection: String, purpose: &str) -> (Self, String) {
        let secrets = Secrets::of_variables(std::env::vars_os());
        let mask: Mask = Arc::new(move |text| secrets.masked(text));
        let opened = opened_line(&connection, &mask(purpose), true);
        let writer = ConnectionWriter::new(connection, mask);
        (Self { client: Splitter::default(), server: Splitter::default(), writer }, opened)
    }

    /// The lines that end in these bytes.
    #[must_use]
    pub fn push(&mut self, from: Writer, at: Duration, bytes: &[u8]) -> Vec<String> {
        let mut frames = Vec::new();
        let splitter = match from {
            Writer::Client => &mut self.client,
            Writer::Server => &mut self.server,
        };
        splitter.push(bytes, |frame| frames.push(frame));
        frames.into_iter().map(|frame| self.line(from, at, frame)).collect()
    }

    /// The end of what one of them writes: the line that is unfinished, and that the server closed its output.
    #[must_use]
    pub fn close(&mut self, from: Writer, at: Duration) -> Vec<String> {
        let splitter = match from {
            Writer::Client => &mut self.client,
            Writer::Server => &mut self.server,
        };
        let unfinished = splitter.finish();
        let mut lines: Vec<String> = unfinished.map(|frame| self.line(from, at, frame)).into_iter().collect();
        if from == Writer::Server {
            lines.push(self.entry(at, Event::Closed));
        }
        lines
    }

    /// The end of the server's process.
    #[must_use]
    pub fn exited(&mut self, at: Duration, status: String) -> String {
        self.entry(at, Event::Exited { status })
    }

    fn line(&mut self, from: Writer, at: Duration, frame: Frame) -> String {
        let event = match from {
            Writer::Client => Event::Sent { frame, step_id: None },
            Writer::Server => Event::Received(frame),
        };
        self.entry(at, event)
    }

    fn entry(&mut self, at: Duration, event: Event) -> String {
        self.writer.line(&Entry { at, event }, |_| None)
    }
}
