//! Secrets that are passed to reach a server appear in no output, whatever the server does with them.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::json;

use super::address::unused_address;
use super::raw::{HttpRequest, minimal_server, response, serve_response};
use crate::support::{Trial, program, program_command, trial};

/// A token whose encoded forms in JSON and in URLs differ from it.
const TOKEN: &str = r#"h-u\s"h+1/2==t0k3n"#;
const KEY: &str = "k3y-0f-the-h0use";

/// Strings that no output may contain: the secrets, and what remains of them when only a part is masked.
const SECRET_PARTS: [&str; 6] = ["h-u\\s", "h+1/2==", "h%2B1%2F2", "t0k3n", KEY, "0f-the-h0use"];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("hostile/secrets/secrets-that-a-server-echoes-are-masked", secrets_that_a_server_echoes_are_masked),
        trial(
            "hostile/secrets/secrets-that-a-started-server-prints-are-masked",
            secrets_that_a_started_server_prints_are_masked,
        ),
        trial("hostile/secrets/secrets-in-an-error-response-are-masked", secrets_in_an_error_response_are_masked),
        trial("hostile/secrets/a-short-secret-is-rejected", || {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
            let arguments = ["--header", "Authorization: Bearer h4sh", "http://127.0.0.1:9/mcp"];
            let output = program(folder, &arguments)?.with_code(2)?;
            let printed = output.text.split("--- stdout").nth(1).unwrap_or_default();
            if printed.contains("shorter than 6") && !printed.contains("h4sh") { Ok(()) } else { Err(output.text) }
        }),
        trial("hostile/secrets/an-invalid-argument-is-not-printed", an_invalid_argument_is_not_printed),
    ]
}

/// Runs the program with both secrets in a temporary folder, and fails if anything that it wrote contains them.
fn run_without_leak(options: &[&str], server: &[&str]) -> Result<(Option<i32>, String), String> {
    let describe_error = |error: io::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(describe_error)?;
    let mut command = program_command();
    command.current_dir(folder.path()).env("SECRET_TOKEN", TOKEN).env_remove("CI").stdin(std::process::Stdio::null());
    command.args(["-v", "--timeout", "2s", "--startup-timeout", "5s", "--fuzz", "off"]);
    command.args(["--save-transcript", "transcript.jsonl"]);
    for format in ["json", "junit", "sarif", "tap", "markdown", "github", "html", "text"] {
        command.args(["--report", &format!("{format}=report.{format}")]);
    }
    let output = command.args(options).arg("--").args(server).output().map_err(describe_error)?;
    let mut written = vec![
        ("standard output".to_owned(), String::from_utf8_lossy(&output.stdout).into_owned()),
        ("standard error".to_owned(), String::from_utf8_lossy(&output.stderr).into_owned()),
    ];
    for entry in fs::read_dir(folder.path()).map_err(describe_error)?.flatten() {
        let text = fs::read(entry.path()).map_err(describe_error)?;
        written.push((entry.path().display().to_string(), String::from_utf8_lossy(&text).into_owned()));
    }
    for (source, text) in &written {
        for part in SECRET_PARTS {
            if let Some(at) = text.find(part) {
                let from = (at.saturating_sub(200)..at).find(|from| text.is_char_boundary(*from)).unwrap_or(at);
                let shown: String = text[from..].chars().take(400).collect();
                return Err(format!("{source} contains `{part}`: {shown}"));
            }
        }
    }
    let sections = written.iter().map(|(source, text)| format!("--- {source}\n{text}")).collect::<Vec<_>>();
    Ok((output.status.code(), sections.join("\n")))
}

fn key_header() -> String {
    format!("X-Api-Key: {KEY}")
}

/// Both secrets as the server received them.
fn secrets_of(request: &HttpRequest) -> String {
    let received = |name: &str| request.header(name).unwrap_or("<absent>").to_owned();
    format!("{} and {}", received("authorization"), received("x-api-key"))
}

/// A server that repeats the received secrets in every part of a response.
fn echo_secrets(request: &HttpRequest) -> Vec<u8> {
    let secrets = secrets_of(request);
    let message = request.message();
    let Some(id) = message.get("id").filter(|_| request.method == "POST") else { return minimal_server(request) };
    let body = match message["method"].as_str() {
        Some("initialize") => json!({ "jsonrpc": "2.0", "id": id, "result": {
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "echo", "version": secrets }, "instructions": secrets,
        } }),
        Some("ping") => json!({ "jsonrpc": "2.0", "id": id, "result": { "received": secrets } }),
        Some("tools/list") => json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [
            { "name": secrets, "description": secrets, "inputSchema": { "type": "string", "title": secrets } },
        ] } }),
        Some("tools/call") => json!({ "jsonrpc": "2.0", "id": id, "result": { "content": secrets } }),
        _ => json!({ "jsonrpc": "2.0", "id": secrets, "error": { "code": secrets, "message": secrets } }),
    };
    let headers = [("content-type", "application/json"), ("x-received", secrets.as_str())];
    if message["method"] == "tools/call" {
        let text = format!("id: {secrets}\nevent: {secrets}\nretry: {secrets}\ndata: {body}\n\n: {secrets}\n\n");
        return response("200 OK", &[("content-type", "text/event-stream"), headers[1]], &text);
    }
    response("200 OK", &headers, &body.to_string())
}

fn secrets_that_a_server_echoes_are_masked() -> Result<(), String> {
    let address = format!("http://{}/mcp", serve_response(echo_secrets));
    let (code, text) = run_without_leak(&["--bearer-env", "SECRET_TOKEN", "--header", &key_header()], &[&address])?;
    // The server must have been judged, and its echoes must be in the output.
    if code != Some(1) || !text.contains("[secret]") || !text.contains("--bearer-env SECRET_TOKEN") {
        return Err(format!("exit code {code:?}\n{text}"));
    }
    let transcript = text.split("/transcript.jsonl\n").nth(1).and_then(|rest| rest.split("\n--- ").next());
    for (what, found) in [("the server", Some(text.as_str())), ("the transcript", transcript)] {
        if !found.is_some_and(|found| found.contains("[secret] and [secret]")) {
            return Err(format!("the secrets did not reach {what}"));
        }
    }
    let header = format!("Authorization: Bearer {TOKEN}");
    let (code, text) = run_without_leak(&["--header", &header, "--header", &key_header()], &[&address])?;
    if code == Some(1) { Ok(()) } else { Err(format!("exit code {code:?}\n{text}")) }
}

fn secrets_that_a_started_server_prints_are_masked() -> Result<(), String> {
    let address = format!("http://{}/mcp", unused_address());
    let script = r#"printf '%s\n' "we got $SECRET_TOKEN" >&2; printf '%s\n' "$SECRET_TOKEN"; sleep 0.3; exit 3"#;
    let options = ["--bearer-env", "SECRET_TOKEN", "--url", &address];
    let (code, text) = run_without_leak(&options, &["sh", "-c", script])?;
    if code == Some(2) && text.contains("we got [secret]") { Ok(()) } else { Err(format!("{code:?}\n{text}")) }
}

fn secrets_in_an_error_response_are_masked() -> Result<(), String> {
    let address = serve_response(|request| {
        let secrets = secrets_of(request);
        let challenge = format!("Bearer error_description=\"{secrets}\"");
        response("401 Unauthorized", &[("www-authenticate", &challenge), ("location", &secrets)], &secrets)
    });
    let address = format!("http://{address}/mcp");
    let (code, text) = run_without_leak(&["--bearer-env", "SECRET_TOKEN", "--header", &key_header()], &[&address])?;
    // Cases that need no token are judged, and may have findings.
    if code == Some(0) || !text.contains("HTTP status 401") {
        return Err(format!("exit code {code:?}\n{text}"));
    }
    let address = serve_response(|request| {
        response("302 Found", &[("location", &format!("http://x/{}", secrets_of(request)))], "")
    });
    let (code, text) = run_without_leak(
        &["--bearer-env", "SECRET_TOKEN", "--header", &key_header()],
        &[&format!("http://{address}/")],
    )?;
    if code == Some(2) && text.contains("redirect") { Ok(()) } else { Err(format!("exit code {code:?}\n{text}")) }
}

fn an_invalid_argument_is_not_printed() -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for arguments in [
        vec!["--header".to_owned(), format!("X-Api-Key {KEY}"), "http://127.0.0.1:9/mcp".to_owned()],
        vec!["--header".to_owned(), format!("X Api Key: {KEY}"), "http://127.0.0.1:9/mcp".to_owned()],
        vec!["--header".to_owned(), format!("X-Api-Key: {KEY}\u{7}"), "http://127.0.0.1:9/mcp".to_owned()],
        vec![format!("http://me:{KEY}@127.0.0.1:9/mcp")],
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = program(folder, &arguments)?.with_code(2)?;
        let printed = output.text.split("--- stdout").nth(1).unwrap_or_default();
        if printed.contains(KEY) {
            return Err(format!("the secret is printed: {printed}"));
        }
    }
    Ok(())
}
