"""mark3labs/mcp-go#501: `Content-Type: application/json; charset=utf-8` is refused."""
import common
from common import Server, main


class Charset(Server):
    name = "mcpgo-charset"
    transport = "http"


def content_type_ok(self):
    if self.mcp.buggy:
        return self.headers.get("Content-Type") == "application/json"
    return original(self)


original = common.HttpHandler.content_type_ok
common.HttpHandler.content_type_ok = content_type_ok
main(Charset)
