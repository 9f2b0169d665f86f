"""lynnswap/XcodeMCPKit#210: within a session everything waits for the running request, the cancellation of it too."""
import threading

import common
from common import Server, Session, main


class CancelQueued(Server):
    name = "xcode-cancel-queued"
    transport = "http"

    def new_session(self):
        session = Session()
        session.extra["gate"] = threading.Lock()
        return session

    def notified(self, session, message):
        if self.buggy:
            with session.extra["gate"]:
                super().notified(session, message)
        else:
            super().notified(session, message)

    def answer(self, session, message, send, started=None):
        if self.buggy:
            with session.extra["gate"]:
                return super().answer(session, message, send, started)
        return super().answer(session, message, send, started)


main(CancelQueued)
