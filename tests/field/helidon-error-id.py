"""helidon-io/helidon-mcp#65: an error that a tool, a prompt or a resource throws is sent with the id null."""
from common import Server, main


class Thrown(Server):
    name = "helidon-error-id"

    def answer(self, session, message, send, started=None):
        found = super().answer(session, message, send, started)
        known = isinstance(message.get("method"), str) and message["method"] in self.methods(session)
        if self.buggy and known and found is not None and "error" in found and session.version is not None:
            found = dict(found, id=None)
        return found


main(Thrown)
