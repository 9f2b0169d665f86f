"""openai/codex#20194: requests for resources and prompts, which it does not declare, are logged and never answered."""
import sys

from common import Server, main

DROPPED = ("resources/list", "resources/templates/list", "resources/read", "resources/subscribe",
           "resources/unsubscribe", "prompts/list", "prompts/get")


class Dropped(Server):
    name = "codex-dropped"

    def answer(self, session, message, send, started=None):
        if self.buggy and message["method"] in DROPPED:
            sys.stderr.write("received %s\n" % message["method"])
            return None
        return super().answer(session, message, send, started)


main(Dropped)
