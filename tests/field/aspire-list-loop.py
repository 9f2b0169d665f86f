"""microsoft/aspire#14494: each tools/list is followed by notifications/tools/list_changed, so that clients list for ever."""
from common import Server, main


class Loop(Server):
    name = "aspire-list-loop"

    def capabilities(self, session):
        return {"tools": {"listChanged": True}}

    def do_tools_list(self, call, params):
        found = super().do_tools_list(call, params)
        if self.buggy:
            self.write({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return found


main(Loop)
