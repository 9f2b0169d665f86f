"""anomalyco/opencode#35624: a pattern with a named group in Python's spelling, which no ECMAScript engine compiles."""
from common import Server, Tool, main


class Pattern(Server):
    name = "verkada-pattern"

    def __init__(self, buggy):
        super().__init__(buggy)
        pattern = "^(?P<workflow_id>[0-9a-f]{8})$" if buggy else "^[0-9a-f]{8}$"
        self.tools.append(Tool("get_workflow", "Shows a workflow.",
                               {"id": {"type": "string", "pattern": pattern, "description": "Id, such as 0a1b2c3d"}},
                               lambda call, args: "workflow %s is idle" % args["id"]))


main(Pattern)
