"""DeusData/codebase-memory-mcp#1247: tools/list has a nextCursor on its only page, and returns the same page for it."""
from common import Server, main


class Cursor(Server):
    name = "codebase-same-cursor"

    def no_cursor(self, params):
        if not self.buggy:
            super().no_cursor(params)

    def do_tools_list(self, call, params):
        found = super().do_tools_list(call, params)
        return dict(found, nextCursor="8") if self.buggy else found


main(Cursor)
