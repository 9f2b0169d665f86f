//! The commands in the documentation: they run as written, in a folder with what a reader has, and print what is shown.
//!
//! A block that cannot be run has a comment before it that says why: `<!-- not run: … -->`. The server of the reader is
//! the reference server, whatever the command that starts it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::address::{RunningServer, unused_address};
use crate::support::pages::{pages, read, root};
use crate::support::{PROGRAM, Trial, program_command, trial};

/// What the runs of the pages are limited to: what a page is about is in its commands.
const CONFIGURATION: &str = "revision = [\"latest\"]\nselect = [\"tools/call/unknown-tool\"]\nfuzz = \"off\"\n";

/// The commands that start the server of a reader.
const STARTERS: [&str; 5] = ["my-server", "bin/node", "bin/python", "bin/python3", "bin/npx"];

/// A server that listens where `--port` says, and otherwise speaks over its standard streams.
const SERVER: &str = "#!/bin/sh
port=
while [ $# -gt 0 ]; do
  if [ \"$1\" = --port ]; then port=$2; fi
  shift
done
if [ -n \"$port\" ]; then exec mcp-conformance serve --http \"127.0.0.1:$port\"; fi
exec mcp-conformance serve
";

/// The port of the server in the pages.
const PORT: &str = "3000";

/// A command of a page, and the output that is shown.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    command: String,
    shown: Vec<String>,
}

/// The trials: one for each page with commands.
pub(crate) fn trials() -> Vec<Trial> {
    let mut files = pages().unwrap_or_default();
    files.push(root().join("README.md"));
    let mut trials = vec![trial("docs/commands/are-found", commands_are_found)];
    for file in files {
        let has_commands = read(&file).and_then(|text| steps(&text)).map_or(true, |steps| !steps.is_empty());
        if has_commands {
            let name = file.strip_prefix(root()).unwrap_or(&file).with_extension("").display().to_string();
            trials.push(trial(format!("docs/commands/{name}"), move || run_page(&file)));
        }
    }
    trials
}

/// The commands of a page that can be run.
fn steps(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut is_run = true;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if let Some(reason) = line.strip_prefix("<!-- not run:") {
            if reason.trim_end_matches("-->").trim().len() < 10 {
                return Err(format!("`{line}` gives no reason"));
            }
            is_run = false;
        } else if let Some(language) = line.strip_prefix("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
            if is_run {
                steps.extend(steps_of(language, &block));
            }
            is_run = true;
        } else if !line.is_empty() {
            is_run = true;
        }
    }
    Ok(steps)
}

fn steps_of(language: &str, block: &[&str]) -> Vec<Step> {
    let calls_us = |command: &str| {
        let mut words = command.split_whitespace().skip_while(|word| word.contains('=') && !word.starts_with('-'));
        words.next() == Some("mcp-conformance")
    };
    let mut steps: Vec<Step> = Vec::new();
    match language {
        "sh" | "bash" => {
            let joined = block.join("\n").replace("\\\n", " ");
            let commands = joined.lines().map(str::trim).filter(|line| calls_us(line));
            steps.extend(commands.map(|command| Step { command: command.to_owned(), shown: Vec::new() }));
        }
        "text" | "console" => {
            for line in block {
                match (line.trim_start().strip_prefix("$ "), steps.last_mut()) {
                    (Some(command), _) => steps.push(Step { command: command.to_owned(), shown: Vec::new() }),
                    (None, Some(step)) if line.trim() != "…" => step.shown.push(comparable(line)),
                    (None, _) => {}
                }
            }
            steps.retain(|step| calls_us(&step.command));
        }
        _ => {}
    }
    steps
}

/// A line without what differs from run to run: numbers and the width of columns.
fn comparable(line: &str) -> String {
    let mut text = String::new();
    for c in line.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        match c {
            '0'..='9' if text.ends_with('0') => {}
            '0'..='9' => text.push('0'),
            c => text.push(c),
        }
    }
    text
}

/// A folder with what the reader of a page has.
struct Scratch {
    folder: TempDir,
    /// A server that runs already.
    running: RunningServer,
}

impl Scratch {
    fn new(page: &str) -> Result<Self, String> {
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        let mut command = program_command();
        command.arg("serve");
        let scratch = Self { folder, running: RunningServer::start(command, &[])? };
        for name in STARTERS {
            scratch.write(name, SERVER)?;
            #[cfg(unix)]
            fs::set_permissions(scratch.path(name), std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .map_err(|error| error.to_string())?;
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(PROGRAM, scratch.path("bin/mcp-conformance")).map_err(|error| error.to_string())?;
        for file in ["dist/index.js", "my-server.js", "trivial-server.js", "empty/nothing"] {
            scratch.write(file, "")?;
        }
        for folder in ["home/.local/share/bash-completion/completions", "home/.local/share/man/man1"] {
            fs::create_dir_all(scratch.path(folder)).map_err(|error| error.to_string())?;
        }
        scratch.write(".mcp.json", r#"{"mcpServers": {"weather": {"command": "node", "args": ["dist/index.js"]}}}"#)?;
        // A page that tells how to write a file has it as a block that begins with the member that names its schema.
        if let Some(case) =
            page.split("```jsonc\n").find(|block| block.contains("\"fault\": \"unknown-tool-succeeds\""))
        {
            let case = case.split("```").next().unwrap_or_default();
            scratch.write("my-cases/team/long-name.jsonc", case)?;
        }
        if page.contains("old.json new.json") || page.contains("fleet/*.json") {
            scratch.write("mcp-conformance.toml", CONFIGURATION)?;
            scratch.run("mcp-conformance --report json=old.json ./my-server")?;
            let report = read(&scratch.path("old.json"))?;
            scratch.write("new.json", &report)?;
            scratch.write("fleet/1.json", &report)?;
        }
        Ok(scratch)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.path(name);
        let parent = path.parent().expect("a file is in a folder");
        fs::create_dir_all(parent).and_then(|()| fs::write(&path, text)).map_err(|error| format!("{name}: {error}"))
    }

    /// Runs a command in a shell, and returns what it prints to standard output.
    fn run(&self, command: &str) -> Result<String, String> {
        let address = if command.contains("--url ") { unused_address() } else { self.running.address() };
        let line = command.replace(PORT, &address.port().to_string());
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("sh")
            .args(["-c", &line])
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("HOME", self.path("home"))
            .env("COLUMNS", "100")
            .envs([("TOKEN", "conformance-token"), ("API_KEY", "for-tests")])
            .env_remove("CI")
            .env_remove("GITHUB_ACTIONS")
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let is_expected = match output.status.code() {
            Some(0) => true,
            Some(1) => command.contains("--fault"),
            _ => false,
        };
        if is_expected {
            Ok(out.into_owned())
        } else {
            Err(format!("`{command}` ends with {}:\n{out}\n{error}", output.status))
        }
    }
}

fn run_page(file: &Path) -> Result<(), String> {
    let page = read(file)?;
    let scratch = Scratch::new(&page)?;
    for Step { command, shown } in steps(&page)? {
        // The first one writes the file, and the others must not take long.
        if command.contains("mcp-conformance init") {
            drop(fs::remove_file(scratch.path("mcp-conformance.toml")));
        } else {
            scratch.write("mcp-conformance.toml", CONFIGURATION)?;
        }
        let printed = scratch.run(&command)?;
        let mut lines = printed.lines().map(comparable);
        if let Some(missing) = shown.iter().find(|line| !lines.any(|printed| printed == **line)) {
            return Err(format!("`{command}` does not print, or not in this order: {missing}\nIt prints:\n{printed}"));
        }
    }
    Ok(())
}

/// Commands are found where they are written, and those with a reason are left out.
fn commands_are_found() -> Result<(), String> {
    let page = "```sh\nnpm install\nA=b mcp-conformance one \\\n  two   # why\n```\n\n<!-- not run: needs the network -->\n\
                ```sh\nmcp-conformance three\n```\n\n   ```text\n   $ mcp-conformance four\n   …\n   10 cases\n   ```\n";
    let expected =
        [("A=b mcp-conformance one    two   # why", vec![]), ("mcp-conformance four", vec!["0 cases".to_owned()])];
    let expected = expected.map(|(command, shown)| Step { command: command.to_owned(), shown });
    let found = steps(page)?;
    if found != expected {
        return Err(format!("found {found:?}"));
    }
    if steps("<!-- not run: -->\n").is_ok() {
        return Err("a comment without a reason is accepted".to_owned());
    }
    let mut count = BTreeMap::new();
    for file in pages()? {
        count.insert(file.clone(), steps(&read(&file)?)?.len());
    }
    let total: usize = count.values().sum();
    if total >= 30 { Ok(()) } else { Err(format!("only {total} commands are found: {count:?}")) }
}
