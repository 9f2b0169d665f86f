"""A server on the official Python SDK that has resources and nothing else, over Streamable HTTP.

One of the real servers that the suite judges. The argument is the port to listen on.
"""

import sys

import mcp.types as types
import uvicorn
from mcp.server import Server
from mcp.shared.exceptions import MCPError

NOTES = {"note://hello": "hello", "note://bye": "goodbye"}


async def list_resources(_context, _params) -> types.ListResourcesResult:
    resources = [types.Resource(uri=uri, name=uri.removeprefix("note://"), mime_type="text/plain") for uri in NOTES]
    return types.ListResourcesResult(resources=resources)


async def read_resource(_context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    text = NOTES.get(str(params.uri))
    if text is None:
        raise MCPError(code=types.INVALID_PARAMS, message="There is no such note.", data={"uri": str(params.uri)})
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text=text, mime_type="text/plain")])


server = Server("notes", version="1.0.0", on_list_resources=list_resources, on_read_resource=read_resource)

if __name__ == "__main__":
    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
