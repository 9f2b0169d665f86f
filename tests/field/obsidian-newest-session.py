"""coddingtonbear/obsidian-local-rest-api#267: once a second client has come, the calls of the first are never answered."""
import common
from common import Server, Session, main


class Newest(Server):
    name = "obsidian-newest-session"
    transport = "http"
    newest = None

    def new_session(self):
        self.newest = Session()
        return self.newest


def serve_request(self, session, message):
    if self.mcp.buggy and message["method"] == "tools/call":
        self.mcp.answer(session, message, None) if session is not self.mcp.newest else None
        if session is not self.mcp.newest:
            self.hold()
            return
    original(self, session, message)


original = common.HttpHandler.serve_request
common.HttpHandler.serve_request = serve_request
main(Newest)
