"""lilhammerfun/clumsies#100: a line that does not fit its buffer of 4096 bytes ends the process."""
import os
import sys

from common import Server, main


class FourK(Server):
    name = "clumsies-4k-line"

    def read_line(self):
        if not self.buggy:
            return super().read_line()
        raw = sys.stdin.buffer.readline(4096)
        if raw and not raw.endswith(b"\n"):
            os._exit(0)
        return raw


main(FourK)
