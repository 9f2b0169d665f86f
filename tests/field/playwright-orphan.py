"""microsoft/playwright-mcp#1568: the browser that a tool has started stays when the server has left."""
import signal
import subprocess
import threading

from common import Server, Tool, main


class Orphan(Server):
    name = "playwright-orphan"

    def __init__(self, buggy):
        super().__init__(buggy)
        self.browser, self.browser_lock = None, threading.Lock()
        self.tools.append(Tool("open_page", "Opens a page of the help in a browser without a window.",
                               {"page": {"type": "string", "enum": ["start", "index", "glossary"]}}, self.open_page))
        if not buggy:
            signal.signal(signal.SIGTERM, lambda *_: self.leave())
            signal.signal(signal.SIGINT, lambda *_: self.leave())

    def open_page(self, call, args):
        with self.browser_lock:
            if self.browser is None:
                self.browser = subprocess.Popen(["sleep", "90"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                stderr=subprocess.DEVNULL, start_new_session=True)
        return "opened %s" % args["page"]

    def leave(self):
        if not self.buggy and self.browser is not None:
            self.browser.kill()
            self.browser.wait()
        super().leave()


main(Orphan)
