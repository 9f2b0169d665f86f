//! The workflows: their shape, what they run of others, and the steps that decide whether something is released, or whether
//! the action works, which run here with what GitHub would set.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::declared::{documents, keys, names_after};
use super::release::{TARGETS, release, target};
use super::{Action, folder, read, root, run};
use crate::slow::installed::servers;

const RELEASE: &str = ".github/workflows/release.yml";
const DISTRIBUTION: &str = ".github/workflows/distribution.yml";

/// The workflow of a file.
fn workflow(path: &str) -> Result<Value, String> {
    let mut found = documents(path)?;
    let first = found.pop().ok_or_else(|| format!("{path} is empty"))?;
    if found.is_empty() { Ok(first) } else { Err(format!("{path} has more than one document")) }
}

fn steps(job: &Value) -> impl Iterator<Item = &Value> {
    job["steps"].as_array().into_iter().flatten()
}

/// The script of the step of a job whose name begins with this.
fn script<'a>(job: &'a Value, name: &str) -> Result<&'a str, String> {
    let named = |step: &&Value| step["name"].as_str().is_some_and(|other| other.starts_with(name));
    steps(job).find(named).and_then(|step| step["run"].as_str()).ok_or_else(|| format!("no step runs `{name}`"))
}

/// The shape of a workflow, as far as this project uses it.
fn workflow_schema() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    let permissions = json!({"type": "object", "additionalProperties": {"enum": ["read", "write", "none"]}});
    let step = json!({
        "type": "object",
        "properties": {
            "name": text, "id": text, "if": text, "run": text, "shell": text, "uses": text, "working-directory": text,
            "with": {"type": "object"}, "env": {"type": "object"}, "continue-on-error": {"type": "boolean"}
        },
        "additionalProperties": false,
        "oneOf": [{"required": ["run"]}, {"required": ["uses"]}]
    });
    let job = json!({
        "type": "object",
        "required": ["name", "runs-on", "timeout-minutes", "steps"],
        "properties": {
            "name": text, "runs-on": text, "if": text, "timeout-minutes": {"type": "integer"}, "permissions": permissions,
            "needs": {"anyOf": [text, {"type": "array", "items": text}]}, "env": {"type": "object"},
            "strategy": {
                "type": "object", "required": ["matrix"],
                "properties": {"fail-fast": {"type": "boolean"}, "matrix": {"type": "object", "minProperties": 1}},
                "additionalProperties": false
            },
            "steps": {"type": "array", "minItems": 1, "items": step}
        },
        "additionalProperties": false
    });
    json!({
        "type": "object",
        "required": ["name", "on", "permissions", "jobs"],
        "properties": {
            "name": text, "on": {"type": "object", "minProperties": 1}, "permissions": permissions,
            "concurrency": {"type": "object", "required": ["group"]},
            "jobs": {"type": "object", "minProperties": 1, "additionalProperties": job}
        },
        "additionalProperties": false
    })
}

/// Checks a workflow: its shape, that what it runs of others is pinned, and that names in expressions are declared.
fn check(workflow: &Value) -> Result<(), String> {
    let validator = jsonschema::validator_for(&workflow_schema()).map_err(|error| error.to_string())?;
    if let Some(error) = validator.iter_errors(workflow).next() {
        return Err(format!("at {}: {error}", error.instance_path()));
    }
    let jobs = workflow["jobs"].as_object().into_iter().flatten();
    for (name, job) in jobs.clone() {
        let needs = job["needs"].as_array().map_or_else(|| vec![&job["needs"]], |needs| needs.iter().collect());
        if let Some(need) = needs.iter().filter_map(|need| need.as_str()).find(|need| workflow["jobs"][need].is_null())
        {
            return Err(format!("{name} needs {need}, which is no job"));
        }
        let actions = steps(job).filter_map(|step| step["uses"].as_str());
        for action in actions.filter(|action| !action.starts_with("./")) {
            let pin = action.split_once('@').map_or("", |(_, pin)| pin);
            if pin.len() != 40 || !pin.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(format!("{name} uses {action}, which can change"));
            }
        }
        let text = job.to_string();
        let matrix = &job["strategy"]["matrix"];
        let included = matrix["include"].as_array().into_iter().flatten().flat_map(keys);
        let variables: BTreeSet<&str> = keys(matrix).into_iter().chain(included).collect();
        let ids: BTreeSet<&str> = steps(job).filter_map(|step| step["id"].as_str()).collect();
        for (prefix, declared) in [("matrix.", variables), ("steps.", ids)] {
            let used = text.split("${{").skip(1).filter_map(|part| Some(part.split_once("}}")?.0));
            if let Some(unknown) = used.flat_map(|part| names_after(part, prefix)).find(|name| !declared.contains(name))
            {
                return Err(format!("{name}: {prefix}{unknown} is not declared"));
            }
        }
        // What attests needs the right to do so.
        let attests = text.contains("attest-build-provenance@");
        let may = ["id-token", "attestations"].iter().all(|right| job["permissions"][right] == "write");
        if attests != may {
            return Err(format!("{name}: it attests: {attests}, it may attest: {may}"));
        }
    }
    Ok(())
}

pub(super) fn the_workflows_are_declared() -> Result<(), String> {
    let mut count = 0;
    for file in fs::read_dir(root().join(".github/workflows")).map_err(|error| error.to_string())? {
        let name = format!(".github/workflows/{}", file.map_err(|error| error.to_string())?.file_name().display());
        check(&workflow(&name)?).map_err(|error| format!("{name}: {error}"))?;
        count += 1;
    }
    // Each of these is no longer a workflow: the check sees it.
    let release = workflow(RELEASE)?;
    for (pointer, wrong) in [
        ("/jobs/archive/needs", json!("drafted")),
        ("/jobs/archive/steps/0/uses", json!("actions/checkout@v5")),
        ("/jobs/archive/steps/0/uses", Value::Null),
        ("/jobs/archive/steps/1/run", json!("echo ${{ matrix.triple }}")),
        ("/jobs/archive/permissions", json!({"contents": "write"})),
        ("/jobs/draft/steps", json!([])),
        ("/jobs/draft/timeout-minutes", json!("ten")),
        ("/on", json!([])),
    ] {
        let mut changed = release.clone();
        *changed.pointer_mut(pointer).ok_or_else(|| format!("there is no {pointer}"))? = wrong.clone();
        if check(&changed).is_ok() {
            return Err(format!("{wrong} as {pointer} is not noticed"));
        }
    }
    if count < 6 { Err(format!("{count} workflows are checked")) } else { Ok(()) }
}

pub(super) fn the_release_is_attested() -> Result<(), String> {
    let release = workflow(RELEASE)?;
    let included = release["jobs"]["archive"]["strategy"]["matrix"]["include"].as_array().into_iter().flatten();
    let built: BTreeSet<&str> = included.filter_map(|entry| entry["target"].as_str()).collect();
    let linux = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];
    if built != TARGETS.into_iter().chain(linux).collect() {
        return Err(format!("{built:?} are built"));
    }
    // Each kind of package takes its programs from archives that are built.
    for file in ["install.sh", "homebrew.sh", "npm/build.mjs", "pypi/build.py"] {
        let text = read(&root().join(".ci/packaging").join(file))?;
        let is_target = |word: &&str| word.contains("-unknown-linux-") || word.contains("-apple-darwin");
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !['-', '_'].contains(&c));
        let named: BTreeSet<&str> = words.filter(is_target).collect();
        if named != TARGETS.into_iter().collect() {
            return Err(format!("{file} has programs for {named:?}"));
        }
    }
    // Whatever is uploaded was attested before, in the same job.
    let mut uploads = 0;
    for (name, job) in release["jobs"].as_object().into_iter().flatten() {
        let mut attested = BTreeSet::new();
        for step in steps(job) {
            attested.extend(step["with"]["subject-path"].as_str());
            let script = step["run"].as_str().unwrap_or_default();
            for line in script.lines().filter(|line| line.trim_start().starts_with("gh release upload")) {
                let files = line.split_whitespace().last().unwrap_or_default();
                if !attested.contains(files) {
                    return Err(format!("{name} uploads {files}, and attests {attested:?} before"));
                }
                uploads += 1;
            }
        }
    }
    let bills = script(&release["jobs"]["archive"], "Write the bill of materials")?;
    if uploads == 2 && bills.contains("sbom.py \"${{ matrix.target }}\" >\"archives/") {
        Ok(())
    } else {
        Err(format!("{uploads} uploads; {bills}"))
    }
}

pub(super) fn the_tag_and_the_repository_are_checked() -> Result<(), String> {
    const RIGHT: &str = "[package]\nname = \"mcp-conformance\"\nversion = \"1.2.3\"\n\
                         repository = \"https://github.com/me/mcp-conformance\"\n";
    let release = workflow(RELEASE)?;
    let script = script(&release["jobs"]["draft"], "Compare the tag and the repository")?;
    let folder = folder()?;
    let compare = |manifest: &str, tag: &str, code| {
        fs::write(folder.path().join("Cargo.toml"), manifest).map_err(|error| error.to_string())?;
        let mut shell = Command::new("bash");
        shell.current_dir(folder.path()).args(["-e", "-o", "pipefail", "-c", script]);
        shell.env("GITHUB_SERVER_URL", "https://github.com").env("GITHUB_REPOSITORY", "me/mcp-conformance");
        run(shell.env("GITHUB_REF_NAME", tag), code)
    };
    compare(RIGHT, "v1.2.3", 0)?;
    compare(RIGHT, "v1.2.4", 1)?;
    compare(&RIGHT.replace("/me/", "/other/"), "v1.2.3", 1)?;
    let others: Vec<&str> = RIGHT.lines().filter(|line| !line.starts_with("repository")).collect();
    compare(&others.join("\n"), "v1.2.3", 1).map(drop)
}

/// Replaces the placeholders of a template of `cargo binstall`.
fn expanded(template: &str, values: &BTreeMap<&str, &str>) -> Result<String, String> {
    let mut text = String::new();
    let mut parts = template.split('{');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (name, rest) = part.split_once('}').ok_or_else(|| format!("a placeholder of `{template}` does not end"))?;
        text.push_str(values.get(name.trim()).ok_or_else(|| format!("`{name}` is no placeholder"))?);
        text.push_str(rest);
    }
    Ok(text)
}

pub(super) fn cargo_binstall_finds_the_archives() -> Result<(), String> {
    let manifest: toml::Table =
        toml::from_str(&read(&root().join("Cargo.toml"))?).map_err(|error| error.to_string())?;
    let metadata = &manifest["package"]["metadata"]["binstall"];
    let template = |name: &str| metadata[name].as_str().ok_or_else(|| format!("{name} is no text"));
    for target in TARGETS {
        let values = BTreeMap::from([
            ("repo", "https://github.com/me/mcp-conformance"),
            ("name", env!("CARGO_PKG_NAME")),
            ("version", env!("CARGO_PKG_VERSION")),
            ("target", target),
            ("bin", "mcp-conformance"),
            ("binary-ext", ""),
        ]);
        let url = expanded(template("pkg-url")?, &values)?;
        let version = env!("CARGO_PKG_VERSION");
        let download = format!("https://github.com/me/mcp-conformance/releases/download/v{version}/");
        let archive = url.strip_prefix(&download).ok_or_else(|| format!("{url} is not below {download}"))?;
        let program = expanded(template("bin-dir")?, &values)?;
        let files = run(Command::new("tar").arg("-tzf").arg(release()?.join("archives").join(archive)), 0)?;
        if template("pkg-fmt")? != "tgz" || !files.lines().any(|file| file == program) {
            return Err(format!("{program} is not in {archive}:\n{files}"));
        }
    }
    if TARGETS.contains(&target().as_str()) { Ok(()) } else { Err(format!("{} has no archive", target())) }
}

/// The cases that find the mistakes of the servers of the tutorial; another trial runs all cases on them.
const FINDING: &str = "--select content/image-base64 --select stdio/stdout-only-messages";

/// Runs what the workflow runs before and after the action, and the steps of the action between them, on each server.
pub(super) fn the_action_is_used() -> Result<(), String> {
    let workflow = workflow(DISTRIBUTION)?;
    let job = &workflow["jobs"]["action"];
    let used = steps(job).find(|step| step["uses"] == "./").ok_or("no step uses the action")?;
    let action = documents("action.yml")?.pop().ok_or("there is no action")?;
    let (inputs, outputs) = (keys(&action["inputs"]), keys(&action["outputs"]));
    let named = job.to_string();
    let read_outputs: BTreeSet<&str> = names_after(&named, "steps.conformance.outputs.");
    if !keys(&used["with"]).is_subset(&inputs) || read_outputs != outputs {
        return Err(format!("inputs {:?} of {inputs:?}, outputs {read_outputs:?} of {outputs:?}", keys(&used["with"])));
    }
    let servers_of_matrix = job["strategy"]["matrix"]["include"].as_array().ok_or("the matrix is empty")?;
    for server in servers_of_matrix {
        let value = |name: &str| server[name].as_str().unwrap_or_default();
        let workspace = folder()?;
        let workspace = workspace.path();
        for name in ["docs", "Cargo.toml"] {
            link(&root().join(name), &workspace.join(name))?;
        }
        fs::create_dir(workspace.join("tests")).map_err(|error| error.to_string())?;
        link(&servers(), &workspace.join("tests/servers"))?;
        let shell = |name: &str, variables: &[(&str, &str)], code| {
            let mut shell = Command::new("bash");
            shell.current_dir(workspace).args(["-e", "-o", "pipefail", "-c", script(job, name)?]);
            run(shell.envs(variables.iter().copied()), code)
        };
        shell("Make the server", &[("SOURCE", value("source")), ("FILE", value("file"))], 0)?;
        let arguments = used["with"]["arguments"].as_str().ok_or("the action has no arguments")?;
        let arguments =
            arguments.replace("${{ matrix.program }}", value("program")).replace("${{ matrix.file }}", value("file"));
        let action = Action::new()?;
        let directory = used["with"]["working-directory"].as_str().ok_or("the action has no folder")?;
        let written = action.judge_in(&workspace.join(directory), &format!("{FINDING} {arguments}"))?;
        let written: BTreeMap<&str, &str> = written.lines().filter_map(|line| line.split_once('=')).collect();
        let output = |name: &str| written.get(name).copied().unwrap_or_default();
        let expected = server["exit-code"].to_string();
        let outcome = if output("exit-code") == "0" { "success" } else { "failure" };
        let variables = |expected| {
            [
                ("EXPECTED", expected),
                ("OUTCOME", outcome),
                ("EXIT_CODE", output("exit-code")),
                ("VERSION", output("version")),
                ("REPORT", output("report")),
            ]
        };
        shell("Compare what the action says", &variables(&expected), 0)
            .map_err(|error| format!("{}: {error}", value("source")))?;
        // The step fails for the other result.
        shell("Compare what the action says", &variables(if expected == "0" { "1" } else { "0" }), 1)?;
    }
    if servers_of_matrix.len() < 4 { Err("the matrix has lost servers".to_owned()) } else { Ok(()) }
}

fn link(from: &Path, to: &Path) -> Result<(), String> {
    std::os::unix::fs::symlink(from, to).map_err(|error| error.to_string())
}
