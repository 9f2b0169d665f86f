"""Azure/data-api-builder#3274: it declares logging and does not know logging/setLevel."""
from common import BAD_PARAMS, RpcError, Server, main

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class SetLevel(Server):
    name = "dab-set-level"

    def capabilities(self, session):
        return {"logging": {}, **super().capabilities(session)}

    def methods(self, session):
        served = super().methods(session)
        if not self.buggy:
            served["logging/setLevel"] = self.do_set_level
        return served

    def do_set_level(self, call, params):
        if params.get("level") not in LEVELS:
            raise RpcError(BAD_PARAMS, "there is no such level")
        return {}


main(SetLevel)
