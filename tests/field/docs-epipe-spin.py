"""a-bonus/google-docs-mcp#153: it does not leave at the end of its input, and turns in circles once stderr is closed."""
import os
import sys
import time

from common import Server, main


class Spin(Server):
    name = "docs-epipe-spin"

    def end_of_input(self, session):
        if not self.buggy:
            return super().end_of_input(session)
        until = time.monotonic() + 60       # the real one stays for days
        while time.monotonic() < until:
            try:
                os.write(2, b"")
                os.write(2, b"waiting for work\n")
                time.sleep(0.2)
            except OSError:
                pass                        # logs the error, which fails, which is logged
        os._exit(0)


main(Spin)
