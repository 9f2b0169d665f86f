//! The streams of a connection: lines are written to a server, and its messages are read, recorded and answered.

use std::io;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use super::long_message::LongMessage;
use super::record::Record;
use super::responder::Responder;
use crate::limits::{LINE_FEED_TIMEOUT, PIECE_INTERVAL};
use crate::transcript::{Event, stderr_text};
use crate::wire::{Frame, MessageKind, Splitter, messages};

/// The maximum number of lines that are written at once.
const MAX_LINES_AT_ONCE: usize = 64;

/// A longer line, in bytes, is written without being joined with others.
const MAX_COPIED: usize = 64 << 10;

/// A line on its way to a server, with its newline.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) bytes: Vec<u8>,
    /// Set if it is written byte by byte: learns when it was written.
    pub(super) in_pieces: Option<oneshot::Sender<()>>,
}

impl Line {
    pub(super) fn whole(bytes: Vec<u8>) -> Self {
        Self { bytes, in_pieces: None }
    }
}

/// Writes lines to a server until the sender is dropped, then closes its input. Lines that are ready at the same time are
/// written at once.
pub(super) async fn write_lines<W: AsyncWrite + Unpin>(mut input: W, mut lines: mpsc::Receiver<Line>) {
    let mut ready = Vec::new();
    let mut block = Vec::new();
    while lines.recv_many(&mut ready, MAX_LINES_AT_ONCE).await > 0 {
        for line in ready.drain(..) {
            let Some(written) = line.in_pieces else {
                if line.bytes.len() <= MAX_COPIED {
                    block.extend_from_slice(&line.bytes);
                    continue;
                }
                if write(&mut input, &block).await.is_err() || write(&mut input, &line.bytes).await.is_err() {
                    return;
                }
                block.clear();
                continue;
            };
            if write(&mut input, &block).await.is_err() || write_in_pieces(&mut input, &line.bytes).await.is_err() {
                return;
            }
            block.clear();
            // Whoever no longer waits for it has given the server up.
            let _waiting = written.send(());
        }
        // If the server closed its input, this shows in what it does next.
        if write(&mut input, &block).await.is_err() {
            return;
        }
        block.clear();
    }
    let _closed = input.shutdown().await;
}

async fn write<W: AsyncWrite + Unpin>(input: &mut W, bytes: &[u8]) -> io::Result<()> {
    input.write_all(bytes).await?;
    input.flush().await
}

/// Writes one byte after the other, so that a server gets most of them in reads of their own.
async fn write_in_pieces<W: AsyncWrite + Unpin>(input: &mut W, line: &[u8]) -> io::Result<()> {
    for byte in line {
        write(input, &[*byte]).await?;
        tokio::time::sleep(PIECE_INTERVAL).await;
    }
    Ok(())
}

/// Records the messages that a server writes, and answers its requests, until its output ends or more is written than is
/// kept.
pub(super) async fn read_lines<R: AsyncRead + Unpin>(
    mut output: R,
    record: Arc<Record>,
    responder: Responder,
    answers: mpsc::WeakSender<Line>,
) {
    let mut splitter = Splitter::default();
    let mut message = LongMessage::default();
    let mut buffer = vec![0; 64 << 10];
    let mut kept = true;
    let mut receive = |frame: Frame| {
        let reply = frame.json().map(|value| replies(value, &responder)).unwrap_or_default();
        kept = kept && record.receive(frame);
        for answer in reply {
            if kept {
                answer_server(&record, &answers, &answer);
            }
        }
        kept
    };
    loop {
        let mut kept = true;
        let read = output.read(&mut buffer);
        let read = if splitter.may_lack_line_feed() {
            tokio::time::timeout(record.at_least_opening(LINE_FEED_TIMEOUT), read).await.ok()
        } else {
            Some(read.await)
        };
        match read {
            Some(Ok(0) | Err(_)) => break,
            Some(Ok(count)) => splitter.push(&buffer[..count], |frame| kept = receive(frame)),
            None => match splitter.take_unterminated() {
                Some(frame) => kept = receive(frame),
                // What ends like a message is the beginning of a longer one.
                None => match output.read(&mut buffer).await {
                    Ok(0) | Err(_) => break,
                    Ok(count) => splitter.push(&buffer[..count], |frame| kept = receive(frame)),
                },
            },
        }
        if !kept {
            return;
        }
        if splitter.pending() > record.limits.line {
            if let Some(frame) = splitter.finish() {
                record.receive(frame);
            }
            record.add(Event::Overflow);
            return;
        }
        message.wait_for_room(splitter.pending()).await;
        // A server that writes without pause must not block every other task.
        tokio::task::yield_now().await;
    }
    if let Some(frame) = splitter.finish() {
        record.receive(frame);
    }
    record.add(Event::Closed);
}

/// The responses to the requests in a message.
fn replies(value: &Value, responder: &Responder) -> Vec<Value> {
    messages(value)
        .filter_map(|message| match MessageKind::of(message) {
            MessageKind::Request { id, method } => responder.answer(id, method, message.get("params")),
            _ => None,
        })
        .collect()
}

/// Sends a response to a server's request, unless the server has had too many.
fn answer_server(record: &Record, answers: &mpsc::WeakSender<Line>, answer: &Value) {
    if !record.may_answer() {
        return;
    }
    if let Some(input) = answers.upgrade() {
        let frame = Frame::from_value(answer);
        let mut line = frame.raw().into_owned();
        line.push(b'\n');
        // Do not wait for a server that sends requests and does not read.
        if input.try_send(Line::whole(line)).is_ok() {
            record.add(Event::Sent { frame, step_id: None });
        }
    }
}

/// Records what a server writes to its standard error.
pub(super) async fn read_errors<R: AsyncRead + Unpin>(mut errors: R, record: Arc<Record>) {
    let mut buffer = vec![0; 16 << 10];
    // How many bytes of the buffer begin a character whose rest was not read yet.
    let mut begun = 0;
    loop {
        let read = errors.read(&mut buffer[begun..]).await.unwrap_or(0);
        let end = begun + read;
        let whole = if read == 0 { end } else { end - unfinished_character(&buffer[..end]) };
        if whole > 0 {
            // A character that is not whole at the end was cut off when the process ended.
            let is_cut_off = read == 0;
            let text = if is_cut_off { String::from(CUT_OFF) } else { stderr_text(&buffer[..whole]) };
            record.stderr(text);
        }
        if read == 0 {
            return;
        }
        buffer.copy_within(whole..end, 0);
        begun = end - whole;
        tokio::task::yield_now().await;
    }
}

/// A character of which a process wrote only the beginning.
const CUT_OFF: char = char::REPLACEMENT_CHARACTER;

/// How many bytes at the end begin a character in UTF-8 that is not whole.
fn unfinished_character(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_begun = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    if is_begun { last.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::record::RecordOptions;

    #[tokio::test]
    async fn a_character_of_standard_error_is_whole_however_it_is_read() {
        let record = Arc::new(Record::new(RecordOptions::default()));
        let (mut server, errors) = tokio::io::duplex(64);
        let reader = tokio::spawn(read_errors(errors, Arc::clone(&record)));
        for part in [&b"caf\xc3"[..], b"\xa9 \xff\xe2", b"\x82", b"\xac \xf0\x9f"] {
            server.write_all(part).await.expect("it is read");
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
        }
        drop(server);
        reader.await.expect("it ends");
        let entries = record.state().entries.clone();
        let texts = entries.iter().filter_map(|entry| match &entry.event {
            Event::Stderr(text) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(texts.collect::<String>(), "caf\u{e9} \u{fffd}<FF>\u{20ac} \u{fffd}");
    }
}
