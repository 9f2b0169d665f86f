//! Recordings of clients of the official SDKs: `record` stands between them and the server, and `judge` reads what they
//! said.

use std::process::{Command, Stdio};

use super::folder;
use crate::slow::installed::{servers, servers_are_required};
use crate::support::{PROGRAM, Trial, program, trial};

/// A client: its name, the program that runs it, and its script, both below `tests/servers`.
const CLIENTS: [(&str, Option<&str>, &str); 4] = [
    ("typescript-sdk-1", None, "clients/typescript-1.mjs"),
    ("typescript-sdk-2", None, "clients/typescript-2.mjs"),
    ("python-sdk-1", Some(".venv-fastmcp-2/bin/python"), "clients/python.py"),
    ("python-sdk-2", Some(".venv/bin/python"), "clients/python.py"),
];

pub(super) fn trials() -> Vec<Trial> {
    let required = servers_are_required();
    let trials = CLIENTS.map(|(name, interpreter, script)| {
        let missing = !servers().join(interpreter.unwrap_or("node_modules")).exists();
        trial(format!("recording/client/{name}"), move || recording_is_judged(interpreter, script))
            .with_ignored_flag(missing && !required)
    });
    trials.into()
}

/// Records a client with the conforming server and with one whose image is wrong, and judges both recordings.
fn recording_is_judged(interpreter: Option<&str>, script: &str) -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let interpreter = interpreter.map_or_else(|| "node".into(), |path| servers().join(path));
    for (options, code, expected) in [(&[][..], 0, "all pass"), (&["--fault", "image-data-url"], 1, "is not base64")] {
        let file = format!("{code}.jsonl");
        let mut client = Command::new(&interpreter);
        client.current_dir(folder).arg(servers().join(script)).args(["image", PROGRAM, "record", "--output", &file]);
        client.args(["--", PROGRAM, "serve"]).args(options).stdin(Stdio::null());
        let output = client.output().map_err(|error| format!("{}: {error}", interpreter.display()))?;
        if !output.status.success() {
            return Err(format!("the client failed: {}", String::from_utf8_lossy(&output.stderr)));
        }
        program(folder, &["judge", &file])?.with_code(code)?.shows(expected)?;
    }
    Ok(())
}
