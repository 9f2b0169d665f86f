//! Mistakes that people make on the command line: each has a message that names the fix, and its exit code.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use crate::support::{PROGRAM, ProgramOutput, Trial, program, program_command, trial};

pub(crate) fn trials() -> Vec<Trial> {
    let mistakes = MISTAKES.iter().map(|mistake| trial(format!("mistakes/{}", mistake.name), || check(mistake)));
    mistakes.chain([trial("mistakes/a-narrow-terminal", a_narrow_terminal)]).collect()
}

/// A command line with a mistake.
struct Mistake {
    name: &'static str,
    /// The words; `PROGRAM` is the program under test.
    line: &'static [&'static str],
    code: i32,
    /// Parts of the message.
    expected: &'static [&'static str],
}

const fn mistake(
    name: &'static str,
    line: &'static [&'static str],
    code: i32,
    expected: &'static [&'static str],
) -> Mistake {
    Mistake { name, line, code, expected }
}

/// Each line is run in a folder with `server.mjs` and `server` (without permission to be executed), `script.py` (which
/// is executable, but names no interpreter), `gone` (whose interpreter does not exist), the folder `dist` and the file
/// `file`.
const MISTAKES: &[Mistake] = &[
    mistake("no-server", &[], 2, &["no server is given", "mcp-conformance init -- COMMAND"]),
    mistake("unknown-option", &["--strct", "./server"], 2, &["--strct", "'--strict'"]),
    mistake("mistyped-subcommand", &["demoo"], 2, &["did you mean `demo`?", "`./demoo`"]),
    mistake("mistyped-subcommand-with-arguments", &["explian", "tools/*"], 2, &["did you mean `explain`?"]),
    mistake("reserved-subcommand", &["update"], 2, &["`update` is reserved for a subcommand", "`./update`"]),
    mistake("subcommand-after-options", &["--strict", "demo"], 2, &["`mcp-conformance demo [OPTIONS]`", "`-- demo`"]),
    mistake("help-as-a-subcommand", &["help"], 0, &["Usage: mcp-conformance"]),
    mistake("directory", &["./dist"], 2, &["`./dist` is a directory", "node ./dist/index.js"]),
    mistake("directory-without-a-slash", &["dist"], 2, &["`dist` is a directory"]),
    mistake(
        "script-without-run-bit",
        &["./server.mjs"],
        2,
        &["it is not executable", "`mcp-conformance -- node server.mjs`"],
    ),
    mistake("script-without-a-slash", &["server.mjs"], 2, &["`mcp-conformance -- node server.mjs`"]),
    mistake(
        "script-without-interpreter",
        &["./script.py"],
        2,
        &["names no interpreter", "`mcp-conformance -- python3 script.py`"],
    ),
    mistake("interpreter-that-is-missing", &["./gone"], 2, &["the interpreter /no/such/python"]),
    mistake("program-without-run-bit", &["--", "./server"], 2, &["chmod +x ./server"]),
    mistake(
        "quoted-command",
        &["node server.mjs"],
        2,
        &["leave out the quotes", "`mcp-conformance -- node server.mjs`"],
    ),
    mistake(
        "missing-program",
        &["--", "./missing"],
        2,
        &["failed to start `./missing`", "check that the path exists", "; 0 launches;"],
    ),
    mistake("url-without-scheme", &["localhost:3000/mcp"], 2, &["`http://localhost:3000/mcp`"]),
    mistake("word-after-url", &["http://localhost:9/mcp", "-v"], 2, &["put options of mcp-conformance before the URL"]),
    mistake(
        "option-after-the-command",
        &["node", "server.mjs", "--strict"],
        2,
        &["`mcp-conformance --strict ... -- node server.mjs`", "`mcp-conformance -- node server.mjs --strict`"],
    ),
    mistake(
        "tool-that-matches-nothing",
        &[
            "--revision",
            "latest",
            "--select",
            "fuzz/*",
            "--fuzz",
            "2",
            "--regressions",
            "none",
            "--tool",
            "ecko",
            "--",
            "PROGRAM",
            "serve",
        ],
        2,
        &["--tool ecko: the server has no such tool", "echo"],
    ),
    mistake(
        "tool-that-matches-nothing-on-a-server-that-fails",
        &[
            "--revision",
            "2025-06-18",
            "--select",
            "content/image-base64",
            "--fuzz",
            "2",
            "--regressions",
            "none",
            "--tool",
            "ecko",
            "--select",
            "fuzz/*",
            "--",
            "PROGRAM",
            "serve",
            "--fault",
            "image-data-url",
        ],
        1,
        &["--tool ecko: the server has no such tool"],
    ),
    mistake("revision-that-does-not-exist", &["--revision", "2025-01-01", "./server"], 2, &["2025-06-18", "`latest`"]),
    mistake("case-that-does-not-exist", &["--select", "tols/*", "--list"], 2, &["tols/*"]),
    mistake(
        "report-in-a-missing-folder",
        &["--report", "json=no/r.json", "--", "PROGRAM", "serve"],
        2,
        &["failed to open no/r.json"],
    ),
    mistake(
        "report-below-a-file",
        &["--report", "json=file/r.json", "--", "PROGRAM", "serve"],
        2,
        &["failed to open file/r.json"],
    ),
    mistake(
        "report-that-is-a-folder",
        &["--report", "json=dist", "--", "PROGRAM", "serve"],
        2,
        &["failed to open dist"],
    ),
    mistake("init-below-a-file", &["init", "--output", "file/c.toml"], 2, &["failed to create file/c.toml"]),
    mistake("unknown-shell", &["completions", "csh"], 2, &["bash", "zsh"]),
];

fn folder() -> Result<TempDir, String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let path = folder.path();
    let files = [
        ("server.mjs", "", 0o644),
        ("server", "", 0o644),
        ("script.py", "import sys\n", 0o755),
        ("gone", "#!/no/such/python -u\n", 0o755),
        ("file", "", 0o644),
    ];
    for (name, text, mode) in files {
        let file = path.join(name);
        fs::write(&file, text)
            .and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(mode)))
            .map_err(|error| error.to_string())?;
    }
    fs::create_dir(path.join("dist")).map_err(|error| error.to_string())?;
    Ok(folder)
}

fn check(mistake: &Mistake) -> Result<(), String> {
    let folder = folder()?;
    let line: Vec<&str> = mistake.line.iter().map(|word| if *word == "PROGRAM" { PROGRAM } else { word }).collect();
    let ran = program(folder.path(), &line)?.with_code(mistake.code)?;
    // A message may be wrapped.
    let text = ran.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let ran = ProgramOutput { text, ..ran };
    mistake.expected.iter().try_fold(ran, |ran, expected| ran.shows(expected)).map(drop)
}

fn a_narrow_terminal() -> Result<(), String> {
    let folder = folder()?;
    let mut command = program_command();
    command.current_dir(folder.path()).env("COLUMNS", "40");
    command.args(["--revision", "2025-06-18", "--select", "tools/call/unknown-tool-rejected", "--fuzz", "off"]);
    command.args(["--", PROGRAM, "serve", "--fault", "unknown-tool-succeeds"]);
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.code() != Some(1) {
        return Err(format!("{:?}\n{text}", output.status));
    }
    // The sentences of findings are wrapped; words that cannot be broken, such as paths and JSON, may be longer.
    let is_wrapped = |line: &str| line.starts_with("  ") && line.split_whitespace().all(|word| word.len() < 20);
    let long = text.lines().find(|line| line.chars().count() > 40 && is_wrapped(line));
    long.map_or(Ok(()), |line| Err(format!("longer than 40 columns: {line}\n{text}")))
}
