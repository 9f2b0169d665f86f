//! Transcripts as files: one JSON value a line for each message and event, with its direction, time and connection.
//!
//! The writer turns the entries of a connection into lines; the reader turns the lines of a run, or of any other
//! client's traffic, into entries again. Opens no file and judges nothing. The format is described in
//! `docs/src/guides/recordings.md`.

mod line;
mod reader;
mod writer;

pub(crate) use reader::SavedConnection;
pub use reader::{LineError, MAX_LINE_BYTES, SavedTranscript, TranscriptReader};
pub(crate) use writer::{ConnectionWriter, Mask, judged_line, opened_line};
