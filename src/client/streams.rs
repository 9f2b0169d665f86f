//! The streams of a connection: lines are written to a server, and its messages are read, recorded and answered.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::record::Record;
use super::responder::Responder;
use crate::limits::LINE_FEED_TIMEOUT;
use crate::transcript::Event;
use crate::wire::{Frame, MessageKind, Splitter, messages};

/// Writes lines to a server until the sender is dropped, then closes its input.
pub(super) async fn write_lines<W: AsyncWrite + Unpin>(mut input: W, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        // If the server closed its input, this shows in what it does next.
        if input.write_all(&line).await.is_err() || input.flush().await.is_err() {
            return;
        }
    }
    let _closed = input.shutdown().await;
}

/// Records the messages that a server writes, and answers its requests, until its output ends or more is written than is
/// kept.
pub(super) async fn read_lines<R: AsyncRead + Unpin>(
    mut output: R,
    record: Arc<Record>,
    responder: Responder,
    answers: mpsc::WeakSender<Vec<u8>>,
) {
    let mut splitter = Splitter::default();
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
            tokio::time::timeout(LINE_FEED_TIMEOUT, read).await.ok()
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
fn answer_server(record: &Record, answers: &mpsc::WeakSender<Vec<u8>>, answer: &Value) {
    if !record.may_answer() {
        return;
    }
    if let Some(input) = answers.upgrade() {
        let frame = Frame::from_value(answer);
        let mut line = frame.raw().into_owned();
        line.push(b'\n');
        // Do not wait for a server that sends requests and does not read.
        if input.try_send(line).is_ok() {
            record.add(Event::Sent { frame, step_id: None });
        }
    }
}

/// Records what a server writes to its standard error.
pub(super) async fn read_errors<R: AsyncRead + Unpin>(mut errors: R, record: Arc<Record>) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        match errors.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => record.stderr(String::from_utf8_lossy(&buffer[..count]).into_owned()),
        }
        tokio::task::yield_now().await;
    }
}
