"""A clean server of one tool on FastMCP, so that every finding on it is one about the framework or its SDK.

It speaks over standard input and output, or over HTTP at the port that its argument names. If `prompt` follows, it has a prompt
instead.
"""

import sys

import fastmcp
from fastmcp import FastMCP
from mcp.types import ToolAnnotations

server = FastMCP("clean", version="1.0.0")


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
    # FastMCP 2 has no protection against requests of web pages.
    is_old = fastmcp.__version__.startswith("2.")
    protection = {} if is_old else {"host_origin_protection": "auto"}
    server.run(transport="http", port=int(sys.argv[1]), show_banner=False, **protection)
else:
    server.run(show_banner=False)
