"""modelcontextprotocol/java-sdk#1040: the response to an unknown method is a stream that stays open and says nothing."""
import common
from common import Server, main


class UnknownHangs(Server):
    name = "java-unknown-hangs"
    transport = "http"


def serve_request(self, session, message):
    if self.mcp.buggy and message["method"] not in self.mcp.methods(session):
        self.start_stream()
        self.hold()
        return
    original(self, session, message)


original = common.HttpHandler.serve_request
common.HttpHandler.serve_request = serve_request
main(UnknownHangs)
