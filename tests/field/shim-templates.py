"""justadityaraj/shim-mcp#19: it declares resources and does not know resources/templates/list."""
from common import Server, main


class Templates(Server):
    name = "shim-templates"

    def __init__(self, buggy):
        super().__init__(buggy)
        self.resources = {"site://about": ("about", "About this site."), "site://imprint": ("imprint", "Imprint.")}

    def methods(self, session):
        served = super().methods(session)
        if self.buggy:
            del served["resources/templates/list"]
        return served


main(Templates)
