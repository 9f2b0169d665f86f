"""DeusData/codebase-memory-mcp#253: ids are integers, so that a string comes back as what its digits say, or as 0."""
import re

from common import Server, main


class Integers(Server):
    name = "codebase-string-id"

    def write(self, message):
        if self.buggy and isinstance(message.get("id") if isinstance(message, dict) else None, str):
            digits = re.match(r"\s*[+-]?[0-9]+", message["id"])
            message = dict(message, id=int(digits.group()) if digits else 0)
        super().write(message)


main(Integers)
