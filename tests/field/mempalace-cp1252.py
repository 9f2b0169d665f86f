"""MemPalace/mempalace#2229: lines are read as cp1252: some requests beyond ASCII are dropped, others garbled."""
import json
import sys

from common import Server, main


class Cp1252(Server):
    name = "mempalace-cp1252"

    def parse(self, raw):
        if not self.buggy:
            return super().parse(raw)
        return json.loads(raw.decode("cp1252"))

    def unreadable(self, raw):
        if self.buggy:
            try:
                raw.decode("cp1252")
            except UnicodeDecodeError as error:
                sys.stderr.write("Server error: %s\n" % error)
                return
        super().unreadable(raw)


main(Cp1252)
