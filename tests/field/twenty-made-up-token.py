"""twentyhq/twenty#24559: each call is preceded by a progress notification whose token the server made up."""
from common import Server, main
import common


class MadeUpToken(Server):
    name = "twenty-made-up-token"
    transport = "http"
    sse_calls = True


def serve_request(self, session, message):
    if self.mcp.buggy and message["method"] == "tools/call" and self.accepts("text/event-stream"):
        self.start_stream()
        if session.at_least("2025-11-25"):
            self.raw_event("id: %s\ndata: \n\n" % common.uuid.uuid4().hex)
        self.event({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": "tool-call-%s" % message["id"], "progress": 0, "total": 1}})
        answer = self.mcp.answer(session, message, None)
        if answer is not None:
            self.event(answer)
        self.end_stream()
        return
    original(self, session, message)


original = common.HttpHandler.serve_request
common.HttpHandler.serve_request = serve_request
main(MadeUpToken)
