"""UsefulSoftwareCo/executor#1684: each session keeps 709 KiB for good unless the client deletes it."""
import os

from common import Server, Session, main


class SessionLeak(Server):
    name = "executor-session-leak"
    transport = "http"

    def new_session(self):
        session = Session()
        if self.buggy:
            session.extra["engine"] = bytearray(os.urandom(709 * 1024))
        return session

    def closed(self, session):
        session.extra.clear()


main(SessionLeak)
