//! What is published as YAML and as a Dockerfile: it is parsed, what it names exists, and the script of the GitLab
//! component runs.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{folder, read, root, run};
use crate::support::PROGRAM;

/// The documents of a YAML file.
pub(super) fn documents(path: &str) -> Result<Vec<Value>, String> {
    serde_saphyr::from_multiple(&read(&root().join(path))?).map_err(|error| format!("{path}: {error}"))
}

/// What stands between two marks, wherever they occur.
fn between<'a>(text: &'a str, open: &str, close: &str) -> BTreeSet<&'a str> {
    text.split(open).skip(1).filter_map(|part| part.split_once(close)).map(|(inner, _)| inner.trim()).collect()
}

/// The names that follow `prefix` in expressions, such as `inputs.` in `${{ inputs.version == 'source' }}`.
pub(super) fn names_after<'a>(text: &'a str, prefix: &str) -> BTreeSet<&'a str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || ['-', '_'].contains(&c);
    let parts = text.split(prefix).skip(1);
    parts.map(|part| part.split(|c| !is_name(c)).next().unwrap_or_default()).filter(|name| !name.is_empty()).collect()
}

pub(super) fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

/// Fails unless two sets of names are the same.
fn same(what: &str, declared: &BTreeSet<&str>, used: &BTreeSet<&str>) -> Result<(), String> {
    let differ: Vec<&&str> = declared.symmetric_difference(used).collect();
    if !declared.is_empty() && differ.is_empty() {
        Ok(())
    } else {
        Err(format!("{what}: declared or used, but not both: {differ:?}"))
    }
}

/// The metadata syntax of a composite action, as GitHub documents it.
fn action_schema() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    let step = json!({
        "type": "object",
        "properties": {
            "name": text, "id": text, "if": text, "run": text, "shell": text, "uses": text,
            "working-directory": text, "with": {"type": "object"}, "env": {"type": "object"},
            "continue-on-error": {"type": ["boolean", "string"]}
        },
        "additionalProperties": false,
        "oneOf": [{"required": ["run", "shell"]}, {"required": ["uses"]}]
    });
    json!({
        "type": "object",
        "required": ["name", "description", "runs"],
        "properties": {
            "name": text,
            "author": text,
            "description": {"type": "string", "minLength": 1, "maxLength": 125},
            "branding": {"type": "object", "required": ["icon", "color"]},
            "inputs": {"type": "object", "additionalProperties": {
                "type": "object",
                "required": ["description"],
                "properties": {
                    "description": text, "required": {"type": "boolean"}, "default": {"type": "string"},
                    "deprecationMessage": text
                },
                "additionalProperties": false
            }},
            "outputs": {"type": "object", "additionalProperties": {
                "type": "object",
                "required": ["description", "value"],
                "properties": {"description": text, "value": text},
                "additionalProperties": false
            }},
            "runs": {
                "type": "object",
                "required": ["using", "steps"],
                "properties": {"using": {"const": "composite"}, "steps": {"type": "array", "minItems": 1, "items": step}},
                "additionalProperties": false
            }
        },
        "additionalProperties": false
    })
}

/// Checks the metadata of an action: its shape, and that each name in an expression is declared.
fn check_action(action: &Value, text: &str) -> Result<(), String> {
    let validator = jsonschema::validator_for(&action_schema()).map_err(|error| error.to_string())?;
    if let Some(error) = validator.iter_errors(action).next() {
        return Err(format!("at {}: {error}", error.instance_path()));
    }
    same("inputs", &keys(&action["inputs"]), &names_after(text, "inputs."))?;
    let steps = action["runs"]["steps"].as_array().into_iter().flatten();
    let ids = steps.clone().filter_map(|step| step["id"].as_str()).collect();
    same("ids of steps", &ids, &names_after(text, "steps."))?;
    for step in steps {
        let Some(script) = step["run"].as_str() else { continue };
        for file in between(script, "$GITHUB_ACTION_PATH/", "\"") {
            if !root().join(file).is_file() {
                return Err(format!("a step runs {file}, which does not exist"));
            }
        }
    }
    Ok(())
}

pub(super) fn the_action_is_declared() -> Result<(), String> {
    let text = read(&root().join("action.yml"))?;
    let found = documents("action.yml")?;
    let [action] = found.as_slice() else { return Err(format!("{} documents", found.len())) };
    check_action(action, &text)?;
    // Each of these is no longer an action: the check sees it.
    for (pointer, wrong) in [
        ("/runs/using", json!("node20")),
        ("/runs/steps/2/uses", Value::Null),
        ("/inputs/version/default", json!(1)),
        ("/outputs/report", json!({"description": "The report."})),
        ("/inputs", json!({"version": {"description": "The version."}})),
    ] {
        let mut changed = action.clone();
        *changed.pointer_mut(pointer).ok_or_else(|| format!("there is no {pointer}"))? = wrong;
        if check_action(&changed, &text).is_ok() {
            return Err(format!("a wrong {pointer} is not noticed"));
        }
    }
    Ok(())
}

pub(super) fn the_gitlab_component_judges() -> Result<(), String> {
    const FILE: &str = "templates/mcp-conformance.yml";
    let text = read(&root().join(FILE))?;
    let found = documents(FILE)?;
    let [header, jobs] = found.as_slice() else { return Err(format!("{} documents", found.len())) };
    let inputs = &header["spec"]["inputs"];
    let used = between(&text, "$[[", "]]");
    same("inputs", &keys(inputs), &used.iter().filter_map(|name| name.strip_prefix("inputs.")).collect())?;
    for (name, input) in inputs.as_object().into_iter().flatten() {
        let options = input["options"].as_array();
        let fits = options.is_none_or(|options| options.contains(&input["default"]));
        if !input["description"].is_string() || !input["default"].is_string() || !fits {
            return Err(format!("the input {name} has no description, or no default among its options: {input}"));
        }
    }
    let job = &jobs["mcp-conformance"];
    let (wanted, recorded) = (&job["artifacts"]["reports"]["junit"], &job["artifacts"]["paths"][0]);
    let folder = folder()?;
    std::os::unix::fs::symlink(PROGRAM, folder.path().join("mcp-conformance")).map_err(|error| error.to_string())?;
    let path = std::env::var("PATH").unwrap_or_default();
    let select = "--revision latest --fuzz off --select 'content/image-base64'";
    for (server, code) in [("serve", 0), ("serve --fault image-data-url", 1)] {
        let lines: Vec<&str> = job["script"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let script =
            lines.join("\n").replace("$[[ inputs.arguments ]]", &format!("{select} -- mcp-conformance {server}"));
        let mut shell = Command::new("sh");
        shell.current_dir(folder.path()).args(["-e", "-c", &script]);
        run(shell.env("PATH", format!("{}:{path}", folder.path().display())), code)?;
        for file in [wanted, recorded] {
            let name = file.as_str().ok_or_else(|| format!("{job} keeps no report"))?;
            fs::remove_file(folder.path().join(name)).map_err(|error| format!("{name} is not written: {error}"))?;
        }
    }
    Ok(())
}

/// The images of a Dockerfile, each with its name and its instructions.
fn images(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut images: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for line in text.replace("\\\n", " ").lines().filter(|line| !line.starts_with('#')) {
        let Some((instruction, rest)) = line.split_once(' ') else { continue };
        if instruction == "FROM" {
            images.push((rest.split(" AS ").nth(1).unwrap_or_default().to_owned(), Vec::new()));
        } else if let Some((_, instructions)) = images.last_mut() {
            instructions.push((instruction.to_owned(), rest.trim().to_owned()));
        }
    }
    images
}

pub(super) fn the_images_have_no_rights() -> Result<(), String> {
    let text = read(&root().join("Dockerfile"))?;
    let images = images(&text);
    let names: Vec<&str> = images.iter().map(|(name, _)| name.as_str()).collect();
    if names != ["build", "node", "python", "uv", "program"] {
        return Err(format!("{names:?}: the last image is the small one, and the others have what servers need"));
    }
    for (name, instructions) in &images[1..] {
        let last = |wanted: &str| instructions.iter().rev().find(|(instruction, _)| instruction == wanted);
        let user = last("USER").map_or("root", |(_, user)| user.as_str());
        let entry = last("ENTRYPOINT").map_or("", |(_, entry)| entry.as_str());
        let program = entry.trim_matches(['[', ']', '"']).trim_start_matches('/');
        let copied = instructions.iter().any(|(instruction, rest)| {
            instruction == "COPY"
                && rest.starts_with("--from=build /mcp-conformance ")
                && rest.ends_with("mcp-conformance")
        });
        if user.starts_with("root") || user.starts_with('0') || program != "mcp-conformance" || !copied {
            return Err(format!("{name} runs {entry} as {user}; the program is copied: {copied}"));
        }
    }
    if images[4].1.iter().any(|(instruction, _)| instruction == "RUN") {
        return Err("an image without a shell cannot run anything".to_owned());
    }
    // What the build reads is sent to it.
    let ignored = read(&root().join(".dockerignore"))?;
    let sent: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    let mut sources = vec![root().join("src")];
    let mut read_files =
        BTreeSet::from(["Cargo.toml", "Cargo.lock", "build.rs", "src", "cases"].map(|name| root().join(name)));
    while let Some(folder) = sources.pop() {
        for file in fs::read_dir(&folder).map_err(|error| error.to_string())? {
            let file = file.map_err(|error| error.to_string())?.path();
            if file.is_dir() {
                sources.push(file);
            } else if file.extension().is_some_and(|extension| extension == "rs") {
                let source = read(&file)?;
                read_files.extend(between(&source, "include_str!(\"", "\")").into_iter().map(|name| folder.join(name)));
            }
        }
    }
    for file in &read_files {
        let whole = fs::canonicalize(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let base = fs::canonicalize(root()).map_err(|error| error.to_string())?;
        let name = whole.strip_prefix(&base).map_err(|error| error.to_string())?;
        if !sent.iter().any(|sent| name.starts_with(sent)) {
            return Err(format!("{} is not sent to the build", name.display()));
        }
    }
    if read_files.len() < 15 { Err(format!("only {read_files:?} are checked")) } else { Ok(()) }
}
