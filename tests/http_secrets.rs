//! What is given to reach a server is shown nowhere, whatever the server does with it.

use std::fs;
use std::io;
use std::path::Path;

use libtest_mimic::Trial;
use serde_json::json;

use crate::raw::{HttpRequest, answer, minimal_server, serve_response, unused_address};
use crate::{PROGRAM, trial};

/// A token that is written otherwise within JSON and within an address.
const TOKEN: &str = r#"h-u\s"h+1/2==t0k3n"#;
const KEY: &str = "k3y-0f-the-h0use";

/// Pieces that no output may hold: the secrets, and what is left of them where a part was masked.
const PIECES: [&str; 6] = ["h-u\\s", "h+1/2==", "h%2B1%2F2", "t0k3n", KEY, "0f-the-h0use"];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("hostile/secrets/repeated-by-the-server", what_a_server_repeats_is_masked),
        trial("hostile/secrets/written-to-its-streams", what_a_started_server_writes_is_masked),
        trial("hostile/secrets/refused", what_a_refusal_repeats_is_masked),
        trial("hostile/secrets/too-short-to-be-masked", || {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
            let words = ["--header", "Authorization: Bearer h4sh", "http://127.0.0.1:9/mcp"];
            let ran = crate::program(folder, &words)?.with_code(2)?;
            let output = ran.told.split("--- stdout").nth(1).unwrap_or_default();
            if output.contains("shorter than 6") && !output.contains("h4sh") { Ok(()) } else { Err(ran.told) }
        }),
        trial("hostile/secrets/misspelt", an_argument_that_is_none_is_not_repeated),
    ]
}

/// Runs the program with both secrets in a folder of its own, and looks through everything that it wrote.
fn holds_none(options: &[&str], server: &[&str]) -> Result<(Option<i32>, String), String> {
    let told = |error: io::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(told)?;
    let mut command = std::process::Command::new(PROGRAM);
    command.current_dir(folder.path()).env("HUSH", TOKEN).env_remove("CI").stdin(std::process::Stdio::null());
    command.args(["-v", "--timeout", "2s", "--startup-timeout", "5s", "--fuzz", "off"]);
    for format in ["json", "junit", "sarif", "tap", "markdown", "github", "html", "text"] {
        command.args(["--report", &format!("{format}=report.{format}")]);
    }
    let output = command.args(options).arg("--").args(server).output().map_err(told)?;
    let mut written = vec![
        ("standard output".to_owned(), String::from_utf8_lossy(&output.stdout).into_owned()),
        ("standard error".to_owned(), String::from_utf8_lossy(&output.stderr).into_owned()),
    ];
    for entry in fs::read_dir(folder.path()).map_err(told)?.flatten() {
        let text = fs::read(entry.path()).map_err(told)?;
        written.push((entry.path().display().to_string(), String::from_utf8_lossy(&text).into_owned()));
    }
    for (place, text) in &written {
        for piece in PIECES {
            if let Some(at) = text.find(piece) {
                let from = (at.saturating_sub(200)..at).find(|from| text.is_char_boundary(*from)).unwrap_or(at);
                let shown: String = text[from..].chars().take(400).collect();
                return Err(format!("{place} holds `{piece}`: {shown}"));
            }
        }
    }
    let names = written.iter().map(|(place, text)| format!("--- {place}\n{text}")).collect::<Vec<_>>();
    Ok((output.status.code(), names.join("\n")))
}

fn key() -> String {
    format!("X-Api-Key: {KEY}")
}

/// Both secrets as they came with a request.
fn gossip(asked: &HttpRequest) -> String {
    let came = |name: &str| asked.header(name).unwrap_or("<absent>").to_owned();
    format!("{} and {}", came("authorization"), came("x-api-key"))
}

/// A server that repeats what it was given wherever there is room.
fn gossiping(asked: &HttpRequest) -> Vec<u8> {
    let gossip = gossip(asked);
    let message = asked.message();
    let Some(id) = message.get("id").filter(|_| asked.method == "POST") else { return minimal_server(asked) };
    let body = match message["method"].as_str() {
        Some("initialize") => json!({ "jsonrpc": "2.0", "id": id, "result": {
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "gossip", "version": gossip }, "instructions": gossip,
        } }),
        Some("ping") => json!({ "jsonrpc": "2.0", "id": id, "result": { "told": gossip } }),
        Some("tools/list") => json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [
            { "name": gossip, "description": gossip, "inputSchema": { "type": "string", "title": gossip } },
        ] } }),
        Some("tools/call") => json!({ "jsonrpc": "2.0", "id": id, "result": { "content": gossip } }),
        _ => json!({ "jsonrpc": "2.0", "id": gossip, "error": { "code": gossip, "message": gossip } }),
    };
    let headers = [("content-type", "application/json"), ("x-told", gossip.as_str())];
    if message["method"] == "tools/call" {
        let text = format!("id: {gossip}\nevent: {gossip}\nretry: {gossip}\ndata: {body}\n\n: {gossip}\n\n");
        return answer("200 OK", &[("content-type", "text/event-stream"), headers[1]], &text);
    }
    answer("200 OK", &headers, &body.to_string())
}

fn what_a_server_repeats_is_masked() -> Result<(), String> {
    let address = format!("http://{}/mcp", serve_response(gossiping));
    let (code, told) = holds_none(&["--bearer-env", "HUSH", "--header", &key()], &[&address])?;
    // It has to have been judged, and what it repeated has to have been met.
    if code != Some(1) || !told.contains("[secret]") || !told.contains("--bearer-env HUSH") {
        return Err(format!("exit code {code:?}\n{told}"));
    }
    if !told.contains("[secret] and [secret]") {
        return Err("the secrets did not reach the server".to_owned());
    }
    let header = format!("Authorization: Bearer {TOKEN}");
    let (code, told) = holds_none(&["--header", &header, "--header", &key()], &[&address])?;
    if code == Some(1) { Ok(()) } else { Err(format!("exit code {code:?}\n{told}")) }
}

fn what_a_started_server_writes_is_masked() -> Result<(), String> {
    let address = format!("http://{}/mcp", unused_address());
    let script = r#"printf '%s\n' "we got $HUSH" >&2; printf '%s\n' "$HUSH"; sleep 0.3; exit 3"#;
    let options = ["--bearer-env", "HUSH", "--url", &address];
    let (code, told) = holds_none(&options, &["sh", "-c", script])?;
    if code == Some(2) && told.contains("we got [secret]") { Ok(()) } else { Err(format!("{code:?}\n{told}")) }
}

fn what_a_refusal_repeats_is_masked() -> Result<(), String> {
    let address = serve_response(|asked| {
        let gossip = gossip(asked);
        let challenge = format!("Bearer error_description=\"{gossip}\"");
        answer("401 Unauthorized", &[("www-authenticate", &challenge), ("location", &gossip)], &gossip)
    });
    let address = format!("http://{address}/mcp");
    let (code, told) = holds_none(&["--bearer-env", "HUSH", "--header", &key()], &[&address])?;
    // What is seen from outside is judged, and may be found wanting.
    if code == Some(0) || !told.contains("HTTP status 401") {
        return Err(format!("exit code {code:?}\n{told}"));
    }
    let address =
        serve_response(|asked| answer("302 Found", &[("location", &format!("http://x/{}", gossip(asked)))], ""));
    let (code, told) = holds_none(&["--bearer-env", "HUSH", "--header", &key()], &[&format!("http://{address}/")])?;
    if code == Some(2) && told.contains("redirect") { Ok(()) } else { Err(format!("exit code {code:?}\n{told}")) }
}

fn an_argument_that_is_none_is_not_repeated() -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for arguments in [
        vec!["--header".to_owned(), format!("X-Api-Key {KEY}"), "http://127.0.0.1:9/mcp".to_owned()],
        vec!["--header".to_owned(), format!("X Api Key: {KEY}"), "http://127.0.0.1:9/mcp".to_owned()],
        vec!["--header".to_owned(), format!("X-Api-Key: {KEY}\u{7}"), "http://127.0.0.1:9/mcp".to_owned()],
        vec![format!("http://me:{KEY}@127.0.0.1:9/mcp")],
    ] {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ran = crate::program(folder, &words)?.with_code(2)?;
        let output = ran.told.split("--- stdout").nth(1).unwrap_or_default();
        if output.contains(KEY) {
            return Err(format!("it is repeated: {output}"));
        }
    }
    Ok(())
}
