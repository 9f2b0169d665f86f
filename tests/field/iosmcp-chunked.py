"""witchan/ios-mcp#1: the body of a request that comes in chunks is taken to be empty."""
import common
from common import Server, main


class Chunked(Server):
    name = "iosmcp-chunked"
    transport = "http"


def body(self):
    if self.mcp.buggy and self.headers.get("Transfer-Encoding") is not None:
        self.close_connection = True
        return b""
    return original(self)


original = common.HttpHandler.body
common.HttpHandler.body = body
main(Chunked)
