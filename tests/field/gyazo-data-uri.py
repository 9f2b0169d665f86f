"""nota/gyazo-mcp-server#129: an image comes as a data: URI in the place of its base64."""
from common import Server, Tool, main

PNG = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
       "YPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")


def picture(call, args):
    return ""


class Picture(Server):
    name = "gyazo-data-uri"

    def __init__(self, buggy):
        super().__init__(buggy)
        self.tools = [Tool("latest_image", "Returns the latest image.", {}, picture)]

    def tool_result(self, call, value, failed):
        found = super().tool_result(call, value, failed)
        if not failed:
            data = "data:image/png;base64," + PNG if self.buggy else PNG
            found["content"] = [{"type": "image", "data": data, "mimeType": "image/png"}]
        return found


main(Picture)
