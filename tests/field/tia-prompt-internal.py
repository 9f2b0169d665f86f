"""anomalyco/opencode#36974: a prompt without its required argument ends in an internal error, -32603."""
from common import INTERNAL, RpcError, Server, main


class Prompts(Server):
    name = "tia-prompt-internal"

    def __init__(self, buggy):
        super().__init__(buggy)
        self.prompts = {"export": ("Exports a block.", ["regexName"], "Export the blocks that match {regexName}.")}

    def do_prompts_get(self, call, params):
        try:
            return super().do_prompts_get(call, params)
        except RpcError as error:
            if self.buggy and "is missing" in str(error):
                raise RpcError(INTERNAL, "The arguments dictionary is missing a value for a required parameter.")
            raise


main(Prompts)
