"""DeusData/codebase-memory-mcp#98: it polls beside a buffer, so that what came with the line before waits for more input."""
import select
import sys

from common import Server, main


class Polls(Server):
    name = "codebase-three-at-once"
    held = b""
    is_first = True

    def read_line(self):
        if not self.buggy:
            return super().read_line()
        if not self.is_first:
            # What the buffer holds is not seen, but is what it reads next once more comes, or after its idle time.
            select.select([sys.stdin.buffer.raw], [], [], 60)
        self.is_first = False
        while b"\n" not in self.held:
            more = sys.stdin.buffer.raw.read(1 << 16)
            if not more:
                return self.held
            self.held += more
        line, _, self.held = self.held.partition(b"\n")
        return line + b"\n"


main(Polls)
