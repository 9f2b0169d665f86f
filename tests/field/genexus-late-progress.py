"""lennix1337/Genexus18MCP#44: a build that goes on after its call was answered still reports progress with the token."""
import threading
import time

from common import Server, Tool, main

PHASES = ["opening", "specifying", "generating", "compiling", "done"]


class LateProgress(Server):
    name = "genexus-late-progress"

    def __init__(self, buggy):
        super().__init__(buggy)
        self.tools.append(Tool("start_build", "Starts a build and returns at once.",
                               {"target": {"type": "string", "enum": ["app", "docs"]}}, self.start_build))

    def start_build(self, call, args):
        answered = threading.Event()

        def build():
            for number, phase in enumerate(PHASES, 1):
                if self.buggy or number == 1:
                    call.progress(number, len(PHASES), "build phase: %s" % phase)
                if number == 1:
                    answered.set()
                time.sleep(0.25)

        threading.Thread(target=build, daemon=True).start()
        answered.wait(1)
        return "the build of %s has started" % args["target"]


main(LateProgress)
