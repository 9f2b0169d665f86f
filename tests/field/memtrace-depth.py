"""syncable-dev/memtrace-public#18: a message nested 128 deep (arguments: 126) ends the session without an answer."""
import os
import sys

from common import Server, main


def depth(raw):
    deepest = level = 0
    text = escaped = False
    for byte in raw:
        if text:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                text = False
        elif byte == 0x22:
            text = True
        elif byte in (0x5B, 0x7B):
            level += 1
            deepest = max(deepest, level)
        elif byte in (0x5D, 0x7D):
            level -= 1
    return deepest


class Depth(Server):
    name = "memtrace-depth"

    def parse(self, raw):
        if self.buggy and depth(raw) >= 128:
            sys.stderr.write("Error reading from stream: recursion limit exceeded\n")
            os._exit(1)
        return super().parse(raw)


main(Depth)
