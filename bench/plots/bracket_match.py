#!/usr/bin/env python3
"""Draws the time of bracket matching in a single pass against its partitions' size, beside the default, as an
SVG, from results of cumulus_bench.

    cumulus_bench --backend cuda --filter /16777216 --json FILE
    bench/plots/bracket_match.py FILE... -o docs/images/bracket_match_partitions.svg
"""
import json
import math
import re

import log_plot

COLOURS = {"random": "#1f5fbf", "shallow": "#2a9d4a", "hill": "#d1495b", "deep": "#8b1fa9", "stairs": "#e0a030"}
DEFAULT = re.compile(r"match_brackets/([a-z]+)/16777216$")
SINGLE_PASS = re.compile(r"stack_look_back/partition-(\d+)/([a-z]+)/16777216$")


def read_times(files):
    """Microseconds: {text: of the default}, {text: {log2 of the partition: of the single pass}}"""
    default, single_pass = {}, {}
    for path in files:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        for row in rows:
            if not row["verified"] or row["backend"] != "cuda":
                continue
            if match := DEFAULT.match(row["name"]):
                default[match[1]] = row["median_us"]
            elif match := SINGLE_PASS.match(row["name"]):
                single_pass.setdefault(match[2], {})[int(math.log2(int(match[1])))] = row["median_us"]
    return default, single_pass


def draw(default, single_pass):
    sizes = sorted({n for line in single_pass.values() for n in line})
    lines = []
    for text, colour in COLOURS.items():
        lines.append((f"{text}, single pass", colour, "", single_pass[text]))
        lines.append((f"{text}, default", colour, "6 4", {n: default[text] for n in (sizes[0], sizes[-1])}))
    return log_plot.draw(lines, {n: str(2 ** n) for n in sizes}, "elements of a partition; 2^24 symbols")


if __name__ == "__main__":
    log_plot.main(__doc__, lambda files: draw(*read_times(files)))
