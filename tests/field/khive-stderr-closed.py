"""ohdearquant/khive#1716: it ends with its next log line once nobody reads its standard error."""
import os

from common import Server, main


class Logs(Server):
    name = "khive-stderr-closed"

    def on_line(self, session, raw):
        try:
            os.write(2, b"a line of %d bytes\n" % len(raw))
        except OSError:
            if self.buggy:
                os._exit(101)
        super().on_line(session, raw)


main(Logs)
