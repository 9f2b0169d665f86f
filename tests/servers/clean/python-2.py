"""A clean server of one tool on the Python SDK 2, so that every finding on it is one about the SDK.

It speaks over standard input and output, or over HTTP at the port that its argument names. If `prompt` follows, it has a prompt
instead.
"""

import sys

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("clean", version="1.0.0")


if sys.argv[2:] == ["prompt"]:

    @server.prompt()
    def repeat(text: str) -> str:
        """Asks for the text."""
        return text

else:

    @server.tool(annotations=ToolAnnotations(readOnlyHint=True))
    def echo(text: str) -> str:
        """Sends the text back."""
        return text


if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run()
