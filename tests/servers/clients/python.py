"""Lists the tools of a server and calls one of them: python python.py TOOL COMMAND [ARGUMENT...]"""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(tool, command, *arguments):
    parameters = StdioServerParameters(command=command, args=list(arguments))
    async with stdio_client(parameters) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        await session.initialize()
        listed = await session.list_tools()
        if all(one.name != tool for one in listed.tools):
            sys.exit(f"there is no tool {tool}")
        try:
            await session.call_tool(tool, {})
        except Exception as error:  # The client itself may reject what is wrong; the recording has it nevertheless.
            print(error, file=sys.stderr)


asyncio.run(main(*sys.argv[1:]))
