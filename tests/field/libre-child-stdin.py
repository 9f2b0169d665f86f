"""patrup/mcp-libre#9: the program that a tool starts inherits the server's standard input and reads it."""
import subprocess

from common import Server, Tool, ToolError, main


class ChildStdin(Server):
    name = "libre-child-stdin"

    def __init__(self, buggy):
        super().__init__(buggy)
        self.tools.append(Tool("convert_document", "Converts a document.",
                               {"format": {"type": "string", "enum": ["pdf", "txt"]}}, self.convert))

    def convert(self, call, args):
        done = subprocess.run(["sh", "-c", "cat >/dev/null; echo converted"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, stdin=None if self.buggy else subprocess.DEVNULL)
        if done.returncode:
            raise ToolError("the document could not be converted")
        return "%s to %s" % (done.stdout.decode().strip(), args["format"])


main(ChildStdin)
