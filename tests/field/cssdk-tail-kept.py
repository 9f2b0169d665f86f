"""modelcontextprotocol/csharp-sdk#942: of an answer beyond 16 KiB the last part stays in a buffer until more is written."""
import os
import sys

from common import Server, encode, main

SIZE = 16 << 10


class Tail(Server):
    name = "cssdk-tail-kept"
    kept = b""

    def write(self, message):
        if not self.buggy:
            return super().write(message)
        data = encode(message) + b"\n"
        with self.out_lock:
            if len(data) <= SIZE:
                ready, Tail.kept = Tail.kept + data, b""
            else:
                whole = len(data) // SIZE * SIZE
                ready, Tail.kept = Tail.kept + data[:whole], data[whole:]
            try:
                sys.stdout.buffer.write(ready)
                sys.stdout.buffer.flush()
            except (BrokenPipeError, ValueError):
                os._exit(0)


main(Tail)
