"""azmaveth/ex_mcp#52: without a locale its streams are Latin-1, so that text is decoded twice or cannot be written."""
import json
import os
import sys

from common import Server, main


def names_utf8():
    # Python sets LC_CTYPE itself where no locale is named (PEP 538).
    named = os.environ.get("LC_ALL") or os.environ.get("LANG") or ""
    return "utf" in named.lower()


class Locale(Server):
    name = "exmcp-locale"

    def parse(self, raw):
        if not self.buggy or names_utf8():
            return super().parse(raw)
        return json.loads(raw.decode("latin-1"))

    def write(self, message):
        if not self.buggy or names_utf8():
            return super().write(message)
        text = json.dumps(message, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        with self.out_lock:
            sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass") + b"\n")
            sys.stdout.buffer.flush()


main(Locale)
