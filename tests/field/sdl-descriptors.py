"""GlitterKill/sdl-mcp#12: files that a call opens are never closed, until there are no more descriptors."""
from common import SEARCH, Server, Tool, main

OPENED = []


class Leaks(Server):
    name = "sdl-descriptors"

    def __init__(self, buggy):
        super().__init__(buggy)

        def search(call, args):
            if buggy:
                OPENED.extend(open(__file__) for _ in range(2))
            return SEARCH.run(call, args)

        self.tools = [Tool("search_code", SEARCH.description, SEARCH.schema["properties"], search)]


main(Leaks)
