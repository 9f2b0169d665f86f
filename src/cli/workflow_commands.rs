//! Neutralises GitHub workflow commands in text that a server influences: the log of a workflow executes lines that
//! begin with `::`, and `##[` anywhere in a line.

use std::io::{self, Write};

/// A writer that escapes workflow commands, line by line.
pub(super) struct WorkflowCommandEscaper<W: Write> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> WorkflowCommandEscaper<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }

    fn write_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let start = line.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(line.len());
        self.out.write_all(&line[..start])?;
        let mut rest = &line[start..];
        if let Some(after) = rest.strip_prefix(b":").filter(|after| after.starts_with(b":")) {
            self.out.write_all(b"\\u{3a}")?;
            rest = after;
        }
        while let Some(at) = rest.windows(3).position(|part| part == b"##[") {
            self.out.write_all(&rest[..at])?;
            self.out.write_all(b"\\u{23}")?;
            rest = &rest[at + 1..];
        }
        self.out.write_all(rest)
    }
}

impl<W: Write> Write for WorkflowCommandEscaper<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.write_line()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_line()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(chunks: &[&str]) -> String {
        let mut bytes = Vec::new();
        let mut escaper = WorkflowCommandEscaper::new(&mut bytes);
        for chunk in chunks {
            escaper.write_all(chunk.as_bytes()).expect("a vector takes all that is written");
        }
        escaper.flush().expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("it is UTF-8")
    }

    #[test]
    fn no_workflow_command_is_left() {
        assert_eq!(written(&["  ::error::x\na :: b\n"]), "  \\u{3a}:error::x\na :: b\n");
        assert_eq!(written(&["a ##[", "error]x ##[debug]\n"]), "a \\u{23}#[error]x \\u{23}#[debug]\n");
        assert_eq!(written(&["x\n:", ":stop-commands::y"]), "x\n\\u{3a}:stop-commands::y");
        assert_eq!(written(&["###[x]", "\n\n"]), "#\\u{23}#[x]\n\n");
    }

    #[test]
    fn other_text_is_unchanged() {
        for text in ["", "PASS: 3 cases judged\n", "std::io\n  # a [b]\n", "é::\n"] {
            assert_eq!(written(&[text]), text);
        }
    }
}
