"""modelcontextprotocol/python-sdk#2480: a cancelled call is answered with an error of code 0."""
from common import Server, main


class CancelAnswered(Server):
    name = "pysdk-cancel-answered"

    def after_cancel(self, call):
        return self.error(call.id, 0, "Request cancelled") if self.buggy else None


main(CancelAnswered)
