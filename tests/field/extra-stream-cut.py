"""Extra (symptom of eliranwong/biblemate#40): the stream of each tools/call breaks off before the response."""
import common
from common import Server, main


class StreamCut(Server):
    name = "extra-stream-cut"
    transport = "http"
    sse_calls = True


def play(self, replay, start, first=False):
    if not self.mcp.buggy:
        return original(self, replay, start, first)
    self.raw_event(": working\n\n")
    self.close_connection = True        # the last chunk is never sent


original = common.HttpHandler.play
common.HttpHandler.play = play
main(StreamCut)
