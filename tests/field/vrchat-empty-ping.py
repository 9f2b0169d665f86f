"""ggg123124/vrchat-assistant#37: ping, like every method it does not know, gets HTTP 200 with an empty body."""
import common
from common import Server, main


class EmptyPing(Server):
    name = "vrchat-empty-ping"
    transport = "http"


def serve_request(self, session, message):
    if self.mcp.buggy and message["method"] not in ("initialize", "tools/list", "tools/call"):
        self.give(200, b"", "text/event-stream")
        return
    original(self, session, message)


original = common.HttpHandler.serve_request
common.HttpHandler.serve_request = serve_request
main(EmptyPing)
