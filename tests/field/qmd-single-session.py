"""tobi/qmd#286: only the first client can initialize; each later one is told that the server is initialized already."""
from common import INVALID, RpcError, Server, main


class Single(Server):
    name = "qmd-single-session"
    transport = "http"
    taken = False

    def do_initialize(self, call, params):
        if self.buggy and self.taken:
            raise RpcError(INVALID, "Invalid Request: Server already initialized")
        result = super().do_initialize(call, params)
        self.taken = True
        return result


main(Single)
