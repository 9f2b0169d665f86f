#!/usr/bin/env python3
"""Lists the pages of the specification, with their anchors, for each revision: the data of the trial
`data/every-link-leads-to-its-own-revision`.

    list-pages.py PATH-OF-A-CLONE-OF-modelcontextprotocol/modelcontextprotocol > pages.json

An anchor is a heading as the website writes it (the specification's own links to `_meta` are `#meta`), or an `id` in
the page. Of the schema page, only the anchors of types are listed, not those of their members. 2024-10-07 has no pages:
its files are in the history, and their anchors are those that GitHub gives their headings.
"""

import json
import re
import subprocess
import sys
from collections import Counter

DRAFT = "2024-10-07"
DRAFT_COMMIT = "ed35f718be83a2e3e1e568f7ba3562b81ed69c40"


def git(*arguments):
    command = ["git", "-C", sys.argv[1], *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def slug(heading):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\- ]", "", text)).lstrip("_")


def anchors(text):
    seen, found, in_code = Counter(), [], False
    for line in text.split("\n"):
        if re.match(r"\s*(```|~~~)", line):
            in_code = not in_code
        if in_code:
            continue
        if heading := re.match(r"#{1,6}\s+(.*)$", line):
            name = slug(heading[1])
            seen[name] += 1
            found.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
        found += re.findall(r'<(?:div|a|span|h\d)[^>]*\bid="([^"]+)"', line)
    return sorted(set(found))


def main():
    pages = {}
    for path in git("ls-tree", "-r", "--name-only", "HEAD").split():
        if page := re.fullmatch(r"docs/specification/(\d{4}-\d\d-\d\d)/(.*)\.mdx", path):
            revision, name = page.groups()
            listed = anchors(git("show", f"HEAD:{path}"))
            if name == "schema":
                listed = [anchor for anchor in listed if re.fullmatch(r"[a-z]+", anchor)]
            pages.setdefault(revision, {})[name] = listed
        elif page := re.fullmatch(r"schema/(\d{4}-\d\d-\d\d)/(schema\.ts)", path):
            pages.setdefault(page[1], {})[page[2]] = []
    for path in git("ls-tree", "-r", "--name-only", DRAFT_COMMIT).split():
        if re.fullmatch(r"docs/spec/.*\.md|schema/schema\.ts", path):
            listed = anchors(git("show", f"{DRAFT_COMMIT}:{path}")) if path.endswith(".md") else []
            pages.setdefault(DRAFT, {})[path] = listed
    document = {revision: dict(sorted(names.items())) for revision, names in sorted(pages.items())}
    lines = []
    for revision, names in document.items():
        rows = [f"    {json.dumps(name)}: {json.dumps(listed)}" for name, listed in names.items()]
        lines.append(f"  {json.dumps(revision)}: {{\n" + ",\n".join(rows) + "\n  }")
    print("{\n" + ",\n".join(lines) + "\n}")


main()
