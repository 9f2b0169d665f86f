from mcp.server.mcpserver import MCPServer
from mcp.types import ImageContent, ToolAnnotations

server = MCPServer("notes")
notes = {"milk": "Buy two litres."}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
READ_ONLY = ToolAnnotations(readOnlyHint=True)


@server.tool(annotations=READ_ONLY)
def read_note(title: str) -> str:
    """Returns the text of a note, for example milk."""
    return notes.get(title, f"There is no note {title}.")


@server.tool(annotations=READ_ONLY)
def icon() -> ImageContent:
    """Returns the icon of the notes."""
    return ImageContent(type="image", mimeType="image/png", data=f"data:image/png;base64,{PIXEL}")


server.run()
