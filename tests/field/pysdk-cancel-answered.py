"""modelcontextprotocol/python-sdk#2480: a cancelled call is answered with an error of code 0."""
from common import Server, main


class CancelAnswered(Server):
    name = "pysdk-cancel-answered"

    def cancel(self, call):
        # The SDK sends the error where it reads the notification, before it reads the next message.
        if self.buggy and not call.cancelled.is_set():
            self.write(self.error(call.id, 0, "Request cancelled"))
        super().cancel(call)


main(CancelAnswered)
