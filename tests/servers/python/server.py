"""A small server on the official Python SDK, over Streamable HTTP.

One of the real servers that the suite judges. It uses the defaults of the SDK, so that its findings are findings
about the SDK. The argument is the port to listen on.
"""

import sys
from enum import Enum

from mcp.server.mcpserver import Context, Image, MCPServer
from pydantic import BaseModel

server = MCPServer("python-server")

# A PNG of one white pixel.
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010800000000"
    "3a7e9b550000000a49444154789c63f80f00010101001cb08c990000000049454e44ae426082"
)


class Language(str, Enum):
    ENGLISH = "english"
    FINNISH = "finnish"


class Sum(BaseModel):
    sum: int


@server.tool()
def echo(text: str) -> str:
    """Sends the text back."""
    return text


@server.tool()
def add(a: int, b: int) -> Sum:
    """Adds two whole numbers and answers with structured output."""
    return Sum(sum=a + b)


@server.tool()
def greet(language: Language, name: str = "everyone") -> str:
    """Greets in one of two languages."""
    return f"{'Hei' if language is Language.FINNISH else 'Hello'}, {name}"


@server.tool()
def picture() -> Image:
    """Answers with a picture of one pixel."""
    return Image(data=PIXEL, format="png")


@server.tool()
async def work(ctx: Context) -> str:
    """Reports progress twice and answers."""
    await ctx.report_progress(1, 2)
    await ctx.report_progress(2, 2)
    return "done"


@server.tool()
def fail() -> str:
    """Fails every time."""
    raise ValueError("this tool always fails")


@server.resource("note://hello")
def hello() -> str:
    """A note."""
    return "hello"


@server.prompt()
def summary(text: str) -> str:
    """Asks for a summary."""
    return f"Sum this up: {text}"


if __name__ == "__main__":
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
