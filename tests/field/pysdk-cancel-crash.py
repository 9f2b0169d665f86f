"""modelcontextprotocol/python-sdk#1152: the cancellation of a running call ends the server."""
import os
import sys

from common import Server, main


class CancelCrash(Server):
    name = "pysdk-cancel-crash"

    def after_cancel(self, call):
        if not self.buggy:
            return None
        self.write(self.error(call.id, 0, "Request cancelled"))
        sys.stderr.write("AssertionError: Request already responded to\n")
        sys.stderr.flush()
        os._exit(1)


main(CancelCrash)
