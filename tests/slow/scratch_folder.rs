//! A folder with files for servers that read files.

use std::fs;
use std::path::Path;

use mcp_conformance::report::Report;
use mcp_conformance::verdict::Verdict;
use tempfile::TempDir;

use crate::support::{Trial, describe_error, program, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("scratch/files-of-the-run-are-read-and-removed", files_of_the_run_are_read_and_removed),
        trial("scratch/an-empty-folder-leaves-the-tool-unserved", an_empty_folder_leaves_the_tool_unserved),
    ]
}

/// A server with one tool, which returns a picture inside the folder that an argument or a variable names.
const SERVER: &str = r#"import base64, json, os, sys
root = (sys.argv[1:] or [os.environ.get("PICTURES")])[0]
with open("roots.txt", "a") as seen:
    seen.write(root + "\n")
schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
tool = {"name": "read_picture", "description": "Reads a picture inside the folder.", "inputSchema": schema}

def called(arguments):
    try:
        path = os.path.realpath(arguments["path"])
        with open(path, "rb") as file:
            data = file.read()
        if os.path.commonpath([root, path]) != root or data[:4] != b"\x89PNG":
            raise ValueError("not a picture inside the folder")
        content = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(data).decode()}
        return {"content": [content]}
    except (KeyError, TypeError, ValueError, OSError) as error:
        return {"content": [{"type": "text", "text": type(error).__name__}], "isError": True}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    params = message.get("params") or {}
    results = {
        "initialize": lambda: {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                               "serverInfo": {"name": "pictures", "version": "1"}},
        "ping": lambda: {},
        "tools/list": lambda: {"tools": [tool]},
        "tools/call": lambda: called(params.get("arguments") or {}),
    }
    answer = results.get(message["method"])
    outcome = {"result": answer()} if answer else {"error": {"code": -32601, "message": "unknown method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)
"#;

/// How the rule about the bytes of images ends for the server, with these options and these words after its name; and the
/// folders that it was given.
fn judged(options: &[&str], words: &[&str]) -> Result<(Option<Verdict>, Vec<String>), String> {
    let folder = TempDir::new().map_err(describe_error)?;
    let folder = folder.path();
    fs::write(folder.join("server.py"), SERVER).map_err(describe_error)?;
    let run =
        ["--quiet", "--revision", "2025-06-18", "--fuzz", "off", "--select", "content", "--report", "json=r.json"];
    program(folder, &[&run[..], options, &["--", "python3", "server.py"], words].concat())?;
    let report = fs::read_to_string(folder.join("r.json")).map_err(describe_error)?;
    let report = Report::parse(&report).map_err(describe_error)?;
    let verdict = report.results().find(|result| result.case == "content/image-signature").map(|result| result.verdict);
    let roots = fs::read_to_string(folder.join("roots.txt")).map_err(describe_error)?;
    let mut roots: Vec<String> = roots.lines().map(str::to_owned).collect();
    roots.dedup();
    Ok((verdict, roots))
}

fn files_of_the_run_are_read_and_removed() -> Result<(), String> {
    for (options, words) in [(vec![], vec!["{scratch}"]), (vec!["--env", "PICTURES={scratch}"], vec![])] {
        let (verdict, roots) = judged(&options, &words)?;
        let [root] = roots.as_slice() else { return Err(format!("there is not one folder: {roots:?}")) };
        if verdict != Some(Verdict::Pass) {
            return Err(format!("{words:?}: no picture was judged: {verdict:?}"));
        }
        if Path::new(root).exists() {
            return Err(format!("{root} was not removed"));
        }
    }
    Ok(())
}

fn an_empty_folder_leaves_the_tool_unserved() -> Result<(), String> {
    let empty = TempDir::new().map_err(describe_error)?;
    let path = fs::canonicalize(empty.path()).map_err(describe_error)?;
    let path = path.to_str().ok_or("the path is no text")?;
    match judged(&[], &[path])? {
        (Some(Verdict::Skip), _) => Ok(()),
        (verdict, _) => Err(format!("a picture was judged: {verdict:?}")),
    }
}
