"""posit-dev/mcptools#116: it declares resources, and answers resources/list and resources/read with -32601."""
from common import Server, main


class Declares(Server):
    name = "mcptools-resources-missing"

    def __init__(self, buggy):
        super().__init__(buggy)
        self.resources = {"notes:///today": ("today", "It rains.")}

    def methods(self, session):
        served = super().methods(session)
        if self.buggy:
            served = {name: method for name, method in served.items() if not name.startswith("resources/")}
        return served


main(Declares)
