//! Mistakes that only a port, a pipe or another program shows.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use crate::support::{PROGRAM, ProgramOutput, Trial, describe_error, program, program_command, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("mistakes/a-port-is-taken", a_port_is_taken),
        trial("mistakes/the-output-is-closed-early", the_output_is_closed_early),
        trial("mistakes/revision-that-is-not-supported", a_revision_is_not_supported),
    ]
}

/// Another server already answers at the address of `--url`.
fn a_port_is_taken() -> Result<(), String> {
    let folder = TempDir::new().map_err(describe_error)?;
    let taken = TcpListener::bind("127.0.0.1:0").map_err(describe_error)?;
    let port = taken.local_addr().map_err(describe_error)?.port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let address = format!("127.0.0.1:{port}");
    let ran = program(folder.path(), &["--url", &url, "--", PROGRAM, "serve", "--http", &address])?.with_code(2)?;
    let text = ran.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let ran = ProgramOutput { text, ..ran };
    ran.shows("something else already listens at the address")?.shows("mcp-conformance http://").map(drop)
}

/// The program with its standard output in a pipe of which only the first line is read.
fn first_line(folder: &Path, arguments: &[&str]) -> Result<(Option<i32>, String), String> {
    let mut command = program_command();
    command.current_dir(folder).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(describe_error)?;
    let mut line = String::new();
    let mut out = BufReader::with_capacity(16, child.stdout.take().ok_or("no output")?);
    out.read_line(&mut line).map_err(describe_error)?;
    drop(out);
    let mut errors = String::new();
    child.stderr.take().ok_or("no errors")?.read_to_string(&mut errors).map_err(describe_error)?;
    let code = child.wait().map_err(describe_error)?.code();
    Ok((code, errors))
}

fn the_output_is_closed_early() -> Result<(), String> {
    let folder = TempDir::new().map_err(describe_error)?;
    let run =
        ["--revision", "2025-06-18", "--select", "content/image-base64", "--fuzz", "off", "-v", "--", PROGRAM, "serve"];
    let faulty = [&run[..], &["--fault", "image-data-url"]].concat();
    let lines: [(&[&str], i32); 4] =
        [(&run, 0), (&faulty, 1), (&["coverage", "--all"], 0), (&["explain", "tools/*"], 0)];
    for (line, expected) in lines {
        let (code, errors) = first_line(folder.path(), line)?;
        if code != Some(expected) || !errors.is_empty() {
            return Err(format!("{line:?}: exit code {code:?}, not {expected}\n{errors}"));
        }
    }
    Ok(())
}

/// The server is the reference server, which then has another revision in place of the oldest.
fn a_revision_is_not_supported() -> Result<(), String> {
    let folder = TempDir::new().map_err(describe_error)?;
    let server = ["sh", "-c", "sed -u s/2024-10-07/1999-01-01/ | \"$0\" serve", PROGRAM];
    let options = ["--revision", "2024-10-07", "--select", "tools/list/*", "--fuzz", "off", "--"];
    program(folder.path(), &[&options[..], &server].concat())?
        .with_code(3)?
        .shows("none of the selected revisions")?
        .shows("omit --revision")
        .map(drop)
}
