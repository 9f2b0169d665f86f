"""MemPalace/mempalace#2556: an integer of more than 4300 digits, or very deep nesting, ends the process."""
import json
import os
import sys

from common import Server, main


class Digits(Server):
    name = "mempalace-digits"

    def parse(self, raw):
        if not self.buggy:
            return super().parse(raw)
        try:
            return super().parse(raw)
        except json.JSONDecodeError:
            raise
        except UnicodeDecodeError:
            raise
        except (ValueError, RecursionError) as error:
            if "is not JSON" in str(error):
                raise
            sys.stderr.write("%s: %s\n" % (type(error).__name__, error))
            os._exit(1)


if "--fixed" not in sys.argv:
    sys.set_int_max_str_digits(4300)
    sys.setrecursionlimit(1000)
main(Digits)
