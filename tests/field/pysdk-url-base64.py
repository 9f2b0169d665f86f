"""modelcontextprotocol/python-sdk#342: blobs are in the alphabet of URLs, which is not the base64 that clients read."""
import base64

from common import Server, main

BYTES = bytes(range(200, 256))


class Blob(Server):
    name = "pysdk-url-base64"

    def __init__(self, buggy):
        super().__init__(buggy)
        self.resources = {"files:///picture.bin": ("picture.bin", "")}

    def do_resources_list(self, call, params):
        found = super().do_resources_list(call, params)
        for resource in found["resources"]:
            resource["mimeType"] = "application/octet-stream"
        return found

    def do_resources_read(self, call, params):
        found = super().do_resources_read(call, params)
        encode = base64.urlsafe_b64encode if self.buggy else base64.b64encode
        uri = found["contents"][0]["uri"]
        return {"contents": [{"uri": uri, "mimeType": "application/octet-stream", "blob": encode(BYTES).decode()}]}


main(Blob)
