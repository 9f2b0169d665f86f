//! The configuration of servers with an environment of their own.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::support::{PROGRAM, Trial, program, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("config/variables-are-taken-from-the-environment", variables_are_taken_from_the_environment),
        trial("config/the-files-of-clients-are-read", the_files_of_clients_are_read),
    ]
}

fn folder() -> Result<TempDir, String> {
    TempDir::new().map_err(|error| error.to_string())
}

fn write(folder: &Path, file: &str, text: &str) -> Result<(), String> {
    let path = folder.join(file);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| format!("{file}: {error}"))?;
    }
    fs::write(path, text).map_err(|error| format!("{file}: {error}"))
}

/// A small run: the reference server with a fault that one selected case finds.
const CONFIGURATION: &str = "\
revision = [\"2025-06-18\"]
select = [\"content/image-base64\", \"tools/list/*\"]
fuzz = \"off\"
timeout = \"7s\"
report = [\"json=out.json\"]

[profile.lenient]
fail-on = \"never\"
report = [\"json=lenient.json\"]

[profile.green.server]
command = [PROGRAM, \"serve\"]
";

fn configuration(server: &str) -> String {
    format!("{CONFIGURATION}\n[server]\n{server}\n").replace("PROGRAM", &format!("{PROGRAM:?}"))
}

fn variables_are_taken_from_the_environment() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let server = "command = [\"sh\", \"-c\", \"test \\\"$A$B\\\" = /path || exit 9; exec \\\"$0\\\" serve\", PROGRAM]\nenv = {A = \"${NO_SUCH_VARIABLE:-/}\", B = \"path\"}";
    write(folder, "mcp-conformance.toml", &configuration(server))?;
    program(folder, &["-q"])?.with_code(0)?;
    // What is typed comes last.
    program(folder, &["-q", "--env", "B=other"])?.with_code(2)?;
    let server = "url = \"http://127.0.0.1:9/mcp\"\nheader = {X-Key = \"secret ${NO_SUCH_VARIABLE}\"}";
    write(folder, "mcp-conformance.toml", &configuration(server))?;
    let ran = program(folder, &[])?.with_code(2)?;
    if ran.text.contains("secret") {
        return Err(ran.text);
    }
    ran.shows("the environment variable NO_SUCH_VARIABLE is not set")?.shows("mcp-conformance.toml:16:")?;
    // A profile or a server that is not used needs no variables.
    program(folder, &["-q", "--profile", "green"])?.with_code(0).map(drop)
}

fn the_files_of_clients_are_read() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let options = ["--no-config", "--revision", "latest", "--select", "tools/list/*", "--fuzz", "off", "-q"];
    let run = |more: &[&str]| program(folder, &[&options[..], more].concat());
    let script = "test \"$A\" = in || exit 9; test -e here || exit 8; exec \"$0\" serve";
    let server = serde_json::json!({
        "command": "sh", "args": ["-c", script, PROGRAM], "env": {"A": "${NO_SUCH_VARIABLE:-in}", "HERE": "${workspaceFolder}"},
    });
    let other = serde_json::json!({"type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "${env:NO_SUCH_VARIABLE}"}});
    write(folder, "here", "")?;
    let two = serde_json::json!({"mcpServers": {"mine": server, "remote": other}}).to_string();
    write(folder, ".mcp.json", &two)?;
    write(folder, ".vscode/mcp.json", &format!("// A comment.\n{}", serde_json::json!({"servers": {"mine": server}})))?;
    run(&["--config", ".mcp.json", "--server", "mine"])?.with_code(0)?;
    run(&["--config", ".vscode/mcp.json"])?.with_code(0)?;
    run(&["--config", ".mcp.json"])?.with_code(2)?.shows("its servers are `mine`, `remote`")?;
    run(&["--config", ".mcp.json", "--server", "min"])?.with_code(2)?.shows("there is no server `min`")?;
    run(&["--config", ".mcp.json", "--server", "remote"])?.with_code(2)?.shows("NO_SUCH_VARIABLE is not set")?;
    run(&["--config", "missing.json"])?.with_code(2)?.shows("missing.json")?;
    run(&["--server", "mine"])?.with_code(2)?.shows("--config").map(drop)
}
