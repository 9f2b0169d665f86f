#!/usr/bin/env python3
"""Draws the picture in the README from the output of a real run.

    mcp-conformance demo --color always | reports/readme/draw.py content-image > reports/readme/demo.svg

The finding of the named requirement is shown in full, the others by their first two lines.
An ellipsis replaces what is omitted: the end of a long line, the directory of the program, or a number of lines.
"""

import re
import sys
from html import escape

COLUMNS = 100
CELL, LINE, SIZE, MARGIN = 7.8, 18, 13, 16

# The picture has its own background, so that it is readable on light and dark pages.
GROUND, FRAME, TEXT, DIM = "#1b1f27", "#48505e", "#d5dae3", "#8b94a3"
COLORS = {31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79b8ff", 35: "#d2a8ff", 36: "#6fd6e0"}

ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")
OWN_FOLDER = re.compile(r"(?:/[^\s/\x1b]+)+/(?=mcp-conformance serve\b)")


def cells(line):
    """The characters of a line, each with its color, whether it is bold, and whether it is dim."""
    color, bold, dim, at, out = None, False, False, 0, []
    for found in [*ESCAPE.finditer(line), None]:
        end = found.start() if found else len(line)
        out += [(char, DIM if dim else color or TEXT, bold) for char in line[at:end]]
        if found:
            at = found.end()
            for code in map(int, filter(None, (found[1] or "0").split(";"))):
                if code == 0:
                    color, bold, dim = None, False, False
                elif code in (1, 2):
                    bold, dim = bold or code == 1, dim or code == 2
                else:
                    color = COLORS.get(code, COLORS.get(code - 60, color))
    return out


def plain(line):
    return ESCAPE.sub("", line)


def shortened(lines, full):
    """The lines to show: findings other than `full` are reduced to two lines."""
    out, at = [], 0
    while at < len(lines):
        head = re.match(r"(FAIL|WARN)  (\S+)", plain(lines[at]))
        if not head:
            out.append(lines[at])
            at += 1
            continue
        end = next((i for i in range(at, len(lines)) if not plain(lines[i]).strip()), len(lines))
        if head[2] == full:
            out += lines[at:end]
        else:
            out += lines[at : at + 2] + [f"    \x1b[2m… {end - at - 2} lines omitted\x1b[0m"]
        at = end
    return out


def rows(line):
    """The rows of a line: the closing sentences are wrapped, other long lines are truncated."""
    row = cells(line)
    if len(row) <= COLUMNS:
        return [row]
    if not re.match(r"(PASS|FAIL|DEMO|REPORT ONLY|NOT JUDGED|NOTHING JUDGED): ", plain(line)):
        return [row[: COLUMNS - 1] + [("…", DIM, False)]]
    out = []
    while len(row) > COLUMNS:
        split = max(i for i in range(COLUMNS) if row[i][0] == " ")
        out.append(row[:split])
        row = row[split + 1 :]
    return [*out, row]


def draw_row(row, y):
    """A row as SVG: one text element for each run of equal style, placed by its column."""
    out, at = [], 0
    while at < len(row):
        style = row[at][1:]
        end = next((i for i in range(at, len(row)) if row[i][1:] != style), len(row))
        text = "".join(char for char, *_ in row[at:end])
        start = at + len(text) - len(text.lstrip(" "))
        if text := text.strip(" "):
            weight = ' font-weight="bold"' if style[1] else ""
            out.append(
                f'<text x="{MARGIN + start * CELL:.1f}" y="{y}" fill="{style[0]}"{weight} xml:space="preserve"'
                f' textLength="{len(text) * CELL:.1f}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
            )
        at = end
    return out


def main():
    full = sys.argv[1]
    given = [OWN_FOLDER.sub("…/", line) for line in sys.stdin.read().rstrip("\n").split("\n")]
    prompt = "\x1b[2m$\x1b[0m mcp-conformance demo"
    table = [row for line in [prompt, *shortened(given, full)] for row in rows(line)]
    width, height = MARGIN * 2 + COLUMNS * CELL, MARGIN * 2 + LINE * len(table)
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}"'
        f' viewBox="0 0 {width:.0f} {height}" role="img" aria-label="What mcp-conformance demo prints, shortened"'
        f' font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace"'
        f' font-size="{SIZE}">'
    )
    print(
        f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1}" rx="8" fill="{GROUND}" stroke="{FRAME}"/>'
    )
    for index, row in enumerate(table):
        for text in draw_row(row, MARGIN + LINE * (index + 1) - 5):
            print(text)
    print("</svg>")


if __name__ == "__main__":
    main()
