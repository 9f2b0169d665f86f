//! What GitHub reads besides the action and the workflows: the issue forms, the security policy and the citation.

use std::fs;

use serde_json::{Value, json};

use super::declared::documents;
use super::{folder, read, root};
use crate::support::program;

const FORMS: &str = ".github/ISSUE_TEMPLATE";

/// What every form asks for, and requires.
const QUESTIONS: [&str; 4] = ["version", "command", "server", "report"];

/// The shape of an issue form, as far as this project uses it.
fn form_schema() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    json!({
        "type": "object",
        "required": ["name", "description", "body"],
        "properties": {
            "name": text, "description": text, "title": text,
            "body": {"type": "array", "minItems": 1, "items": {
                "type": "object",
                "required": ["type", "id", "attributes", "validations"],
                "properties": {
                    "type": {"enum": ["input", "textarea"]},
                    "id": {"type": "string", "pattern": "^[a-z-]+$"},
                    "attributes": {
                        "type": "object",
                        "required": ["label"],
                        "properties": {"label": text, "description": text, "placeholder": text, "render": text},
                        "additionalProperties": false
                    },
                    "validations": {
                        "type": "object",
                        "required": ["required"],
                        "properties": {"required": {"type": "boolean"}},
                        "additionalProperties": false
                    }
                },
                "additionalProperties": false
            }}
        },
        "additionalProperties": false
    })
}

fn check_form(form: &Value) -> Result<(), String> {
    let validator = jsonschema::validator_for(&form_schema()).map_err(|error| error.to_string())?;
    if let Some(error) = validator.iter_errors(form).next() {
        return Err(format!("at {}: {error}", error.instance_path()));
    }
    let fields: Vec<&Value> = form["body"].as_array().into_iter().flatten().collect();
    for question in QUESTIONS {
        let asked: Vec<_> = fields.iter().filter(|field| field["id"] == question).collect();
        let [field] = asked.as_slice() else { return Err(format!("`{question}` is asked {} times", asked.len())) };
        if field["validations"]["required"] != true {
            return Err(format!("`{question}` may be left out"));
        }
    }
    let report = fields.iter().find(|field| field["id"] == "report").map(|field| &field["attributes"]["description"]);
    let describes = report
        .and_then(|text| text.as_str())
        .is_some_and(|text| text.contains("`--report json=report.json`") && text.contains("emove what is secret"));
    if describes { Ok(()) } else { Err("the form does not say how to make a report, or what to remove".to_owned()) }
}

pub(super) fn the_issue_forms_ask_for_the_report() -> Result<(), String> {
    let mut forms = Vec::new();
    for file in fs::read_dir(root().join(FORMS)).map_err(|error| error.to_string())? {
        let name = file.map_err(|error| error.to_string())?.file_name().display().to_string();
        if name != "config.yml" {
            let form = documents(&format!("{FORMS}/{name}"))?.pop().ok_or_else(|| format!("{name} is empty"))?;
            check_form(&form).map_err(|error| format!("{name}: {error}"))?;
            forms.push(form);
        }
    }
    // Each of these no longer asks: the check sees it.
    let form = forms.first().ok_or("there is no form")?;
    let fields = form["body"].as_array().ok_or("the form has no fields")?;
    for (at, field) in fields.iter().enumerate().filter(|(_, field)| QUESTIONS.iter().any(|name| field["id"] == *name))
    {
        for (key, wrong) in
            [("id", json!("other")), ("type", json!("text")), ("validations", json!({"required": false}))]
        {
            let mut changed = form.clone();
            changed["body"][at][key] = wrong.clone();
            if check_form(&changed).is_ok() {
                return Err(format!("{wrong} as {key} of {field} is not noticed"));
            }
        }
    }
    // What the forms say to do works.
    let folder = folder()?;
    program(folder.path(), &["--version"])?.with_code(0)?.shows("mcp-conformance ")?;
    let judge = ["--report", "json=report.json", "--save-transcript", "messages.jsonl", "--select", "lifecycle/ping"];
    let server = [crate::support::PROGRAM, "serve"];
    program(folder.path(), &[&judge[..], &["--fuzz", "off", "--revision", "latest", "--"], &server].concat())?;
    for file in ["report.json", "messages.jsonl"] {
        if read(&folder.path().join(file))?.is_empty() {
            return Err(format!("{file} is empty"));
        }
    }
    Ok(())
}

pub(super) fn the_citation_is_that_of_the_package() -> Result<(), String> {
    let citation = documents("CITATION.cff")?.pop().ok_or("CITATION.cff is empty")?;
    let licences: Vec<&str> = env!("CARGO_PKG_LICENSE").split(" OR ").collect();
    let expected = json!({
        "cff-version": "1.2.0",
        "type": "software",
        "title": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "license": licences
    });
    for (name, value) in expected.as_object().into_iter().flatten() {
        if citation[name] != *value {
            return Err(format!("{name} is {}, not {value}", citation[name]));
        }
    }
    for name in ["message", "abstract"] {
        if citation[name].as_str().is_none_or(str::is_empty) {
            return Err(format!("{name} is missing"));
        }
    }
    // The holder of the copyright is who is cited.
    let author = citation["authors"][0]["name"].as_str().unwrap_or_default();
    let holder = read(&root().join("LICENSE-MIT"))?;
    let holder =
        holder.lines().find_map(|line| line.strip_prefix("Copyright (c) ")?.split_once(' ')).map(|(_, name)| name);
    if holder.is_some_and(|holder| holder.eq_ignore_ascii_case(author)) {
        Ok(())
    } else {
        Err(format!("{author} is cited, and the copyright is that of {holder:?}"))
    }
}
