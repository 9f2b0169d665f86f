"""browseros-ai/BrowserOS#1005: notifications/tools/list_changed three times a second though nothing changes."""
import time
import uuid

import common
from common import HttpFault, Server, main


class Flood(Server):
    name = "browseros-flood"
    transport = "http"

    def capabilities(self, session):
        return {"tools": {"listChanged": True}}


def get(self):
    self.body()
    if not self.accepts("text/event-stream"):
        raise HttpFault(406, "the answer is text/event-stream")
    self.revision()
    session = self.session()
    stop = session.extra.setdefault("stop", [])
    if session.extra.get("stream"):
        raise HttpFault(409, "this session has a stream already")
    session.extra["stream"] = True
    try:
        self.start_stream()
        if session.at_least("2025-11-25"):
            self.raw_event("id: %s\ndata: \n\n" % uuid.uuid4().hex)
        started = time.monotonic()
        while not stop and time.monotonic() < started + 300:
            if self.mcp.buggy:
                time.sleep(0.33)
                self.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            else:
                time.sleep(0.5)
                self.raw_event(": still here\n\n")
        self.end_stream()
    finally:
        session.extra["stream"] = False


common.HttpHandler.get = get
Flood.closed = lambda self, session: session.extra.setdefault("stop", []).append(True)
main(Flood)
