"""Azure/Azure-Resource-Manager-MCP#21: an outputSchema has the boolean `true` as the schema of a property."""
from common import Server, Tool, main


class BooleanSchema(Server):
    name = "arm-boolean-schema"

    def __init__(self, buggy):
        super().__init__(buggy)
        self.tools.append(Tool("list_alerts", "Lists the alerts of a group.", {"group": {"type": "string"}},
                               lambda call, args: {"result": []},
                               output={"type": "object", "properties": {"result": True if buggy else {}},
                                       "required": ["result"]}))


main(BooleanSchema)
