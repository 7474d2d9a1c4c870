#!/usr/bin/env python3
"""Draws time against the number of elements, as an SVG, from results of cumulus_bench.

    cumulus_bench --filter run_length/encode --json FILE
    bench/plots/run_length.py FILE... -o docs/images/run_length_times.svg
"""
import json
import re

import log_plot

# way, backend: label, colour
SERIES = {
    ("encode-plain-loop", "cpu"): ("plain loop, one core", "#888888"),
    ("encode", "cpu"): ("Cumulus, CPU", "#2a9d4a"),
    ("encode-parle", "cuda"): ("PARLE, four passes", "#d1495b"),
    ("encode-cub", "cuda"): ("CUB", "#e0a030"),
    ("encode", "cuda"): ("Cumulus, CUDA", "#1f5fbf"),
}
PATTERNS = {"random-10": ("random", ""), "runs-of-4096": ("runs of 4096", "6 4")}
NAME = re.compile(r"run_length/(encode[a-z-]*)-u32-(.+)/2\^(\d+)$")


def read_points(files):
    """(way, backend, pattern) -> {log2 of n: microseconds}"""
    points = {}
    for path in files:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        for row in rows:
            match = NAME.match(row["name"])
            if match and match[2] in PATTERNS and row["verified"]:
                key = (match[1], row["backend"], match[2])
                points.setdefault(key, {})[int(match[3])] = row["median_us"]
    return points


def draw(points):
    sizes = [n for line in points.values() for n in line]
    ticks = {n: f"2^{n}" for n in range(min(sizes), max(sizes) + 1, 4)}
    lines = [(f"{label}, {words}", colour, dashes, points[(way, backend, pattern)])
             for (way, backend), (label, colour) in SERIES.items()
             for pattern, (words, dashes) in PATTERNS.items() if (way, backend, pattern) in points]
    return log_plot.draw(lines, ticks, "32-bit elements")


if __name__ == "__main__":
    log_plot.main(__doc__, lambda files: draw(read_points(files)))
