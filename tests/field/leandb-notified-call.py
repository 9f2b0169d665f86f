"""theoriclabs/LeanDB#64: a method it knows is run and answered (id null) though it came as a notification."""
from common import Server, main

KNOWN = ("initialize", "ping", "tools/list", "tools/call")


class NotifiedCall(Server):
    name = "leandb-notified-call"

    def kind(self, message):
        kind, wrong = super().kind(message)
        if self.buggy and kind == "notification" and message["method"] in KNOWN:
            message["id"] = None
            return "request", None
        if self.buggy and kind == "bad" and isinstance(message, dict) and message.get("jsonrpc") == "2.0" \
                and "id" in message and message["id"] is None and message.get("method") in KNOWN:
            return "request", None
        return kind, wrong


main(NotifiedCall)
