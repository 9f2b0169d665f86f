//! Reads the servers in the configuration files of MCP clients: JSON with a member `mcpServers`, or `servers`.
//!
//! Members that only concern a client are ignored, as each client has its own.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use jsonc_parser::{JsonObject, JsonValue, ParseOptions, parse_to_value};

use super::error::{ConfigError, ConfigProblem};
use super::settings::{ServerTable, TextValue};

/// The members that list servers.
const LISTS: [&str; 2] = ["mcpServers", "servers"];

/// The members with the URL of a server.
const URLS: [&str; 3] = ["url", "serverUrl", "httpUrl"];

/// The folders in a project where clients keep their file.
const CLIENT_FOLDERS: [&str; 3] = [".vscode", ".cursor", ".gemini"];

/// The server of a name in the text of a file; without a name, the only one.
///
/// # Errors
/// When the file is invalid or does not have the server.
pub(super) fn server(path: &Path, text: &str, name: Option<&str>) -> Result<ServerTable, ConfigError> {
    let file = path.display().to_string();
    let problem =
        |message: String| ConfigError::Invalid(vec![ConfigProblem { file: file.clone(), position: None, message }]);
    let parsed = parse_to_value(text, &ParseOptions::default()).map_err(|error| {
        let position = Some((error.line_display(), error.column_display()));
        ConfigError::Invalid(vec![ConfigProblem { file: file.clone(), position, message: error.kind().to_string() }])
    })?;
    let root = parsed.as_ref().and_then(as_object);
    let servers = root.and_then(|root| LISTS.iter().find_map(|list| root.get_object(list)));
    let Some(servers) = servers else {
        return Err(problem("there is no object `mcpServers` or `servers`, which lists the servers".to_owned()));
    };
    // The parser does not keep the order of the file.
    let mut known: Vec<String> = servers.clone().into_iter().map(|(name, _)| name.into_owned()).collect();
    known.sort_unstable();
    let chosen = match (name, known.as_slice()) {
        (Some(name), known) => known.iter().find(|known| *known == name),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    let Some(chosen) = chosen.cloned() else {
        return Err(ConfigError::UnknownServer { file, name: name.map(str::to_owned), known });
    };
    let Some(server) = servers.get_object(&chosen) else {
        return Err(problem(format!("the server `{chosen}` is not an object")));
    };
    read_server(server).map_err(|message| problem(format!("the server `{chosen}`: {message}")))
}

/// The folder of the project that a file is for.
pub(super) fn workspace(path: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new(""));
    let is_client_folder = folder.file_name().is_some_and(|name| CLIENT_FOLDERS.iter().any(|client| name == *client));
    if is_client_folder { folder.parent().unwrap_or(Path::new("")).to_owned() } else { folder.to_owned() }
}

fn read_server(server: &JsonObject) -> Result<ServerTable, String> {
    if server.get("envFile").is_some() {
        return Err(
            "`envFile` is not supported: set the variables in the environment, or list them in `env`".to_owned()
        );
    }
    let mut table = ServerTable {
        command: string(server, "command")?.into_iter().collect(),
        cwd: string(server, "cwd")?,
        env: pairs(server, "env")?,
        header: pairs(server, "headers")?,
        ..ServerTable::default()
    };
    for url in URLS {
        if table.url.is_none() {
            table.url = string(server, url)?;
        }
    }
    for item in server.get_array("args").cloned().into_iter().flatten() {
        match item {
            JsonValue::String(text) => table.command.push(plain(&text)),
            _ => return Err("`args` has an item that is not a string".to_owned()),
        }
    }
    match (table.command.is_empty(), &table.url) {
        (true, None) => Err("it has neither `command` nor `url`".to_owned()),
        // The client would start the command and not use the URL, or the other way round.
        (false, Some(_)) => Err("it has both `command` and `url`: remove one of them".to_owned()),
        (true, Some(_)) | (false, None) => Ok(table),
    }
}

fn string(server: &JsonObject, name: &str) -> Result<Option<TextValue>, String> {
    match server.get(name) {
        None | Some(JsonValue::Null) => Ok(None),
        Some(JsonValue::String(text)) => Ok(Some(plain(text))),
        Some(_) => Err(format!("`{name}` is not a string")),
    }
}

fn pairs(server: &JsonObject, name: &str) -> Result<Vec<(String, TextValue)>, String> {
    let members = match server.get(name) {
        None | Some(JsonValue::Null) => return Ok(Vec::new()),
        Some(JsonValue::Object(members)) => members.clone(),
        Some(_) => return Err(format!("`{name}` is not an object")),
    };
    let pair = |(key, value): (Cow<str>, JsonValue)| match value {
        JsonValue::String(text) => Ok(Some((key.into_owned(), plain(&text)))),
        JsonValue::Number(number) => Ok(Some((key.into_owned(), plain(number)))),
        JsonValue::Boolean(flag) => Ok(Some((key.into_owned(), plain(&flag.to_string())))),
        // A client leaves out what is null.
        JsonValue::Null => Ok(None),
        JsonValue::Object(_) | JsonValue::Array(_) => Err(format!("`{key}` in `{name}` is not a string")),
    };
    let mut members: Vec<_> = members.into_iter().collect();
    members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    members.into_iter().filter_map(|member| pair(member).transpose()).collect()
}

fn plain(text: &str) -> TextValue {
    TextValue { text: text.to_owned(), position: None }
}

fn as_object<'value, 'text>(value: &'value JsonValue<'text>) -> Option<&'value JsonObject<'text>> {
    match value {
        JsonValue::Object(object) => Some(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, name: Option<&str>) -> Result<ServerTable, String> {
        server(Path::new("mcp.json"), text, name).map_err(|error| error.to_string())
    }

    #[test]
    fn the_servers_of_the_common_clients_are_read() {
        let text = r#"{
            // A comment, as VS Code allows.
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "server-files", "${HOME}"], "env": {"A": "1", "N": 2, "X": null}},
                "remote": {"type": "http", "url": "https://example.com/mcp", "headers": {"X-Key": "${KEY}"}, "disabled": true},
            },
        }"#;
        let files = read(text, Some("files")).expect("a server");
        let words: Vec<&str> = files.command.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(words, ["npx", "-y", "server-files", "${HOME}"]);
        let env: Vec<(&str, &str)> =
            files.env.iter().map(|(name, value)| (name.as_str(), value.text.as_str())).collect();
        assert_eq!(env, [("A", "1"), ("N", "2")]);
        let remote = read(text, Some("remote")).expect("a server");
        assert_eq!(remote.url.map(|url| url.text), Some("https://example.com/mcp".to_owned()));
        assert_eq!(remote.header[0].0, "X-Key");
        let vs_code = r#"{"servers": {"only": {"type": "stdio", "command": "./s", "cwd": "${workspaceFolder}"}}}"#;
        assert!(read(vs_code, None).expect("the only server").cwd.is_some());
    }

    #[test]
    fn an_error_lists_the_servers_or_names_the_member() {
        let two = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}"#;
        for (text, name, expected) in [
            (two, Some("c"), "mcp.json: there is no server `c`; its servers are `a`, `b`"),
            (two, None, "choose a server with --server NAME; its servers are `a`, `b`"),
            ("{\n  \"mcpServers\": }", None, "mcp.json:2:"),
            ("{}", None, "no object `mcpServers` or `servers`"),
            (r#"{"servers": {"a": {"args": []}}}"#, None, "the server `a`: it has neither `command` nor `url`"),
            (r#"{"servers": {"a": {"command": 1}}}"#, None, "`command` is not a string"),
            (r#"{"servers": {"a": {"command": "x", "args": [1]}}}"#, None, "`args` has an item"),
            (r#"{"servers": {"a": {"command": "x", "env": []}}}"#, None, "`env` is not an object"),
            (r#"{"servers": {"a": {"command": "x", "envFile": ".env"}}}"#, None, "`envFile` is not supported"),
            (r#"{"servers": {"a": {"command": "x", "url": "y"}}}"#, None, "both `command` and `url`"),
        ] {
            let error = read(text, name).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn the_project_is_around_the_folder_of_the_client() {
        for (path, expected) in
            [(".mcp.json", ""), ("a/.mcp.json", "a"), (".vscode/mcp.json", ""), ("/p/.cursor/mcp.json", "/p")]
        {
            assert_eq!(workspace(Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
