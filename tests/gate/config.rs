//! The configuration: `mcp-conformance.toml`, the files of MCP clients, and `init`.

use std::fs;
use std::path::Path;

use crate::support::{PROGRAM, Trial, program, trial};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("config/the-program-alone-runs-what-the-file-says", the_program_alone_runs_what_the_file_says),
        trial("config/the-file-is-found-upwards", the_file_is_found_upwards),
        trial("config/an-option-replaces-a-key", an_option_replaces_a_key),
        trial("config/a-profile-replaces-keys", a_profile_replaces_keys),
        trial("config/other-commands-take-the-server", other_commands_take_the_server),
        trial("config/init-writes-a-file-that-runs", init_writes_a_file_that_runs),
        trial("config/init-without-a-server", init_without_a_server),
        trial("config/init-writes-workflows", init_writes_workflows),
        trial("config/the-documented-file-is-valid", the_documented_file_is_valid),
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

fn read(folder: &Path, file: &str) -> Result<String, String> {
    fs::read_to_string(folder.join(file)).map_err(|error| format!("{file}: {error}"))
}

fn json(folder: &Path, file: &str) -> Result<Value, String> {
    serde_json::from_str(&read(folder, file)?).map_err(|error| format!("{file}: {error}"))
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

fn faulty() -> String {
    configuration("command = [PROGRAM, \"serve\", \"--fault\", \"image-data-url\"]")
}

fn the_program_alone_runs_what_the_file_says() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    write(folder, "mcp-conformance.toml", &faulty())?;
    program(folder, &[])?.with_code(1)?.shows("configured by mcp-conformance.toml")?.shows("content-image")?;
    let report = json(folder, "out.json")?;
    for (pointer, expected) in [
        ("/options/revisions/0", Value::from("2025-06-18")),
        ("/options/timeout-ms", Value::from(7_000)),
        ("/options/select/0", Value::from("content/image-base64")),
    ] {
        if report.pointer(pointer) != Some(&expected) {
            return Err(format!("{pointer}: {:?}", report.pointer(pointer)));
        }
    }
    let listed = program(folder, &["--list"])?.with_code(0)?;
    if listed.out.lines().filter(|line| line.contains("content/")).count() != 1 {
        return Err(listed.text);
    }
    program(folder, &["--no-config"])?.with_code(2)?.shows("no server is given").map(drop)
}

fn the_file_is_found_upwards() -> Result<(), String> {
    let folder = folder()?;
    let inner = folder.path().join("a/b");
    fs::create_dir_all(&inner).map_err(|error| error.to_string())?;
    // The server is a path relative to the file.
    let server = "command = [\"./my-server\", \"serve\", \"--fault\", \"image-data-url\"]";
    write(folder.path(), "mcp-conformance.toml", &configuration(server))?;
    std::os::unix::fs::symlink(PROGRAM, folder.path().join("my-server")).map_err(|error| error.to_string())?;
    program(&inner, &[])?.with_code(1)?.shows("configured by ../../mcp-conformance.toml")?.shows("--cwd ../..")?;
    json(folder.path(), "out.json")?;
    program(folder.path(), &["--config", "mcp-conformance.toml", "-q"])?.with_code(1)?;
    // The next file counts.
    write(&inner, "mcp-conformance.toml", "select = [\"lifecycle/*\"]\n")?;
    program(&inner, &["--list"])?.with_code(0)?;
    program(&inner, &[])?.with_code(2)?.shows("no server is given").map(drop)
}

fn an_option_replaces_a_key() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    write(folder, "mcp-conformance.toml", &format!("strict = true\nsafe = true\n{}", faulty()))?;
    let typed = ["--select", "tools/list/*", "--timeout", "8s", "--report", "json=typed.json", "-q"];
    program(folder, &typed)?.with_code(0)?;
    let report = json(folder, "typed.json")?;
    if report["options"]["select"] != serde_json::json!(["tools/list/*"]) || report["options"]["timeout-ms"] != 8_000 {
        return Err(report["options"].to_string());
    }
    if folder.join("out.json").exists() {
        return Err("the report of the file was written in addition".to_owned());
    }
    // An option also replaces a key that contradicts it.
    let typed = ["--fail-on", "never", "--call-destructive", "--report", "json=typed.json", "-q"];
    program(folder, &typed)?.with_code(0)?.shows("REPORT ONLY")?;
    if json(folder, "typed.json")?["options"]["calls"] != "destructive" {
        return Err("`safe` was not replaced".to_owned());
    }
    // A typed server replaces the one of the file, and the other keys remain.
    program(folder, &["-q", "--", PROGRAM, "serve"])?.with_code(0)?;
    if json(folder, "out.json")?["options"]["timeout-ms"] != 7_000 {
        return Err("the keys were not used".to_owned());
    }
    Ok(())
}

fn a_profile_replaces_keys() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    write(folder, "mcp-conformance.toml", &format!("strict = true\n{}", faulty()))?;
    program(folder, &["--profile", "lenient", "-q"])?.with_code(0)?.shows("REPORT ONLY")?;
    if json(folder, "lenient.json")?["options"]["timeout-ms"] != 7_000 || folder.join("out.json").exists() {
        return Err("the profile does not replace just its keys".to_owned());
    }
    program(folder, &["--profile", "green", "-q"])?.with_code(0)?;
    let ran = program(folder, &["--profile", "gren"])?.with_code(2)?;
    ran.shows("no profile `gren`; its profiles are `lenient`, `green`")?;
    let elsewhere = TempDir::new().map_err(|error| error.to_string())?;
    program(elsewhere.path(), &["--profile", "x"])?.with_code(2)?.shows("`mcp-conformance init` writes one").map(drop)
}

fn other_commands_take_the_server() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    write(folder, "mcp-conformance.toml", &faulty())?;
    program(folder, &["hints", "--safe", "--revision", "2025-06-18"])?.with_code(0)?.shows("\"hints\": [")?;
    program(folder, &["explain", "tools/list/*"])?.with_code(0)?;
    program(folder, &["replay", "missing.json"])?.with_code(2)?.shows("missing.json").map(drop)
}

fn init_writes_a_file_that_runs() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    let ran = program(folder, &["init", "--env", "API_KEY=hush", "--", PROGRAM, "serve"])?.with_code(0)?;
    ran.shows("wrote mcp-conformance.toml")?.shows("next: mcp-conformance")?;
    let text = read(folder, "mcp-conformance.toml")?;
    for expected in
        ["supports 2024-11-05", "28 tools", "command = [", "\"API_KEY\" = \"${API_KEY}\"", "[profile.nightly]"]
    {
        if !text.contains(expected) {
            return Err(format!("`{expected}` is not in:\n{text}"));
        }
    }
    if text.contains("hush") {
        return Err(text);
    }
    check_schema(&text)?;
    // What is commented out is valid too.
    let uncommented: String = text
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|rest| rest.contains(" = ")).unwrap_or(line))
        .fold(String::new(), |all, line| if line.starts_with("env = { API_KEY") { all } else { all + line + "\n" });
    check_schema(&uncommented)?;
    let ran = program(folder, &["--select", "lifecycle/*", "--fuzz", "off"])?;
    ran.with_code(2)?.shows("the environment variable API_KEY is not set")?;
    write(folder, "mcp-conformance.toml", &text.replace("${API_KEY}", "${API_KEY:-x}"))?;
    program(folder, &["--select", "lifecycle/*", "--fuzz", "off", "-q"])?.with_code(0)?;
    program(folder, &["init"])?.with_code(2)?.shows("move it away")?;
    // Nothing is left of a failure.
    fs::remove_file(folder.join("mcp-conformance.toml")).map_err(|error| error.to_string())?;
    program(folder, &["init", "--ci", "github", "--", PROGRAM, "--version"])?
        .with_code(2)?
        .shows("failed to inspect")?;
    for file in ["mcp-conformance.toml", ".github/workflows/mcp-conformance.yml"] {
        if folder.join(file).exists() {
            return Err(format!("{file} is left"));
        }
    }
    Ok(())
}

fn init_without_a_server() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    program(folder, &["init"])?.with_code(0)?.shows("next: name the server")?;
    check_schema(&read(folder, "mcp-conformance.toml")?)
}

fn init_writes_workflows() -> Result<(), String> {
    let folder = folder()?;
    let folder = folder.path();
    program(folder, &["init", "--ci", "github"])?.with_code(0)?.shows(".github/workflows/mcp-conformance.yml")?;
    let workflow = read(folder, ".github/workflows/mcp-conformance.yml")?;
    if !workflow.contains("uses: OWNER/mcp-conformance@COMMIT") {
        return Err(workflow);
    }
    let init = |output: &str| program(folder, &["init", "--output", output, "--ci", "gitlab"])?.with_code(0);
    init("second.toml")?.shows("wrote .gitlab-ci.yml")?;
    init("third.toml")?.shows("include: [{local: /.gitlab/mcp-conformance.yml}]").map(drop)
}

/// The file in the documentation.
fn the_documented_file_is_valid() -> Result<(), String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/guides/configuration.md");
    let page = fs::read_to_string(&page).map_err(|error| format!("{}: {error}", page.display()))?;
    let (_, rest) = page.split_once("```toml\n").ok_or("the page has no TOML")?;
    let (text, _) = rest.split_once("```").ok_or("the TOML does not end")?;
    check_schema(text)?;
    let folder = folder()?;
    write(folder.path(), "mcp-conformance.toml", text)?;
    program(folder.path(), &["--list"])?.with_code(0)?;
    program(folder.path(), &["--list", "--profile", "nightly"])?.with_code(0).map(drop)
}

/// Checks a file against the published schema.
fn check_schema(text: &str) -> Result<(), String> {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/reference/mcp-conformance.schema.json");
    let schema = fs::read_to_string(schema).map_err(|error| error.to_string())?;
    let schema: Value = serde_json::from_str(&schema).map_err(|error| error.to_string())?;
    let value: toml::Table = toml::from_str(text).map_err(|error| format!("{error}\n{text}"))?;
    let value = serde_json::to_value(value).map_err(|error| error.to_string())?;
    let validator = jsonschema::draft202012::new(&schema).map_err(|error| error.to_string())?;
    let errors: Vec<String> =
        validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    if errors.is_empty() { Ok(()) } else { Err(format!("{}\n{text}", errors.join("\n"))) }
}
