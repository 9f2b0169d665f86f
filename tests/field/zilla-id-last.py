"""aklivity/zilla#1822: a request whose id comes after its method is no JSON for it (HTTP 400, -32700)."""
from common import Server, main


class IdLast(Server):
    name = "zilla-id-last"
    transport = "http"

    def parse(self, raw):
        message = super().parse(raw)
        if self.buggy and isinstance(message, dict):
            names = list(message)
            if "id" in names and "method" in names and names.index("id") > names.index("method"):
                raise ValueError("id expected")
        return message


main(IdLast)
