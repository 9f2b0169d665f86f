"""A small, careful MCP server to build test servers on: 2024-11-05 to 2025-11-25, stdio and Streamable HTTP.

A test server subclasses Server, overrides what it does wrong, and ends with main(Class).
Inside an override, self.buggy says whether the bug is wanted (that is: no --fixed).
"""
import json
import math
import os
import re
import signal
import socket
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
LATEST = REVISIONS[-1]
PARSE, INVALID, NO_METHOD, BAD_PARAMS, INTERNAL, NO_RESOURCE = -32700, -32600, -32601, -32602, -32603, -32002

sys.setrecursionlimit(20000)
threading.stack_size(64 * 1024 * 1024)
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)


class RpcError(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class ToolError(Exception):
    """The tool ran and failed: told to the model, not to the protocol."""


class Cancelled(Exception):
    pass


# --- JSON -----------------------------------------------------------------------------------------

def _no_constant(name):
    raise ValueError("%s is not JSON" % name)


def decode(raw):
    return json.loads(raw.decode("utf-8"), parse_constant=_no_constant)


def encode(message):
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii")


def is_id(value):
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


# --- What a call knows ----------------------------------------------------------------------------

class Session:
    def __init__(self):
        self.key = uuid.uuid4().hex
        self.version = None
        self.calls = {}
        self.lock = threading.Lock()
        self.extra = {}

    def at_least(self, revision):
        return self.version is not None and self.version >= revision


class Call:
    """One running request; `send` writes a message to the client that asked."""

    def __init__(self, session, request_id, params, send):
        self.session, self.id, self.send = session, request_id, send
        self.cancelled = threading.Event()
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        self.token = token if is_id(token) else None

    def progress(self, done, total, text):
        if self.token is None or self.send is None:
            return
        params = {"progressToken": self.token, "progress": done, "total": total}
        if self.session.at_least("2025-03-26"):
            params["message"] = text
        self.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    def sleep(self, seconds):
        if self.cancelled.wait(seconds):
            raise Cancelled()


# --- Arguments ------------------------------------------------------------------------------------

def _is_type(value, name):
    if name == "object":
        return isinstance(value, dict)
    if name == "array":
        return isinstance(value, list)
    if name == "string":
        return isinstance(value, str)
    if name == "boolean":
        return isinstance(value, bool)
    if name == "null":
        return value is None
    if isinstance(value, bool):
        return False
    if name == "integer":
        return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value) and value == int(value))
    return isinstance(value, (int, float))


def fault(value, schema, where="arguments"):
    """What is wrong with a value, or None: the few keywords that the tools here use."""
    if schema is True or schema == {}:
        return None
    kind = schema.get("type")
    if kind and not _is_type(value, kind):
        return "%s must be of type %s" % (where, kind)
    if "enum" in schema and not any(value == e and type(value) is type(e) for e in schema["enum"]):
        return "%s must be one of %s" % (where, ", ".join(map(str, schema["enum"])))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if isinstance(value, float) and not math.isfinite(value):
            return "%s is too large" % where
        if "minimum" in schema and value < schema["minimum"]:
            return "%s must be at least %s" % (where, schema["minimum"])
        if "maximum" in schema and value > schema["maximum"]:
            return "%s must be at most %s" % (where, schema["maximum"])
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            return "%s is too short" % where
        if "maxLength" in schema and len(value) > schema["maxLength"]:
            return "%s is too long" % where
        if "pattern" in schema and not re.search(schema["pattern"].replace("$", r"\Z"), value):
            return "%s does not match %s" % (where, schema["pattern"])
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                return "%s is missing" % name
        properties = schema.get("properties", {})
        for name, item in value.items():
            if name in properties:
                found = fault(item, properties[name], name)
                if found:
                    return found
            elif schema.get("additionalProperties") is False:
                return "there is an argument that this tool does not have"
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            found = fault(item, schema["items"], "%s[%d]" % (where, number))
            if found:
                return found
    return None


class Tool:
    def __init__(self, name, description, properties, run, required=None, output=None):
        self.name, self.description, self.run, self.output = name, description, run, output
        self.schema = {"type": "object", "properties": properties, "additionalProperties": False}
        required = list(properties) if required is None else required
        if required:
            self.schema["required"] = required

    def describe(self, session):
        shown = {"name": self.name, "description": self.description, "inputSchema": self.schema}
        if session.at_least("2025-03-26"):
            shown["annotations"] = {"readOnlyHint": True}
        if self.output is not None and session.at_least("2025-06-18"):
            shown["outputSchema"] = self.output
        return shown


BOOKS = ["A Field Guide to Lichens", "Bridges of the North", "Clocks and Their Makers",
         "Lichens of the Coast", "Rivers in Winter", "The Weather Book"]


def echo(call, args):
    return args["text"]


def add(call, args):
    try:
        total = args["a"] + args["b"]
    except OverflowError:
        raise ToolError("the numbers are too large to add")
    if isinstance(total, float) and not math.isfinite(total):
        raise ToolError("the sum is too large")
    return {"sum": total}


def search(call, args):
    found = [b for b in BOOKS if args["query"].casefold() in b.casefold()]
    return "\n".join(found) if found else "nothing found"


def slow_count(call, args):
    to = int(args["to"])
    for number in range(1, to + 1):
        call.sleep(0.1)
        call.progress(number, to, "counted to %d" % number)
    return "counted to %d" % to


ECHO = Tool("echo", "Returns the text it is given.", {"text": {"type": "string", "description": "Text to return"}}, echo)
ADD = Tool("add", "Adds two numbers.", {"a": {"type": "number"}, "b": {"type": "number"}}, add,
           output={"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]})
SEARCH = Tool("search_books", "Lists the books whose title contains a word.",
              {"query": {"type": "string", "description": "Part of a title", "minLength": 1}}, search)
SLOW = Tool("slow_count", "Counts to a number, ten a second, and tells how far it is.",
            {"to": {"type": "integer", "minimum": 1, "maximum": 50, "description": "Number to count to"}}, slow_count)


# --- The server -----------------------------------------------------------------------------------

class Server:
    name = "test-server"
    version = "1.0.0"
    transport = "stdio"
    sse_calls = False          # HTTP: answer a call that wants progress with an SSE stream

    def __init__(self, buggy):
        self.buggy = buggy
        self.tools = [ECHO, ADD, SEARCH, SLOW]
        self.resources = {}    # uri -> (name, text)
        self.prompts = {}      # name -> (description, argument names, template)
        self.sessions = {}
        self.sessions_lock = threading.Lock()

    # What it offers

    def capabilities(self, session):
        offered = {}
        if self.tools:
            offered["tools"] = {}
        if self.resources:
            offered["resources"] = {}
        if self.prompts:
            offered["prompts"] = {}
        return offered

    def methods(self, session):
        served = {"ping": self.do_ping, "initialize": self.do_initialize}
        if self.tools:
            served.update({"tools/list": self.do_tools_list, "tools/call": self.do_tools_call})
        if self.resources:
            served.update({"resources/list": self.do_resources_list, "resources/read": self.do_resources_read,
                           "resources/templates/list": self.do_templates_list})
        if self.prompts:
            served.update({"prompts/list": self.do_prompts_list, "prompts/get": self.do_prompts_get})
        return served

    # Methods

    def do_ping(self, call, params):
        return {}

    def do_initialize(self, call, params):
        session = call.session
        if session.version is not None:
            raise RpcError(INVALID, "this session is initialized already")
        asked = params.get("protocolVersion")
        if not isinstance(asked, str):
            raise RpcError(BAD_PARAMS, "protocolVersion must be a string")
        if not isinstance(params.get("capabilities"), dict):
            raise RpcError(BAD_PARAMS, "capabilities must be an object")
        info = params.get("clientInfo")
        if not isinstance(info, dict) or not isinstance(info.get("name"), str) or not isinstance(info.get("version"), str):
            raise RpcError(BAD_PARAMS, "clientInfo must have a name and a version")
        session.version = asked if asked in REVISIONS else LATEST
        return {"protocolVersion": session.version, "capabilities": self.capabilities(session),
                "serverInfo": {"name": self.name, "version": self.version}}

    def no_cursor(self, params):
        if "cursor" in params:
            raise RpcError(BAD_PARAMS, "this server gave out no such cursor")

    def do_tools_list(self, call, params):
        self.no_cursor(params)
        return {"tools": [t.describe(call.session) for t in self.tools]}

    def do_tools_call(self, call, params):
        name = params.get("name")
        if not isinstance(name, str):
            raise RpcError(BAD_PARAMS, "name must be a string")
        tool = next((t for t in self.tools if t.name == name), None)
        if tool is None:
            raise RpcError(BAD_PARAMS, "there is no tool of this name")
        args = params.get("arguments", {})
        if not isinstance(args, dict):
            raise RpcError(BAD_PARAMS, "arguments must be an object")
        wrong = fault(args, tool.schema)
        if wrong:
            if call.session.at_least("2025-11-25"):
                return self.tool_result(call, wrong, True)
            raise RpcError(BAD_PARAMS, wrong)
        try:
            return self.tool_result(call, tool.run(call, args), False)
        except ToolError as error:
            return self.tool_result(call, str(error), True)

    def tool_result(self, call, value, failed):
        if isinstance(value, dict):
            result = {"content": [{"type": "text", "text": json.dumps(value, allow_nan=False)}]}
            if call.session.at_least("2025-06-18"):
                result["structuredContent"] = value
        else:
            result = {"content": [{"type": "text", "text": value}]}
        if failed:
            result["isError"] = True
        return result

    def do_resources_list(self, call, params):
        self.no_cursor(params)
        return {"resources": [{"uri": u, "name": n, "mimeType": "text/plain"} for u, (n, _) in self.resources.items()]}

    def do_templates_list(self, call, params):
        self.no_cursor(params)
        return {"resourceTemplates": []}

    def do_resources_read(self, call, params):
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise RpcError(BAD_PARAMS, "uri must be a string")
        if uri not in self.resources:
            raise RpcError(NO_RESOURCE, "there is no such resource", {"uri": uri})
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": self.resources[uri][1]}]}

    def do_prompts_list(self, call, params):
        self.no_cursor(params)
        return {"prompts": [{"name": n, "description": d, "arguments": [{"name": a, "required": True} for a in args]}
                            for n, (d, args, _) in self.prompts.items()]}

    def do_prompts_get(self, call, params):
        name = params.get("name")
        if not isinstance(name, str) or name not in self.prompts:
            raise RpcError(BAD_PARAMS, "there is no prompt of this name")
        given = params.get("arguments", {})
        if not isinstance(given, dict) or not all(isinstance(v, str) for v in given.values()):
            raise RpcError(BAD_PARAMS, "arguments must be an object of strings")
        description, names, template = self.prompts[name]
        for wanted in names:
            if wanted not in given:
                raise RpcError(BAD_PARAMS, "the argument %s is missing" % wanted)
        text = template.format(**{n: given[n] for n in names})
        return {"description": description, "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    # Messages

    def parse(self, raw):
        """A message from its bytes; any exception means that it is no JSON."""
        return decode(raw)

    def error(self, request_id, code, message, data=None):
        body = {"code": code, "message": message}
        if data is not None:
            body["data"] = data
        return {"jsonrpc": "2.0", "id": request_id, "error": body}

    def kind(self, message):
        """('request' | 'notification' | 'response' | 'bad', error to answer)"""
        if not isinstance(message, dict):
            return "bad", self.error(None, INVALID, "a message must be an object")
        request_id = message.get("id")
        shown = request_id if is_id(request_id) else None
        if "method" not in message:
            if message.get("jsonrpc") == "2.0" and ("result" in message or "error" in message):
                return "response", None
            return "bad", self.error(shown, INVALID, "method is missing")
        if "id" not in message:
            good = message.get("jsonrpc") == "2.0" and isinstance(message["method"], str)
            return ("notification", None) if good else ("bad", self.error(None, INVALID, "this is no notification"))
        if not is_id(request_id):
            return "bad", self.error(None, INVALID, "id must be a string or an integer")
        if message.get("jsonrpc") != "2.0":
            return "bad", self.error(shown, INVALID, "jsonrpc must be 2.0")
        if not isinstance(message["method"], str):
            return "bad", self.error(shown, INVALID, "method must be a string")
        return "request", None

    def answer(self, session, message, send, started=None):
        """The response to a request, or None if it was cancelled."""
        request_id, method = message["id"], message["method"]
        params = message.get("params", {})
        if not isinstance(params, dict):
            return self.error(request_id, BAD_PARAMS, "params must be an object")
        if session.version is None and method not in ("initialize", "ping"):
            return self.error(request_id, INVALID, "initialize has not been called")
        handler = self.methods(session).get(method)
        if handler is None:
            return self.error(request_id, NO_METHOD, "there is no such method")
        call = Call(session, request_id, params, send)
        with session.lock:
            session.calls[request_id] = call
        if started is not None:
            started()
        try:
            result = handler(call, params)
        except Cancelled:
            return self.after_cancel(call)
        except RpcError as error:
            return self.error(request_id, error.code, error.message, error.data)
        except Exception as error:
            return self.error(request_id, INTERNAL, "internal error: %s" % type(error).__name__)
        finally:
            with session.lock:
                if session.calls.get(request_id) is call:
                    del session.calls[request_id]
        if call.cancelled.is_set() and method != "initialize":
            return self.after_cancel(call)
        return {"jsonrpc": "2.0", "id": request_id, "result": result}

    def after_cancel(self, call):
        return None

    def notified(self, session, message):
        if message["method"] != "notifications/cancelled":
            return
        params = message.get("params")
        request_id = params.get("requestId") if isinstance(params, dict) else None
        if not is_id(request_id):
            return
        with session.lock:
            call = session.calls.get(request_id)
        if call is not None:
            self.cancel(call)

    def cancel(self, call):
        call.cancelled.set()

    def batch(self, session, items, answer_one):
        """The answer to an array, or None."""
        if session is None or session.version != "2025-03-26":
            return self.error(None, INVALID, "batches are not served here")
        if not items:
            return self.error(None, INVALID, "the batch is empty")
        answers = []
        for item in items:
            kind, wrong = self.kind(item)
            if kind == "bad":
                answers.append(wrong)
            elif kind == "notification":
                self.notified(session, item)
            elif kind == "request":
                if item["method"] == "initialize":
                    answers.append(self.error(item["id"], INVALID, "initialize must not be in a batch"))
                else:
                    answers.append(answer_one(item))
        return [a for a in answers if a is not None] or None

    # stdio

    def write(self, message):
        data = encode(message) + b"\n"
        with self.out_lock:
            try:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            except (BrokenPipeError, ValueError):
                os._exit(0)

    def read_line(self):
        return sys.stdin.buffer.readline()

    def on_line(self, session, raw):
        raw = raw.rstrip(b"\r\n")
        if not raw.strip():
            return
        try:
            message = self.parse(raw)
        except Exception:
            self.unreadable(raw)
            return
        if isinstance(message, list):
            self.start(lambda: self.reply(self.batch(session, message, lambda m: self.answer(session, m, self.write))))
            return
        kind, wrong = self.kind(message)
        if kind == "bad":
            self.write(wrong)
        elif kind == "notification":
            self.notified(session, message)
        elif kind == "request":
            if message["method"] == "tools/call":
                self.start_call(session, message)
            else:
                self.reply(self.answer(session, message, self.write))

    def start_call(self, session, message):
        """Runs a call beside the reading; it can be cancelled from here on."""
        known = threading.Event()

        def work():
            try:
                answer = self.answer(session, message, self.write, known.set)
            finally:
                known.set()
            self.reply(answer)

        self.start(work)
        known.wait(1)

    def unreadable(self, raw):
        self.write(self.error(None, PARSE, "this line is not JSON"))

    def reply(self, message):
        if message is not None:
            self.write(message)

    def start(self, work):
        thread = threading.Thread(target=work, daemon=True)
        with self.work_lock:
            self.working = [t for t in self.working if t.is_alive()] + [thread]
        thread.start()

    def end_of_input(self, session):
        """Lets running calls finish for a moment, then ends the process."""
        until = time.monotonic() + 1.0
        for thread in list(self.working):
            thread.join(max(0, until - time.monotonic()))
        self.leave()

    def leave(self):
        os._exit(0)

    def run_stdio(self):
        self.out_lock, self.work_lock, self.working = threading.Lock(), threading.Lock(), []
        session = Session()

        def loop():
            while True:
                raw = self.read_line()
                if not raw:
                    break
                self.on_line(session, raw)
            self.end_of_input(session)

        thread = threading.Thread(target=loop)
        thread.start()
        thread.join()

    # HTTP

    def new_session(self):
        return Session()

    def closed(self, session):
        """A session has ended."""

    def run_http(self):
        server = self

        class Handler(HttpHandler):
            mcp = server

        class Listener(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, request, address):
                if not isinstance(sys.exc_info()[1], OSError):
                    super().handle_error(request, address)

        listener = Listener(("127.0.0.1", 0), Handler)
        sys.stderr.write("listening at http://127.0.0.1:%d/mcp\n" % listener.server_address[1])
        sys.stderr.flush()
        listener.serve_forever()


class Replay:
    """The messages of one stream, which a client can go on reading after its connection is lost."""

    def __init__(self, session):
        self.key = uuid.uuid4().hex
        self.named = session.at_least("2025-11-25")
        self.messages, self.ended, self.change = [], False, threading.Condition()
        if self.named:
            kept = session.extra.setdefault("replays", {})
            kept[self.key] = self
            while len(kept) > 100:
                del kept[next(iter(kept))]

    def add(self, message):
        with self.change:
            self.messages.append(message)
            self.change.notify_all()

    def end(self):
        with self.change:
            self.ended = True
            self.change.notify_all()

    def follow(self, start):
        number = start
        while True:
            with self.change:
                while len(self.messages) <= number and not self.ended:
                    self.change.wait()
                if len(self.messages) <= number:
                    return
                message = self.messages[number]
            number += 1
            yield number, message


class HttpFault(Exception):
    def __init__(self, status, message, code=INVALID, headers=(), close=False):
        super().__init__(message)
        self.status, self.message, self.code, self.headers, self.close = status, message, code, headers, close


class HttpHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = 300
    mcp = None

    def log_message(self, *args):
        pass

    # Reading

    def body(self):
        lengths = self.headers.get_all("Content-Length") or []
        coding = self.headers.get("Transfer-Encoding")
        if coding is not None:
            if lengths:
                raise HttpFault(400, "a body has a length or is in chunks, not both", close=True)
            if coding.strip().lower() != "chunked":
                raise HttpFault(501, "only chunks are understood", close=True)
            return self.chunks()
        if not lengths:
            return b""
        if len(set(lengths)) > 1 or not lengths[0].strip().isascii() or not lengths[0].strip().isdigit():
            raise HttpFault(400, "the length is no number", close=True)
        size = int(lengths[0])
        if size > 64 * 1024 * 1024:
            raise HttpFault(413, "the body is too long", close=True)
        data = self.rfile.read(size)
        if len(data) < size:
            raise HttpFault(400, "the body is cut short", close=True)
        return data

    def chunks(self):
        data = bytearray()
        while True:
            size = self.rfile.readline(4098).split(b";")[0].strip()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
                raise HttpFault(400, "a chunk has no size", close=True)
            size = int(size, 16)
            if size == 0:
                while self.rfile.readline(65537).rstrip(b"\r\n"):
                    pass
                return bytes(data)
            piece = self.rfile.read(size)
            if len(piece) < size or self.rfile.readline(3).rstrip(b"\r\n"):
                raise HttpFault(400, "a chunk is cut short", close=True)
            data += piece
            if len(data) > 64 * 1024 * 1024:
                raise HttpFault(413, "the body is too long", close=True)

    def accepts(self, wanted):
        header = self.headers.get("Accept")
        if header is None or not header.strip():
            return True
        best = None
        for part in header.split(","):
            pieces = [p.strip().lower() for p in part.split(";")]
            rank = {wanted: 3, wanted.split("/")[0] + "/*": 2, "*/*": 1}.get(pieces[0])
            if rank is None:
                continue
            quality = 1.0
            for piece in pieces[1:]:
                if piece.startswith("q="):
                    try:
                        quality = float(piece[2:])
                    except ValueError:
                        pass
            if best is None or rank > best[0]:
                best = (rank, quality)
        return best is not None and best[1] > 0

    def content_type_ok(self):
        return (self.headers.get("Content-Type") or "").split(";")[0].strip().lower() == "application/json"

    # Writing

    def give(self, status, data=b"", kind=None, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if kind:
            self.send_header("Content-Type", kind)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        self.wfile.flush()

    def give_json(self, status, message, headers=()):
        self.give(status, encode(message), "application/json", headers)

    def start_stream(self, headers=()):
        self.chunked = self.request_version != "HTTP/1.0"
        self.stream_lock = threading.Lock()
        self.send_response(200)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        if self.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.flush()

    def raw_event(self, text):
        data = text.encode("utf-8")
        if self.chunked:
            data = b"%x\r\n%s\r\n" % (len(data), data)
        with self.stream_lock:
            self.wfile.write(data)
            self.wfile.flush()

    def event(self, message):
        self.raw_event("event: message\ndata: %s\n\n" % encode(message).decode("ascii"))

    def end_stream(self):
        if self.chunked:
            with self.stream_lock:
                self.wfile.write(b"0\r\n\r\n")
                self.wfile.flush()

    # Methods

    def handle_one(self, work):
        try:
            if urlsplit(self.path).path != "/mcp":
                self.body()
                raise HttpFault(404, "there is nothing here")
            self.host()
            self.origin()
            work()
        except HttpFault as error:
            if error.close:
                self.close_connection = True
            self.give_json(error.status, self.mcp.error(None, error.code, error.message), error.headers)

    def origin(self):
        origin = self.headers.get("Origin")
        if origin is not None:
            host = urlsplit(origin).hostname if "://" in origin else None
            if host not in ("localhost", "127.0.0.1", "::1"):
                self.body()
                raise HttpFault(403, "this origin is not allowed")

    def host(self):
        given = self.headers.get("Host")
        if given is None:
            if self.request_version != "HTTP/1.0":
                raise HttpFault(400, "Host is missing", close=True)
            return
        try:
            name = urlsplit("//" + given.strip()).hostname
        except ValueError:
            name = None
        if name not in ("localhost", "127.0.0.1", "::1"):
            self.body()
            raise HttpFault(403, "this host is not served")

    def session(self):
        key = self.headers.get("Mcp-Session-Id")
        if key is None:
            raise HttpFault(400, "Mcp-Session-Id is missing")
        with self.mcp.sessions_lock:
            found = self.mcp.sessions.get(key.strip())
        if found is None:
            raise HttpFault(404, "there is no such session")
        return found

    def revision(self):
        asked = self.headers.get("MCP-Protocol-Version")
        if asked is not None and asked.strip() not in REVISIONS:
            raise HttpFault(400, "this protocol version is not served")

    def do_POST(self):
        self.handle_one(self.post)

    def post(self):
        raw = self.body()
        if not self.content_type_ok():
            raise HttpFault(415, "Content-Type must be application/json")
        if not self.accepts("application/json"):
            raise HttpFault(406, "the answer is application/json")
        try:
            message = self.mcp.parse(raw)
        except Exception:
            raise HttpFault(400, "the body is not JSON", PARSE)
        if isinstance(message, list):
            self.revision()
            session = self.session()
            answer = self.mcp.batch(session, message, lambda m: self.mcp.answer(session, m, None))
            if answer is None:
                self.give(202)
            else:
                self.give_json(400 if isinstance(answer, dict) else 200, answer)
            return
        kind, wrong = self.mcp.kind(message)
        if kind == "bad":
            self.give_json(400, wrong)
            return
        self.revision()
        if kind == "request" and message["method"] == "initialize" and self.headers.get("Mcp-Session-Id") is None:
            session = self.mcp.new_session()
            answer = self.mcp.answer(session, message, None)
            headers = []
            if "result" in answer:
                with self.mcp.sessions_lock:
                    self.mcp.sessions[session.key] = session
                headers = [("Mcp-Session-Id", session.key)]
            self.give_json(200, answer, headers)
            return
        session = self.session()
        if kind == "notification":
            self.mcp.notified(session, message)
            self.give(202)
        elif kind == "response":
            self.give(202)
        else:
            self.serve_request(session, message)

    def serve_request(self, session, message):
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        streams = (self.mcp.sse_calls and message["method"] == "tools/call" and isinstance(meta, dict)
                   and is_id(meta.get("progressToken")) and self.accepts("text/event-stream"))
        if not streams:
            answer = self.mcp.answer(session, message, None)
            if answer is None:
                self.start_stream()      # cancelled: there is nothing left to say
                self.end_stream()
            else:
                self.give_json(200, answer)
            return
        replay = Replay(session)

        def work():
            answer = self.mcp.answer(session, message, replay.add)
            if answer is not None:
                replay.add(answer)
            replay.end()

        threading.Thread(target=work, daemon=True).start()
        self.start_stream()
        self.play(replay, 0, True)

    def play(self, replay, start, first=False):
        """Writes what a stream has from an event on, until it ends."""
        if first and replay.named:
            self.raw_event("id: %s-0\ndata: \n\n" % replay.key)
        for number, message in replay.follow(start):
            name = "id: %s-%d\n" % (replay.key, number) if replay.named else ""
            self.raw_event("%sevent: message\ndata: %s\n\n" % (name, encode(message).decode("ascii")))
        self.end_stream()

    def resume(self):
        """GET with Last-Event-ID: goes on with a stream that was cut off."""
        self.body()
        if not self.accepts("text/event-stream"):
            raise HttpFault(406, "the answer is text/event-stream")
        self.revision()
        session = self.session()
        key, _, number = self.headers["Last-Event-ID"].strip().rpartition("-")
        replay = session.extra.get("replays", {}).get(key)
        if replay is None or not re.fullmatch("[0-9]{1,9}", number):
            raise HttpFault(404, "there is no such event")
        self.start_stream()
        self.play(replay, int(number))

    def hold(self, seconds=120):
        """Keeps the response open until the client closes the connection, or for a while."""
        self.close_connection = True
        until = time.monotonic() + seconds
        self.connection.setblocking(False)
        while time.monotonic() < until:
            try:
                if self.connection.recv(1, socket.MSG_PEEK) == b"":
                    return
            except BlockingIOError:
                pass
            except OSError:
                return
            time.sleep(0.1)

    def do_DELETE(self):
        self.handle_one(self.delete)

    def delete(self):
        self.body()
        self.revision()
        session = self.session()
        with self.mcp.sessions_lock:
            self.mcp.sessions.pop(session.key, None)
        for call in list(session.calls.values()):
            call.cancelled.set()
        self.mcp.closed(session)
        self.give(204)

    def do_GET(self):
        self.handle_one(self.get)

    def get(self):
        if self.mcp.sse_calls and self.headers.get("Last-Event-ID") is not None:
            self.resume()
        else:
            self.not_here()

    def not_here(self):
        self.body()
        raise HttpFault(405, "this method is not served", headers=[("Allow", "POST, DELETE")])

    def do_other(self):
        self.handle_one(self.not_here)

    do_HEAD = do_OPTIONS = do_PUT = do_PATCH = do_other

    def handle_expect_100(self):
        self.send_response_only(100)
        self.end_headers()
        self.wfile.flush()
        return True

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass


def main(cls):
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    server = cls("--fixed" not in sys.argv[1:])
    if cls.transport == "http":
        server.run_http()
    else:
        server.run_stdio()
