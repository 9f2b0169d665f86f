"""A stdio server whose tools validate their arguments by hand, with one mistake of a validator at most.

`server.py [--fault NAME]` serves the tools of `tools.json`; the mistakes are in `faults.tsv`, each with arguments that
show it and with the bug report that it follows. Without a fault the server asserts every keyword of its schemas and
treats `format` as an annotation. It needs nothing but the standard library.

`server.py --check` prints every fault whose arguments are not judged as the table says, `server.py --tools` the tools.
"""

import json
import pathlib
import sys
import threading

# The folder belongs to the sources.
sys.dont_write_bytecode = True

from validator import Invalid, Validator, decode

FOLDER = pathlib.Path(__file__).parent
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
COLUMNS = ["name", "tool", "class", "effect", "arguments", "source", "description"]


def faults():
    lines = (FOLDER / "faults.tsv").read_text(encoding="utf-8").splitlines()
    return [dict(zip(COLUMNS, line.split("\t"), strict=True)) for line in lines if line and not line.startswith("#")]


class Server:
    def __init__(self, fault):
        self.tools = json.loads((FOLDER / "tools.json").read_text(encoding="utf-8"))
        self.validators = {tool["name"]: Validator(tool["inputSchema"], fault) for tool in self.tools}

    def answer(self, line):
        """The response to a line, or None for a notification."""
        try:
            message = decode(line)
        except (ValueError, RecursionError):
            return failure(None, -32700, "the message is not JSON")
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            return failure(None, -32600, "the message is not a request")
        if "id" not in message:
            return None
        params = message.get("params", {})
        if not isinstance(params, dict):
            return failure(message["id"], -32602, "params is not an object")
        return self.result(message["id"], message["method"], params)

    def result(self, identifier, method, params):
        if method == "initialize":
            asked = params.get("protocolVersion")
            result = {
                "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "validators", "version": "1.0.0"},
            }
        elif method == "ping":
            result = {}
        elif method == "tools/list":
            result = {"tools": self.tools}
        elif method == "tools/call":
            name, arguments = params.get("name"), params.get("arguments", {})
            if not isinstance(name, str) or name not in self.validators:
                return failure(identifier, -32602, "the tool is unknown")
            if not isinstance(arguments, dict):
                return failure(identifier, -32602, "arguments is not an object")
            try:
                self.validators[name].check(arguments)
                result = {"content": [{"type": "text", "text": "done"}]}
            except Invalid as invalid:
                text = f"Input validation error: {invalid}"
                result = {"content": [{"type": "text", "text": text}], "isError": True}
        else:
            return failure(identifier, -32601, "the method is unknown")
        return {"jsonrpc": "2.0", "id": identifier, "result": result}


def failure(identifier, code, message):
    return {"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": message}}


def serve(fault):
    server = Server(fault)
    for line in sys.stdin.buffer:
        if line.strip():
            response = server.answer(line)
            if response is not None:
                sys.stdout.write(json.dumps(response, separators=(",", ":")) + "\n")
                sys.stdout.flush()


def check():
    tools = {tool["name"]: tool["inputSchema"] for tool in json.loads((FOLDER / "tools.json").read_text("utf-8"))}
    for fault in faults():
        arguments = decode(fault["arguments"].encode())
        schema = tools[fault["tool"]]
        judged = [Validator(schema, name).accepts(arguments) for name in (None, fault["name"])]
        if judged != [fault["effect"] == "rejects", fault["effect"] == "accepts"]:
            print(f"{fault['name']}: without the fault {judged[0]}, with it {judged[1]}")


def main(arguments):
    fault = None
    if arguments == ["--tools"]:
        print((FOLDER / "tools.json").read_text(encoding="utf-8"))
        return
    if arguments[:1] == ["--check"]:
        return check()
    if arguments[:1] == ["--fault"] and len(arguments) == 2:
        fault = arguments[1]
        if all(known["name"] != fault for known in faults()):
            sys.exit(f"{fault} is not in faults.tsv")
    elif arguments:
        sys.exit("usage: server.py [--fault NAME | --check | --tools]")
    return serve(fault)


if __name__ == "__main__":
    # Messages with a thousand levels are read and answered.
    sys.setrecursionlimit(30_000)
    threading.stack_size(256 << 20)
    thread = threading.Thread(target=main, args=(sys.argv[1:],))
    thread.start()
    thread.join()
