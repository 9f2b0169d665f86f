"""A clean server of one tool on the Python SDK 1, so that every finding on it is one about the SDK.

It speaks over standard input and output, or over HTTP at the port that its argument names. If `prompt` follows, it has a prompt
instead.
"""

import sys

from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else None
server = FastMCP("clean", port=PORT or 8000)


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


server.run("streamable-http" if PORT else "stdio")
